"""Compatibility tables of releases with one another: the result of ``compat check`` for every combination.

Nothing is judged here. A cell is the report about an environment that holds the two and nothing else; neighbours that say the
same of every release become one row or column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache

from compat.api.commands import Options
from compat.api.report import filter_findings
from compat.checks import check_environment
from compat.model import Distribution, Environment, Finding
from compat.output.html.page import Child, Html, element, joined
from compat.records import replace
from compat.rules.compiled import Matrix, open_matrix
from compat.tables.declared import open_declared
from compat.versions import is_version, key_of
from scripts.site.frame import Page, local
from scripts.site.knowledge import rule_path

PAIRS = (
    ("trl", "vllm"),
    ("vllm", "torch"),
    ("transformers", "trl"),
    ("unsloth", "trl"),
    ("flash-attn", "torch"),
    ("sglang", "flashinfer-python"),
    ("vllm", "transformers"),
    ("peft", "transformers"),
    ("bitsandbytes", "transformers"),
    ("xformers", "torch"),
)
"""The pairs that people ask about: rows, columns."""
SIGNS = {
    "works": ("✓", "works as far as known"), "declared": ("≠", "declared conflict"), "bad": ("✗", "known-bad"),
    "depends": ("~", "known-bad in some settings"), "unknown": ("?", "not assessed"),
}  # fmt: skip
"""Each state of a cell: its sign, and what it says."""


@dataclass(frozen=True)
class Reason:
    """What a finding says of a combination, without the releases of this one cell: equal ones are listed once."""

    rule: str
    origin: str
    title: str
    why: str


@dataclass(frozen=True)
class Cell:
    state: str
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Group:
    """Adjacent releases (or GPUs) with identical cells."""

    first: str
    last: str

    @property
    def label(self) -> str:
        return self.first if self.first == self.last else f"{self.first} – {self.last}"


@dataclass(frozen=True)
class Table:
    rows: tuple[Group, ...]
    columns: tuple[Group, ...]
    cells: tuple[tuple[Cell, ...], ...]


def releases_of(name: str, most: int) -> list[str]:
    """Final releases of a followed package that were not yanked, the oldest first: the newest half of ``most``, and before
    them the newest of each minor line."""
    package = open_declared().package(name)
    found = package.releases if package is not None else ()
    kept = (each.version for each in found if each.yanked is None and is_version(each.version))
    final = sorted((version for version in kept if key_of(version)[2::3] == _FINAL), key=key_of)
    recent = final[-((most + 1) // 2) :]
    lines = {key_of(version)[1][:2]: version for version in final[: -len(recent)]} if recent else {}
    return [*list(lines.values())[len(lines) - most // 2 if len(lines) > most // 2 else 0 :], *recent]


_FINAL = key_of("1")[2::3]
"""What marks a pre-release and a development release, of one that is neither."""


def pair_pages(most: int, workers: int) -> Iterator[Page]:
    """Return a page for each pair, and one that lists them."""
    here = "pairs/index.html"
    made = []
    for left, right in PAIRS:
        path = f"pairs/{left}-{right}.html"
        rows, columns = releases_of(left, most), releases_of(right, most)
        table = table_of(rows, columns, PairCells(left, right), workers)
        made.append((path, f"{left} × {right}"))
        yield Page(path, f"Which {left} goes with which {right}", shown(table, left, right, path))
    links = [element("li", local(path, title, here)) for path, title in made]
    about = (
        "Each table holds releases of two packages against each other (all of the newest, of older minor lines the last one), "
        "as compat check judges an environment that has both and nothing else, with Python 3.12 on Linux x86_64: a third "
        "package may still keep them apart. Neighbouring releases of which the same is known share a row or a column."
    )
    yield Page(here, "Which goes with which", joined((element("p", about), element("ul", *links))))


# --- Cells: one environment each, judged as a check judges it.


@dataclass(frozen=True)
class PairCells:
    """What is known of a release of each of two packages."""

    left: str
    right: str

    def __call__(self, row: str, column: str) -> Cell:
        pair = ((self.left, row), (self.right, column))
        copies = tuple(
            # trl[vllm]: whoever has both asked for the extra that is called like the other one
            Distribution(name, version, extra={"extras": [other]})
            for (name, version), (other, _) in zip(pair, reversed(pair))
        )
        # everything about the two and no third package, also where it takes a setting that few have
        found = findings(replace(TARGET, distributions=copies), "all")
        both = [each for each in found if each.packages.keys() == {self.left, self.right}]
        return cell_of(both, assessed=all(assessed(name, version) for name, version in pair))


TARGET = Environment(python="3.12", os="linux", machine="x86_64")


def findings(environment: Environment, *flags: str) -> tuple[Finding, ...]:
    _, found, _ = check_environment(environment, matrix())
    return filter_findings(found, (), Options("check", {flag: [""] for flag in flags}, (), None)).findings


@cache
def matrix() -> Matrix:
    return open_matrix()


def assessed(name: str, version: str) -> bool:
    newest = matrix().newest.get(name)
    return newest is not None and key_of(version) <= key_of(newest)


def cell_of(found: Sequence[Finding], *, assessed: bool) -> Cell:
    bad = [each for each in found if each.severity != "info"]
    for state, kept in (
        ("bad", [each for each in bad if each.verdict == "hit" and each.origin != "metadata"]),
        ("declared", [each for each in bad if each.verdict == "hit"]),
        ("depends", bad),
    ):
        if kept:
            return Cell(state, tuple(dict.fromkeys(map(_reason, kept))))
    return Cell("works" if assessed else "unknown")


def _reason(finding: Finding) -> Reason:
    """What a finding says without the releases of its environment, so that the cells of neighbours read alike."""
    title, why = finding.title, finding.why
    if finding.origin == "metadata":
        title = title.partition(", and ")[0]
    if finding.origin != "rule":
        for name, version in finding.packages.items():
            title, why = (text.replace(f"{name} {version}", name) for text in (title, why))
    return Reason(finding.rule, finding.origin, title, why)


# --- The table: what is alike is one row or column.


def table_of(
    rows: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], Cell], workers: int = 1, *, ranged: bool = True
) -> Table:
    """All cells, with neighbours merged that are alike throughout; columns only where they are ``ranged`` (releases)."""
    pairs = [(row, column) for row in rows for column in columns]
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            flat = list(pool.map(cell, *zip(*pairs), chunksize=max(1, len(pairs) // (4 * workers))))
    else:
        flat = [cell(row, column) for row, column in pairs]
    cells = [flat[start : start + len(columns)] for start in range(0, len(flat), len(columns))]
    row_groups, cells = _merged(rows, cells)
    if not ranged:
        return Table(row_groups, tuple(Group(name, name) for name in columns), tuple(map(tuple, cells)))
    column_groups, turned = _merged(columns, [list(each) for each in zip(*cells)])
    return Table(row_groups, column_groups, tuple(zip(*turned)))


def _merged(names: Sequence[str], lines: Sequence[Sequence[Cell]]) -> tuple[tuple[Group, ...], list[list[Cell]]]:
    groups: list[Group] = []
    kept: list[list[Cell]] = []
    for name, line in zip(names, lines):
        if kept and kept[-1] == list(line):
            groups[-1] = Group(groups[-1].first, name)
        else:
            groups.append(Group(name, name))
            kept.append(list(line))
    return tuple(groups), kept


def shown(table: Table, left: str, right: str, here: str, prefix: str = "", level: int = 2) -> Html:
    """The table, newest releases first, and under it each reason once; a cell leads to its reasons.

    ``level`` is that of the heading above the reasons.
    """
    numbers: dict[tuple[Reason, ...], int] = {}
    for row in table.cells:
        for cell in row:
            if cell.reasons:
                numbers.setdefault(cell.reasons, len(numbers) + 1)
    newest_first = not right.endswith("GPU")
    order = range(len(table.columns))[:: -1 if newest_first else 1]
    corner = element("td", f"{left} ↓ {right} →")
    head = element("tr", corner, *(element("th", element("span", table.columns[at].label), scope="col") for at in order))
    rows = [
        element(
            "tr",
            element("th", group.label, scope="row"),
            *(
                _data(
                    row[at],
                    f"{left} {group.label} with {right} {table.columns[at].label}",
                    numbers.get(row[at].reasons),
                    prefix,
                )
                for at in order
            ),
        )
        for group, row in reversed(list(zip(table.rows, table.cells)))
    ]
    grid = element("table", element("thead", head), element("tbody", *rows), class_="matrix")
    legend = [element("li", element("b", sign, aria_hidden="true"), text) for sign, text in SIGNS.values()]
    reasons = [element("li", *_told(found, here), id=f"{prefix}r{number}", value=number) for found, number in numbers.items()]
    return joined(
        (
            element("ul", *legend, class_="legend"),
            element("div", grid, class_="scroll", tabindex="0", role="region", aria_label=f"{left} and {right}"),
            element(f"h{level}", "Why") if reasons else None,
            element("ol", *reasons, class_="reasons") if reasons else None,
        )
    )


def _data(cell: Cell, combination: str, number: int | None, prefix: str) -> Html:
    sign, text = SIGNS[cell.state]
    label = f"{combination}: {text}"
    if number is None:
        return element("td", element("span", sign, title=label, role="img", aria_label=label), class_=cell.state)
    return element("td", element("a", sign, href=f"#{prefix}r{number}", title=label, aria_label=label), class_=cell.state)


def _told(reasons: Iterable[Reason], here: str) -> Iterator[Child]:
    for number, reason in enumerate(reasons):
        title: Child = (
            local(rule_path(reason.rule), reason.title, here) if reason.origin == "rule" else element("strong", reason.title)
        )
        yield joined((element("br") if number else "", title, f": {reason.why}"))
