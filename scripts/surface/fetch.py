"""``python -m scripts.surface.fetch [PACKAGE…]``: the Python source of releases that are not in the store yet.

One wheel of a release is read (pure, else for Linux on x86_64), of a large one only its Python members, of an sdist where
there is no wheel. May be stopped at any time; the next run goes on.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Collection, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from compat.index import File, Index, gather
from compat.index import Store as IndexStore
from compat.index.metadata import Unread
from compat.index.settings import Settings
from compat.index.transport import Transport
from scripts.surface.members import read_members
from scripts.surface.packages import AROUND, BESIDE, PRE_RELEASES, RAISING, SINCE, SINCE_OF, TRACKED, USERS
from scripts.surface.store import Fetched, Store

THREADS = 5
_PYTHONS = ("cp311", "cp310", "abi3", "py3", "cp39", "cp312")
_here = threading.local()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.fetch", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all that are tracked)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--release", action="append", default=[], metavar="VERSION", help="only this one (may be repeated)")
    words = parser.parse_args(arguments)
    store = Store(words.store)
    settings = replace(gather(), timeout=60.0, retries=5)
    packages = words.packages or dict.fromkeys((*TRACKED, *BESIDE, *AROUND, *USERS, *RAISING))
    try:
        return fetch(store, settings, packages, words.threads, words.release)
    finally:
        store.close()


def fetch(store: Store, settings: Settings, packages: Iterable[str], threads: int, only: Collection[str] = ()) -> int:
    """Reads what is missing (``only``: of these releases); 1 where something could not be read."""
    index = Index(settings, IndexStore())
    failures = 0
    with ThreadPoolExecutor(threads, initializer=_start, initargs=(settings,)) as pool:
        waiting: dict[Future[Fetched], File] = {}
        for package in packages:
            files = (file for file in index.files(package) or () if not only or file.version in only)
            for file in missing(files, package, store.known(package)):
                while len(waiting) > 2 * threads:
                    failures += _keep(store, waiting)
                waiting[pool.submit(_read, file)] = file
            if index.problems.get(package):
                failures += 1
                print(f"surface: not read: {index.problems[package]}", file=sys.stderr)
        while waiting:
            failures += _keep(store, waiting)
    index.close()
    return int(failures > 0)


def missing(files: Iterable[File], package: str, known: set[str]) -> list[File]:
    """The file to read of each release that is wanted and not known, newest first.

    Of a package without a release since then, the last one is wanted: it is what people still install.
    """
    releases: dict[str, list[File]] = {}
    for file in files:
        if _is_wanted(package, file.version):
            releases.setdefault(file.version, []).append(file)
    days = {version: min((file.uploaded for file in found if file.uploaded), default="") for version, found in releases.items()}
    since = min(SINCE_OF.get(package, SINCE), max(days.values(), default=""))
    wanted = (version for version, day in days.items() if day and day[:10] >= since[:10] and version not in known)
    return [min(releases[version], key=preference) for version in sorted(wanted, key=Version, reverse=True)]


def _is_wanted(package: str, version: str) -> bool:
    try:
        return not Version(version).is_prerelease or version in PRE_RELEASES.get(package, ())
    except InvalidVersion:
        return False


def preference(file: File) -> tuple[int, int, str]:
    """Sort key: the file of a release whose source is read, first the one that says most for the fewest bytes."""
    name = file.filename
    if not name.endswith(".whl"):
        return (8 if name.endswith(".tar.gz") else 9), 0, name
    if name.endswith("-any.whl"):
        return 0, 0, name
    python = next((at for at, tag in enumerate(_PYTHONS) if tag in name), len(_PYTHONS))
    return (1 if "linux" in name and "x86_64" in name else 7), python, name


def _start(settings: Settings) -> None:
    _here.transport = Transport(settings)


def _read(file: File) -> Fetched:
    transport: Transport = _here.transport
    began, before = time.monotonic(), transport.bytes
    contents = read_members(transport, file)
    return Fetched(
        file.name, file.version, file.filename, file.sha256, file.uploaded, contents.verified, transport.bytes - before,
        time.monotonic() - began, tuple(sorted(contents.opaque)), contents.members,
    )  # fmt: skip


def _keep(store: Store, waiting: dict[Future[Fetched], File]) -> int:
    """Waits for one at least; how many could not be read."""
    failures = 0
    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
        file = waiting.pop(future)
        try:
            found = future.result()
        except Unread as problem:
            failures += 1
            store.keep_unread(file.name, file.version, str(problem))
            print(f"surface: not read: {file.name} {file.version}: {problem}", file=sys.stderr)
            continue
        new = store.keep(found)
        size = sum(map(len, found.members.values())) >> 10
        print(
            f"{file.name} {file.version}: {len(found.members)} files ({new} new), {size} KiB,"
            f" {found.received >> 10} KiB received, {found.seconds:.1f} s",
            flush=True,
        )
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
