"""A notebook's cell → plain Python, as IPython itself would make it: shell lines and magics become calls."""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_PYTHON_CELLS = ("capture", "time", "timeit", "prun", "memit", "mprun", "lprun", "python", "python3")
_SHELL_CELLS = ("bash", "sh", "shell", "zsh", "system", "sx", "!")
_STATEMENTS = ("time", "timeit", "prun", "memit")
_INSTALLERS = ("pip", "pip3", "conda", "mamba", "micromamba", "uv")
"""Magics that are the program of that name; IPython takes their names without a sign as well."""


@record(frozen=True)
class Code:
    """What a cell holds: Python ``source`` line by line, or a ``shell`` script from that line on (from 0).

    ``commands`` are its shell lines: (first line from 1, last line, text). Both are ``None`` for other languages.
    """

    source: str | None = None
    shell: int | None = None
    commands: tuple[tuple[int, int, str], ...] = ()


def translated(lines: Sequence[str]) -> Code:
    """The code of one cell."""
    start = 0
    while start < len(lines):
        text = lines[start].strip()
        if text.startswith("%%"):
            name, _, options = text[2:].strip().partition(" ")
            if name == "script":
                name = next((word for word in options.split() if not word.startswith("-")), "")
            if name in _SHELL_CELLS:
                return Code(shell=start + 1)
            if name not in _PYTHON_CELLS:
                return Code()
        elif text and not text.startswith("#"):
            break
        start += 1
    return _python(["" if at < start else line for at, line in enumerate(lines)])


def _python(lines: Sequence[str]) -> Code:
    result: list[str] = []
    commands: list[tuple[int, int, str]] = []
    state = _State()
    at = 0
    while at < len(lines):
        line = lines[at]
        found = None if state.inside else _call(line.strip())
        if found is None:
            state.feed(line)
            result.append(line)
            at += 1
            continue
        function, text = found
        first = at
        parts = [text]
        at += 1
        while parts[-1].endswith("\\") and at < len(lines):
            parts[-1] = parts[-1][:-1]
            parts.append(lines[at].strip())
            at += 1
        text = " ".join(parts).rstrip("\\")
        if function == "system":
            commands.append((first + 1, at, text))
        call = text if function == "" else f"get_ipython().{function}({text!r})"
        result += [line[: len(line) - len(line.lstrip())] + call, *[""] * (at - first - 1)]
    return Code("\n".join(result), None, tuple(commands))


def _call(text: str) -> tuple[str, str] | None:
    """(method of the shell, its operand) for a line that is no Python; no method: the operand is Python instead."""
    if text.startswith("!"):
        return "system", text.lstrip("!").strip()
    if text.startswith("%"):
        name, _, rest = text.lstrip("%").partition(" ")
        if name in _INSTALLERS:
            return "system", text.lstrip("%")
        if name in ("sx", "system"):
            return "system", rest.strip()
        if name in ("env", "set_env"):
            return "set_env", rest.strip()
        return "", rest.strip() if name in _STATEMENTS and not rest.startswith("-") and rest.strip() else "pass"
    if text.startswith("?") or (text.endswith("?") and "#" not in text):
        return "", "pass"
    first, _, rest = text.partition(" ")
    if first in _INSTALLERS and rest.lstrip().startswith(("install ", "uninstall ", "pip install ", "pip uninstall ")):
        return "system", text
    target, equals, value = text.partition("=")
    value = value.lstrip()
    if equals and value.startswith(("!", "%")) and target.strip().replace("_", "a").isalnum():
        return _call(value)
    return None


class _State:
    """Whether the next line of Python goes on with a text, a bracket or a statement that was begun."""

    def __init__(self) -> None:
        self._quote = ""
        self._depth = 0
        self._continued = False

    @property
    def inside(self) -> bool:
        return bool(self._quote) or self._depth > 0 or self._continued

    def feed(self, line: str) -> None:
        at = 0
        while at < len(line):
            letter = line[at]
            if letter == "\\":
                at += 1
            elif self._quote:
                if line.startswith(self._quote, at):
                    at += len(self._quote) - 1
                    self._quote = ""
            elif letter in "'\"":
                self._quote = letter * 3 if line.startswith(letter * 3, at) else letter
                at += len(self._quote) - 1
            elif letter == "#":
                break
            elif letter in "([{":
                self._depth += 1
            elif letter in ")]}":
                self._depth = max(0, self._depth - 1)
            at += 1
        self._continued = line.endswith("\\") and not self._quote
        if len(self._quote) == 1:
            self._quote = ""  # such a text ends with its line
