"""Everything that the readers of one pasted text found, each with how much it is worth; nothing is decided here."""

from __future__ import annotations

from typing import NamedTuple

from compat.environment import EMPTY, Accelerator, Source, Workload, normalized
from compat.read.pasted.words import is_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SAID, LISTED, WRITTEN, HINTED = range(4)
"""What a program says of what runs, what stands in a list, what a person wrote, what follows from something else."""

PHYSICAL, VISIBLE, ONE_KIND, BY_HAND = range(4)
"""All devices of the machine, those one process sees, one device of those there are, what a person wrote."""

_MOST = 5000
"""Distributions; nobody installs more."""


class Package(NamedTuple):
    """One place that names a distribution."""

    version: str | None
    rank: int
    source: Source | None
    extra: Mapping[str, Any]
    specifier: str | None = None


class Devices(NamedTuple):
    """One place that names accelerators; ``counted``: there are exactly these."""

    devices: tuple[Accelerator, ...]
    rank: int
    counted: bool = True


class Findings:
    """The mutable collection the readers fill; ``compat.read.pasted.merged`` makes an environment of it.

    ``used`` holds the numbers of the lines that need not be looked at again.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[tuple[str, int]]] = {}
        self.packages: dict[str, list[Package]] = {}
        self.devices: list[Devices] = []
        self.device_counts: list[int] = []
        self.variables: dict[str, list[str]] = {}
        self.whole_lists: list[frozenset[str]] = []
        self.workloads: list[Workload] = []
        self.notes: list[str] = []
        self.used: set[int] = set()

    def say(self, field: str, value: str | None, rank: int = SAID) -> None:
        """A fact of the environment by its name there ("python", "driver"); ``None`` says nothing."""
        if value:
            self.values.setdefault(field, []).append((value, rank))

    def package(
        self,
        name: str,
        version: str | None,
        rank: int = SAID,
        source: Source | None = None,
        extra: Mapping[str, Any] = EMPTY,
        specifier: str | None = None,
    ) -> None:
        """A distribution that is there; what is said to be its version is dropped where it is none."""
        if version is not None and not is_version(version):
            version = None
        if version is None and source is None and not extra and specifier is None:
            return
        name = normalized(name)
        if name in self.packages or len(self.packages) < _MOST:
            self.packages.setdefault(name, []).append(Package(version, rank, source, extra, specifier))

    def accelerators(self, devices: Sequence[Accelerator], rank: int, *, counted: bool = True) -> None:
        """Devices that one place names, in its order."""
        self.devices.append(Devices(tuple(devices), rank, counted))

    def variable(self, name: str, value: str) -> None:
        """An environment variable and its value."""
        self.variables.setdefault(name, []).append(value)

    def note(self, text: str) -> None:
        """A sentence for the user, once."""
        if text not in self.notes:
            self.notes.append(text)
