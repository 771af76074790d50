"""``[tool.compat]`` in pyproject.toml: the declared deployment targets and the ignored rules."""

from __future__ import annotations

import os

from compat.errors import InputError
from compat.files import content_of, decode_utf8
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "pyproject.toml"
_LIMIT = 8 * 1024 * 1024
_NOT_UTF_8 = (b"\xff", b"\xfe")
"""The beginning of UTF-16 and UTF-32, in which the name of the table would not be found."""
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
        # an unreadable file is an error and not skipped, because it may declare targets
        config = _parsed(file, content_of(file, _LIMIT)) if os.path.lexists(file) else None
        if config is not None:
            return config
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return ProjectConfig()
        folder = above


def read_config(path: str) -> ProjectConfig:
    """Read the configuration in a file; :class:`InputError` if it cannot be read or has no ``[tool.compat]``."""
    config = _parsed(path, content_of(path, _LIMIT))
    if config is None:
        raise InputError("expected a [tool.compat] table", path)
    return config


def _parsed(path: str, content: bytes) -> ProjectConfig | None:
    if content.startswith(_NOT_UTF_8) or b"\0" in content[:4]:
        raise InputError("is not UTF-8 text (byte 0)", path, 1)
    plain = content.translate(None, b" \t\"'")
    if b"tool.compat" not in plain and not (b"[tool]" in plain and b"compat" in plain):
        return None  # most projects: skip parsing the TOML
    from compat.syntax.toml import parse_text

    relative = os.path.relpath(path)
    path = path if relative.startswith("..") else relative
    text = decode_utf8(path, content)
    tool = parse_text(text, path).get("tool")
    table = tool.get("compat") if isinstance(tool, dict) else None
    return None if table is None else _config(path, text, table)


def _config(path: str, text: str, content: object) -> ProjectConfig:
    if not isinstance(content, dict):
        raise InputError("expected [tool.compat] to be a table", path)
    lines = text.split("\n")
    table = _Table(content, path, lines, next(iter(_headers(lines, "[tool.compat")), None))
    table.check_keys(("target", "ignore"), "[tool.compat]")
    targets = tuple(map(_target, table.each("target")))
    names = [target.name for target in targets]
    if len(set(names)) < len(names):
        twice = next(target for target in targets if names.count(target.name) > 1)
        raise InputError(f"two targets are called {twice.name!r}", path, twice.line)
    return ProjectConfig(targets, tuple(_ignore(each, names) for each in table.each("ignore")), path)


def _headers(lines: list[str], header: str) -> list[int]:
    return [number for number, line in enumerate(lines, 1) if header in line.replace(" ", "")]


class _Table:
    """A table of the file and the line of its header."""

    def __init__(self, content: dict[str, object], path: str, lines: list[str], line: int | None) -> None:
        self.content = content
        self.path = path
        self.line = line
        self._lines = lines

    def wrong(self, problem: str, key: str) -> InputError:
        """Return the error for a key, on its line below the header."""
        start = self.line or 0
        below = enumerate(self._lines[start:], start + 1)
        return InputError(problem, self.path, next((at for at, line in below if line.split("=")[0].strip() == key), self.line))

    def each(self, key: str) -> list[_Table]:
        """Return the tables ``[[tool.compat.key]]``."""
        value = self.content.get(key, [])
        lines = _headers(self._lines, f"[[tool.compat.{key}]]")
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            line = next(iter(_headers(self._lines, f"tool.compat.{key}")), None)
            raise InputError(f"expected [[tool.compat.{key}]] tables", self.path, line)
        return [_Table(each, self.path, self._lines, lines[at] if at < len(lines) else None) for at, each in enumerate(value)]

    def check_keys(self, known: tuple[str, ...], what: str) -> None:
        """Raise :class:`InputError` for an unknown key."""
        for key in self.content:
            if key not in known:
                import difflib

                near = difflib.get_close_matches(key, known, 1)
                hint = f"; did you mean {near[0]}?" if near else f" (known: {', '.join(known)})"
                raise self.wrong(f"{what} does not know {key!r}{hint}", key)

    def text(self, key: str) -> str | None:
        value = self.content.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise self.wrong(f"{key}: expected a string, not {value!r}", key)
        return value


def _target(table: _Table) -> Target:
    table.check_keys(("name", "variables", "command", *_OPTIONS), "a target")
    name = table.text("name")
    if name is None:
        raise InputError("a target needs a name", table.path, table.line)
    values = {_OPTIONS[key]: _values(table, key) for key in _OPTIONS if key in table.content}
    variables = table.content.get("variables", {})
    if not isinstance(variables, dict) or not all(isinstance(each, str) for each in variables.values()):
        raise table.wrong("variables: expected a table of strings", "variables")
    return Target(name, values, variables, table.text("command"), table.path, table.line)


def _values(table: _Table, key: str) -> list[str]:
    value = table.content[key]
    if key in _LISTS and isinstance(value, list) and all(isinstance(each, str) and each for each in value):
        return list(value) or ["none"]
    if key in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
        return [str(value)]
    if isinstance(value, str) and value:
        return [value]
    wanted = "a string or a list of strings" if key in _LISTS else "a number" if key in _NUMBERS else "a string"
    raise table.wrong(f"{key}: expected {wanted}, not {value!r}", key)


def _ignore(table: _Table, targets: list[str]) -> Ignore:
    table.check_keys(("rule", "reason", "until", "target"), "an ignore")
    rule, reason = table.text("rule"), table.text("reason")
    if rule is None or reason is None:
        raise InputError(f"an ignore needs a {'rule' if rule is None else 'reason'}", table.path, table.line)
    target = table.text("target")
    if target is not None and target not in targets:
        raise table.wrong(f"unknown target {target!r}", "target")
    return Ignore(rule, reason, _until(table), target, table.path, table.line)


def _until(table: _Table) -> str | None:
    """Parse a TOML date, or a string with an ISO date."""
    value = table.content.get("until")
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
        raise table.wrong("until: expected a date such as 2027-03-01", "until")
    return value.isoformat()
