"""Tables of a lock file, read key by key: a value of another type is an :class:`InputError` that names line and place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat.errors import InputError
from compat.formats.locks.constraints import is_version
from compat.model import Source, normalized
from compat.redact import without_credentials

if TYPE_CHECKING:
    Content = dict[str, Any]


_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_KINDS = {dict: "a table", list: "a list", bool: "true or false", int: "a number", float: "a number", type(None): "null"}


class Table:
    """A table and where it stands: ``name`` is how an error calls it (``package torch``), the document has none."""

    def __init__(self, content: Content, file: str, line: int | None = None, name: str = "") -> None:
        self.content = content
        self.file = file
        self.line = line
        self.name = name

    def wrong(self, problem: str) -> InputError:
        """The error that says ``problem`` about this table."""
        return InputError(f"{self.name}: {problem}" if self.name else problem, self.file, self.line)

    def expected(self, key: str, expected: str) -> InputError:
        """The error that the value of ``key`` is missing or of another type."""
        value = self.content.get(key)
        if value is None:
            return self.wrong(f"expected {key} ({expected})")
        return self.wrong(f"{key}: expected {expected}, not {_described(value)}")

    def text(self, key: str) -> str | None:
        value = self.content.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.expected(key, "a string")
        return self.sound(value, key)

    def sound(self, text: str, key: str) -> str:
        """The text itself, which JSON may have left with an unpaired surrogate, which cannot be printed."""
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise self.wrong(f"{key}: contains an unpaired surrogate") from None
        return text

    def needed_text(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.expected(key, "a string")
        if not value:
            raise self.wrong(f"{key}: expected a non-empty string")
        return value

    def flag(self, key: str) -> bool:
        value = self.content.get(key, False)
        if not isinstance(value, bool):
            raise self.expected(key, "true or false")
        return value

    def texts(self, key: str) -> list[str]:
        """A list of strings; a missing one is empty."""
        value = self.content.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.expected(key, "a list of strings")
        return [self.sound(each, key) for each in value]

    def table(self, key: str) -> Table | None:
        value = self.content.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.expected(key, "a table")
        return Table(value, self.file, self.line, f"{self.name} {key}".strip())

    def tables(self, key: str) -> list[Content]:
        """A list of tables; a missing one is empty."""
        value = self.content.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.expected(key, "a list of tables")
        return value


def packages_of(document: Table, key: str, text: str) -> list[Table]:
    """The tables under ``[[key]]``, each called by its name and with the line of its header, if known."""
    found = document.tables(key)
    lines: list[int] | list[None] = _header_lines(text, f"[[{key}]]")
    if len(lines) != len(found):
        lines = [None] * len(found)
    return [
        Table(content, document.file, line, _called(key, number, content))
        for number, (content, line) in enumerate(zip(found, lines))
    ]


def name_of(package: Table, name: str) -> str:
    """The normalised name of a package; :class:`InputError` where it is no name."""
    core = name.replace("-", "").replace("_", "").replace(".", "")
    if not core.isalnum() or not core.isascii():
        raise package.wrong(f"{name[:80]!r} is not the name of a package")
    return normalized(name)


def version_of(package: Table, version: str | None) -> str | None:
    """The version as it is written; :class:`InputError` if it is invalid (PEP 440)."""
    if version is not None and not is_version(version):
        raise package.wrong(f"{version[:80]!r} is not a version (PEP 440)")
    return version


def index_source(url: str | None) -> Source:
    """A release of a package index; ``url`` where the file names the index."""
    return Source("index", {"url": without_credentials(url)}) if url else Source("index")


def vcs_source(url: str, commit: str | None, revision: str | None, subdirectory: str | None) -> Source:
    """A commit of a repository."""
    given = {"commit": commit, "requested_revision": revision, "subdirectory": subdirectory}
    return Source("vcs", {"url": without_credentials(url), **{key: value for key, value in given.items() if value}})


def url_source(url: str) -> Source:
    """An archive behind an address."""
    return Source("url", {"url": without_credentials(url)})


def path_source(path: str, *, editable: bool) -> Source:
    """An archive or a folder of this machine."""
    if path.lower().endswith(_ARCHIVES):
        return Source("url", {"path": path})
    return Source("directory", {"path": path, "editable": True} if editable else {"path": path})


def either(markers: list[str]) -> str | None:
    """One marker that holds where one of them does, or ``None``."""
    return markers[0] if len(markers) == 1 else " or ".join(f"({each})" for each in markers) or None


def both(first: str | None, second: str | None) -> str | None:
    """One marker that holds where both do."""
    return f"({first}) and ({second})" if first and second else first or second


def _header_lines(text: str, header: str) -> list[int]:
    found, at, line, counted = [], text.find(header), 1, 0
    while at >= 0:
        if not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t"):
            line += text.count("\n", counted, at)
            counted = at
            found.append(line)
        end = text.find("\n", at)  # no line has two of them, and one in a text may have thousands
        at = text.find(header, end) if end >= 0 else -1
    return found


def _called(key: str, number: int, content: Content) -> str:
    name = content.get("name")
    return f"package {name[:80]}" if isinstance(name, str) and name else f"{key}[{number}]"


def _described(value: Any) -> str:
    return f"the string {value[:40]!r}" if isinstance(value, str) else _KINDS.get(type(value), "a date or a time")
