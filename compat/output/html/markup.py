"""Elements of HTML and SVG. Every text becomes text: only what :func:`element` itself made is taken for markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from compat.errors import printable


class Html(str):
    """Finished markup. Made by the functions of this module alone."""

    __slots__ = ()


Child: TypeAlias = "str | Html | None"
_VOID = frozenset(("meta", "link", "input", "br"))
_LINKS = ("https://", "http://")


def element(tag: str, *children: Child, **attributes: str | int | bool | None) -> Html:
    """One element. ``None`` is left out, of children and attributes; ``class_`` is ``class``, ``aria_label`` ``aria-label``."""
    head = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_text(str(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{head}>" if tag in _VOID else f"<{tag}{head}>{joined(children)}</{tag}>")


def joined(children: Iterable[Child]) -> Html:
    """Texts and elements one after the other."""
    return Html("".join(each if isinstance(each, Html) else _text(each) for each in children if each is not None))


def raw(text: str) -> Html:
    """A style sheet or a script of our own, as it is; :class:`ValueError` where it could end its element."""
    if "</" in text or "<!--" in text:
        raise ValueError("a style sheet or a script must not hold '</' or '<!--'")
    return Html(text)


def lines(text: str) -> Html:
    """A text of several lines, for an element that keeps line breaks."""
    return Html("\n".join(map(_text, text.split("\n"))))


def link(address: str, text: str | None = None) -> Html:
    """A link to a web address; anything else is shown as code."""
    if not address.startswith(_LINKS):
        return element("code", address)
    return element("a", text or address, href=address, rel="noreferrer noopener")


def _text(text: str) -> str:
    """The text as it is seen: no markup, no credentials, and what is not printable as an escape."""
    return escape(printable(text))
