"""``compat surface A==1.0 B==2.0``: report breakage between releases, with file and line on both sides."""

from __future__ import annotations

from collections.abc import Mapping

from compat.api.commands import Options
from compat.checks.interfaces import open_rows_once
from compat.errors import InputError, Undecided, printable
from compat.interfaces.rows import Row, Rows
from compat.model import normalized
from compat.output.stream import emit, emit_json
from compat.output.terminal import wrap_text
from compat.versions import is_version, key_of

_TIERS = {
    "E1": "fails when {} is imported",
    "E2": "fails when a module of {} is imported",
    "R1": "fails in a call, if {} reaches it",
}


def run(options: Options) -> int:
    """Print the names that the releases need from one another and lack; returns 1 if any, 3 for an unknown release, else 0."""
    if len(options.operands) < 2:
        raise InputError("expected at least two releases: compat surface trl==0.11.4 transformers==4.46.0")
    asked: dict[str, str] = {}
    for text in options.operands:
        name, equals, version = (part.strip() for part in text.partition("=="))
        if not equals or not name or not is_version(version):
            raise InputError(f"expected a release such as trl==0.11.4, not {text!r}")
        asked[normalized(name)] = version
    if len(asked) < len(options.operands):
        raise InputError("expected one release of each package")
    rows = open_rows_once()
    if rows is None:
        raise InputError("this build of compat does not include the tables of published source")
    for name, version in asked.items():
        _require_known(name, version, rows)
    found = sorted(rows.broken(asked), key=lambda row: (row.tier, row.consumer, row.package, row.what, row.path))
    if options.one("format") == "json":
        emit_json({
            "schema": "compat/surface/1", "releases": asked, "rows": [_row_json(row) for row in found],
            "exit": int(bool(found)),
        })  # fmt: skip
    else:
        emit(_text(asked, found))
    return int(bool(found))


def _require_known(name: str, version: str, rows: Rows) -> None:
    versions = rows.versions(name)
    if not versions:
        import difflib

        near = difflib.get_close_matches(name, sorted(rows.packages), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"there is no table for {name}{hint}")
    key = key_of(version)
    if not any(key_of(each) == key for each in versions):
        near = [each for each in versions if key_of(each) <= key][-1:] or [versions[0]]
        raise Undecided(
            f"the source of {name} {version} is not in the table ({versions[0]} to {versions[-1]} are; nearest: {near[0]})"
        )


def _text(asked: Mapping[str, str], found: list[Row]) -> str:
    """Render the facts, worst first, each once with up to three lines that need it."""
    title = " with ".join(f"{name} {version}" for name, version in asked.items())
    if not found:
        return f"  {title}: no known incompatibilities"
    facts: dict[tuple[str, ...], list[Row]] = {}
    for row in found:
        facts.setdefault((row.tier, row.consumer, row.package, row.what, row.problem, row.missing), []).append(row)
    grouped: dict[tuple[str, str], list[list[Row]]] = {}
    for (tier, consumer, *_), rows in facts.items():
        grouped.setdefault((tier, consumer), []).append(rows)
    lines = [f"  {title}"]
    for (tier, consumer), group in grouped.items():
        lines += ["", f"  {_TIERS[tier].format(consumer)}"]
        for rows in group:
            lines += _fact(rows, asked)
    return "\n".join(map(printable, [*lines, "", f"  {len(facts)} incompatibilit{'ies' if len(facts) > 1 else 'y'} found."]))


def _fact(rows: list[Row], asked: Mapping[str, str]) -> list[str]:
    row = rows[0]
    problem = {
        "name": "does not exist" if row.kind != "import" else "cannot be imported",
        "keyword": f"does not accept {row.missing}=",
        "positional": "does not accept that many positional arguments",
    }.get(row.problem, f"is called with {row.missing}, which the override does not accept")
    lines = wrap_text(f"{row.what}  {problem}", "    ", "      ")
    for each in rows[:3]:
        asks = f" (if {', '.join(each.asks)} is installed)" if each.asks else ""
        scope = f" in {each.scope}" if each.scope else ""
        lines += wrap_text(f"{each.consumer} {each.version}  {each.path}:{each.line}{scope}{asks}", "      ", "        ")
    if len(rows) > 3:
        lines.append(f"      and in {len(rows) - 3} more places")
    # the nearest release that lacks it, at or below the given one, and the nearest above that has it
    at = key_of(asked[row.package])
    without = [each for each in row.evidence if not each.has]
    having = [each for each in row.evidence if each.has]
    before = [each for each in without if key_of(each.version) <= at][-1:] or without[:1]
    after = [each for each in having if key_of(each.version) > at][:1] or having[-1:]
    for evidence in (*before, *after):
        has = "has it" if evidence.has else "does not"
        lines += wrap_text(f"{row.package} {evidence.version}  {evidence.place}  {has}", "      ", "        ")
    return lines


def _row_json(row: Row) -> dict[str, object]:
    return {
        "tier": row.tier, "consumer": row.consumer, "path": row.path, "line": row.line, "scope": row.scope,
        "asks": list(row.asks), "package": row.package, "what": row.what, "kind": row.kind, "problem": row.problem,
        "missing": row.missing, "bad": list(row.bad),
        "evidence": [{"release": each.version, "path": each.path, "line": each.line, "has": each.has} for each in row.evidence],
    }  # fmt: skip
