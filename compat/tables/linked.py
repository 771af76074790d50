"""What published wheels ask of the loader of Linux (``matrix/facts/linked.csv``), compiled with the torch that can load them.

Three files: :func:`open_linked` for checks, :func:`open_symbols`, which only the diagnosis of an undefined symbol needs, and
:func:`open_numpy_abi` (``matrix/facts/numpy_abi.csv``) for environments with numpy 2.
"""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table
from compat.records import cached, record
from compat.versions import key_of, recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

FILE = os.path.join(DATA, "linked.bin")
SYMBOLS_FILE = os.path.join(DATA, "torch_symbols.bin")
NUMPY_FILE = os.path.join(DATA, "numpy_abi.bin")
NUMPY_TABLE = "numpy_abi.csv"
_TAGS = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
"""Platform tags older than those that name their glibc."""


@record(frozen=True)
class Linked:
    """The wheel of one release for Linux on x86_64, or its library for one CUDA release, the ``variant``.

    ``needs`` are libraries that neither the wheel nor every system has. ``versions`` are the newest versions that it asks for
    (``GLIBC_2.28``); ``tag`` is the glibc that its platform tag promises, "" if none. ``series`` are those of torch (``2.4``)
    that export every symbol it asks for; ``None`` if it asks for none, or all of them export what it asks for.
    """

    version: str
    variant: str
    needs: tuple[str, ...]
    versions: tuple[str, ...]
    tag: str
    series: tuple[str, ...] | None

    def cuda(self) -> str | None:
        """The major release of CUDA whose run-time libraries it needs; ``None`` if none or several."""
        found = {each.split(".")[2] for each in self.needs if each.startswith(("libcudart.so.", "libcublas.so."))}
        return found.pop() if len(found) == 1 else None

    def least(self, what: str) -> str | None:
        """The newest version of GLIBC, GLIBCXX or CXXABI that it asks for (``2.28``)."""
        return next((each[len(what) + 1 :] for each in self.versions if each.startswith(f"{what}_")), None)


class LinkedTable:
    """The shipped rows by package, oldest release first, and the oldest and newest series of torch that were read."""

    def __init__(self, content: bytes) -> None:
        (self.oldest, self.newest), self._blocks = marshal.loads(content)
        self._found: dict[tuple[str, str, str | None], Linked | None] = {}

    @property
    def packages(self) -> frozenset[str]:
        return frozenset(self._blocks)

    def of(self, package: str) -> tuple[Linked, ...]:
        return tuple(Linked(*row) for row in self._rows(package))

    def release(self, package: str, version: str, cuda: str | None) -> Linked | None:
        """The wheel of a published release, with its library for the CUDA of torch; ``None`` if that was not read."""
        if package not in self._blocks:
            return None
        asked = package, version, cuda  # the environments of a fleet and the selections of a lock file share releases
        if asked not in self._found:
            rows = self._rows(package)
            wanted = recorded(version, {row[0] for row in rows})
            self._found[asked] = next((Linked(*row) for row in rows if row[0] == wanted and row[1] in ("", cuda)), None)
        return self._found[asked]

    def _rows(self, package: str) -> tuple[tuple[Any, ...], ...]:
        rows: tuple[tuple[Any, ...], ...] = marshal.loads(self._blocks[package]) if package in self._blocks else ()
        return rows


@record(frozen=True)
class Symbols:
    """The series of torch that were read, and of each symbol that not all of them export, those that do."""

    series: tuple[str, ...]
    exported: Mapping[str, tuple[str, ...]]


@cached
def open_linked() -> LinkedTable:
    """The shipped table, read once."""
    return LinkedTable(read_table(FILE))


def open_symbols() -> Symbols:
    """The shipped symbols of torch."""
    import zlib

    series, found = marshal.loads(zlib.decompress(read_table(SYMBOLS_FILE)))
    return Symbols(series, {symbol: tuple(series[at] for at in places) for symbol, places in found.items()})


@record(frozen=True)
class NumpyAbi:
    """The last release of a package that was compiled against numpy 1, and the first after it that was not, "" if none.

    ``module`` is what to import to load the compiled code.
    """

    last: str
    first: str
    module: str


def open_numpy_abi() -> dict[str, NumpyAbi]:
    """The packages that had releases compiled against numpy 1, by name."""
    return {name: NumpyAbi(*row) for name, row in marshal.loads(read_table(NUMPY_FILE)).items()}


def series_of(release: str) -> str:
    """``2.4.1+cu121`` → ``2.4``."""
    return ".".join(release.partition("+")[0].split(".")[:2])


# --- For the build.


def packed(folder: str) -> tuple[bytes, bytes]:
    """Compile the fact files of a folder: the content of both files."""
    import zlib

    linked = sorted(_rows(folder, "linked.csv"), key=lambda row: (row["package"], key_of(row["version"])))
    versions: dict[str, list[str]] = {}
    for row in linked:
        if not row["variant"]:
            versions.setdefault(row["package"], []).append(row["version"])
    symbols = list(_rows(folder, "torch_symbols.csv"))
    ends = {end for row in symbols for run in row["series"].split() for end in run.split("..")}
    every = sorted(ends, key=key_of) or ["0"]
    exported = {row["symbol"]: members(every, row["series"]) for row in symbols}
    loading: dict[tuple[str, str], list[str]] = {}
    for row in symbols:
        for asking in filter(None, row["needed_by"].split("; ")):
            package, _, text = asking.partition(" ")
            for version in members(versions.get(package, []), text):
                left = loading.setdefault((package, version), every)
                loading[package, version] = [each for each in left if each in exported[row["symbol"]]]
    content: dict[str, list[tuple[Any, ...]]] = {}
    for row in linked:
        series = loading.get((row["package"], row["version"]))
        content.setdefault(row["package"], []).append(
            (
                row["version"], row["variant"], tuple(row["needs"].split()), tuple(row["versions"].split()),
                _tag(row["source"]), None if series is None else tuple(series),
            )
        )  # fmt: skip
    places = {symbol: tuple(map(every.index, found)) for symbol, found in exported.items()}
    return (
        marshal.dumps(
            ((every[0], every[-1]), {package: marshal.dumps(tuple(rows), 4) for package, rows in content.items()}), 4
        ),
        zlib.compress(marshal.dumps((tuple(every), places), 4), 9),
    )


def packed_numpy_abi(folder: str) -> bytes:
    """Compile ``numpy_abi.csv``."""
    return marshal.dumps({row["package"]: (row["last"], row["first"], row["module"]) for row in _rows(folder, NUMPY_TABLE)}, 4)


def members(every: list[str], text: str) -> list[str]:
    """Return the members of runs such as ``2.0..2.4 2.6``; runs of unknown members are left out."""
    found: list[str] = []
    for run in text.split():
        first, _, last = run.partition("..")
        if first in every and (last or first) in every:
            found += every[every.index(first) : every.index(last or first) + 1]
    return found


def _tag(source: str) -> str:
    """The oldest glibc that the platform tags of a wheel name."""
    tags = source.partition(".whl")[0].rpartition("-")[2].split(".")
    found = [_TAGS.get(tag.partition("_")[0]) or _named(tag) for tag in tags]
    return min((each for each in found if each), key=key_of, default="")


def _named(tag: str) -> str:
    parts = tag.split("_")
    return f"{parts[1]}.{parts[2]}" if parts[0] == "manylinux" and len(parts) > 3 else ""


def _rows(folder: str, name: str) -> Iterable[dict[str, str]]:
    import csv

    path = os.path.join(folder, name)
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
