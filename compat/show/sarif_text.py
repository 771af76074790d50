"""Text in SARIF messages: what comes from files must not become a placeholder, a link or markup there."""

from __future__ import annotations

from compat.show.plain_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPECIAL = frozenset("\\`*_[]<>#|~&!@:$")


def plain(*lines: str) -> str:
    """Lines of a plain text message. ``{0}`` would be a placeholder in it, and ``[text](target)`` a link."""
    return doubled_braces("\n".join(map(one_line, lines)).replace("](", "] ("))


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is; braces are left for :func:`doubled_braces`."""
    return "".join(f"\\{sign}" if sign in _SPECIAL else sign for sign in one_line(text))


def markdown_code(text: str) -> str:
    """Text as code, between more back ticks than it has in a row."""
    text = one_line(text)
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if text[:1] == "`" or text[-1:] == "`" else f"{fence}{text}{fence}"


def doubled_braces(text: str) -> str:
    """A message without placeholders."""
    return text.replace("{", "{{").replace("}", "}}")


def well_formed(value: Any) -> Any:
    """The same JSON value, with escapes where a text holds what is no character at all (lone surrogates)."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {well_formed(key): well_formed(each) for key, each in value.items()}
    return [well_formed(each) for each in value] if isinstance(value, list) else value
