"""Install commands in the order in which a script or notebook runs them, with the branches that they stand in."""

from __future__ import annotations

from compat.environment import normalized
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from compat.read.files.installs.install_command import Install

    Step: TypeAlias = "Command | Alternatives"
    Line: TypeAlias = tuple[int, str]
    """The number of a line in the file, and its text."""

_APART = str.maketrans(dict.fromkeys("\"'`=<>[]@/;~!,()&|#+\\ \t", "\n"))


@record(frozen=True)
class Command:
    """One install command: ``where`` it stands, for notes, the ``lines`` it is written on, the folder it is run in."""

    install: Install
    where: str
    lines: tuple[Line, ...] = ()
    directory: str | None = None

    @property
    def line(self) -> int | None:
        """The first line of the command."""
        return self.lines[0][0] if self.lines else None


@record(frozen=True)
class Alternatives:
    """Branches of which exactly one is run; an empty one where it may be that none is."""

    branches: tuple[tuple[Step, ...], ...]


class Places:
    """The lines that distributions are named on, within one command."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._first = lines[0][0] if lines else None
        self._names: dict[str, int] = {}
        if len(lines) > 1:
            for number, text in lines:
                for word in text.translate(_APART).split("\n"):
                    for name in (word, word.removesuffix(".git")):
                        self._names.setdefault(normalized(name), number)

    def of(self, name: str) -> int | None:
        """The line that names a distribution; else the first one."""
        return self._names.get(name, self._first)


def alternatives(branches: Sequence[Sequence[Step]]) -> list[Step]:
    """The branches as one step; no step where nothing is installed in any of them."""
    return [Alternatives(tuple(map(tuple, branches)))] if any(branches) else []
