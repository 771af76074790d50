"""What breaks between releases, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compat.errors import printable
from compat.output.terminal import wrapped
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.interfaces.rows import Evidence, Row


SCHEMA = "compat/surface/1"
_TIERS = {
    "E1": "fails when {} is imported",
    "E2": "fails when a module of {} is imported",
    "R1": "fails in a call, if {} comes to it",
}


def surface_text(asked: Mapping[str, str], found: list[Row]) -> str:
    """Worst first; each thing once, with every line that needs it."""
    title = " beside ".join(f"{name} {version}" for name, version in asked.items())
    if not found:
        return f"  {title}: nothing is known to break"
    lines = [f"  {title}"]
    for (tier, consumer), rows in _grouped(found).items():
        lines += ["", f"  {_TIERS[tier].format(consumer)}"]
        for same in rows:
            lines += _fact(same, asked)
    facts = sum(map(len, _grouped(found).values()))
    return "\n".join(map(printable, [*lines, "", f"  {facts} thing{'s' if facts > 1 else ''} not there."]))


def _grouped(found: list[Row]) -> dict[tuple[str, str], list[list[Row]]]:
    facts: dict[tuple[str, ...], list[Row]] = {}
    for row in found:
        facts.setdefault((row.tier, row.consumer, row.package, row.what, row.problem, row.missing), []).append(row)
    grouped: dict[tuple[str, str], list[list[Row]]] = {}
    for (tier, consumer, *_), rows in facts.items():
        grouped.setdefault((tier, consumer), []).append(rows)
    return grouped


def _fact(rows: list[Row], asked: Mapping[str, str]) -> list[str]:
    row = rows[0]
    lines = wrapped(f"{row.what}  {_problem(row)}", "    ", "      ")
    for each in rows[:3]:
        asks = f" (where {', '.join(each.asks)} is there)" if each.asks else ""
        scope = f" in {each.scope}" if each.scope else ""
        lines += wrapped(f"{each.consumer} {each.version}  {each.path}:{each.line}{scope}{asks}", "      ", "        ")
    if len(rows) > 3:
        lines.append(f"      and in {len(rows) - 3} more places")
    for evidence in nearest_evidence(row, asked[row.package]):
        has = "has it" if evidence.has else "does not"
        lines += wrapped(f"{row.package} {evidence.version}  {evidence.place}  {has}", "      ", "        ")
    return lines


def _problem(row: Row) -> str:
    if row.problem == "name":
        return "is not there" if row.kind != "import" else "cannot be imported"
    if row.problem == "keyword":
        return f"does not take {row.missing}="
    if row.problem == "positional":
        return "does not take so many positional arguments"
    return f"is called with {row.missing}, which the override does not take"


def nearest_evidence(row: Row, version: str) -> tuple[Evidence, ...]:
    """The release next to one that lacks what is needed, and the one that has it."""
    at = key_of(version)
    without = [each for each in row.evidence if not each.has]
    having = [each for each in row.evidence if each.has]
    before = [each for each in without if key_of(each.version) <= at][-1:] or without[:1]
    after = [each for each in having if key_of(each.version) > at][:1] or having[-1:]
    return (*before, *after)


def surface_json(asked: Mapping[str, str], found: list[Row]) -> dict[str, Any]:
    """The same for programs (``compat/surface/1``)."""
    return {"schema": SCHEMA, "releases": dict(asked), "rows": [_row(row) for row in found], "exit": int(bool(found))}


def _row(row: Row) -> dict[str, Any]:
    return {
        "tier": row.tier, "consumer": row.consumer, "path": row.path, "line": row.line, "scope": row.scope,
        "asks": list(row.asks), "package": row.package, "what": row.what, "kind": row.kind, "problem": row.problem,
        "missing": row.missing, "bad": list(row.bad),
        "evidence": [{"release": each.version, "path": each.path, "line": each.line, "has": each.has} for each in row.evidence],
    }  # fmt: skip
