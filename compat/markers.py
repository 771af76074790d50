"""Environment markers (PEP 508, and PEP 751's ``extras`` and ``dependency_groups``) as trees.

A lock file has thousands of them, and importing ``packaging`` is too slow for a check; ``tests/property/test_markers.py``
compares the results of both. The caller defines what a comparison means: :func:`combined` works on any set of contexts,
encoded as the bits of an integer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

VARIABLES = frozenset((
    "os_name", "sys_platform", "platform_machine", "platform_python_implementation", "platform_release", "platform_system",
    "platform_version", "python_version", "python_full_version", "implementation_name", "implementation_version", "extra",
    "extras", "dependency_groups",
))  # fmt: skip
_OLD_NAMES = {
    "os.name": "os_name", "sys.platform": "sys_platform", "platform.version": "platform_version",
    "platform.machine": "platform_machine", "platform.python_implementation": "platform_python_implementation",
    "python_implementation": "platform_python_implementation",
}  # fmt: skip
_OPERATORS = ("===", "==", "~=", "!=", "<=", ">=", "<", ">")
_DEEPEST = 100
"""Maximum nesting of parentheses; real markers have at most three levels."""


OF_SYSTEM = ("sys_platform", "platform_system", "os_name")
"""Marker variables determined by the operating system."""
SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "darwin": ("darwin", "Darwin", "posix"),
    "windows": ("win32", "Windows", "nt"),
}
"""The values of :data:`OF_SYSTEM` by the name of the system in a described environment."""


def parse(text: str) -> Marker:
    """The tree of a marker; ``ValueError`` with the reason if ``text`` is not a valid marker."""
    reader = _Reader(_tokens(text))
    tree = reader.either(0)
    if reader.next is not None:
        raise ValueError(f"expected 'and' or 'or', not {reader.next!r}")
    return tree


def combined(marker: Marker, meaning: Callable[[Comparison], int]) -> int:
    """The contexts in which a marker holds, as bits; ``meaning`` returns those in which a single comparison holds."""
    form = marker[0]
    if form == "is":
        return meaning(marker[1])
    result = combined(marker[1], meaning)
    for each in marker[2:]:
        result = result & combined(each, meaning) if form == "and" else result | combined(each, meaning)
    return result


def written(marker: Marker) -> str:
    """The marker as text, with parentheses around nested ``and`` and ``or``."""
    form = marker[0]
    if form == "is":
        left, operator, right = marker[1]
        return f"{_operand(left)} {operator} {_operand(right)}"
    return f" {form} ".join(f"({written(each)})" if each[0] != "is" else written(each) for each in marker[1:])


def comparisons(marker: Marker) -> list[Comparison]:
    """Every comparison of a marker, in order."""
    if marker[0] == "is":
        return [marker[1]]
    return [comparison for each in marker[1:] for comparison in comparisons(each)]


def _operand(operand: Operand) -> str:
    is_variable, text = operand
    return text if is_variable else (f"'{text}'" if '"' in text else f'"{text}"')


class _Reader:
    """Recursive descent parser over the tokens; ``next`` is the next unread token."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self) -> str:
        token = self.next
        if token is None:
            raise ValueError("ends too early")
        self._at += 1
        return token

    def either(self, depth: int) -> Marker:
        """Alternatives joined by ``or``."""
        parts = [self._both(depth)]
        while self.next == "or":
            self._at += 1
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else ("or", *parts)

    def _both(self, depth: int) -> Marker:
        parts = [self._atom(depth)]
        while self.next == "and":
            self._at += 1
            parts.append(self._atom(depth))
        return parts[0] if len(parts) == 1 else ("and", *parts)

    def _atom(self, depth: int) -> Marker:
        if self.next == "(":
            if depth == _DEEPEST:
                raise ValueError("is nested too deeply")
            self._at += 1
            inner = self.either(depth + 1)
            if self._take() != ")":
                raise ValueError("expected a closing parenthesis")
            return inner
        left = self._side()
        operator = self._take()
        if operator == "not":
            if self._take() != "in":
                raise ValueError("expected 'in' after 'not'")
            operator = "not in"
        elif operator != "in" and operator not in _OPERATORS:
            raise ValueError(f"expected an operator, not {operator!r}")
        right = self._side()
        if not left[0] and not right[0]:
            raise ValueError("a comparison needs a variable")
        return ("is", (left, operator, right))

    def _side(self) -> Operand:
        token = self._take()
        if token[0] in "'\"":
            return False, token[1:-1]
        name = _OLD_NAMES.get(token, token)
        if name not in VARIABLES:
            raise ValueError(f"expected a variable or a quoted string, not {token!r}")
        return True, name


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    at, end = 0, len(text)
    while at < end:
        letter = text[at]
        if letter in " \t":
            at += 1
            continue
        start = at
        if letter in "'\"":
            at = text.find(letter, at + 1) + 1
            if not at:
                raise ValueError("has a quote that is not closed")
        elif letter in "()":
            at += 1
        elif letter in "=!<>~":
            while at < end and text[at] in "=!<>~":
                at += 1
        elif letter.isalpha():
            while at < end and (text[at].isalnum() or text[at] in "_."):
                at += 1
        else:
            raise ValueError(f"has an unexpected {letter!r}")
        found.append(text[start:at])
    return found


def version_holds(release: tuple[int, ...], operator: str, text: str) -> bool | None:
    """Whether a final release (``(3, 11, 4)``) matches ``operator text``; ``None`` if the comparison is invalid."""
    numbers = text[:-2] if text.endswith(".*") else text
    parts = numbers.split(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        return _held_by_packaging(release, operator, text)
    wanted = tuple(map(int, parts))
    if numbers is not text:
        if operator not in ("==", "!="):
            return None
        return (_padded(release, len(wanted))[: len(wanted)] == wanted) == (operator == "==")
    size = max(len(release), len(wanted))
    left, right = _padded(release, size), _padded(wanted, size)
    if operator == "~=":
        return None if len(wanted) < 2 else left >= right and _padded(release, size)[: len(wanted) - 1] == wanted[:-1]
    return ORDERS[operator](left, right) if operator in ORDERS else None


def _padded(release: tuple[int, ...], size: int) -> tuple[int, ...]:
    return release + (0,) * (size - len(release))


ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "===": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _held_by_packaging(release: tuple[int, ...], operator: str, text: str) -> bool | None:
    """Compare pre-releases and other unusual versions with ``packaging``: rare enough to justify the import."""
    from packaging.specifiers import SpecifierSet

    try:
        return SpecifierSet(f"{operator}{text}").contains(".".join(map(str, release)), prereleases=True)
    except ValueError:  # not a specifier, or a number with more digits than Python parses
        return None


Operand: TypeAlias = tuple[bool, str]
"""(whether it is a variable, its name or the text)"""
Comparison: TypeAlias = tuple[Operand, str, Operand]
Marker: TypeAlias = "tuple[Any, ...]"
"""``("and", marker, …)``, ``("or", marker, …)`` or ``("is", comparison)``"""
