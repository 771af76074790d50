"""``linked.csv`` and ``torch_symbols.csv``: what the loader resolves when a package with compiled code is imported.

Of each release one wheel for Linux on x86_64 is read, and of it the libraries that the import loads. A symbol of torch has a
row if some series of torch exports it and another does not, and a wheel asks for it or it belongs to torch's core library.
What was read is kept in a folder of the user's cache: a stopped run goes on, and a new torch is compared with the symbols of
wheels that were read before.
"""

from __future__ import annotations

import json
import mmap
import re
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from packaging.version import Version
from pypi_simple import DistributionPackage

from compat.index.database import default_path
from scripts.pack_wheels import members
from scripts.refresh.elf import Dynamic, dynamic_of
from scripts.refresh.index import Index, Release
from scripts.refresh.libraries import linux
from scripts.refresh.tables import Row, changed, load, text_of
from scripts.refresh.updates import MIB, THREADS, Request, Update
from scripts.refresh.wheel import UnreadableError, Wheel

COLUMNS = ("package", "version", "variant", "needs", "versions", "known", "source", "date")
SYMBOL_COLUMNS = ("symbol", "series", "needed_by", "known", "source", "date")
NEWEST = 12
"""Releases of a package that are read where the table has none."""
LIBRARIES = {
    "apache-tvm-ffi": r"tvm_ffi/(?:lib/libtvm_ffi|core)\.",
    "auto-gptq": r"(?:autogptq|exllama)\w*\.",
    "autoawq-kernels": r"awq_ext\.",
    "bitsandbytes": r"bitsandbytes/libbitsandbytes_cuda(\d+)(\d)\.so",
    "ctranslate2": r"ctranslate2/_ext\.|ctranslate2\.libs/libctranslate2",
    "fastsafetensors": r"fastsafetensors/cpp\.",
    "fbgemm-gpu": r"fbgemm_gpu/fbgemm_gpu_py\.so",
    "fbgemm-gpu-genai": r"fbgemm_gpu/experimental/gen_ai/",
    "hf-xet": r"hf_xet/hf_xet\.",
    "llguidance": r"llguidance/_lib\.",
    "lmcache": r"lmcache/(?:c_ops|cuda_ops)\.",
    "lmdeploy": r"lmdeploy/(?:turbomind/|lib/)*_turbomind\.",
    "mooncake-transfer-engine": r"mooncake/engine\.",
    "numpy": r"numpy/_?core/_multiarray_umath\.",
    "onnxruntime-gpu": r"onnxruntime/capi/(?:onnxruntime_pybind11_state\.|libonnxruntime_providers_cuda\.)",
    "outlines-core": r"outlines_core/(?:fsm/)?outlines_core\w*\.",
    "pyarrow": r"pyarrow/(?:lib\.|libarrow\.so|libarrow_python\.so\.)",
    "ray": r"ray/_raylet\.so",
    "safetensors": r"safetensors/_safetensors_rust\.",
    "sentencepiece": r"sentencepiece/_sentencepiece\.",
    "sgl-kernel": r"sgl_kernel/(?:sm100/)?common_ops\.",
    "sglang-kernel": r"sgl_kernel/(?:sm100/)?common_ops\.",
    "tensordict": r"tensordict/_C\.",
    "tiktoken": r"tiktoken/_tiktoken\.",
    "tokenizers": r"tokenizers/tokenizers\.",
    "torchao": r"torchao/_C",
    "torchaudio": r"torchaudio/lib/(?:lib|_)torchaudio\.",
    "torchcodec": r"torchcodec/libtorchcodec_?(?:core)?6\.",
    "torchtext": r"torchtext/lib/libtorchtext\.",
    "torchvision": r"torchvision/_C(?:_stable)?\.",
    "transformer-engine-cu12": r"transformer_engine/wheel_lib/libtransformer_engine\.",
    "triton": r"triton/_C/libtriton\.",
    "vllm": r"vllm/_C(?:_stable_libtorch)?\.",
    "vllm-flash-attn": r"vllm_flash_attn_2_cuda\.",
    "xformers": r"xformers/_C\.",
    "xgrammar": r"xgrammar/\S*bindings\S*\.",
}
"""The libraries of a package that its import loads, as a pattern of member names; of those for other GPUs the newest.

Groups of the pattern give the CUDA release of a library, where the wheel has one for each and loads that of torch.
"""
TORCH = r"torch/lib/lib(?:c10|c10_cuda|torch_cpu|torch_cuda|torch_cuda_cu|torch_cuda_cpp|torch_python)\.so"
_CORE = ("libc10.so", "libc10_cuda.so")
"""Small, and what every extension uses: all of their symbols are kept."""
_SERIES = Version("2.0")
"""The oldest series of torch whose exports are read, from the last release of each."""
_OF_SYSTEM = re.compile(r"lib(?:c|m|dl|rt|util|pthread|gcc_s|stdc\+\+|resolv)\.so|ld-linux|linux-vdso|libcuda\.so|libpython")
_OF_TORCH = re.compile(r"_ZN?[KVR]*\d{1,3}(?:c10|at|torch|caffe2)|_ZT[VISH]N?\d{1,3}(?:c10|at|torch|caffe2)|THP|aoti_torch")
"""How the names of torch's C++ namespaces, their types, and its C interfaces begin, as the compiler mangles them."""
_FLOOR = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)+)")
Table = Mapping[tuple[str, ...], dict[str, str]]


@dataclass(frozen=True)
class Linked:
    """What libraries ask of others: library names, versions of the C and C++ libraries, symbols of torch."""

    members: tuple[str, ...]
    needs: tuple[str, ...]
    versions: tuple[str, ...]
    symbols: tuple[str, ...]


@dataclass
class _Package:
    """What was read of one package in a run."""

    rows: dict[tuple[str, ...], Row] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    received: int = 0


def update(folder: Path, request: Request) -> Update:
    """Return the new text of both tables; see :data:`scripts.refresh.updates.Kind`."""
    rows: Table = load(folder / "linked.csv", COLUMNS, ("package", "version", "variant"))
    cache = Path(default_path()).parent / "linked"
    cache.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in LIBRARIES if name in request.packages]
    exports, done = _Package(), []
    if wanted:
        with ThreadPoolExecutor(THREADS) as pool:
            done = list(pool.map(lambda name: _package(name, rows, cache, request), wanted))
    series = _exports(cache, request, exports) if "torch" in request.packages else {}
    done.append(exports)
    new = {key: row for each in done for key, row in each.rows.items()}
    differences = changed({key: row for key, row in rows.items() if key in new}, new)
    texts = {
        "linked.csv": text_of(
            {**rows, **new}.values(), COLUMNS, lambda row: (row["package"], Version(row["version"]), row["variant"])
        )
    }  # fmt: skip
    if series:
        old = load(folder / "torch_symbols.csv", SYMBOL_COLUMNS, ("symbol",))
        symbols = _symbol_rows({**rows, **new}.values(), old.values(), cache, series, request.today)
        texts["torch_symbols.csv"] = text_of(symbols, SYMBOL_COLUMNS, lambda row: row["symbol"])
    return Update(
        texts,
        tuple(f"linked.csv: {line}" for line in differences),
        tuple(line for each in done for line in each.unread),
        sum(each.received for each in done),
    )


def _package(name: str, rows: Table, cache: Path, request: Request) -> _Package:
    """Read the newest releases that the table lacks, and as many older ones as are asked for, or only those that are named."""
    found, index = _Package(), Index()
    wheels = [(release.version, file) for release in index.releases(name) if (file := linux(release)) is not None]
    chosen = [each for each in wheels if each[0] in request.releases] if request.releases else wheels[-NEWEST - request.gaps :]
    known = {key[:2] for key in rows}
    for version, file in reversed(chosen):
        if (name, version) in known:
            continue
        try:
            variants = _kept(cache / f"{file.filename}.z", partial(_linked, index, file, name, request.budget))
        except UnreadableError as problem:
            found.unread.append(f"{name} {version}: {problem}")
            continue
        for variant, linked in variants.items():
            found.rows[name, version, variant] = {
                "package": name,
                "version": version,
                "variant": variant,
                "needs": " ".join(linked["needs"]),
                "versions": " ".join(linked["versions"]),
                "known": "read",
                "source": f"{file.filename}: {', '.join(map(_plain, linked['members']))}",
                "date": request.today,
            }
    found.received = index.received
    print(f"linked.csv: {name}: {len(found.rows)} releases read, {index.received / MIB:.1f} MiB", file=sys.stderr, flush=True)
    return found


def _kept(path: Path, read: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was read before, or read it and keep it."""
    if not path.exists():
        content = zlib.compress(json.dumps(read()).encode())
        path.with_suffix(".new").write_bytes(content)
        path.with_suffix(".new").replace(path)
    kept: dict[str, Any] = json.loads(zlib.decompress(path.read_bytes()))
    return kept


def _linked(index: Index, file: DistributionPackage, name: str, budget: int) -> dict[str, Any]:
    """Read a wheel: a :class:`Linked` as a mapping for each CUDA release, or one under an empty name."""

    def read() -> dict[str, Any]:
        with index.wheel(file, budget) as wheel:
            own = frozenset(_plain(member) for member in wheel.members() if ".so" in member)
            groups: dict[str, dict[str, Dynamic]] = defaultdict(dict)
            for member, dynamic in _dynamics(wheel, LIBRARIES[name]).items():
                match = re.match(LIBRARIES[name], member)
                groups[".".join(match.groups()) if match else ""][member] = dynamic
        return {variant: vars(_asked(libraries, own)) for variant, libraries in groups.items()}

    return index.tried(read, file.filename)


def _asked(libraries: Mapping[str, Dynamic], own: frozenset[str]) -> Linked:
    """Return what libraries that are loaded together ask of others than the wheel's ``own``."""
    exported = {symbol for each in libraries.values() for symbol in each.exported}
    needed = {each for library in libraries.values() for each in library.needed}
    floors: dict[str, tuple[int, ...]] = {}
    for library in libraries.values():
        for version in library.versions:
            if match := _FLOOR.fullmatch(version):
                number = tuple(map(int, match[2].split(".")))
                floors[match[1]] = max(floors.get(match[1], ()), number)
    asked = {symbol for each in libraries.values() for symbol in each.undefined if _OF_TORCH.match(symbol)}
    return Linked(
        tuple(libraries),
        tuple(sorted(each for each in needed if each not in own and not _OF_SYSTEM.match(each))),
        tuple(f"{what}_{'.'.join(map(str, number))}" for what, number in sorted(floors.items())),
        tuple(sorted(asked - exported)),
    )


def _plain(member: str) -> str:
    return member.rpartition("/")[2]


def _dynamics(wheel: Wheel, pattern: str) -> dict[str, Dynamic]:
    """Read the libraries of a wheel whose names match; several of one name, as for each CUDA, count together."""
    names = [name for name in wheel.members() if re.match(pattern, name) and ".so" in name]
    wheel.require(names)
    found = {}
    for name in names:
        with tempfile.TemporaryFile() as file:
            for piece in wheel.pieces(name):
                file.write(piece)
            file.flush()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as content:
                try:
                    found[name] = dynamic_of(content)
                except ValueError as problem:
                    raise UnreadableError(f"{wheel.name}: {name}: {problem}") from None
    return found


# --- Symbols of torch.


def _exports(cache: Path, request: Request, found: _Package) -> dict[str, dict[str, list[str]]]:
    """Return what each series of torch exports, by library; empty if one cannot be read."""
    index = Index()
    newest: dict[str, tuple[Release, DistributionPackage]] = {}
    for release in index.releases("torch"):
        file = linux(release)
        if file is not None and release.key >= _SERIES:
            newest[f"{release.key.major}.{release.key.minor}"] = release, file
    series = {}
    for name, (release, file) in newest.items():
        try:
            series[name] = _kept(cache / f"{file.filename}.z", partial(_exported, index, file))
        except UnreadableError as problem:
            found.unread.append(f"torch {release.version}: {problem}")
        print(f"torch_symbols.csv: torch {release.version}: {index.received / MIB:.1f} MiB so far", file=sys.stderr, flush=True)
    found.received = index.received
    return series if len(series) == len(newest) else {}


def _exported(index: Index, file: DistributionPackage) -> dict[str, list[str]]:
    def read() -> dict[str, list[str]]:
        with index.wheel(file, 2048 * MIB) as wheel:
            libraries = _dynamics(wheel, TORCH)
        return {
            _plain(name): sorted(symbol for symbol in library.exported if _OF_TORCH.match(symbol))
            for name, library in libraries.items()
        }

    return index.tried(read, file.filename)


def _symbol_rows(
    rows: Iterable[Row], old: Iterable[Row], cache: Path, series: Mapping[str, Mapping[str, Sequence[str]]], today: str
) -> list[Row]:
    """Return the symbols that some series export, with the releases whose wheels ask for them.

    Of a wheel that is not in the cache, what the ``old`` rows say of it stays.
    """
    numbers = sorted(series, key=Version)
    exports = {name: {symbol for each in series[name].values() for symbol in each} for name in numbers}
    everywhere = set.intersection(*exports.values())
    anywhere = set.union(*exports.values())
    asking: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    of_package: dict[str, list[str]] = defaultdict(list)
    lost: set[tuple[str, str]] = set()
    for row in sorted(rows, key=lambda row: Version(row["version"])):
        if row["variant"]:
            continue
        of_package[row["package"]].append(row["version"])
        kept = cache / f"{row['source'].partition(':')[0]}.z"
        if not kept.exists():
            lost.add((row["package"], row["version"]))
            continue
        for symbol in json.loads(zlib.decompress(kept.read_bytes()))[""]["symbols"]:
            asking[symbol][row["package"]].append(row["version"])
    for row in old if lost else ():
        for part in filter(None, row["needed_by"].split("; ")):
            package, _, text = part.partition(" ")
            found = [each for each in members(of_package[package], text) if (package, each) in lost]
            asking[row["symbol"]][package] += found
    core = {symbol for each in series.values() for library in _CORE for symbol in each.get(library, ())}
    return [
        {
            "symbol": symbol,
            "series": runs(numbers, [name for name in numbers if symbol in exports[name]]),
            "needed_by": "; ".join(
                f"{package} {runs(of_package[package], versions)}"
                for package, versions in sorted(asking[symbol].items())
                if versions
            ),
            "known": "read",
            "source": "exported symbols of the last release of each series",
            "date": today,
        }
        for symbol in (core | asking.keys()) & (anywhere - everywhere)
    ]


def runs(every: Sequence[str], some: Iterable[str]) -> str:
    """Return runs of consecutive members: ``2.0..2.4 2.6``."""
    found: list[list[int]] = []
    for at in sorted(map(every.index, some)):
        if found and found[-1][-1] == at - 1:
            found[-1][1:] = [at]
        else:
            found.append([at])
    return " ".join("..".join(every[at] for at in run) for run in found)
