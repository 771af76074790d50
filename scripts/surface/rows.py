"""``python -m scripts.surface.rows``: writes ``matrix/surface/rows.bin``, what releases need of one another and do not have."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat.interfaces.needs import packages_of
from compat.interfaces.rows import E2, MAGIC, R1, module_of
from scripts.surface.collect import CONSUMERS, PACKAGE_OF, Occurrence, needs_of, occurrences_of
from scripts.surface.existing import Blocks, existing
from scripts.surface.imports import Edges, edges_of, entries_of, leading_to, public_nodes, shortened
from scripts.surface.judged import Evidence, Judged, judged
from scripts.surface.mined import Mined
from scripts.surface.opened import table_in
from scripts.surface.packages import USERS, tops_of
from scripts.surface.store import Store
from scripts.surface.tables import FOLDER, compressed, headed, write

if TYPE_CHECKING:
    from multiprocessing.pool import Pool

    from compat.interfaces.needs import Need

    Pairs = dict[str, dict[Need, Judged]]
    """Package that is needed → need → in which of its releases it is met."""

MOST_EVIDENCE = 6
_OWNERS = PACKAGE_OF | {top: package for package in USERS for top in tops_of(package)}
"""Top-level module → package, those included of which only the needs are mined."""
YEAR = 365
_mined: Mined | None = None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.rows", description=__doc__)
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE", help="only pairs of these (default: all that are in the store)"
    )
    parser.add_argument("--target", metavar="PACKAGE", help="only rows about this one; all others stay as they are in the file")
    parser.add_argument(
        "--consumers",
        nargs="+",
        default=(),
        metavar="PACKAGE",
        help="only rows of these, held against the tables that are shipped",
    )
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--jobs", type=int, default=2)
    words = parser.parse_args(arguments)
    if words.consumers:
        return of_consumers(words.consumers, words.store, words.jobs)
    began = time.monotonic()
    store = Store(words.store)
    known = [package for package in store.packages() if not words.packages or package in (*words.packages, words.target)]
    consumers = [package for package in CONSUMERS if package in known and package != words.target]
    kept = existing(FOLDER / "rows.bin") if words.target else None
    targets = [words.target] if words.target else known
    with multiprocessing.Pool(words.jobs, _start, (words.store,), maxtasksperchild=4) as pool:
        needs = dict(pool.imap_unordered(_needs, consumers))
        _say(f"{sum(map(len, needs.values()))} needs of {len(consumers)} packages", began)
        pairs: Pairs = dict(pool.imap_unordered(_judged, _by_target(needs, targets)))
        _say(f"{sum(map(len, pairs.values()))} of them not met by every release", began)
        days = {package: uploads(store, package) for package in known}
        tasks = [(package, wanted(package, needs[package], pairs, days)) for package in consumers]
        places = dict(pool.imap_unordered(_places, tasks))
        _say("the lines", began)
        edges = kept.edges if kept is not None else _imports(pool, known, places)
    blocks = {package: _rows(package, places[package], pairs) for package in consumers}
    versions = {package: tuple(version for version, _ in days[package]) for package in known}
    if kept is not None:
        versions = kept.versions | versions
        blocks = kept.with_rows_about(words.target, blocks)
    blocks = timely(blocks, {package: [day for _, day in found] for package, found in days.items()})
    content = packed(blocks, edges, versions)
    write(FOLDER / "rows.bin", content)
    _say(f"{sum(len(rows) for kinds in blocks.values() for rows in kinds.values())} rows, {len(content) >> 10} KiB", began)
    return 0


def of_consumers(consumers: list[str], folder: Path | None, jobs: int) -> int:
    """Makes the rows of some packages anew; all others stay. What they need is looked up in shipped tables, not the store.

    Releases that the other rows do not know are left out: without a verdict of theirs, they would look like ones that work.
    """
    began = time.monotonic()
    store, kept = Store(folder), existing(FOLDER / "rows.bin")
    tables = {path.stem: table for path in FOLDER.glob("*.bin") if (table := table_in(path)) is not None}
    targets = sorted(tables.keys() & set(PACKAGE_OF.values()))
    with multiprocessing.Pool(jobs, _start, (folder,), maxtasksperchild=4) as pool:
        needs = dict(pool.imap_unordered(_needs, consumers))
        _say(f"{sum(map(len, needs.values()))} needs of {len(consumers)} packages", began)
        known = {name: len(kept.versions.get(name, table.versions)) for name, table in tables.items()}
        tasks = [(name, found, known[name]) for name, found in _by_target(needs, targets)]
        pairs: Pairs = dict(pool.imap_unordered(_judged_by_table, tasks))
        _say(f"{sum(map(len, pairs.values()))} of them not met by every release", began)
        days = {name: [*zip(table.versions, table.uploaded)][: known[name]] for name, table in tables.items()}
        days |= {package: uploads(store, package) for package in consumers}
        uses = [(package, wanted(package, needs[package], pairs, days)) for package in consumers]
        places = dict(pool.imap_unordered(_places, uses))
        _say("the lines", began)
        edges = _imports(pool, consumers, places, kept.edges)
    versions = {name: tuple(version for version, _ in days[name]) for name in days if name in consumers or name in targets}
    kept = kept.renumbered(versions)
    made = {package: _rows(package, places[package], pairs) for package in consumers}
    blocks = timely(kept.blocks | made, {name: [day for _, day in found] for name, found in days.items()})
    mentioned = {row[0] for kinds in blocks.values() for rows in kinds.values() for row in rows} | blocks.keys()
    versions = {name: each for name, each in (kept.versions | versions).items() if name in mentioned}
    content = packed(blocks, {package: found for package, found in edges.items() if package in versions}, versions)
    write(FOLDER / "rows.bin", content)
    _say(f"{sum(len(rows) for kinds in blocks.values() for rows in kinds.values())} rows, {len(content) >> 10} KiB", began)
    return 0


def _say(text: str, began: float) -> None:
    print(f"{text}; {time.monotonic() - began:.0f} s", flush=True)


def _start(folder: Path | None) -> None:
    global _mined
    _mined = Mined(Store(folder))


def _needs(package: str) -> tuple[str, dict[Need, int]]:
    assert _mined is not None
    return package, needs_of(_mined, package)


def _judged(task: tuple[str, list[Need]]) -> tuple[str, dict[Need, Judged]]:
    assert _mined is not None
    mined = Mined(_mined.store, uses=False)
    return task[0], judged(map(mined.surface, mined.releases(task[0])), task[1])


def _judged_by_table(task: tuple[str, list[Need], int]) -> tuple[str, dict[Need, Judged]]:
    name, needs, known = task
    table = table_in(FOLDER / f"{name}.bin")
    assert table is not None
    return name, judged(islice(table.surfaces(), known), needs)


def _places(task: tuple[str, dict[Need, int]]) -> tuple[str, dict[Occurrence, dict[int, int]]]:
    assert _mined is not None
    return task[0], occurrences_of(_mined, *task)


def _edges(package: str) -> tuple[str, Edges]:
    assert _mined is not None
    return package, edges_of(_mined, package)


def _public(package: str) -> tuple[str, set[str]]:
    assert _mined is not None
    return package, public_nodes(_mined, package)


def _entries(task: tuple[str, list[str]]) -> tuple[str, Edges]:
    assert _mined is not None
    return task[0], entries_of(_mined, *task)


def _imports(
    pool: Pool, known: list[str], places: dict[str, dict[Occurrence, dict[int, int]]], kept: dict[str, Edges] | None = None
) -> dict[str, Edges]:
    """The imports that lead to a row of tier E2, by package; ``kept`` those of packages that are not read anew."""
    edges = (kept or {}) | dict(pool.imap_unordered(_edges, known))
    nodes: dict[str, set[str]] = defaultdict(set)
    for found in edges.values():
        for _, end, _ in found:
            nodes[_OWNERS[end.partition(":")[0].partition(".")[0]]].add(end)
    for package, public in pool.imap_unordered(_public, known):
        nodes[package] |= public
    for package, more in pool.imap_unordered(_entries, [(package, sorted(nodes[package])) for package in known]):
        edges[package].update(more)
    goals = {module_of(place.path) for found in places.values() for place in found if place.tier == E2}
    goals |= {end for found in (kept or {}).values() for _, end, _ in found}  # they lead to one
    leading = leading_to(edges, goals)
    kept = {package: {edge: mask for edge, mask in found.items() if edge[1] in leading} for package, found in edges.items()}
    return {package: shortened(found, goals) for package, found in kept.items()}


def _by_target(needs: dict[str, dict[Need, int]], known: Iterable[str]) -> list[tuple[str, list[Need]]]:
    """Needs by the package that they are about, the longest work first."""
    grouped: dict[str, dict[Need, None]] = {package: {} for package in known}
    for consumer, found in needs.items():
        for need in found:
            for package in targets_of(need):
                if package in grouped and package != consumer:
                    grouped[package][need] = None
    return sorted(((package, list(found)) for package, found in grouped.items() if found), key=lambda task: -len(task[1]))


def targets_of(need: Need) -> set[str]:
    return {PACKAGE_OF[top] for top in packages_of(need) if top in PACKAGE_OF}


def uploads(store: Store, package: str) -> list[tuple[str, str]]:
    """Releases with their days, oldest release first."""
    return [(release.version, release.uploaded) for release in Mined(store).releases(package)]


def wanted(package: str, needs: dict[Need, int], pairs: Pairs, days: dict[str, list[tuple[str, str]]]) -> dict[Need, int]:
    """Needs that some release does not meet, in the releases of the package that could rely on them.

    A release could if what was newest on its day met the need, or the release after that: what was broken from birth is
    more often misread than true.
    """
    found: dict[Need, int] = {}
    dates = {target: sorted((day, at) for at, (_, day) in enumerate(found)) for target, found in days.items()}
    for need, mask in needs.items():
        for target in targets_of(need) - {package}:
            entry = pairs.get(target, {}).get(need)
            if entry is None:
                continue
            kept = 0
            for at, (_, day) in enumerate(days[package]):
                if mask >> at & 1 and any(entry.met >> each & 1 for each in current(dates[target], day)):
                    kept |= 1 << at
            if kept:
                found[need] = found.get(need, 0) | kept
    return found


def current(dates: list[tuple[str, int]], day: str) -> list[int]:
    """The newest release of a day and the one after it."""
    at = bisect_right(dates, (day, 1 << 30))
    return [number for _, number in dates[max(at - 1, 0) : at + 1]]


def _rows(package: str, places: dict[Occurrence, dict[int, int]], pairs: Pairs) -> dict[str, list[tuple[Any, ...]]]:
    """The rows by block; imports of several names that fail for the same reason are one."""
    found: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = defaultdict(dict)
    for place, lines in places.items():
        for target in targets_of(place.need) - {package}:
            entry = pairs.get(target, {}).get(place.need, Judged())
            for (problem, missing), bad in entry.problems.items():
                row = (target, bad, dict(lines), *_told(target, place), problem, missing, _evidence(entry, bad))
                same = found[place.tier[0]].setdefault(
                    (*row[:2], *row[3:7], row[10], row[11], row[7] if row[10] != "name" else ""), row
                )
                if same is not row:
                    _merge(same[2], lines)
    return {kind: list(rows.values()) for kind, rows in found.items()}


def _merge(into: dict[int, int], lines: dict[int, int]) -> None:
    """A release gets one line, the first."""
    for line, mask in sorted(lines.items()):
        for other, there in list(into.items()):
            if other <= line:
                mask &= ~there
            else:
                into[other] = there & ~mask
        if mask:
            into[line] = into.get(line, 0) | mask


def _told(target: str, place: Occurrence) -> tuple[Any, ...]:
    kind, dotted, name, bases, *_ = place.need
    asks = tuple(ask for ask in place.asks if PACKAGE_OF.get(ask, ask) != target)
    text = dotted or next((base for base in bases if PACKAGE_OF.get(base.partition(".")[0]) == target), "")
    return place.tier, place.path, place.scope, asks, kind, text, name


def _evidence(entry: Judged, bad: int) -> tuple[Evidence, ...]:
    """The first change and the last ones of those that are about these releases."""
    found = [each for each in entry.evidence if each[3] or bad >> each[0] & 1]
    return tuple(found[:2] + found[-MOST_EVIDENCE + 2 :] if len(found) > MOST_EVIDENCE else found)


def timely(blocks: Blocks, days: dict[str, list[str]]) -> Blocks:
    """Without what fails later, if at all, and only beside releases that were a year old when the consumer came out."""
    return {
        package: {
            kind: [
                row
                for row in rows
                if row[3] != R1 or package not in days or row[0] not in days or _gap(package, row, days) <= YEAR
            ]
            for kind, rows in kinds.items()
        }
        for package, kinds in blocks.items()
    }


def _gap(package: str, row: tuple[Any, ...], days: dict[str, list[str]]) -> int:
    """Days from the newest release that lacks something to the first of the consumer that needs it."""
    mask = 0
    for each in row[2].values():
        mask |= each
    first, last = days[package][(mask & -mask).bit_length() - 1], days[row[0]][row[1].bit_length() - 1]
    return (date.fromisoformat(first[:10]) - date.fromisoformat(last[:10])).days


def packed(
    blocks: dict[str, dict[str, list[tuple[Any, ...]]]], edges: dict[str, Edges], versions: dict[str, tuple[str, ...]]
) -> bytes:
    """The file; see :mod:`compat.interfaces.rows`."""
    made = {(package, kind): _block(rows) for package, kinds in blocks.items() for kind, rows in kinds.items()}
    made |= {(package, "X"): _import_block(found) for package, found in edges.items() if found}
    bodies, at = [], 0
    index: list[tuple[str, str, int, int]] = []
    for key, block in sorted(made.items()):
        body = compressed(block)
        index.append((*key, at, len(body)))
        bodies.append(body)
        at += len(body)
    tops = {top: package for top, package in PACKAGE_OF.items() if package in versions}
    return headed(MAGIC, {"versions": versions, "blocks": index, "tops": tops}, bodies)


def _block(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    masks: dict[int, int] = {}

    def number(mask: int) -> int:
        return masks.setdefault(mask, len(masks))

    made = []
    for target, bad, lines, *rest in sorted(rows, key=lambda row: (row[0], row[8], row[9] or "", row[4], row[5])):
        flat = tuple(each for line, mask in sorted(lines.items()) if mask for each in (number(mask), line))
        made.append((target, number(bad), flat, *rest))
    return {"masks": tuple(masks), "rows": tuple(made)}


def _import_block(edges: Edges) -> dict[str, Any]:
    """From each module: set of releases, what must be there, the modules that are imported then; again and again."""
    masks: dict[int, int] = {}
    rows: dict[str, dict[tuple[int, tuple[str, ...]], list[str]]] = defaultdict(lambda: defaultdict(list))
    for (start, end, asks), mask in sorted(edges.items()):
        rows[start][masks.setdefault(mask, len(masks)), asks].append(end)
    steps = [
        (start, *(each for (mask, asks), ends in found.items() for each in (mask, asks, ends))) for start, found in rows.items()
    ]
    return {"masks": tuple(masks), "rows": steps}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
