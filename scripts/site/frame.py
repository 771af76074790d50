"""What all pages of the site have in common: head, policy, navigation, and paths that work below any folder and from a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from compat.output.html.page import Child, Html, element

NAVIGATION = (
    ("check.html", "Check"),
    ("pairs/index.html", "Which goes with which"),
    ("gpus.html", "By GPU"),
    ("rules/index.html", "Rules"),
    ("packages/index.html", "Packages"),
)
POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'"
"""Of every page: it loads its own style and its own scripts, and sends nothing."""
CHECK_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'"
)
"""Of the page that checks: it also starts WebAssembly in a worker, and reads files of its own origin. The worker is made from
a ``blob:`` address: such a worker inherits this policy; one that is loaded from a file has none of its own."""


@dataclass(frozen=True)
class Page:
    """One page; ``path`` is below the site's folder, with slashes. ``content`` uses :meth:`to` for links to other pages."""

    path: str
    title: str
    content: Html
    scripts: tuple[str, ...] = ()
    policy: str = POLICY


def to(path: str, start: str) -> str:
    """The relative address of a page, from another one: it holds below any folder, and without a server."""
    return "../" * start.count("/") + path


def local(path: str, text: Child, start: str) -> Html:
    """A link to another page of the site."""
    return element("a", text, href=to(path, start))


def write(folder: Path, pages: Iterable[Page], version: str) -> int:
    """Write the pages and return their number."""
    count = 0
    for page in pages:
        target = folder / page.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_whole(page, version), encoding="utf-8")
        count += 1
    return count


def _whole(page: Page, version: str) -> str:
    here = page.path
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=page.policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{page.title} · compat"),
        element("link", rel="stylesheet", href=to("site.css", here)),
        element("link", rel="alternate", type="application/atom+xml", title="New rules", href=to("feed.xml", here)),
        *(element("script", src=to(script, here), defer=True) for script in page.scripts),
    )
    links = [
        element("li", element("a", text, href=to(path, here), aria_current="page" if path == here else None))
        for path, text in (("index.html", "compat"), *NAVIGATION)
    ]
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        element("header", element("nav", element("ul", *links), aria_label="Site")),
        element("main", element("h1", page.title), page.content, id="content"),
        element(
            "footer",
            f"compat {version}. Nothing is loaded from elsewhere, and nothing is sent. ",
            local("feed.xml", "Feed of new rules", here),
        ),
        class_="compat",
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"
