"""``python -m scripts.lint_facts [FOLDER]``: whether the fact tables can be trusted; one line a problem, and then exit code 1.

Every row has a source, a date and a way it is known, and is there once; rows do not contradict each other within a table or
across tables (a release that requires something and is not listed, a GPU name with two capabilities, PTX that is newer than
every code beside it, a CUDA without a driver floor).
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from compat.versions import is_version, key_of
from scripts.refresh.tables import TableError, load

FACTS = Path(__file__).resolve().parents[1] / "matrix" / "facts"
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "capabilities": (
        ("capability", "architecture", "bf16", "tf32", "fp8", "fp4", "flash_attn_2", "flash_attn_3"), ("capability",),
    ),
    "code_runs_on": (("sm", "capability", "cuda"), ("sm", "capability", "cuda")),
    "cuda_driver": (("cuda_toolkit", "driver_linux", "driver_windows", "floor_branch", "range_note"), ("cuda_toolkit",)),
    "extension_builds": (
        ("package", "version", "machine", "cuda", "torch", "sm", "ptx"),
        ("package", "version", "machine", "cuda", "torch", "source"),
    ),
    "gpu_peaks": (("name", "driver_name", "memory_gb", "tflops_16bit", "gb_s"), ("name",)),
    "gpus_amd": (("name", "aliases", "gfx", "architecture", "memory_gb"), ("name", "memory_gb")),
    "gpus_nvidia": (("name", "aliases", "class", "compute_capability", "memory_gb"), ("name", "memory_gb")),
    "linked": (("package", "version", "variant", "needs", "versions"), ("package", "version", "variant")),
    "models": (("organisation", "stem", "architectures", "types", "own_code"), ("organisation", "stem")),
    "numpy_abi": (("package", "last", "first", "module"), ("package",)),
    "programs": (("program", "package", "module"), ("program", "package")),
    "overlaps": (("package", "file", "releases", "alike", "mixed", "part", "build", "rank"), ("package", "file")),
    "published_wheels": (("package", "version", "series", "cudas", "pythons"), ("package", "version")),
    "releases": (
        ("package", "version", "uploaded", "requires_python", "glibc", "wheels", "yanked", "reason"), ("package", "version"),
    ),
    "requirements": (("package", "requirement", "releases"), ("package", "requirement")),
    "successors": (("package", "old", "new"), ("package", "old")),
    "torch_builds": (("torch", "machine", "cuda", "default", "sm", "ptx"), ("torch", "machine", "cuda")),
    "torch_conda": (("torch", "cuda", "sm", "ptx"), ("torch", "cuda")),
    "torch_rocm": (("rocm", "gfx", "series"), ("rocm",)),
    "torch_symbols": (("symbol", "series", "needed_by"), ("symbol",)),
    "triton_gpus": (("triton", "sm", "cuda", "blackwell"), ("triton",)),
    "wheels": (("package", "first", "last", "wheels"), ("package", "first")),
}  # fmt: skip
"""Columns of each table before those that say how a row is known, and what may be there only once."""
Rows = list[dict[str, str]]


def problems(folder: Path) -> Iterator[str]:
    """Return the problems in a folder's tables; missing and unknown tables are problems too."""
    found: dict[str, Rows] = {}
    for name, (columns, key) in TABLES.items():
        path = folder / f"{name}.csv"
        if not path.exists():
            yield f"{path.name}: is missing"
            continue
        try:
            found[name] = list(load(path, (*columns, "known", "source", "date"), key).values())
        except TableError as problem:
            yield str(problem)
            continue
        yield from (f"{path.name}: {line}" for row in found[name] for line in _dated(row, key))
    yield from (f"{path.name}: is no table that is known here" for path in folder.glob("*.csv") if path.stem not in TABLES)
    for name, check in _CHECKS.items():
        if name in found:
            yield from (f"{name}.csv: {line}" for line in check(found))


def _dated(row: dict[str, str], key: tuple[str, ...]) -> Iterator[str]:
    place = ", ".join(row[each] for each in key)
    try:
        datetime.date.fromisoformat(row["date"])
        if row.get("uploaded"):
            datetime.date.fromisoformat(row["uploaded"])
    except ValueError:
        yield f"{place}: expected days such as 2026-01-31"
    for column in ("version", "torch", "triton", "cuda", "capability", "compute_capability"):
        if row.get(column) and not is_version(row[column]):
            yield f"{place}: {column} {row[column]!r} is no version"


def _gpus(column: str, table: str) -> Callable[[dict[str, Rows]], Iterator[str]]:
    def check(found: dict[str, Rows]) -> Iterator[str]:
        known: dict[str, str] = {}
        for row in found[table]:  # an alias may refer to several cards, a name may not
            other = known.setdefault(row["name"].lower(), row[column])
            if other != row[column]:
                yield f"{row['name']}: {column} is {other} in one row and {row[column]} in another"

    return check


def _codes(table: str) -> Callable[[dict[str, Rows]], Iterator[str]]:
    def check(found: dict[str, Rows]) -> Iterator[str]:
        for row in found[table]:
            place = " ".join(
                value for name, value in row.items() if name in ("package", "version", "machine", "torch", "triton", "cuda")
            )
            codes = [*row["sm"].split(), *row.get("ptx", "").split()]
            wrong = [code for code in codes if not code.rstrip("af").isdecimal()]
            if wrong:
                yield f"{place}: {', '.join(wrong)} is no architecture"
            if row["sm"] and len(set(row["sm"].split())) < len(row["sm"].split()):
                yield f"{place}: an architecture is there twice"

    return check


def _torch(found: dict[str, Rows]) -> Iterator[str]:
    yield from _codes("torch_builds")(found)
    defaults: dict[tuple[str, str], str] = {}
    majors = {row["cuda_toolkit"].partition(".")[0] for row in found.get("cuda_driver", ()) if row["driver_linux"]}
    for row in found["torch_builds"]:
        place = row["torch"], row["machine"]
        if row["default"] == "yes" and defaults.setdefault(place, row["cuda"]) != row["cuda"]:
            yield f"torch {' '.join(place)}: two builds are the default"
        if row["cuda"] and row["cuda"].partition(".")[0] not in majors:
            yield f"torch {row['torch']}: no driver is known for CUDA {row['cuda']}"


def _requirements(found: dict[str, Rows]) -> Iterator[str]:
    versions: dict[str, list[str]] = {}
    for row in found.get("releases", ()):
        versions.setdefault(row["package"], []).append(row["version"])
    for row in found["requirements"]:
        known = versions.get(row["package"], [])
        for run in row["releases"].split():
            first, _, last = run.partition("..")
            if first not in known or (last or first) not in known:
                yield f"{row['package']} {run}: requires {row['requirement']}, and is not among the releases"
            elif last and known.index(first) >= known.index(last):
                yield f"{row['package']} {run}: expected the older release first"


def _releases(found: dict[str, Rows]) -> Iterator[str]:
    before: dict[str, str] = {}
    for row in found["releases"]:
        name, version = row["package"], row["version"]
        if not is_version(version):
            continue  # already reported
        if name in before and key_of(version) <= key_of(before[name]):
            yield f"{name} {version}: expected behind {before[name]}"
        before[name] = version
        if row["reason"] and not row["yanked"]:
            yield f"{name} {version}: a reason, and it is not withdrawn"


def _driver(found: dict[str, Rows]) -> Iterator[str]:
    floors: dict[str, str] = {}
    for row in found["cuda_driver"]:
        major = row["cuda_toolkit"].partition(".")[0]
        if row["floor_branch"].isdecimal() and floors.setdefault(major, row["floor_branch"]) != row["floor_branch"]:
            yield f"CUDA {row['cuda_toolkit']}: the floor is {row['floor_branch']}, and {floors[major]} in another row"


def _runs_on(found: dict[str, Rows]) -> Iterator[str]:
    known = {row["capability"] for row in found.get("capabilities", ())}
    for row in found["code_runs_on"]:
        if row["capability"] not in known:
            yield f"{row['capability']}: is not among the capabilities"


def _rocm(found: dict[str, Rows]) -> Iterator[str]:
    known = {row["gfx"] for row in found.get("gpus_amd", ())}
    for row in found["torch_rocm"]:
        yield from (f"ROCm {row['rocm']}: {target} is no card's target" for target in row["gfx"].split() if target not in known)


def _overlaps(found: dict[str, Rows]) -> Iterator[str]:
    owners: dict[str, set[str]] = {}
    for row in found["overlaps"]:
        owners.setdefault(row["file"], set()).add(row["package"])
    for row in found["overlaps"]:
        place, others = f"{row['package']} {row['file']}", owners[row["file"]] - {row["package"]}
        if not others:
            yield f"{place}: no other package has it"
        if not row["rank"].isdecimal():
            yield f"{place}: rank {row['rank']!r} is no number"
        for column in ("alike", "mixed"):
            strangers = [name for name in row[column].split() if name.lstrip("=") not in others]
            yield from (f"{place}: {name} is in {column}, and does not have it" for name in strangers)
        for run in row["releases"].split() or [""]:
            first, dots, last = run.partition("..")
            if not dots or not is_version(first) or (last and (not is_version(last) or key_of(last) < key_of(first))):
                yield f"{place}: {run!r} is no run of releases"


def _triton(found: dict[str, Rows]) -> Iterator[str]:
    yield from _codes("triton_gpus")(found)
    known = {row["cuda_toolkit"] for row in found.get("cuda_driver", ())}
    for row in found["triton_gpus"]:
        for cuda in filter(None, (row["cuda"], row["blackwell"])):
            if cuda not in known:
                yield f"triton {row['triton']}: no driver is known for CUDA {cuda}"


_CHECKS: dict[str, Callable[[dict[str, Rows]], Iterator[str]]] = {
    "gpus_nvidia": _gpus("compute_capability", "gpus_nvidia"),
    "gpus_amd": _gpus("gfx", "gpus_amd"),
    "extension_builds": _codes("extension_builds"),
    "triton_gpus": _triton,
    "torch_builds": _torch,
    "torch_conda": _codes("torch_conda"),
    "overlaps": _overlaps,
    "requirements": _requirements,
    "releases": _releases,
    "cuda_driver": _driver,
    "code_runs_on": _runs_on,
    "torch_rocm": _rocm,
}


def main(arguments: list[str]) -> int:
    found = list(problems(Path(arguments[0]) if arguments else FACTS))
    print("\n".join(found) or "the fact tables hold together")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
