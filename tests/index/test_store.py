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

from compat.index import File, Index, Metadata, Settings, Store
from compat.index.records import Unusable
from compat.index.settings import Source
from compat.index.store import default_path
from compat.records import replace
from tests.conftest import ROOT

URL = "https://index.example/files/ab/cd"


def file(number: int, name: str = "a") -> File:
    filename = f"{name}-{number}.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    return File(
        name=name, url=f"{URL}/{filename}", filename=filename, version=f"{number}.0", sha256=f"{number:064x}", size=number,
        requires_python=">=3.9", yanked=None, uploaded="2025-11-02T10:00:00.123456Z", kind="wheel", metadata_sha=None, index="i",
    )  # fmt: skip


FOUND = Metadata(("b>1", "c"), ">=3.9", ("x",), "wheel")


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "cache.sqlite")
    files = (
        file(1),
        replace(file(2), yanked="", metadata_sha=True, sha256=None),
        replace(file(3, "b"), url="https://x.example/y?z", index="j"),
    )
    store = Store(path)
    store.keep_page("i", "a", files)
    store.keep_page("i", "none", ())
    store.keep_page("i", "absent", None)
    store.keep_metadata(files[0], FOUND)
    store.keep_metadata(file(7), Unusable("built"))
    store.close()
    store = Store(path)
    read, kept = store.page("i", "a") or (0.0, None)
    assert kept == files
    assert abs(read - time.time()) < 60
    assert (store.page("i", "none") or (0, None))[1] == ()
    assert (store.page("i", "absent") or (0, ()))[1] is None
    assert store.page("j", "a") is None
    assert store.metadata(files[0]) == FOUND
    assert store.metadata(file(8)) is None
    with pytest.raises(Unusable, match="built"):
        store.metadata(file(7))
    assert store.note is None
    store.close()


def test_metadata_of_a_hash_is_kept_for_good_and_each_body_once(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "cache.sqlite"))
    unhashed = replace(file(1), sha256=None)
    for each in (*map(file, range(5)), unhashed):
        store.keep_metadata(each, FOUND)
    assert store.metadata(file(3), max_age=0) == FOUND
    assert store.metadata(unhashed, max_age=0) is None
    assert store.metadata(unhashed, max_age=60) == FOUND
    store.close()
    with sqlite3.connect(tmp_path / "cache.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM body").fetchone() == (1,)


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_path({"COMPAT_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x"}) == "/c/index-1.sqlite"
    assert default_path({"XDG_CACHE_HOME": "/x"}) == "/x/compat/index-1.sqlite"
    assert default_path({}).endswith("/.cache/compat/index-1.sqlite")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_path({}).endswith("/Library/Caches/compat/index-1.sqlite")


def filled(path: Path, pages: int = 30) -> None:
    store = Store(str(path))
    for number in range(pages):
        store.keep_page("i", f"p{number}", tuple(map(file, range(50))))
        store.keep_metadata(file(number), replace(FOUND, requires_dist=(f"b>{number}",)))
    store.close()


def survives(path: Path) -> Store:
    """Every kind of use ends without an exception; what comes back is right or nothing."""
    store = Store(str(path))
    for number in range(30):
        page = store.page("i", f"p{number}")
        assert page is None or page[1] == tuple(map(file, range(50)))
        found = store.metadata(file(number))
        assert found is None or found.requires_dist == (f"b>{number}",)
    store.keep_page("i", "new", (file(1),))
    store.keep_metadata(file(99), FOUND)
    store.close()
    return store


def test_a_file_that_is_no_cache_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"this was something else\n" * 100)
    before = path.read_bytes()
    assert survives(path).note == f"the cache {path} is not used (file is not a database); delete it to begin anew"
    assert path.read_bytes() == before


def test_a_cache_of_another_form_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    with sqlite3.connect(path) as connection:
        for name in ("page", "metadata", "body"):
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


def in_a_child(what: Callable[[], None]) -> int:
    """Runs in a process of its own, which may give up rights; the exit code says whether it came through."""
    child = os.fork()
    if child == 0:
        try:
            what()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_read_only_cache_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    filled(path)

    def reads() -> None:
        if os.geteuid() == 0:
            os.seteuid(65534)
        store = Store(str(path))
        assert (store.page("i", "p3") or (0, None))[1] == tuple(map(file, range(50)))
        store.keep_page("i", "p3", None)
        assert store.metadata(file(3)) is not None
        assert store.note is not None
        assert store.note.startswith(f"the cache {path} cannot be written (")
        assert store.note.endswith("): nothing new is kept")

    path.chmod(0o444)
    tmp_path.chmod(0o555)
    for parent in tmp_path.parents[:3]:  # as deep as pytest's own folders are when it runs in several processes
        if parent.name.startswith(("pytest", "popen")):
            parent.chmod(0o755)
    try:
        assert in_a_child(reads) == 0
    finally:
        tmp_path.chmod(0o755)


def test_a_full_disk_ends_the_writing_and_not_the_run(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    filled(path, 3)

    def writes() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20_000, path.stat().st_size + 20_000))
        store = Store(str(path))
        for number in range(200):
            store.keep_page("i", f"q{number}", tuple(map(file, range(50))))
        assert store.note is not None
        assert "cannot be written" in store.note
        assert (store.page("i", "p1") or (0, None))[1] == tuple(map(file, range(50)))
        store.close()

    assert in_a_child(writes) == 0
    assert survives(path).note is None


WRITER = """
import sys, time
sys.path.insert(0, {root!r})
from tests.index.test_store import file, FOUND
from compat.index import Store
from compat.records import replace
store = Store({path!r})
print("ready", flush=True)
for number in range({first}, {first} + {count}):
    store.keep_page("i", f"p{{number}}", tuple(map(file, range(50))))
    store.keep_metadata(file(number), replace(FOUND, requires_dist=(f"b>{{number}}",)))
assert store.note is None, store.note
{close}
"""


def writer(path: Path, first: int, count: int, *, close: bool = True) -> subprocess.Popen[str]:
    code = WRITER.format(root=str(ROOT), path=str(path), first=first, count=count, close="store.close()" if close else "")
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_two_runs_at_once_from_an_empty_cache(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    both = [writer(path, 0, 60), writer(path, 30, 60)]
    assert [process.wait(60) for process in both] == [0, 0]
    store = Store(str(path))
    assert all((store.page("i", f"p{number}") or (0, ()))[1] for number in range(90))
    assert all(store.metadata(file(number)) for number in range(90))
    store.close()


def test_a_run_that_is_killed_leaves_the_cache_whole(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    for delay in (0.0, 0.03, 0.1):
        process = writer(path, 0, 100_000)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        assert survives(path).note is None
    store = Store(str(path))
    assert store.page("i", "p0") is not None
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.close()


def test_warm_reads_are_quick(tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    store = Store(path)
    store.keep_page("https://index.example/simple", "a", tuple(map(file, range(600))))
    for number in range(600):
        store.keep_metadata(file(number), replace(FOUND, requires_dist=tuple(f"b{each}>{number}" for each in range(40))))
    store.close()
    pages, metadata = [], []
    for _ in range(15):
        index = Index(Settings(sources=(Source("https://index.example/simple"),)), Store(path))
        start = time.process_time()
        files = index.files("a")
        pages.append(time.process_time() - start)
        assert files is not None
        assert len(files) == 600
        start = time.process_time()
        found = index.metadata_many(files)
        metadata.append((time.process_time() - start) / len(found))
        assert None not in found
        index.close()
    assert min(pages) < 0.003
    assert min(metadata) < 0.0003


def test_a_warm_run_loads_no_client(tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    store = Store(path)
    store.keep_page("", "a", (file(1),))
    store.close()
    code = f"""
import sys
from compat.index import Index, Settings, Store
assert len(Index(Settings(), Store({path!r})).files("a")) == 1
assert not {{"requests", "pypi_simple", "pydantic", "packaging"}} & set(sys.modules), sorted(sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0
