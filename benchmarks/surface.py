"""``python -m benchmarks.surface cases|clean|reverse|scripts|time``: how well what source says meets what happened.

- ``cases [FILE]``: reports of broken interfaces that are found with no curated rule, and gone at the recorded fix;
- ``clean [FOLDER]``: imports that are said to fail in environments and locks that are known to work (there must be none besides
  what a curated rule says that was reproduced);
- ``reverse FOLDER``: scripts in folders called ``trl__0.16.0``: whether that release is in the range, and how wide that is;
- ``scripts FOLDER``: the same scripts checked against that release and what was newest on its day: every finding;
- ``time SCRIPT LOCK``: checking a script against a lock, beside ``ruff check``.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from compat.checks.interfaces import open_rows_once, releases_in
from compat.errors import InputError
from compat.interfaces.rows import Row, Rows
from compat.model import Environment, normalized
from compat.versions import key_of

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
_INTERFACE = re.compile(
    r"cannot import name|No module named|has no attribute|unexpected keyword argument|positional arguments? but"
)
_NATIVE = re.compile(r"undefined symbol|\.so\b|shared object|GLIBC|DLL")


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in _PROGRAMS:
        print(__doc__, file=sys.stderr)
        return 2
    return _PROGRAMS[arguments[0]](arguments[1:])


def _rows() -> Rows:
    rows = open_rows_once()
    assert rows is not None, "no tables: python scripts/build_matrix.py"
    return rows


def _environment(case: dict[str, Any], folder: Path) -> Environment:
    from compat.formats.described import read_described

    path = folder / "environment.json"
    path.write_text(json.dumps(case["environment"]), encoding="utf-8")
    return read_described(str(path))[0]


def cases(arguments: list[str]) -> int:
    """Evaluate cases: one is found if a row concerns two of the packages at fault and a name from the report."""
    import tempfile

    path = Path(arguments[0]) if arguments else SHARED / "cases" / "cases.jsonl"
    rows, found, gone, total, stated = _rows(), 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        for case in _read(path):
            if case["expect"] != "flag" or not _is_of_interface(case):
                continue
            total += 1
            blamed = _blamed(case)
            known = releases_in(_environment(case, Path(name)))
            hits: list[Row] = []
            installed, mended = known, ""
            for each, releases in _found_in(case, known, rows):
                hits, installed, mended = each, releases, _mended(case, releases, rows)
                if mended == "gone":
                    break
            whole = hits and all(installed.get(each) == known.get(each) for each in blamed)
            found, gone, stated = found + bool(hits), gone + (mended == "gone"), stated + bool(whole)
            first = f"{hits[0].tier} {hits[0].consumer} → {hits[0].what}" if hits else _not_seen(blamed, installed, rows)
            print(f"{'found' if hits else '-':6} {case['id']:22} {mended:10} {first}")
    print(
        f"{found} of {total} found ({found / max(total, 1):.0%}), {gone} gone at the recorded fix; {stated} state all releases"
    )
    return 0


def _blamed(case: dict[str, Any]) -> set[str]:
    return {normalized(each) for each in case["bad"] if not each.startswith("@")}


def _found_in(case: dict[str, Any], known: dict[str, str], rows: Rows) -> Iterator[tuple[list[Row], dict[str, str]]]:
    """Return the rows for the reported releases; for packages without a reported release, any recorded as bad."""
    choices = [known]
    for name, specifier in case["bad"].items():
        package = normalized(name)
        if name.startswith("@") or known.get(package) in rows.versions(package):
            continue
        bad = list(SpecifierSet(specifier).filter(rows.versions(package)))
        choices = [{**each, package: version} for each in choices for version in bad] or choices
    for installed in choices:
        hits = _hits(case, installed, rows)
        if hits:
            yield hits, installed


def _hits(case: dict[str, Any], installed: dict[str, str], rows: Rows) -> list[Row]:
    blamed = _blamed(case)
    told = set(re.findall(r"\w+", f"{case['traceback']} {case['cause']}"))
    found = [row for row in rows.broken(installed) if {row.consumer, row.package} <= blamed]
    return [row for row in found if {row.missing.rpartition(".")[2], row.name} & told]


def _newest_to_blame(case: dict[str, Any], rows: Rows) -> dict[str, str]:
    """Return the newest release recorded as bad, for a package without a reported release."""
    found = {}
    for name, specifier in case["bad"].items():
        bad = [] if name.startswith("@") else list(SpecifierSet(specifier).filter(rows.versions(normalized(name))))
        if bad:
            found[normalized(name)] = bad[-1]
    return found


def _is_of_interface(case: dict[str, Any]) -> bool:
    packages = [each for each in case["bad"] if not each.startswith("@")]
    text = case["traceback"] or ""
    return len(packages) > 1 and bool(_INTERFACE.search(text)) and not _NATIVE.search(text)


def _not_seen(blamed: set[str], installed: dict[str, str], rows: Rows) -> str:
    untracked = sorted(blamed - rows.packages)
    if untracked:
        return f"no source of {', '.join(untracked)}"
    missing = sorted(each for each in blamed if each not in installed)
    return f"no one release of {', '.join(missing)} is stated" if missing else ""


def _mended(case: dict[str, Any], installed: dict[str, str], rows: Rows) -> str:
    """Return ``gone`` if a recorded fix leaves no row between the packages at fault."""
    blamed = _blamed(case)
    for fix in case["fix"]:
        if fix.get("package") and fix.get("spec") and normalized(fix["package"]) in blamed:
            package = normalized(fix["package"])
            fitting = list(SpecifierSet(fix["spec"]).filter(rows.versions(package)))
            if not fitting:
                continue
            here = key_of(installed[package]) if package in installed else key_of("0")
            nearest = next((each for each in fitting if key_of(each) > here), fitting[-1])
            if not _hits(case, {**installed, package: nearest}, rows):
                return "gone"
    return "left"


def _read(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def clean(arguments: list[str]) -> int:
    """Print imports predicted to fail in working environments; returns 1 if there are any."""
    import tempfile

    wrong = judged = 0
    with tempfile.TemporaryDirectory() as name:
        for path in (SHARED / "cases" / "known_good.jsonl", SHARED / "cases" / "cases.jsonl"):
            for case in _read(path):
                if case["expect"] == "clear":
                    judged += 1
                    wrong += _told(case["id"], releases_in(_environment(case, Path(name))))
    folder = Path(arguments[0]) if arguments else SHARED / "corpus" / "files"
    for path in sorted(folder.rglob("*")):
        for label, installed in _locked(path):
            judged += 1
            wrong += _told(label, installed)
    print(f"{judged} environments and locks, {wrong} imports said to fail")
    return int(bool(wrong))


_REPRODUCED = {("datasets", "pyarrow.PyExtensionType"): "datasets-pyarrow-pyextensiontype"}
"""What is true of locks that people publish: the package and what it imports, and the rule whose reproduction shows it."""


def _told(label: str, installed: dict[str, str]) -> int:
    found = []
    for row in _rows().broken(installed, tiers=("E1",)):
        rule = _REPRODUCED.get((row.consumer, row.what))
        if rule is None:
            found.append(row)
        else:
            print(f"{label}: {row.consumer} {installed[row.consumer]}, as the rule {rule} says")
    for row in found:
        here, there = installed[row.consumer], installed[row.package]
        print(f"{label}: {row.consumer} {here} {row.path}:{row.line} → {row.what} of {row.package} {there}")
    return len(found)


def _locked(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Return every installable selection of a file, limited to tracked packages."""
    from compat.checks.choices import Requested
    from compat.checks.contexts import Contexts
    from compat.checks.selections import to_environment
    from compat.formats.registry import format_of, read_content

    if not path.is_file():
        return
    try:
        content = read_content(str(path))
        listings = format_of(str(path), content).listings(str(path), content)
    except InputError:
        return
    for listing in listings:
        contexts = Contexts(listing, to_environment(listing), Requested())
        masks = contexts.installed()
        seen: set[str] = set()
        for bit in range(contexts.all.bit_length()):
            context = 1 << bit
            here = {
                entry.distribution.name: entry.distribution.version
                for entry, mask in zip(listing.entries, masks)
                if mask & context and entry.distribution.version and entry.distribution.name in _rows().packages
            }
            if contexts.all & context and repr(here) not in seen:
                seen.add(repr(here))
                yield f"{path.name} {listing.label or ''}", {name: version for name, version in here.items() if version}


def _scripts(folder: Path) -> Iterator[tuple[str, str, Path]]:
    for each in sorted(folder.iterdir()):
        package, _, version = each.name.partition("__")
        yield from ((package, version, path) for path in sorted(each.iterdir()) if path.suffix in (".py", ".ipynb"))


def reverse(arguments: list[str]) -> int:
    """Report whether the release that a script was written for is in its range, and the range's share of all releases."""
    from compat.cli.script import answer

    widths: dict[str, list[float]] = {}
    inside: dict[str, int] = {}
    for package, version, path in _scripts(Path(arguments[0])):
        found = next((each for each in answer((str(path),)).packages if each.package == package), None)
        if found is None:
            continue
        has = any(key_of(each) == key_of(version) for each in found.range.allowed)
        widths.setdefault(package, []).append(len(found.range.allowed) / len(found.range.versions))
        inside[package] = inside.get(package, 0) + has
        if not has:
            why = [getattr(each, "what", each) for each in found.range.why.get(version, ())]
            print(f"{package} {version} {path.name}: {found.first} – {found.last}; {why}")
    for package, each in widths.items():
        print(f"{package:14} {len(each):3} scripts, {inside[package]} inside, median width {statistics.median(each):.2f}")
    every = [width for each in widths.values() for width in each]
    print(f"{'all':14} {len(every):3} scripts, {sum(inside.values())} inside, median width {statistics.median(every):.2f}")
    return 0


def scripts(arguments: list[str]) -> int:
    """Print every finding about scripts with the release they were written for and the newest releases of its day."""
    from compat.checks.interfaces import judge
    from compat.interfaces.table import open_table, tracked
    from compat.model import Distribution, Workload
    from compat.rules.facts import Facts

    tables = {package: open_table(package) for package in sorted(set(tracked().values()))}
    count = told = 0
    for package, version, path in _scripts(Path(arguments[0])):
        table = tables[package]
        assert table is not None
        at = next((at for at, each in enumerate(table.versions) if key_of(each) == key_of(version)), None)
        if at is None:
            continue
        day = table.uploaded[at]
        installed = {package: version}
        for name, other in tables.items():
            if other is not None and name != package:
                before = [each for each, on in zip(other.versions, other.uploaded) if on <= day]
                installed.update({name: before[-1]} if before else {})
        count += 1
        copies = tuple(Distribution(name, each) for name, each in installed.items())
        environment = Environment(distributions=copies, distributions_complete=True, workload=Workload(code=(str(path),)))
        for finding in judge(Facts(environment)):
            told += 1
            line = finding.location.line if finding.location else None
            print(f"{package} {version} {path.name}:{line} {finding.severity}: {finding.title}")
    print(f"{count} scripts, {told} findings")
    return 0


def timing(arguments: list[str]) -> int:
    """Print medians of whole processes, run interleaved."""
    from benchmarks.measure import interleaved

    script, lock = arguments
    python = sys.executable
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "ruff check": [str(Path(python).parent / "ruff"), "check", "--isolated", "--no-cache", script],
        "compat check": [python, "-m", "compat", "check", lock],
        "compat check --script": [python, "-m", "compat", "check", "--script", script, lock],
    }
    for name, measured in interleaved(commands, 15, allowed=(0, 1, 3)).items():
        print(f"{name:24} {measured.median * 1000:6.1f} ms  {measured.memory:5.1f} MiB")
    return 0


_PROGRAMS = {"cases": cases, "clean": clean, "reverse": reverse, "scripts": scripts, "time": timing}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
