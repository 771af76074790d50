"""Self-contained HTML pages: elements and style. All text is escaped; only :func:`element` generates markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from compat.errors import printable


class Html(str):
    """Escaped markup, only created by the functions of this module."""

    __slots__ = ()


Child: TypeAlias = "str | Html | None"
_VOID = frozenset(("meta", "link", "input", "br"))
_LINKS = ("https://", "http://")


def element(tag: str, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Render one element; children and attributes that are ``None`` are omitted. ``aria_label`` becomes ``aria-label``."""
    head = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_text(str(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{head}>" if tag in _VOID else f"<{tag}{head}>{joined(children)}</{tag}>")


def joined(children: Iterable[Child]) -> Html:
    """Concatenate texts and elements."""
    return Html("".join(each if isinstance(each, Html) else _text(each) for each in children if each is not None))


def raw(text: str) -> Html:
    """Return a bundled style sheet or script unescaped; raises :class:`ValueError` if it could close its element."""
    if "</" in text or "<!--" in text:
        raise ValueError("a style sheet or a script must not hold '</' or '<!--'")
    return Html(text)


def lines(text: str) -> Html:
    """Render multi-line text for an element that preserves line breaks."""
    return Html("\n".join(map(_text, text.split("\n"))))


def link(address: str, text: str | None = None) -> Html:
    """Render a link to a web address; anything else is rendered as code."""
    if not address.startswith(_LINKS):
        return element("code", address)
    return element("a", text or address, href=address, rel="noreferrer noopener")


def _text(text: str) -> str:
    """Escape text and redact credentials; unprintable characters become escapes."""
    return escape(printable(text))


# --- Style, for light and dark screens, phones and paper


LIGHT = {
    "bg": "#ffffff",
    "panel": "#f5f6f8",
    "text": "#1a1d21",
    "soft": "#50575f",
    "line": "#c4c9d0",
    "link": "#0b57b7",
    "error": "#b3141d",
    "warning": "#7a5000",
    "info": "#0b57b7",
    "possible": "#6a3fb5",
    "good": "#17692f",
}
DARK = {
    "bg": "#14171a",
    "panel": "#1e2226",
    "text": "#e8eaed",
    "soft": "#aab1b9",
    "line": "#454c54",
    "link": "#86b7ff",
    "error": "#ff8f8a",
    "warning": "#f0bf5c",
    "info": "#86b7ff",
    "possible": "#c7a8ff",
    "good": "#7fd394",
}
"""The same names in both. Text has a contrast of at least 4.5 to ``bg`` and ``panel``."""


_LIGHT, _DARK = ("".join(f"--{name}:{value};" for name, value in colours.items()) for colours in (LIGHT, DARK))

REPORT = f"""
.compat {{ {_LIGHT} color-scheme: light dark; color: var(--text); background: var(--bg);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }}
@media (prefers-color-scheme: dark) {{ .compat {{ {_DARK} }} }}
.compat h1 {{ font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; }}
.compat h2 {{ font-size: 1.2rem; line-height: 1.3; margin: 1.75rem 0 .5rem; }}
.compat h3 {{ font-size: 1.05rem; line-height: 1.35; margin: 0 0 .4rem; }}
.compat p {{ margin: .4rem 0; max-width: 46rem; }}
.compat a {{ color: var(--link); }}
.compat :focus-visible {{ outline: 3px solid var(--link); outline-offset: 2px; }}
.compat code, .compat pre, .compat svg text {{
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
.compat code, .compat pre {{ font-size: .875rem; }}
.compat pre {{
  background: var(--panel); border: 1px solid var(--line); border-radius: 6px; margin: .3rem 0; padding: .5rem
  .7rem;
  white-space: pre-wrap; }}
.compat dl {{
  display: grid; grid-template-columns: minmax(5.5rem, max-content) minmax(0, 1fr); gap: .25rem .9rem; margin:
  .5rem 0; }}
.compat dt {{ color: var(--soft); }}
.compat dd {{ margin: 0; min-width: 0; }}
.compat ul, .compat ol {{ margin: .4rem 0; padding-left: 1.4rem; }}
.compat article {{
  border: 1px solid var(--line); border-left: 5px solid var(--soft); border-radius: 6px; margin: 1rem 0;
  padding: .8rem 1rem; }}
.compat article.error {{ border-left-color: var(--error); }}
.compat article.warning {{ border-left-color: var(--warning); }}
.compat article.info {{ border-left-color: var(--info); }}
.compat article.possible {{ border-left-color: var(--possible); border-left-style: dashed; }}
.compat .badge {{
  border: 1.5px solid currentColor; border-radius: 4px; font-size: .8rem; font-weight: 600; margin-right:
  .45rem;
  padding: .05rem .4rem; white-space: nowrap; }}
.compat .error > h3 .badge, .compat .badge.error {{ color: var(--error); }}
.compat .warning > h3 .badge, .compat .badge.warning {{ color: var(--warning); }}
.compat .info > h3 .badge, .compat .badge.info {{ color: var(--info); }}
.compat .possible > h3 .badge, .compat .badge.possible {{ color: var(--possible); }}
.compat .badge.good {{ color: var(--good); }}
.compat .summary {{ font-weight: 600; }}
.compat .soft {{ color: var(--soft); }}
.compat table {{ border-collapse: collapse; }}
.compat caption {{ color: var(--soft); padding: .2rem 0; text-align: left; }}
.compat th, .compat td {{
  border-bottom: 1px solid var(--line); padding: .35rem .8rem .35rem 0; text-align: left; vertical-align: top;
  }}
.compat .scroll {{ overflow-x: auto; }}
.compat th {{ overflow-wrap: break-word; }}
.compat .diff {{ white-space: pre; overflow-x: auto; overflow-wrap: normal; }}
.compat .diff ins {{ color: var(--good); text-decoration: none; }}
.compat .diff del {{ color: var(--error); text-decoration: none; }}
.compat figure {{ margin: .8rem 0 .3rem; }}
.compat figcaption {{ font-size: .875rem; }}
.compat svg.holds {{ display: block; height: auto; max-width: 100%; }}
.compat svg .node {{ fill: var(--panel); stroke: var(--soft); stroke-width: 1.2; }}
.compat svg .node.concerned {{ stroke: var(--text); stroke-width: 2; }}
.compat svg text {{ fill: var(--text); font-size: 12px; }}
.compat svg .version, .compat svg .said {{ fill: var(--soft); }}
.compat svg .edge {{ fill: none; stroke: var(--soft); stroke-width: 1.5; }}
.compat svg .edge.broken {{ stroke: var(--error); stroke-dasharray: 6 3; }}
.compat svg .head {{ fill: var(--soft); }}
.compat svg .head.broken {{ fill: var(--error); }}
.compat svg .said.broken {{ fill: var(--error); font-weight: 600; }}
.compat svg .behind {{ fill: var(--bg); }}
"""
"""The style of a report, scoped to its own element: a notebook has other elements around it."""

PAGE = """
body { margin: 0; }
main, footer { margin: 0 auto; max-width: 60rem; padding: 1.2rem 1rem; }
footer { color: var(--soft); font-size: .875rem; }
.skip { left: -999px; position: absolute; }
.skip:focus { background: var(--bg); left: 1rem; padding: .3rem .6rem; top: .5rem; }
@page { margin: 1.6cm; }
@media print {
  .skip { display: none; }
  .compat article, .compat figure, .compat pre, .compat tr { break-inside: avoid; }
  .compat h2, .compat h3 { break-after: avoid; }
  .compat pre, .compat .diff { white-space: pre-wrap; }
  .compat .see a[href]::after { content: ""; }
}
"""
"""The style that a page adds to that of its report."""


POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content security policy of a page that loads, runs and sends nothing."""


def page(title: str, content: Html) -> str:
    """Render a complete HTML document with this content."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", raw(REPORT + PAGE)),
    )
    from compat import __version__

    skip = element("a", "Skip to the report", href="#report", class_="skip")
    foot = element("footer", f"Made by compat {__version__}. This file loads nothing and sends nothing.")
    inside = element("body", skip, element("main", content, id="report"), foot, class_="compat")
    return f"<!doctype html>\n{element('html', head, inside, lang='en')}"
