"""The options of a command, from the command line or from the arguments of a library call."""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@record(frozen=True)
class Options:
    """A parsed command line.

    ``values`` maps each option that was passed to its values; for a flag, ``[""]``. ``rest`` is the command after ``--``.
    """

    command: str
    values: Mapping[str, list[str]]
    operands: tuple[str, ...]
    rest: tuple[str, ...] | None

    def one(self, name: str) -> str | None:
        """The value of an option; the last one if it was passed more than once."""
        return self.values[name][-1] if self.values.get(name) else None

    def all(self, name: str) -> list[str]:
        """All values of a repeatable option; comma-separated values are split."""
        return [part.strip() for value in self.values.get(name, ()) for part in value.split(",") if part.strip()]

    def flag(self, name: str) -> bool:
        """Whether an option was passed."""
        return name in self.values
