"""What a dotted name stands for in a world of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.records import record

if TYPE_CHECKING:
    from compat.interfaces.release import Surface
    from compat.interfaces.source.records import Class, Function


@record(frozen=True)
class Meaning:
    """``kind`` is module, class, function, method, value, unknown, absent or never (in no release that is known).

    ``module`` is where it is defined and ``name`` its name there (``Trainer.train`` of a method). What is ``absent`` is so
    for certain; ``name`` is then the first part that is missing, and ``module`` the module or class that lacks it.
    """

    kind: str
    surface: Surface | None = None
    module: str = ""
    name: str = ""
    definition: Class | Function | None = None
    line: int = 0

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}" if self.module and self.name else self.module or self.name


UNKNOWN = Meaning("unknown")


def absent(surface: Surface, module: str, name: str) -> Meaning:
    return Meaning("absent", surface, module, name)


@record(frozen=True)
class Complaint:
    """Why a call does not fit: ``keyword`` (its name), ``positional`` (how many are given), ``missing`` (a required name)."""

    kind: str
    what: str
    callee: Meaning
