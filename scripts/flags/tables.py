"""``python -m scripts.flags.tables``: writes ``matrix/surface/flags.bin``, the options of every release's parsers."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from compat.checks.options import MAGIC
from compat.versions import key_of
from scripts.flags.options import Options, options_of
from scripts.flags.parsers import PROGRAMS, Program
from scripts.surface.mined import modules_of
from scripts.surface.store import Release, Store
from scripts.surface.tables import FOLDER, headed, write


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.flags.tables", description=__doc__)
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    words = parser.parse_args(arguments)
    store = Store(words.store)
    made = {program.name: table for program in PROGRAMS if (table := table_of(store, program)) is not None}
    store.close()
    if missing := [program.name for program in PROGRAMS if program.name not in made]:
        print(f"flags: not in the store: {', '.join(missing)}", file=sys.stderr)
        return 1
    content = headed(MAGIC, made, ())
    write(FOLDER / "flags.bin", content)
    for name, table in made.items():
        print(f"{name}: {len(table['versions'])} releases, {len(table['flags'])} options")
    print(f"{len(content) >> 10} KiB")
    return 0


def table_of(store: Store, program: Program) -> dict[str, Any] | None:
    """Return the options of a program as plain values; ``None`` if no release is in the store."""
    releases = sorted(store.releases(program.package), key=lambda release: key_of(release.version))
    if not releases:
        return None
    read: dict[int, Options] = {}
    masks: dict[str, int] = defaultdict(int)
    instead: dict[str, str] = {}
    unread = before = 0
    for at, release in enumerate(releases):
        options = _of_release(store, program, release, read)
        for name in options.names:
            masks[name] |= 1 << at
        instead.update(options.instead)
        # a parser that lost half of its options has moved to an unread module
        if options.open or not options.names or 2 * len(options.names) < before:
            unread |= 1 << at
        else:
            before = len(options.names)
    return {
        "package": program.package, "versions": [release.version for release in releases],
        "flags": dict(sorted(masks.items())), "instead": dict(sorted(instead.items())), "unread": unread,
    }  # fmt: skip


def _of_release(store: Store, program: Program, release: Release, read: dict[int, Options]) -> Options:
    whole = Options()
    for module, (source, _) in modules_of(release).items():
        if program.modules.match(module):
            if source not in read:
                read[source] = options_of(store.body(source), program.classes)
            found = read[source]
            whole.names |= found.names
            whole.instead |= found.instead
            whole.open = whole.open or found.open
    return whole


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
