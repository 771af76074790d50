"""What published wheels ask of the loader of Linux (``matrix/facts/linked.csv``), compiled with the torch that can load them.

Three files: :func:`open_linked` for checks, :func:`open_symbols`, which only the diagnosis of an undefined symbol needs, and
:func:`open_numpy_abi` (``matrix/facts/numpy_abi.csv``) for environments with numpy 2.
"""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table
from compat.records import cached, kept, record
from compat.versions import recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = os.path.join(DATA, "linked.bin")
SYMBOLS_FILE = os.path.join(DATA, "torch_symbols.bin")
NUMPY_FILE = os.path.join(DATA, "numpy_abi.bin")


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

    def cudnn(self) -> str | None:
        """The major release of cuDNN that it needs; ``None`` if it needs none."""
        return next((each.rpartition(".")[2] for each in self.needs if each.startswith("libcudnn.so.")), None)

    def least(self, what: str) -> str | None:
        """The newest version of GLIBC, GLIBCXX or CXXABI that it asks for (``2.28``)."""
        return next((each[len(what) + 1 :] for each in self.versions if each.startswith(f"{what}_")), None)


class LinkedTable:
    """The shipped rows by package, oldest release first, and the oldest and newest series of torch that were read."""

    def __init__(self, content: bytes) -> None:
        (self.oldest, self.newest), self._blocks = marshal.loads(content)

    @property
    def packages(self) -> frozenset[str]:
        return frozenset(self._blocks)

    def of(self, package: str) -> tuple[Linked, ...]:
        return tuple(Linked(*row) for row in self._rows(package))

    @kept  # the environments of a fleet and the selections of a lock file share releases
    def release(self, package: str, version: str, cuda: str | None) -> Linked | None:
        """The wheel of a published release, with its library for the CUDA of torch; ``None`` if that was not read."""
        if package not in self._blocks:
            return None
        rows = self._rows(package)
        wanted = recorded(version, {row[0] for row in rows})
        return next((Linked(*row) for row in rows if row[0] == wanted and row[1] in ("", cuda)), None)

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
