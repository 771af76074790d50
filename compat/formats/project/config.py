"""``[tool.compat]`` in pyproject.toml: the declared deployment targets and the ignored rules."""

from __future__ import annotations

import os

from compat.errors import InputError
from compat.files import decoded, regular
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "pyproject.toml"
_LIMIT = 8 * 1024 * 1024
_OPTIONS = {
    "gpus": "gpu", "driver": "driver", "cuda-toolkit": "cuda-toolkit", "task": "task", "trainer": "trainer",
    "model": "model", "launcher": "launcher", "processes": "processes", "batch-size": "batch-size",
    "precision": "precision", "quantization": "quantization", "features": "features", "without": "without",
    "python": "python-version", "os": "os", "machine": "machine", "glibc": "glibc", "extras": "extras",
    "groups": "groups", "lock-environment": "lock-environment",
}  # fmt: skip
"""Keys of a target → the equivalent command-line options."""
_LISTS = ("gpus", "features", "without", "extras", "groups")
_NUMBERS = ("processes", "batch-size")


@record(frozen=True)
class Target:
    """A declared deployment: values of command-line options, and environment variables."""

    name: str
    values: Mapping[str, list[str]]
    variables: Mapping[str, str]
    command: str | None
    file: str
    line: int | None


@record(frozen=True)
class Ignore:
    """An ignored rule; ``until`` is the last day on which it is ignored, an ISO date."""

    rule: str
    reason: str
    until: str | None
    target: str | None
    file: str
    line: int | None


@record(frozen=True)
class ProjectConfig:
    """What a project declares; empty if it declares nothing."""

    targets: tuple[Target, ...] = ()
    ignores: tuple[Ignore, ...] = ()
    file: str | None = None


def find_config(start: str) -> ProjectConfig:
    """Return the configuration of the project that contains a file or folder.

    It is the first pyproject.toml with a ``[tool.compat]`` table in the folder or its parents, up to the root of the
    repository.
    """
    folder = os.path.abspath(start)
    if not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    while True:
        file = os.path.join(folder, FILE)
        config = _parsed(file, _content(file)) if os.path.lexists(file) else None
        if config is not None:
            return config
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return ProjectConfig()
        folder = above


def read_config(path: str) -> ProjectConfig:
    """Read the configuration in a file; :class:`InputError` if it cannot be read or has no ``[tool.compat]``."""
    config = _parsed(path, _content(path))
    if config is None:
        raise InputError("expected a [tool.compat] table", path)
    return config


def _content(path: str) -> bytes:
    """Return the content of a file. An unreadable one is an error and not skipped, because it may declare targets."""
    try:
        with open(regular(path), "rb") as file:
            return file.read(_LIMIT)
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", path) from None


def _parsed(path: str, content: bytes) -> ProjectConfig | None:
    plain = content.translate(None, b" \t\"'")
    if b"tool.compat" not in plain and not (b"[tool]" in plain and b"compat" in plain):
        return None  # most projects: skip parsing the TOML
    from compat.syntax.toml import parse_text

    path = _short(path)
    text = decoded(path, content)
    tool = parse_text(text, path).get("tool")
    table = tool.get("compat") if isinstance(tool, dict) else None
    return None if table is None else _Tables(path, text).config(table)


def _short(path: str) -> str:
    """Return the path relative to the current folder, if it is below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


class _Tables:
    """The tables of a file, with the lines they start on."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self._lines = text.split("\n")

    def config(self, table: object) -> ProjectConfig:
        if not isinstance(table, dict):
            raise InputError("expected [tool.compat] to be a table", self.path)
        self._known(table, ("target", "ignore"), "[tool.compat]", self._line("[tool.compat"))
        targets = tuple(self._target(each, line) for each, line in self._each(table, "target"))
        names = [target.name for target in targets]
        if len(set(names)) < len(names):
            twice = next(target for target in targets if names.count(target.name) > 1)
            raise InputError(f"two targets are called {twice.name!r}", self.path, twice.line)
        known = frozenset(names)
        ignores = tuple(self._ignore(each, line, known) for each, line in self._each(table, "ignore"))
        return ProjectConfig(targets, ignores, self.path)

    def _each(self, table: dict[str, object], key: str) -> list[tuple[dict[str, object], int | None]]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise InputError(f"expected [[tool.compat.{key}]] tables", self.path, self._line(f"tool.compat.{key}"))
        lines = self._headers(f"[[tool.compat.{key}]]")
        return [(each, lines[at] if at < len(lines) else None) for at, each in enumerate(value)]

    def _headers(self, header: str) -> list[int]:
        return [number for number, line in enumerate(self._lines, 1) if header in line.replace(" ", "")]

    def _line(self, header: str) -> int | None:
        return next(iter(self._headers(header)), None)

    def _known(self, table: dict[str, object], known: tuple[str, ...], what: str, line: int | None) -> None:
        for key in table:
            if key not in known:
                import difflib

                near = difflib.get_close_matches(key, known, 1)
                hint = f"; did you mean {near[0]}?" if near else f" (known: {', '.join(known)})"
                raise InputError(f"{what} does not know {key!r}{hint}", self.path, self._at(key, line))

    def _at(self, key: str, start: int | None) -> int | None:
        """Return the line of a key below the header of its table."""
        for number, line in enumerate(self._lines[start or 0 :], (start or 0) + 1):
            if line.split("=")[0].strip() == key:
                return number
        return start

    def _text(self, table: dict[str, object], key: str, line: int | None) -> str | None:
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise InputError(f"{key}: expected a string, not {value!r}", self.path, self._at(key, line))
        return value

    def _target(self, table: dict[str, object], line: int | None) -> Target:
        self._known(table, ("name", "variables", "command", *_OPTIONS), "a target", line)
        name = self._text(table, "name", line)
        if name is None:
            raise InputError("a target needs a name", self.path, line)
        values = {_OPTIONS[key]: self._values(key, table[key], line) for key in _OPTIONS if key in table}
        variables = table.get("variables", {})
        if not isinstance(variables, dict) or not all(isinstance(each, str) for each in variables.values()):
            raise InputError("variables: expected a table of strings", self.path, self._at("variables", line))
        return Target(name, values, variables, self._text(table, "command", line), self.path, line)

    def _values(self, key: str, value: object, line: int | None) -> list[str]:
        if key in _LISTS and isinstance(value, list) and all(isinstance(each, str) and each for each in value):
            return list(value) or ["none"]
        if key in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
            return [str(value)]
        if isinstance(value, str) and value:
            return [value]
        wanted = "a string or a list of strings" if key in _LISTS else "a number" if key in _NUMBERS else "a string"
        raise InputError(f"{key}: expected {wanted}, not {value!r}", self.path, self._at(key, line))

    def _ignore(self, table: dict[str, object], line: int | None, targets: frozenset[str]) -> Ignore:
        self._known(table, ("rule", "reason", "until", "target"), "an ignore", line)
        rule, reason = self._text(table, "rule", line), self._text(table, "reason", line)
        if rule is None or reason is None:
            raise InputError(f"an ignore needs a {'rule' if rule is None else 'reason'}", self.path, line)
        target = self._text(table, "target", line)
        if target is not None and target not in targets:
            raise InputError(f"unknown target {target!r}", self.path, self._at("target", line))
        return Ignore(rule, reason, self._date(table.get("until"), line), target, self.path, line)

    def _date(self, value: object, line: int | None) -> str | None:
        """Parse a TOML date, or a string with an ISO date."""
        if value is None:
            return None
        import datetime

        if isinstance(value, datetime.datetime):
            value = value.date()
        if isinstance(value, str):
            try:
                value = datetime.date.fromisoformat(value)
            except ValueError:
                value = None
        if not isinstance(value, datetime.date):
            raise InputError("until: expected a date such as 2027-03-01", self.path, self._at("until", line))
        return value.isoformat()
