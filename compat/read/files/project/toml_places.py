"""Where in a TOML text its tables, keys and strings stand, for errors and findings; what cannot be told is ``None``."""

from __future__ import annotations

from bisect import bisect_left


class Places:
    """Lines of a TOML text, found by one walk over it. Only the usual ways of writing are seen."""

    def __init__(self, text: str) -> None:
        self._keys: dict[tuple[str, str], int] = {}
        self._strings: dict[str, list[int]] = {}
        header = ""
        for number, line in enumerate(text.split("\n"), 1):
            stripped = line.strip()
            if not stripped or stripped[0] == "#":
                continue
            if stripped[0] == "[" and (name := _header(stripped)) is not None:
                header = name
                self._keys.setdefault((header, ""), number)
                continue
            before, equals, _ = stripped.partition("=")
            if equals and before[:1] not in ("{", "]", ","):
                self._keys.setdefault((header, _bare(before)), number)
            for quote in ('"', "'"):
                if quote in stripped:
                    for string in stripped.split(quote)[1::2]:
                        self._strings.setdefault(string, []).append(number)

    def key(self, header: str, key: str = "") -> int | None:
        """The line of a key under a header such as ``tool.uv``, or of the key's own header, or of the header."""
        own = f"{header}.{key}" if key else header
        return self._keys.get((header, key)) or self._keys.get((own, "")) or self._keys.get((header, ""))

    def string(self, text: str, start: int | None) -> int | None:
        """The first line from ``start`` on that holds a string; ``start`` itself where there is none."""
        lines = self._strings.get(text, [])
        at = bisect_left(lines, start or 1)
        return lines[at] if at < len(lines) else start


def _header(line: str) -> str | None:
    """``[ tool."poetry".dependencies ]  # …`` → ``tool.poetry.dependencies``; ``None`` for a line of an array."""
    name, closed, rest = line.lstrip("[").partition("]")
    rest = rest.lstrip("] \t")
    if not closed or "," in name or "{" in name or (rest and rest[0] != "#"):
        return None
    return ".".join(_bare(part) for part in name.split("."))


def _bare(key: str) -> str:
    return key.strip().strip("\"'").strip()
