"""What a caller asks for, in the words of the command line: options by name, operands, the command to read."""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@record(frozen=True)
class Words:
    """What was asked for: a parsed command line, or the arguments of a call.

    An option that was not given is not in ``values``; a flag that was has ``[""]``. ``rest`` is the command after ``--``.
    """

    command: str
    values: Mapping[str, list[str]]
    operands: tuple[str, ...]
    rest: tuple[str, ...] | None

    def one(self, name: str) -> str | None:
        """The value of an option, the last one where it was given more than once."""
        return self.values[name][-1] if self.values.get(name) else None

    def all(self, name: str) -> list[str]:
        """Every value of an option that may be repeated; values joined by commas are taken apart."""
        return [part.strip() for value in self.values.get(name, ()) for part in value.split(",") if part.strip()]

    def flag(self, name: str) -> bool:
        """Whether a flag was given."""
        return name in self.values
