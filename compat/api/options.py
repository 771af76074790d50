"""The options of a command, whether they come from the command line or from the arguments of a call."""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@record(frozen=True)
class Options:
    """A parsed command line.

    ``values`` holds the options that were given, by name; a flag has ``[""]``. ``rest`` is the command after ``--``.
    """

    command: str
    values: Mapping[str, list[str]]
    operands: tuple[str, ...]
    rest: tuple[str, ...] | None

    def one(self, name: str) -> str | None:
        """The value of an option, the last one where it was given more than once."""
        return self.values[name][-1] if self.values.get(name) else None

    def all(self, name: str) -> list[str]:
        """Every value of an option that may be repeated; values separated by commas are split."""
        return [part.strip() for value in self.values.get(name, ()) for part in value.split(",") if part.strip()]

    def flag(self, name: str) -> bool:
        """Whether a flag was given."""
        return name in self.values
