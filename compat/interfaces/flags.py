"""The command-line options that programs accept in each release; ``scripts/flags`` extracts them from published source."""

from __future__ import annotations

from typing import Any

from compat.files import read_table
from compat.interfaces.at_once import place_of
from compat.interfaces.table import header_of, path_of

MAGIC = b"surfflag"


class Parser:
    """The options of one program in every known release of its package; :attr:`versions` oldest first."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.package: str = content["package"]
        self.versions: tuple[str, ...] = tuple(content["versions"])
        self._flags: dict[str, int] = content["flags"]
        self._instead: dict[str, str] = content["instead"]
        self._unread: int = content["unread"]

    def takes(self, version: str, name: str) -> bool | None:
        """Return whether a release accepts an option; ``None`` if unknown, or if no release has the option.

        Names omit the leading dashes and use ``-`` for ``_``. An option may be abbreviated, as :mod:`argparse` allows,
        negated (``no-``), and followed by a dot and a key.
        """
        at = place_of(self.versions, version)
        name = name.partition(".")[0]
        if at is None or self._unread >> at & 1 or name not in self._flags:
            return None
        now = (each for each, mask in self._flags.items() if mask >> at & 1)
        return any(each.startswith(name) or name.removeprefix("no-") == each for each in now)

    def releases_with(self, name: str) -> tuple[str, ...]:
        """Return the releases that accept an option."""
        mask = self._flags.get(name, 0)
        return tuple(version for at, version in enumerate(self.versions) if mask >> at & 1)

    def instead(self, name: str) -> str | None:
        """Return the replacement named in the help text of a removed option."""
        return self._instead.get(name)


def open_parsers() -> dict[str, Parser]:
    """Open the parsers of the shipped table, by program."""
    content, _ = header_of(read_table(path_of("flags")), MAGIC)
    return {name: Parser(each) for name, each in content.items()}
