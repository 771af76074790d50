"""Writes the tables of compiled code in ``matrix/facts`` from a folder of collected tables.

    python scripts/import_builds.py FOLDER [--to matrix/facts]

FOLDER holds what was read out of published wheels (``torch_arch.csv``, ``torch_cuda_builds_declared.csv``, ``vllm_arch.csv``,
``binary_arch.csv``, ``xformers_build.csv``, ``triton_ptxas.csv``, ``sm_features.csv``, ``sm_binary_compat.json``). Releases
between two that were read and hold the same code are *inferred*. Builds of torch that are on no default index and older than
the table inside torch itself are *curated* below.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.version import Version

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.refresh.tables import Row, text_of

DATE = "2026-11-20"
"""The day the collected tables were read."""
TORCH = ("torch", "machine", "cuda", "default", "sm", "ptx", "known", "source", "date")
EXTENSIONS = ("package", "version", "cuda", "torch", "sm", "ptx", "known", "source", "date")
TRITON = ("triton", "sm", "known", "source", "date")
CAPABILITIES = (
    "capability",
    "architecture",
    "bf16",
    "tf32",
    "fp8",
    "fp4",
    "flash_attn_2",
    "flash_attn_3",
    "known",
    "source",
    "date",
)
JETSONS = (
    ("5.3", "Maxwell (TX1)", "no", "no", "no"),
    ("6.2", "Pascal (TX2)", "no", "no", "no"),
    ("7.2", "Volta (Xavier)", "emulated", "no", "no"),
    ("10.1", "Blackwell (Thor before CUDA 13)", "yes", "yes", "build"),
)
"""Capability, architecture, bf16, what newer formats need (tf32, fp8, fp4), flash-attention 2."""
RUNS_ON = ("sm", "capability", "cuda", "known", "source", "date")

# first release | last release | CUDA | code | PTX: the lists of the build scripts of those years
VARIANTS = """
1.13.0|1.13.1|11.6|37 50 60 70 75 80 86|
2.0.0|2.0.1|11.8|37 50 60 70 75 80 86 90|
2.1.0|2.3.1|11.8|50 60 70 75 80 86 90|
2.4.0|2.6.0|11.8|50 60 70 75 80 86 90|
2.7.0|2.7.1|11.8|50 60 70 75 80 86 90|
2.4.0|2.4.1|12.4|50 60 70 75 80 86 90|
2.5.0|2.5.1|12.1|50 60 70 75 80 86 90|
2.6.0|2.6.0|12.6|50 60 70 75 80 86 90|
2.8.0|2.10.0|12.6|50 60 70 75 80 86 90|
2.7.0|2.7.1|12.8|75 80 86 90 100 120|120
2.8.0|2.8.0|12.9|70 75 80 86 90 100 120|120
2.9.0|2.10.0|13.0|75 80 86 90 100 120|120
"""
CURATED = "curated: build scripts of github.com/pytorch/pytorch and pytorch/builder of that release"
GENERAL = ("vllm/_C.", "vllm/_C_stable_libtorch.")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, default=Path(__file__).resolve().parents[1] / "matrix" / "facts")
    words = parser.parse_args(arguments)
    tables = {
        "torch_builds.csv": text_of(
            torch_builds(words.folder), TORCH, lambda row: (Version(row["torch"]), row["machine"], row["cuda"])
        ),
        "extension_builds.csv": text_of(
            extension_builds(words.folder), EXTENSIONS, lambda row: (row["package"], Version(row["version"]), row["cuda"])
        ),
        "triton_gpus.csv": text_of(triton_gpus(words.folder), TRITON, lambda row: Version(row["triton"])),
        "capabilities.csv": text_of(capabilities(words.folder), CAPABILITIES, lambda row: _pair(row["capability"])),
        "code_runs_on.csv": text_of(
            runs_on(words.folder), RUNS_ON, lambda row: (row["cuda"], int(row["sm"]), _pair(row["capability"]))
        ),
    }
    for name, text in tables.items():
        (words.to / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text.splitlines()) - 1} rows")
    return 0


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def codes(text: str, prefix: str = "sm_") -> str:
    """``sm_75 sm_90a`` → ``75 90a``, in order."""
    found = [each.removeprefix(prefix) for each in text.split() if each.startswith(prefix)]
    return " ".join(sorted(set(found), key=lambda code: (int(code.rstrip("af")), code)))


def torch_builds(folder: Path) -> Iterator[Row]:
    seen = set()
    for row in rows_of(folder, "torch_arch.csv"):
        yield {
            "torch": row["torch"],
            "machine": row["machine"],
            "cuda": row["cuda"],
            "default": "yes",
            "sm": codes(row["sm"]),
            "ptx": codes(row["ptx"], "compute_"),
            "known": "read",
            "source": f"{row['file']} {row['evidence']} sha256={row['sha256'][:16]}",
            "date": DATE,
        }
        seen.add((row["torch"], row["machine"], row["cuda"]))
    for row in rows_of(folder, "torch_cuda_builds_declared.csv"):
        for machine in ("x86_64", "aarch64") if row["machine"] == "any" else (row["machine"],):
            if (row["torch"], machine, row["cuda"]) not in seen and machine != "windows":
                yield {
                    "torch": row["torch"],
                    "machine": machine,
                    "cuda": row["cuda"],
                    "default": "",
                    "sm": codes(row["sm"]),
                    "ptx": "",
                    "known": "declared",
                    "source": row["source"],
                    "date": DATE,
                }
                seen.add((row["torch"], machine, row["cuda"]))
    releases = sorted({Version(row["torch"]) for row in rows_of(folder, "torch_arch.csv")})
    for line in VARIANTS.strip().splitlines():
        first, last, cuda, sm, ptx = line.split("|")
        for release in releases:
            if Version(first) <= release <= Version(last) and (str(release), "x86_64", cuda) not in seen:
                yield {
                    "torch": str(release),
                    "machine": "x86_64",
                    "cuda": cuda,
                    "default": "",
                    "sm": sm,
                    "ptx": ptx,
                    "known": "curated",
                    "source": CURATED,
                    "date": DATE,
                }


def extension_builds(folder: Path) -> Iterator[Row]:
    yield from _vllm(folder)
    for row in rows_of(folder, "xformers_build.csv"):
        listed = [each.removesuffix("+PTX") for each in row["TORCH_CUDA_ARCH_LIST"].split()]
        sm = " ".join(dict.fromkeys(each.replace(".", "") for each in listed))
        ptx = " ".join(
            each.removesuffix("+PTX").replace(".", "") for each in row["TORCH_CUDA_ARCH_LIST"].split() if "+PTX" in each
        )
        yield _extension(
            "xformers",
            row["xformers"],
            row["built_with_cuda"],
            row["built_with_torch"],
            sm,
            ptx,
            "read",
            f"{row['file']} cpp_lib.json",
        )
    yield from _members(folder)


def _vllm(folder: Path) -> Iterator[Row]:
    """The general kernels; between two releases with the same code the others have it too."""
    read: dict[Version, tuple[str, str]] = {}
    for row in rows_of(folder, "vllm_arch.csv"):
        if row["member"].startswith(GENERAL):
            sm = codes(row["core_sm"])
            read[Version(row["vllm"])] = (sm, row["member"])
    versions = sorted(read)
    for release in sorted({Version(row["vllm"]) for row in rows_of(folder, "vllm_pins.csv")} | set(versions)):
        cuda = "13" if release >= Version("0.20.0") else "12" if release >= Version("0.2.2") else ""
        if release in read:
            sm, member = read[release]
            yield _extension("vllm", str(release), cuda, "", sm, "", "read", f"fatbin headers of {member}")
            continue
        before = max((each for each in versions if each < release), default=None)
        after = min((each for each in versions if each > release), default=None)
        if (
            before
            and after
            and _general(read[before][0]) == _general(read[after][0])
            and (before >= Version("0.20")) == (after >= Version("0.20"))
        ):
            yield _extension("vllm", str(release), cuda, "", read[before][0], "", "inferred", f"as {before} and {after}")
        elif release in (Version("0.9.0"), Version("0.9.0.1"), Version("0.9.1")):
            yield _extension(
                "vllm",
                str(release),
                cuda,
                "",
                "70 75 80 89 90 100",
                "",
                "declared",
                "release pipeline of github.com/vllm-project/vllm at v0.9.0; its PTX is not in every kernel: issues/18995",
            )
        else:
            yield _extension("vllm", str(release), cuda, "", "", "", "inferred", "CUDA as its neighbours; code not read")


def _general(sm: str) -> str:
    return " ".join(code for code in sm.split() if code not in ("86", "87"))


def _members(folder: Path) -> Iterator[Row]:
    """Other packages: the code all their main libraries hold; bitsandbytes has a library for each CUDA."""
    rows = [
        row
        for row in rows_of(folder, "binary_arch.csv")
        if row["package"] in ("bitsandbytes", "sgl-kernel", "sglang-kernel", "auto-gptq", "autoawq")
    ]
    found: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in rows:
        cuda = row["member"].rpartition("_cuda")[2].partition(".")[0] if row["package"] == "bitsandbytes" else ""
        found.setdefault((row["package"], row["version"], f"{cuda[:-1]}.{cuda[-1]}" if cuda.isdigit() else ""), []).append(row)
    for (package, version, cuda), members in found.items():
        columns = list(members[0])
        sm = set.intersection(*(set(codes(row[columns[7]]).split()) for row in members))
        ptx = set.intersection(*(set(codes(row["any_ptx"], "compute_").split()) for row in members))
        files = ", ".join(row["member"].rpartition("/")[2] for row in members)
        yield _extension(
            package, version, cuda, "", _sorted(sm), _sorted(ptx), "read", f"{members[0]['file']}: fatbin headers of {files}"
        )


def _sorted(found: Iterable[str]) -> str:
    return " ".join(sorted(found, key=lambda code: (int(code.rstrip("af")), code)))


def _extension(package: str, version: str, cuda: str, torch: str, sm: str, ptx: str, known: str, source: str) -> Row:
    return {
        "package": package,
        "version": version,
        "cuda": cuda,
        "torch": torch,
        "sm": sm,
        "ptx": ptx,
        "known": known,
        "source": source,
        "date": DATE,
    }


def triton_gpus(folder: Path) -> Iterator[Row]:
    """What the assemblers of a release know, each alone: triton takes the one for Blackwell from capability 10 on."""
    found: dict[str, set[str]] = {}
    unknown = set()
    for row in rows_of(folder, "triton_ptxas.csv"):
        found.setdefault(row["triton"], set()).update(codes(row["gpu_names"]).split())
        if not row["gpu_names"].startswith("sm_"):
            unknown.add(row["triton"])
    for triton, sm in found.items():
        if triton not in unknown:
            yield {
                "triton": triton,
                "sm": _sorted(sm),
                "known": "read",
                "source": "ptxas --help of the assemblers in the wheel",
                "date": DATE,
            }


def capabilities(folder: Path) -> Iterator[Row]:
    for row in rows_of(folder, "sm_features.csv"):
        yield {
            "capability": row["compute_capability"],
            "architecture": row["architecture"],
            "bf16": row["bf16"],
            "tf32": row["tf32"],
            "fp8": row["fp8_tensor"],
            "fp4": row["fp4_tensor"],
            "flash_attn_2": row["flash_attn_2"].split()[0],
            "flash_attn_3": row["flash_attn_3"],
            "known": "curated",
            "source": "documentation of torch, vLLM and flash-attention",
            "date": DATE,
        }

    for capability, architecture, bf16, newer, flash in JETSONS:
        yield {
            "capability": capability,
            "architecture": architecture,
            "bf16": bf16,
            **dict.fromkeys(("tf32", "fp8", "fp4"), newer),
            "flash_attn_2": flash,
            "flash_attn_3": "no",
            "known": "curated",
            "source": "documentation of torch, vLLM and flash-attention",
            "date": DATE,
        }


def runs_on(folder: Path) -> Iterator[Row]:
    """Which code runs on which device, pair by pair, from the table in torch's own source."""
    table = json.loads((folder / "sm_binary_compat.json").read_text(encoding="utf-8"))
    devices = [row["compute_capability"] for row in rows_of(folder, "sm_features.csv")]
    devices += ["3.7", *(each[0] for each in JETSONS)]
    for cuda, rules in (("", table["code_sm_runs_on_device"]), ("13.2", table["cuda>=13.2 override"])):
        for sm, rule in rules.items():
            for device in sorted(set(devices), key=_pair):
                number = int(device.replace(".", ""))
                if _runs(int(sm), number, rule):
                    yield {
                        "sm": sm,
                        "capability": device,
                        "cuda": cuda,
                        "known": "read",
                        "source": table["source"],
                        "date": DATE,
                    }


def _runs(sm: int, device: int, rule: dict[str, object]) -> bool:
    if "only" in rule:
        return device in rule["only"]  # type: ignore[operator]
    return device >= sm and device // 10 == sm // 10 and device not in rule.get("exclude", ())  # type: ignore[operator]


def _pair(capability: str) -> tuple[int, ...]:
    return tuple(map(int, capability.split(".")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
