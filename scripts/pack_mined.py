"""What was mined or measured (``matrix/surface``, ``matrix/guards``, ``matrix/evidence``) → files that the package reads."""

from __future__ import annotations

import json
import lzma
import marshal
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from compat.interfaces.at_once import ENTRIES, JOB, JOBS, MAIN, MAINS, REACHED, TIERS, with_older
from compat.interfaces.guards import condition_of
from compat.interfaces.imports import Reach, of_main
from compat.interfaces.refusals import Both, Condition, FactTest, Opposite
from compat.interfaces.rows import E2, R1, Rows
from compat.interfaces.table import FILTERS, open_table, tracked
from compat.rules.compiled import EVIDENCE_FIELDS
from compat.rules.rule import Rule
from compat.versions import contains, key_of

if TYPE_CHECKING:
    from compat.interfaces.at_once import Failing

_DEPTH = 1
"""Dots in the name of a module that users import from."""


def at_once(rows: Rows) -> bytes:
    """Return the content of the index file of :mod:`compat.interfaces.at_once` for these rows."""
    known = {name: " ".join(rows.versions(name)) for name in sorted(rows.packages)}
    found = {**{tier: _of_tier(rows, tier) for tier in (*TIERS, REACHED, JOB)}, MAIN: _of_mains(rows)}
    packed = {tier: {name: marshal.dumps(each, 4) for name, each in by_name.items()} for tier, by_name in found.items()}
    tiers = {tier: zlib.compress(marshal.dumps(by_name, 4), 9) for tier, by_name in packed.items()}
    return marshal.dumps({"versions": zlib.compress(marshal.dumps(known, 4), 9), "tiers": tiers}, 4)


def _of_tier(rows: Rows, tier: str) -> dict[str, Failing]:
    found = {}
    entries = {REACHED: ENTRIES, JOB: JOBS}.get(tier)
    tier, consumers = (tier, rows.consumers) if entries is None else (E2, entries)
    entered = None if entries is None else _entered(rows, entries)
    for consumer in sorted(rows.consumers.intersection(consumers)):
        places = {version: at for at, version in enumerate(rows.versions(consumer))}
        kept: dict[tuple[str, int, tuple[str, ...]], int] = {}
        for versions, row in rows.all_of(consumer, kind=tier[0], tier=tier):
            bad = frozenset(row.bad)
            known = rows.versions(row.package)
            mask = with_older(sum(1 << at for at, version in enumerate(known) if version in bad), known)
            key = row.package, mask, row.asks
            run = (version for version in versions if entered is None or row.module in entered(consumer, version))
            kept[key] = kept.get(key, 0) | sum(1 << places[version] for version in run)
        if any(kept.values()):
            found[consumer] = [(package, bad, when, asks) for (package, bad, asks), when in kept.items() if when]
    return found


def _of_mains(rows: Rows) -> dict[str, Failing]:
    """The releases of other packages with which every main module of a release fails."""
    found: dict[str, Failing] = {}
    for consumer in sorted(rows.consumers & MAINS.keys()):
        bad: dict[tuple[int, str, str], int] = {}
        places = {version: at for at, version in enumerate(rows.versions(consumer))}
        for kind, tier in (("E", E2), ("R", R1)):
            for versions, row in rows.all_of(consumer, kind=kind, tier=tier):
                if of_main(row):
                    lacking = frozenset(row.bad)
                    mask = sum(1 << at for at, version in enumerate(rows.versions(row.package)) if version in lacking)
                    for version in versions:
                        key = places[version], row.package, row.module
                        bad[key] = bad.get(key, 0) | mask
        kept: dict[tuple[str, int], int] = {}
        for at, package in dict.fromkeys((at, package) for at, package, _ in bad):
            all_bad = reduce(and_, (bad.get((at, package, module), 0) for module in MAINS[consumer]))
            if all_bad:
                kept[package, all_bad] = kept.get((package, all_bad), 0) | 1 << at
        found[consumer] = [(package, all_bad, when, ()) for (package, all_bad), when in kept.items()]
    return found


def _entered(rows: Rows, entries: Mapping[str, tuple[str, ...]]) -> Callable[[str, str], frozenset[str]]:
    """A function that returns the modules that ``entries`` of a release run, whatever else is installed."""

    @cache
    def entered(package: str, version: str) -> frozenset[str]:
        return frozenset(Reach(rows, {package: version}).run_by((*rows.tops(package), *entries[package])))

    return entered


def homes() -> bytes:
    """Return the content of the file of :mod:`compat.interfaces.homes`, from the compiled surface files."""
    found: dict[str, dict[str, list[str]]] = {}
    for package, module, name in public_names():
        found.setdefault(name, {}).setdefault(package, []).append(module)
    homes = {name: next(iter(packages.values())) for name, packages in found.items() if len(packages) == 1}
    modules = sorted({module for each in homes.values() for module in each}, key=lambda module: (module.count("."), module))
    place = {module: at for at, module in enumerate(modules)}
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in sorted(homes):
        groups.setdefault(tuple(sorted({place[module] for module in homes[name]})), []).append(name)
    text = json.dumps([modules, list(groups.items())], separators=(",", ":"))
    return lzma.compress(text.encode("ascii"), lzma.FORMAT_RAW, filters=FILTERS)


def public_names() -> Iterator[tuple[str, str, str]]:
    """Yield every name of a public module of any release, with the package and the module."""
    for top, package in tracked().items():
        table = open_table(package)
        for module in table.modules() if table is not None else ():
            if module.partition(".")[0] == top and module.count(".") <= _DEPTH and "._" not in module:
                yield from ((package, module, name) for name in table.names_in(module)) if table is not None else ()


def guards(rows: Iterable[dict[str, str]], names: frozenset[str]) -> bytes:
    """Compile the rows of ``matrix/guards/*.csv``; ``names`` are the distributions that modules may refer to."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        runs = tuple((key_of(run.partition("..")[0]), key_of(run.rpartition("..")[2])) for run in row["releases"].split())
        condition = _closed_up(condition_of(row["condition"], names))
        found.setdefault(row["package"], []).append(
            (
                runs, row["module"], row["function"], row["kind"], row["error"], tuple(row["reach"].split("|")), condition,
                row["message"],
            )
        )  # fmt: skip
    index, blocks, end = {}, [], 0
    for package in sorted(found):
        block = marshal.dumps(tuple(found[package]), 4)
        index[package] = (end, end + len(block))
        blocks.append(block)
        end += len(block)
    head = marshal.dumps(index, 4)
    return b"".join((len(head).to_bytes(8, "big"), head, *blocks))


def _closed_up(condition: Condition) -> tuple[object, ...]:
    if isinstance(condition, FactTest):
        return ("test", condition.fact, condition.name, condition.operator, condition.value)
    if isinstance(condition, Opposite):
        return ("not", _closed_up(condition.part))
    return ("both" if isinstance(condition, Both) else "either", *map(_closed_up, condition.parts))


def evidence(rules: Iterable[Rule], rows: Iterable[Mapping[str, str]]) -> bytes:
    """Return the content of the file of evidence: the rows that agree with the current rules."""
    ranges = {(rule.id, name): found for rule in rules for name, found in rule.ranges.items()}
    found: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        held = ranges.get((row["rule"], row["package"]), ())
        if contains(held, key_of(row["inside"])) and not (row["outside"] and contains(held, key_of(row["outside"]))):
            found.setdefault(row["rule"], []).append(tuple(row[name] for name in EVIDENCE_FIELDS))
    return marshal.dumps(found, 4)
