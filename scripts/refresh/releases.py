"""``releases.csv`` and ``requirements.csv``: declared metadata of releases. Only the yanked status can change."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from scripts.refresh import metadata
from scripts.refresh.index import Index, Release
from scripts.refresh.packages import FLOORS
from scripts.refresh.tables import Row, load, text_of
from scripts.refresh.updates import THREADS, Request, Update

AGAIN = 2
"""Old releases of each package that are read once more, to notice if anything differs."""
Table = Mapping[tuple[str, ...], dict[str, str]]


@dataclass(frozen=True)
class _Package:
    """The rows of one package, and the old rows that differ from the index."""

    releases: list[Row]
    requirements: list[Row]
    differences: list[str]
    received: int


def update(folder: Path, request: Request) -> Update:
    """Return the new text of both tables; see :data:`scripts.refresh.updates.Kind`."""
    releases = load(folder / "releases.csv", metadata.RELEASES, ("package", "version"))
    requirements = load(folder / "requirements.csv", metadata.REQUIREMENTS, ("package", "requirement"))
    wanted = [name for name in request.packages if name in FLOORS]
    with ThreadPoolExecutor(THREADS) as pool:
        done = list(pool.map(lambda name: _package(name, releases, requirements, request.today), wanted))
    kept = [row for row in releases.values() if row["package"] not in wanted]
    asked = [row for row in requirements.values() if row["package"] not in wanted]
    texts = {
        "releases.csv": text_of(
            [*kept, *(row for package in done for row in package.releases)],
            metadata.RELEASES,
            lambda row: (row["package"], Version(row["version"])),
        ),
        "requirements.csv": text_of(
            [*asked, *(row for package in done for row in package.requirements)],
            metadata.REQUIREMENTS,
            lambda row: (row["package"], row["requirement"]),
        ),
    }
    differences = tuple(line for package in done for line in package.differences)
    return Update(texts, differences, received=sum(package.received for package in done))


def _package(name: str, releases: Table, requirements: Table, today: str) -> _Package:
    index = Index()
    there = [each for each in index.releases(name) if each.key >= Version(FLOORS[name])]
    rows = {version: dict(row) for (package, version), row in releases.items() if package == name}
    dates = {requirement: row for (package, requirement), row in requirements.items() if package == name}
    asked = _asked(rows, dates)
    known = [each for each in there if each.version in rows]
    differences = []
    for release in [*(each for each in there if each.version not in rows), *known[:1], *known[-(AGAIN - 1) :]]:
        read = metadata.declared(index, name, release, today)
        if release.version not in rows:
            rows[release.version], asked[release.version] = dict(read.release), read.requirements
            continue
        if set(read.requirements) != set(asked[release.version]):
            differences.append(f"{name} {release.version}: requires other distributions than the table says")
        if read.release["requires_python"] != rows[release.version]["requires_python"]:
            differences.append(f"{name} {release.version}: requires-python is {read.release['requires_python']!r}")
    for release in known:
        rows[release.version].update(metadata.yank(release), wheels=metadata.wheels(release))
    _date(index, name, there, rows)
    gone = set(rows) - {each.version for each in there}
    differences += [f"{name} {version}: is no longer on the index" for version in sorted(gone)]
    print(f"{name}: {len(there)} releases, {len(there) - len(known)} new", file=sys.stderr)
    return _Package(list(rows.values()), _required(name, asked, rows, dates, today), differences, index.received)


def _asked(rows: Mapping[str, object], dates: Mapping[str, Row]) -> dict[str, tuple[str, ...]]:
    """Release → requirements, by the table."""
    versions = metadata.ordered(rows)
    asked: dict[str, tuple[str, ...]] = dict.fromkeys(rows, ())
    for requirement, row in dates.items():
        for version in metadata.unfolded(row["releases"], versions):
            asked[version] = (*asked[version], requirement)
    return asked


def _date(index: Index, name: str, there: list[Release], rows: Mapping[str, dict[str, str]]) -> None:
    if not all(row["uploaded"] for row in rows.values()):
        days = index.uploaded(name)
        for release in there:
            rows[release.version].update(metadata.day(release, days))


def _required(
    name: str, asked: dict[str, tuple[str, ...]], rows: Mapping[str, object], dates: Mapping[str, Row], today: str
) -> list[Row]:
    runs = metadata.folded(asked, metadata.ordered(rows))
    return [
        {
            "package": name,
            "requirement": text,
            "releases": where,
            "known": "declared",
            "source": "METADATA of these releases",
            "date": dates[text]["date"] if text in dates and dates[text]["releases"] == where else today,
        }
        for text, where in runs.items()
    ]
