"""``python -m scripts.refresh [--package NAME]… [--check]``: reads what is new on the index and prints what changed.

A row that is there stays as it is: published files do not change. Where the index says otherwise about an old one, nothing
is written and the exit code is 1. Yanking is the exception: it can be done and undone.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.version import Version

from scripts.refresh import metadata
from scripts.refresh.index import Index, UnreadableError
from scripts.refresh.packages import FLOORS
from scripts.refresh.tables import Row, TableError, load, text_of

FACTS = Path(__file__).resolve().parents[2] / "matrix" / "facts"
THREADS = 3
AGAIN = 2
"""Old releases of each package that are read once more, to notice if anything differs."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.refresh", description=__doc__)
    parser.add_argument("--package", action="append", choices=sorted(FLOORS), help="only this one (may be repeated)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where something is new")
    parser.add_argument("--facts", type=Path, default=FACTS)
    words = parser.parse_args(arguments)
    try:
        return refresh(words.facts, words.package or list(FLOORS), words.check)
    except (TableError, UnreadableError) as problem:
        print(f"refresh: {problem}", file=sys.stderr)
        return 1


def refresh(folder: Path, packages: list[str], check: bool) -> int:
    releases = load(folder / "releases.csv", metadata.RELEASES, ("package", "version"))
    requirements = load(folder / "requirements.csv", metadata.REQUIREMENTS, ("package", "requirement"))
    folder.mkdir(parents=True, exist_ok=True)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(lambda name: _package(name, releases, requirements, today), packages))
    differences = [line for _, _, lines in results for line in lines]
    if differences:
        print("\n".join(f"refresh: an old row differs: {line}" for line in differences), file=sys.stderr)
        return 1
    kept = [row for row in releases.values() if row["package"] not in packages]
    asked = [row for row in requirements.values() if row["package"] not in packages]
    new = {
        "releases.csv": text_of(
            [*kept, *(row for rows, _, _ in results for row in rows)],
            metadata.RELEASES,
            lambda row: (row["package"], Version(row["version"])),
        ),
        "requirements.csv": text_of(
            [*asked, *(row for _, rows, _ in results for row in rows)],
            metadata.REQUIREMENTS,
            lambda row: (row["package"], row["requirement"]),
        ),
    }
    return _written(folder, new, check)


def _package(
    name: str, releases: dict[tuple[str, ...], dict[str, str]], requirements: dict[tuple[str, ...], dict[str, str]], today: str
) -> tuple[list[Row], list[Row], list[str]]:
    """The rows of one package, and what the index says otherwise about old ones."""
    index = Index()
    there = [each for each in index.releases(name) if each.key >= Version(FLOORS[name])]
    rows = {version: dict(row) for (package, version), row in releases.items() if package == name}
    versions = metadata.ordered(rows)
    asked: dict[str, tuple[str, ...]] = dict.fromkeys(rows, ())
    dates = {requirement: row for (package, requirement), row in requirements.items() if package == name}
    for requirement, row in dates.items():
        for version in metadata.unfolded(row["releases"], versions):
            asked[version] = (*asked[version], requirement)
    differences = []
    known = [each for each in there if each.version in rows]
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
        rows[release.version].update(metadata.yank(release))
    if not all(row["uploaded"] for row in rows.values()):
        days = index.uploaded(name)
        for release in there:
            rows[release.version].update(metadata.day(release, days))
    gone = set(rows) - {each.version for each in there}
    differences += [f"{name} {version}: is no longer on the index" for version in sorted(gone)]
    runs = metadata.folded(asked, metadata.ordered(rows))
    print(f"{name}: {len(there)} releases, {len(there) - len(known)} new", file=sys.stderr)
    required = [
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
    return list(rows.values()), list(required), differences


def _written(folder: Path, new: dict[str, str], check: bool) -> int:
    """Prints what differs, and writes it unless it is only to be checked."""
    different = 0
    for name, text in new.items():
        path = folder / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = list(difflib.unified_diff(before.splitlines(), text.splitlines(), name, name, n=0, lineterm=""))
        different += bool(lines)
        print("\n".join(lines[:400]))
        if len(lines) > 400:
            print(f"… and {len(lines) - 400} lines more")
        if not check and before != text:
            path.with_suffix(".new").write_text(text, encoding="utf-8")
            path.with_suffix(".new").replace(path)
    return int(check and different > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
