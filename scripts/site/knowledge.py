"""Pages of rules and packages, what they can be found by, and the feed of new rules."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from compat.cli.rules import example_words, fix_words, presumed_words
from compat.output.html.page import Child, Html, element, joined, link
from compat.output.html.report import described
from compat.rules.compiled import BoundEvidence, evidence_of, named_distributions
from compat.rules.rule import Rule, in_words
from scripts.site.frame import Page, local, to

_NEWEST = 50
"""Rules in the feed."""


def rule_path(rule: str) -> str:
    return f"rules/{rule}.html"


def package_path(name: str) -> str:
    return f"packages/{name}.html"


def rule_pages(rules: Sequence[Rule]) -> Iterator[Page]:
    """A page for each rule and one that lists them all, with a search."""
    for rule in rules:
        path = rule_path(rule.id)
        yield Page(path, rule.title, _rule(rule, path))
    here = "rules/index.html"
    yield Page(here, "Rules", _listing(here, [_entry(rule, here) for rule in rules], f"{len(rules)} rules"), _SEARCHING)


def package_pages(rules: Sequence[Rule], newest: Mapping[str, str]) -> Iterator[Page]:
    """A page for each package that a rule names or that was assessed, and one that lists them all."""
    by_package: dict[str, list[Rule]] = {name: [] for name in newest}
    for rule in rules:
        for name in sorted(named_distributions(rule)):
            by_package.setdefault(name, []).append(rule)
    for name, about in sorted(by_package.items()):
        path = package_path(name)
        assessed = f"Releases up to {newest[name]} were assessed." if name in newest else "Only what rules name of it is known."
        entries = [_entry(rule, path) for rule in about] or [element("li", "no rule names it")]
        yield Page(path, name, joined((element("p", assessed), element("h2", f"{len(about)} rules"), element("ul", *entries))))
    here = "packages/index.html"
    items = [
        element("li", local(package_path(name), name, here), f" {len(about)} {'rule' if len(about) == 1 else 'rules'}")
        for name, about in sorted(by_package.items())
    ]
    yield Page(here, "Packages", _listing(here, items, f"{len(by_package)} packages"), _SEARCHING)


def entries(rules: Sequence[Rule], pages: Sequence[Page]) -> str:
    """The script that the search reads: what can be found, with everything that it can be found by."""
    found = [
        {
            "path": rule_path(rule.id),
            "title": rule.title,
            "about": f"{rule.severity}, {rule.id}",
            "text": _words(rule.id, rule.title, rule.why, *named_distributions(rule), *(each.message for each in rule.errors)),
        }
        for rule in rules
    ]
    found += [
        {"path": page.path, "title": page.title, "about": "package", "text": page.title.lower()}
        for page in pages
        if page.path.startswith("packages/") and page.path != "packages/index.html"
    ]
    text = json.dumps(found, ensure_ascii=True).replace("<", "\\u003c")
    return f"window.entries = {text};\n"


_SEARCHING = ("entries.js", "search.js")


def _words(*texts: str) -> str:
    return " ".join(texts).lower()


def _listing(here: str, items: Sequence[Html], count: str) -> Html:
    """A search that needs a script, above a list that needs none."""
    field = element("label", "Search rules and packages ", element("input", type="search", id="search", autocomplete="off"))
    return joined(
        (
            element("div", field, element("p", id="count", role="status", class_="soft"), id="searching", hidden=True),
            element("ul", id="found", data_root=to("", here)),
            element("div", element("p", count, class_="soft"), element("ul", *items), id="everything"),
        )
    )


def _entry(rule: Rule, here: str) -> Html:
    badge = element("span", rule.severity, class_=f"badge {rule.severity}")
    return element("li", badge, " ", local(rule_path(rule.id), rule.title, here))


def _rule(rule: Rule, here: str) -> Html:
    level = element("span", rule.severity, class_=f"badge {rule.severity}")
    rows: list[tuple[str, Child]] = [("level", joined((level, " ", f"{rule.effect}, {rule.confidence}")))]
    for label, conditions in (("with", rule.packages), ("when", rule.when), *(("unless", each) for each in rule.unless)):
        if conditions:
            rows.append((label, "; ".join(map(in_words, conditions))))
    if rule.presume:
        rows.append(("taken as", presumed_words(rule)))
    rows += [("shows", element("code", f"{each.exception or 'text'}: {each.message}")) for each in rule.errors]
    rows += [("or" if number else "fix", fix_words(fix)) for number, fix in enumerate(rule.fixes)]
    names = sorted(named_distributions(rule))
    links = [joined((", " if number else "", local(package_path(name), name, here))) for number, name in enumerate(names)]
    rows.append(("packages", joined(links)))
    rows.append(("rule", element("code", rule.id)))
    parts: list[Child] = [element("p", rule.why), described(rows), element("h2", "Evidence")]
    parts.append(element("ul", *(element("li", link(address)) for address in rule.evidence)))
    bounds = evidence_of(rule.id)
    if bounds:
        parts.append(_bounds(bounds))
    parts.append(element("h2", "Examples"))
    parts.append(element("ul", *(element("li", f"{each.verdict}: {example_words(each)}") for each in rule.examples)))
    return joined(parts)


def _bounds(bounds: Sequence[BoundEvidence]) -> Html:
    """A table of what each bound of a rule's ranges rests on."""
    rows = [("package", "bound", "held against", "how", "seen", "on")]
    for each in bounds:
        beyond = f"{each.inside}, not {each.outside}" if each.outside else each.inside
        rows.append((each.package, each.bound, beyond, each.how, each.seen, each.date))
    head, *body = rows
    table = element(
        "table",
        element("caption", "What each bound of its ranges rests on"),
        element("thead", element("tr", *(element("th", text, scope="col") for text in head))),
        element("tbody", *(element("tr", *(element("td", text) for text in row)) for row in body)),
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label="Evidence of bounds")


# --- The feed: when a rule came into the matrix is what its line in the rule file says in the history.


def feed(rules: Sequence[Rule], root: Path, address: str) -> str:
    """An Atom feed of the newest rules; ``address`` is that of the site ("" where it is not known: links are relative)."""
    came = _came(rules, root)
    newest = sorted(rules, key=lambda rule: (came[rule.id], rule.id), reverse=True)[:_NEWEST]
    updated = came[newest[0].id] if newest else _when(0)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        "  <title>compat: new rules</title>",
        f"  <id>{_identity('')}</id>",
        f"  <updated>{updated}</updated>",
        "  <author><name>compat</name></author>",
        f'  <link rel="self" href={quoteattr(f"{address}feed.xml")}/>',
    ]
    for rule in newest:
        lines += [
            "  <entry>",
            f"    <title>{escape(rule.title)}</title>",
            f"    <id>{_identity(rule.id)}</id>",
            f"    <updated>{came[rule.id]}</updated>",
            f"    <link href={quoteattr(address + rule_path(rule.id))}/>",
            f"    <summary>{escape(rule.why)}</summary>",
            "  </entry>",
        ]
    return "\n".join([*lines, "</feed>", ""])


def _identity(name: str) -> str:
    return f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'compat-rule:{name}')}"


def _came(rules: Sequence[Rule], root: Path) -> dict[str, str]:
    """When each rule came, as Atom writes it; where there is no history, the date of its newest evidence."""
    found: dict[str, str] = {}
    for file in sorted({rule.file for rule in rules}):
        command = ["git", "blame", "--line-porcelain", "--", f"matrix/rules/{file}"]
        told = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
        seconds = 0
        for line in told.split("\n"):
            if line.startswith("committer-time "):
                seconds = int(line.split()[1])
            elif line.startswith('\tid = "'):
                found[line.split('"')[1]] = _when(seconds)
    dated = {rule.id: max((each.date for each in evidence_of(rule.id)), default="") for rule in rules}
    return {rule.id: found.get(rule.id) or (f"{dated[rule.id]}T00:00:00Z" if dated[rule.id] else _when(0)) for rule in rules}


def _when(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
