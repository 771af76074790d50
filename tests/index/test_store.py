"""The cache: what was read comes back, and nothing that is wrong with the file stops a run."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.index import File, Index, Metadata, Requirement, Settings, Store
from compat.index.database import default_path
from compat.index.metadata import Page, Reading, Unusable
from compat.index.settings import Source
from compat.index.store import Pin
from tests.conftest import ROOT

URL = "https://index.example/files/ab/cd"


def file(number: int, name: str = "a", index: str = "i") -> File:
    filename = f"{name}-{number}.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    return File(
        name=name, url=f"{URL}/{filename}", filename=filename, version=f"{number}.0", sha256=f"{number:064x}", size=number,
        requires_python=">=3.9", yanked=None, uploaded="2025-11-02T10:00:00.123456Z", kind="wheel", metadata_sha=None, index=index,
    )  # fmt: skip


FOUND = Metadata((Requirement("b", ">1"), Requirement("c", extras=("d",), marker='os_name == "nt"')), ">=3.9", ("x",), "wheel")
PAGE = Page(tuple(map(file, range(50))))


def read(requires: str = "b", version: str = ">1") -> Reading:
    return Reading(Metadata((Requirement(requires, version),), None, (), "wheel"), "0" * 64)


def kept(store: Store, wanted: File, max_age: float = float("inf")) -> Metadata | Unusable | None:
    """What the store has of a file that holds for it."""
    row = store.metadata([wanted]).get(wanted)
    return row.reading.found if row is not None and row.holds_for(wanted, max_age) else None


def page(store: Store, name: str, source: str = "i") -> Page | None:
    return store.page(source, name)


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "cache.sqlite")
    files = (
        file(1),
        file(2)._replace(yanked="", metadata_sha=True, sha256=None),
        file(3)._replace(url="https://x.example/y?z", metadata_sha="0" * 64),
    )
    store = Store(path)
    store.keep_page("i", "a", Page(files, '"v1"', "Mon"))
    store.keep_page("i", "none", Page(()))
    store.keep_page("i", "absent", Page(None))
    store.keep_metadata(files[0], Reading(FOUND, "d"))
    store.keep_metadata(file(7), Reading(Unusable("built"), ""))
    store.close()
    store = Store(path)
    found = store.page("i", "a")
    assert found is not None
    assert found == Page(files, '"v1"', "Mon")
    assert abs(found.read - time.time()) < 60
    assert store.versions("i", "a")[1] == ("1.0", "2.0", "3.0")
    assert page(store, "none") == Page(())
    assert page(store, "absent") == Page(None)
    assert page(store, "a", "j") is None
    assert kept(store, files[0]) == FOUND
    assert kept(store, file(8)) is None
    assert str(kept(store, file(7))) == "built"
    assert store.note is None
    store.keep_page("i", "a", Page(files[:1]))
    assert page(store, "a") == Page(files[:1])
    store.close()


def test_metadata_is_kept_for_good_where_something_tells_the_file_and_each_body_once(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "cache.sqlite"))
    unhashed = file(9)._replace(sha256=None)
    for each in (*map(file, range(5)), unhashed):
        store.keep_metadata(each, Reading(FOUND, "d"))
    assert kept(store, file(3), max_age=0) == FOUND
    assert kept(store, unhashed, max_age=0) is None
    assert kept(store, unhashed, max_age=60) == FOUND
    store.close()
    with sqlite3.connect(tmp_path / "cache.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM body").fetchone() == (1,)


def test_metadata_belongs_to_its_index_its_address_and_what_the_index_says_of_the_file() -> None:
    store = Store(":memory:")
    mine = file(1)
    store.keep_metadata(mine, Reading(FOUND, "d" * 64))
    assert kept(store, mine) == FOUND
    assert kept(store, mine._replace(metadata_sha="d" * 64)) == FOUND
    for other in (
        mine._replace(index="j"),
        mine._replace(url="https://elsewhere.example/a"),
        mine._replace(sha256="0" * 64),
        mine._replace(sha256=None),
        mine._replace(metadata_sha="e" * 64),
    ):
        assert kept(store, other) is None, other
    store.close()


def test_the_cache_is_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    Store(str(folder / "c")).close()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    Store(str(folder / "c")).close()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "c").stat().st_mode & 0o077 == 0
    os.mkfifo(folder / "fifo")
    (folder / "link").symlink_to(folder / "c")
    for name in ("fifo", "link"):
        assert survives(folder / name).note == f"the cache {folder / name} is not used (not a regular file)"
    if os.geteuid() == 0:
        os.chown(folder / "c", 65534, 65534)
        assert survives(folder / "c").note == f"the cache {folder / 'c'} is not used (it belongs to another user)"


def test_a_row_that_unpacks_to_more_than_the_limit_was_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(str(tmp_path / "c"))
    store.keep_page("i", "a", PAGE)
    store.keep_metadata(file(1), read())
    monkeypatch.setattr("compat.index.store._LARGEST", 100)
    assert page(store, "a") is None
    assert store.pinned([Pin("i", "a", "1.0", "a", "1.0")]) == {}
    monkeypatch.setattr("compat.index.store._LARGEST", 10)
    assert kept(store, file(1)) is None
    store.close()


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_path({"COMPAT_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x"}) == "/c/index-3.sqlite"
    assert default_path({"XDG_CACHE_HOME": "/x"}) == "/x/compat/index-3.sqlite"
    assert default_path({}).endswith("/.cache/compat/index-3.sqlite")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_path({}).endswith("/Library/Caches/compat/index-3.sqlite")


def filled(path: Path, pages: int = 30) -> None:
    store = Store(str(path))
    for number in range(pages):
        store.keep_page("i", f"p{number}", PAGE)
        store.keep_metadata(file(number), read("b", f">{number}"))
    store.close()


def survives(path: Path) -> Store:
    """Every kind of use ends without an exception; what comes back is right or nothing."""
    store = Store(str(path))
    for number in range(30):
        assert page(store, f"p{number}") in (None, PAGE)
        assert kept(store, file(number)) in (None, read("b", f">{number}").found)
        pin = Pin("i", f"p{number}", "7.0", "a", "7.0")
        pinned = store.pinned([pin]).get(pin)
        assert pinned is None or pinned.files == ((file(7),) if pinned.there else ())
        assert pinned is None or all(row.reading == read("b", ">7") for row in pinned.rows)
        assert set(store.versions("i", f"p{number}")[1]) <= {each.version for each in PAGE.files or ()}
    store.keep_page("i", "new", Page((file(1),)))
    store.touch("i", "new")
    store.keep_metadata(file(99), read())
    store.close()
    return store


def test_a_file_that_is_no_cache_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"this was something else\n" * 100)
    before = path.read_bytes()
    assert survives(path).note == f"the cache {path} is not used (file is not a database); delete it to start over"
    assert path.read_bytes() == before


def test_a_cache_of_another_form_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    with sqlite3.connect(path) as connection:
        for name in ("page", "files", "metadata", "body"):
            connection.execute(f"CREATE TABLE {name} (x)")
    connection.close()
    assert (survives(path).note or "").startswith(f"the cache {path} is not used (no such column")


@pytest.mark.parametrize("start", range(100, 60_000, 4999))
def test_a_damaged_cache_is_no_failure(tmp_path: Path, start: int) -> None:
    path = tmp_path / "cache.sqlite"
    filled(path)
    body = bytearray(path.read_bytes())
    body[start : start + 6000] = bytes(reversed(body[start : start + 6000]))
    path.write_bytes(body)
    survives(path)


def test_a_cut_off_cache_is_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    filled(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    survives(path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = survives(tmp_path / "file" / "cache.sqlite")
    assert (store.note or "").endswith(("is not used (Not a directory)", "is not used (File exists)"))


def started(what: Callable[[], None]) -> int:
    """Runs in a process of its own, which may give up rights."""
    child = os.fork()
    if child == 0:
        try:
            what()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    return child


def ended(child: int) -> int:
    """The exit code of a process, which says whether it came through."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_read_only_cache_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    filled(path)

    def reads() -> None:
        if os.geteuid() == 0:
            os.seteuid(65534)
        store = Store(str(path))
        assert page(store, "p3") == PAGE
        store.keep_page("i", "p3", Page(None))
        assert kept(store, file(3)) is not None
        assert store.note is not None
        assert store.note.startswith(f"the cache {path} cannot be written (")
        assert store.note.endswith("): nothing new is stored")

    path.chmod(0o444)
    tmp_path.chmod(0o555)
    for parent in tmp_path.parents[:3]:  # as deep as pytest's own folders are when it runs in several processes
        if parent.name.startswith(("pytest", "popen")):
            parent.chmod(0o755)
    try:
        assert ended(started(reads)) == 0
    finally:
        tmp_path.chmod(0o755)


def test_a_full_disk_ends_the_writing_and_not_the_run(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    filled(path, 3)

    def writes() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20_000, path.stat().st_size + 20_000))
        store = Store(str(path))
        for number in range(200):
            store.keep_page("i", f"q{number}", PAGE)
        assert store.note is not None
        assert "cannot be written" in store.note
        assert page(store, "p1") == PAGE
        store.close()

    assert ended(started(writes)) == 0
    assert survives(path).note is None


WRITER = """
import sys, time
sys.path.insert(0, {root!r})
from tests.index.test_store import PAGE, file, read
from compat.index import Store
store = Store({path!r})
print("ready", flush=True)
for number in range({first}, {first} + {count}):
    store.keep_page("i", f"p{{number}}", PAGE)
    store.keep_metadata(file(number), read("b", f">{{number}}"))
assert store.note is None, store.note
{close}
"""


def writer(path: Path, first: int, count: int, *, close: bool = True) -> subprocess.Popen[str]:
    code = WRITER.format(root=str(ROOT), path=str(path), first=first, count=count, close="store.close()" if close else "")
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_many_runs_at_once_from_an_empty_cache(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"

    def writes(first: int) -> None:
        store = Store(str(path))
        for number in range(first, first + 8):
            store.keep_page("i", f"p{number}", PAGE)
            store.keep_metadata(file(number), read("b", f">{number}"))
        assert store.note is None, store.note
        store.close()

    children = [started(lambda first=first: writes(first)) for first in range(32)]  # type: ignore[misc]
    assert [ended(child) for child in children] == [0] * 32
    store = Store(str(path))
    assert all(page(store, f"p{number}") == PAGE for number in range(39))
    assert all(kept(store, file(number)) == read("b", f">{number}").found for number in range(39))
    store.close()


def test_a_run_that_is_killed_leaves_the_cache_whole(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    for delay in (0.0, 0.03, 0.1):
        process = writer(path, 0, 100_000)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait(300)
        assert survives(path).note is None
    store = Store(str(path))
    assert page(store, "p0") == PAGE
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.close()


class Counting(Store):
    """A store that counts its queries."""

    def __init__(self, path: str) -> None:
        self.queries = 0
        super().__init__(path)
        assert self._connection is not None
        self._connection.set_trace_callback(self._count)

    def _count(self, statement: str) -> None:
        self.queries += 1


def test_pins_are_answered_by_a_query_and_without_unpacking_their_pages(tmp_path: Path) -> None:
    path, url = str(tmp_path / "cache.sqlite"), "https://index.example/simple"
    store = Store(path)
    for number in range(100):
        files = tuple(file(each, f"p{number}", url) for each in range(60))
        store.keep_page(url, f"p{number}", Page(files))
        store.keep_metadata(files[30], read("b", f">{number}"))
    store.close()
    pins = [(f"p{number}", "30.0") for number in range(100)]

    pinned = Counting(path)
    index = Index(Settings(sources=(Source(url),)), pinned, max_age=0)  # every page is stale: pins need none
    found = index.files_of_pins(pins)
    metadata = index.metadata_many([files[0] for files in found.values() if files])
    assert metadata == [read("b", f">{number}").found for number in range(100)]
    assert pinned.queries == 1
    index.close()

    whole = Counting(path)
    index = Index(Settings(sources=(Source(url),)), whole)
    assert all(len(files or ()) == 60 for files in index.files_many(name for name, _ in pins).values())
    assert whole.unpacked > 40 * pinned.unpacked
    index.close()


def test_versions_are_listed_without_unpacking_anything(tmp_path: Path) -> None:
    store = Counting(str(tmp_path / "cache.sqlite"))
    store.keep_page("https://index.example/simple", "a", Page(tuple(file(each, "a") for each in range(60))))
    index = Index(Settings(sources=(Source("https://index.example/simple"),)), store)
    assert index.versions("A") == tuple(f"{number}.0" for number in range(60))
    assert store.unpacked == 0
    index.close()


def test_a_warm_run_loads_no_client(tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    store = Store(path)
    store.keep_page("", "a", Page((file(1),)))
    store.keep_metadata(file(1, index=""), read())
    store.close()
    code = f"""
import sys
from compat.index import Index, Settings, Store
index = Index(Settings(), Store({path!r}))
assert index.metadata_many(index.files_of_pins([("a", "1.0")])["a", "1.0"]) != [None]
assert len(index.files("a")) == 1
assert not {{"requests", "urllib3", "packaging"}} & set(sys.modules), sorted(sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


COLUMNS = [
    (table, column)
    for table, columns in {
        "page": ("source", "page", "read", "parts", "etag", "modified", "listing", "seal"),
        "files": ("source", "page", "part", "body"),
        "metadata": ("source", "url", "name", "version", "tag", "digest", "read", "origin", "body", "seal"),
        "body": ("hash", "packed"),
    }.items()
    for column in columns
]


def answers(store: Store) -> set[str]:
    """Everything that the cache says about two releases and their page."""
    said = {f"page: {page(store, 'a')}", f"versions: {store.versions('i', 'a')}"}
    said |= {f"kept: {kept(store, each)}" for each in (file(1), file(2))}
    for pin, found in store.pinned([Pin("i", "a", version, "a", version) for version in ("1.0", "2.0", "9.0")]).items():
        said.add(f"{pin}: {found.exists} {found.there} {found.files}, page read {found.read}")
        said |= {f"{pin}: {row}" for row in found.rows}
    return said - {"page: None", "versions: (0.0, ())", "kept: None"}


def with_two(path: str) -> set[str]:
    store = Store(path)
    store.keep_page("i", "a", Page((file(1), file(2)), "e", "m"))
    store.keep_metadata(file(1), read("b", ">1"))
    store.keep_metadata(file(2), Reading(Unusable("no metadata"), "1" * 64))
    said = answers(store)
    store.close()
    return said


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_value_that_this_user_did_not_write_is_no_answer(table: str, column: str, tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    whole = with_two(path)
    assert len(whole) == 9
    with sqlite3.connect(path) as connection:
        (was,) = connection.execute(f"SELECT {column} FROM {table}").fetchone()
        forged = f"{was}0" if isinstance(was, str) else was + 1
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} IS ?", (forged, was))
    store = Store(path)
    left = answers(store)
    store.close()
    assert left < whole


def test_a_row_that_was_moved_or_deleted_is_missing_and_no_answer(tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    with_two(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM files WHERE part = '1.0'")
        connection.execute("UPDATE files SET part = '9.0' WHERE part = '2.0'")
    store = Store(path)
    assert {each for each in answers(store) if not each.startswith("kept")} == set()
    store.close()


def test_a_cache_of_another_key_is_empty_and_filled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "cache.sqlite")
    with_two(path)
    monkeypatch.setattr("compat.index.store.user_key", lambda: b"k" * 32)
    store = Store(path)
    assert answers(store) == set()
    store.close()
    assert len(with_two(path)) == 9
    monkeypatch.setattr("compat.index.store.user_key", lambda: None)
    store = Store(path)
    assert answers(store) == set()
    assert "key" in (store.note or "")
