"""``python -m scripts.refresh [--table NAME]… [--package NAME]… [--check]``: what is new on the index, as a difference.

A row that is there stays as it is: published files do not change. Where the index says otherwise about an old one, nothing
is written and the exit code is 1; whoever finds the row to be wrong takes it out of the table and has it read anew
(--release). What could not be read, within the budget or at all, is named and left out.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.refresh.kinds import KINDS
from scripts.refresh.linked import LIBRARIES
from scripts.refresh.numpy_abi import MODULES
from scripts.refresh.overlaps import NAMES
from scripts.refresh.packages import FLOORS
from scripts.refresh.tables import TableError
from scripts.refresh.updates import MIB, Request
from scripts.refresh.wheel import UnreadableError
from scripts.refresh.wheels import COMPILED

FACTS = Path(__file__).resolve().parents[2] / "matrix" / "facts"
_PACKAGES = sorted({*FLOORS, *LIBRARIES, *MODULES, *NAMES, *COMPILED})
LONGEST = 400
"""Lines of a table's difference that are printed."""


def main(arguments: list[str]) -> int:
    words = _parser().parse_args(arguments)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    packages = tuple(dict.fromkeys(words.package or _PACKAGES))
    request = Request(packages, today, words.budget * MIB, words.again, words.gaps, tuple(words.release))
    try:
        return refresh(words.facts, words.table or list(KINDS), request, check=words.check)
    except (TableError, UnreadableError) as problem:
        print(f"refresh: {problem}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.refresh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="append", choices=list(KINDS), help="only this one (may be repeated)")
    parser.add_argument("--package", action="append", choices=_PACKAGES, help="only this one (may be repeated)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where something is new")
    parser.add_argument("--budget", type=_count, default=96, metavar="MIB", help="of one wheel at most (default 96)")
    parser.add_argument(
        "--again", type=_count, default=1, metavar="N", help="old builds of a package to read again (default 1)"
    )
    parser.add_argument("--gaps", type=_count, default=0, metavar="N", help="older builds of a package to fill in (default 0)")
    parser.add_argument("--release", action="append", default=[], metavar="VERSION", help="read the builds of just this one")
    parser.add_argument("--facts", type=Path, default=FACTS, metavar="FOLDER", help="where the tables are")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of 0 or more, not {text!r}")
    return int(text)


def refresh(folder: Path, tables: list[str], request: Request, *, check: bool) -> int:
    """Brings tables up to date, all or none of them; 1 where an old row differs, or where a check found something new."""
    folder.mkdir(parents=True, exist_ok=True)
    updates = [kind(folder, request) for kind in dict.fromkeys(KINDS[name] for name in tables)]
    for update in updates:
        for line in update.unread:
            print(f"refresh: not read: {line}", file=sys.stderr)
    print(f"refresh: {sum(update.received for update in updates) / MIB:.1f} MiB of wheels received", file=sys.stderr)
    differences = [line for update in updates for line in update.differences]
    if differences:
        print("\n".join(f"refresh: an old row differs: {line}" for line in differences), file=sys.stderr)
        return 1
    new = {name: text for update in updates for name, text in update.texts.items()}
    different = [name for name, text in new.items() if _printed(folder / name, text)]
    if not check:
        _write({folder / name: new[name] for name in different})
    return int(check and bool(different))


def _printed(path: Path, text: str) -> bool:
    """Prints how a file will differ, and says whether it does."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = list(difflib.unified_diff(before.splitlines(), text.splitlines(), path.name, path.name, n=0, lineterm=""))
    if len(lines) > LONGEST:
        lines[LONGEST:] = [f"… and {len(lines) - LONGEST} lines more"]
    if lines:
        print("\n".join(lines))
    return before != text


def _write(texts: Mapping[Path, str]) -> None:
    """All are written before the first takes its place."""
    for path, text in texts.items():
        path.with_suffix(".new").write_text(text, encoding="utf-8")
    for path in texts:
        path.with_suffix(".new").replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
