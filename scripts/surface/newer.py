"""``python -m scripts.surface.newer PACKAGE…``: gives the rows about packages a verdict on releases that came out since.

The rows stay as they are; each is asked what it says of the last release that it knows, and then of the newer ones. It needs
no source of the packages that have the rows, so it does not find what only a newer release lacks. The package's own rows are
looked up in the source of its newer releases.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from compat.interfaces.needs import Consumer, Need, Place, Verdict, verdict_on
from compat.interfaces.release import Surface
from compat.interfaces.rows import R1, module_of
from compat.interfaces.source.module import FORM
from compat.interfaces.source.records import Class, Signature
from compat.interfaces.world import World
from compat.records import values_of
from scripts.surface.collect import at_import
from scripts.surface.existing import Blocks, existing
from scripts.surface.extract import places_of
from scripts.surface.judged import evidence_of
from scripts.surface.mined import Mined
from scripts.surface.opened import table_in
from scripts.surface.rows import packed
from scripts.surface.store import Store
from scripts.surface.tables import FOLDER, write


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.newer", description=__doc__)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    words = parser.parse_args(arguments)
    store, rows = Store(words.store), existing(FOLDER / "rows.bin")
    for package in words.packages:
        table = table_in(FOLDER / f"{package}.bin")
        before = rows.versions.get(package, ())
        if table is None or not before:
            print(f"{package}: no table or no rows, left as it is")
            continue
        newest = table.versions.index(before[-1])
        read = surfaces_of(store, package, table.versions[newest:])
        if read is None and package in rows.blocks:
            print(f"{package}: has rows of its own and is not in the store, left as it is")
            continue
        surfaces = read or [*table.surfaces()][newest:]
        rows = rows.renumbered({package: table.versions})
        rows.versions[package] = table.versions
        worlds = [(at, World((surface,))) for at, surface in enumerate(surfaces, newest)]
        counts = extend(rows.blocks, package, worlds)
        for at, surface in [*enumerate(surfaces, newest)][1:] if package in rows.blocks else ():
            counts += continued(rows.blocks[package], surface, at)
            edges, before_it = rows.edges.get(package, {}), 1 << at - 1
            edges.update((edge, mask | 1 << at) for edge, mask in [*edges.items()] if mask & before_it)
        print(package, ", ".join(table.versions[newest + 1 :]) or "nothing new", dict(counts))
    write(FOLDER / "rows.bin", packed(rows.blocks, rows.edges, rows.versions))
    return 0


def surfaces_of(store: Store, package: str, versions: Sequence[str]) -> list[Surface] | None:
    """Releases from their records, which have more than a table; ``None`` unless all of them were read."""
    mined, known = Mined(store), store.recorded(FORM)
    releases = [store.release(package, version) for version in versions]
    if any(release is None or not known.issuperset(places_of(release)) for release in releases):
        return None
    return [mined.surface(release) for release in releases if release is not None]


def extend(blocks: Blocks, package: str, worlds: list[tuple[int, World]]) -> Counter[str]:
    """Add what the newer releases say to each row about a package; the first of ``worlds`` is the last one that rows know."""
    counts: Counter[str] = Counter()
    for kinds in blocks.values():
        for kind, rows in kinds.items():
            kinds[kind] = [extended(row, worlds, counts) if row[0] == package else row for row in rows]
    return counts


def extended(row: tuple[Any, ...], worlds: list[tuple[int, World]], counts: Counter[str]) -> tuple[Any, ...]:
    """A row with a verdict on the newer releases.

    A release counts as the one before it if the row's need, as far as the row tells it, cannot be judged; the verdict on the
    last known release shows whether that is so.
    """
    (last, world), *newer = worlds
    ask = asked(row)
    verdict = ask(world)
    bad, lacks, evidence = row[1], bool(row[1] >> last & 1), list(row[12])
    told = verdict.met is not None and verdict.met is not lacks
    counts["judged" if told else "as before"] += 1
    seen = evidence_of(verdict, last)
    for at, world in newer:
        verdict = ask(world) if told else verdict
        if told and verdict.met is not None:
            now = evidence_of(verdict, at)
            if verdict.met is lacks:
                lacks = not verdict.met
                counts["lost" if lacks else "back"] += 1
                evidence += [each for each in (seen, now) if each is not None]
            seen = now
        bad |= lacks << at
    return (row[0], bad, *row[2:12], tuple(evidence))


def asked(row: tuple[Any, ...]) -> Callable[[World], Verdict]:
    """What a row asks of a release: its need, reduced to what is missing."""
    kind, target, name, problem, missing = row[7:12]
    keywords = (missing,) if problem == "keyword" else ()
    positional = int(missing) if problem == "positional" else 0
    if kind == "override":
        return lambda world: verdict_on(world, _override(world, target, name, problem, missing))
    of_self = kind == "inherited"
    need = Need(kind, "" if of_self else target, name, (target,) if of_self else (), positional, keywords)
    return lambda world: verdict_on(world, need)


def continued(kinds: dict[str, list[tuple[Any, ...]]], surface: Surface, at: int) -> Counter[str]:
    """Add a release to the rows of its own package that the release before it has, where its source has the same need."""
    counts: Counter[str] = Counter()
    needs: dict[str, list[tuple[Need, Place]]] = {}
    consumer = Consumer(surface)
    for row in chain.from_iterable(kinds.values()):
        lines, path = row[2], row[4]
        if not any(mask >> at - 1 & 1 for mask in lines.values()):
            continue
        if path not in needs:
            module = surface.module(module_of(path))
            needs[path] = [*consumer.needs(module)] if module is not None else []
        line = min((place.line for need, place in needs[path] if _is_of(row, need, place)), default=None)
        counts["needed no longer" if line is None else "still needed"] += 1
        if line is not None:
            lines[line] = lines.get(line, 0) | 1 << at
    return counts


def _is_of(row: tuple[Any, ...], need: Need, place: Place) -> bool:
    """Whether a row tells of a need; one row tells of all names that an import lacks for the same reason."""
    tier, _, scope, _, kind, target, name, problem, missing = row[3:12]
    if need.kind != kind or place.scope != scope or at_import(need, place) is (tier == R1):
        return False
    if kind in ("inherited", "override"):
        same = need.name == name and target in need.bases
    else:
        whole = f"{need.target}.{need.name}" if need.name else need.target
        same = (need.target, need.name) == (target, name) or (problem == "name" and f"{whole}.".startswith(f"{missing}."))
    if problem == "keyword":
        return same and missing in need.keywords
    return same and (problem != "positional" or need.positional == int(missing))


def _override(world: World, base: str, name: str, problem: str, missing: str) -> Need:
    """The need of an override that takes all but what the row says is passed to it."""
    if problem == "override-positional":
        signature = Signature(("self", *(f"_{at}" for at in range(int(missing) - 1))), double_star=True)
    else:
        found = world.find(base)
        classes = [each.definition for each in world.bases(found)[0]] if found.kind == "class" else []
        calls = [call for each in classes if isinstance(each, Class) for call in each.self_calls]
        passed = {keyword for call in calls if call.method == name for keyword in call.keywords}
        signature = Signature(("self",), keyword_only=tuple(sorted(passed - {missing})), star=True)
    return Need("override", "", name, (base,), signature=values_of(signature))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
