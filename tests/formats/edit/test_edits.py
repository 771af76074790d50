"""Edits are applied to all files or to none, whatever goes wrong and whenever the process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit import files as edits
from compat.formats.edit.files import Edit, apply
from compat.formats.edit.files import edits_difference as difference
from tests.conftest import ROOT


def two(folder: Path) -> tuple[list[Path], list[Edit]]:
    files = [folder / "a.txt", folder / "b.txt"]
    for file in files:
        file.write_bytes(b"old\n")
    return files, [Edit(str(file), b"old\n", b"new\r\n") for file in files]


def test_all_files_are_replaced_and_nothing_is_left_beside_them(tmp_path: Path) -> None:
    files, wanted = two(tmp_path)
    files[0].chmod(0o640)
    apply(wanted)
    assert [file.read_bytes() for file in files] == [b"new\r\n"] * 2
    assert files[0].stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]
    apply([edit.inverse for edit in wanted])
    assert [file.read_bytes() for file in files] == [b"old\n"] * 2


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    files, _ = two(tmp_path)
    link = tmp_path / "link.txt"
    link.symlink_to(files[0])
    apply([Edit(str(link), b"old\n", b"new")])
    assert link.is_symlink()
    assert files[0].read_bytes() == b"new"


def test_two_edits_of_one_file_are_refused(tmp_path: Path) -> None:
    files, wanted = two(tmp_path)
    link = tmp_path / "link.txt"
    link.symlink_to(files[0])
    with pytest.raises(InputError, match="one edit"):
        apply([*wanted, Edit(str(link), b"old\n", b"other")])
    assert files[0].read_bytes() == b"old\n"


def test_a_file_that_was_changed_meanwhile_keeps_every_file_as_it_is(tmp_path: Path) -> None:
    files, wanted = two(tmp_path)
    files[1].write_bytes(b"somebody else\n")
    with pytest.raises(InputError, match=r"b\.txt: was changed after it was read") as caught:
        apply(wanted)
    assert "\n" not in str(caught.value)
    assert files[0].read_bytes() == b"old\n"
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]


def test_a_read_only_file_keeps_every_file_as_it_is(tmp_path: Path) -> None:
    files, wanted = two(tmp_path)
    files[1].chmod(0o444)
    with pytest.raises(InputError, match=r"b\.txt: is read-only"):
        apply(wanted)
    assert [file.read_bytes() for file in files] == [b"old\n"] * 2
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("missing", [True, False])
def test_what_is_no_file_is_refused(tmp_path: Path, *, missing: bool) -> None:
    path = tmp_path / "x"
    if not missing:
        os.mkfifo(path)
    with pytest.raises(InputError, match="x: "):
        apply([Edit(str(path), b"", b"new")])


@pytest.mark.parametrize("ways", ["error", "interrupt"])
def test_a_rename_that_fails_takes_back_the_ones_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ways: str) -> None:
    files, wanted = two(tmp_path)
    real = os.replace

    def fails(source: str, target: str) -> None:
        if target.endswith("b.txt") and source.endswith(".new"):
            raise OSError(28, "No space left on device") if ways == "error" else KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(edits.os, "replace", fails)
    with pytest.raises(InputError if ways == "error" else KeyboardInterrupt):
        apply(wanted)
    assert [file.read_bytes() for file in files] == [b"old\n"] * 2
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on the size of files")
def test_no_room_for_a_file_keeps_every_file_as_it_is(tmp_path: Path) -> None:
    files, _ = two(tmp_path)
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from compat.formats.edit.files import Edit, apply\n"
        "from compat.errors import InputError\n"
        f"pair = [Edit({str(files[0])!r}, b'old\\n', b'new'), Edit({str(files[1])!r}, b'old\\n', b'x' * 5000)]\n"
        "try: apply(pair)\n"
        "except InputError as problem: print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "b.txt: cannot be written: File too large" in done.stdout
    assert [file.read_bytes() for file in files] == [b"old\n"] * 2
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]


def test_owner_is_kept_where_that_can_be_seen(tmp_path: Path) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only the superuser can give files away")
    files, wanted = two(tmp_path)
    os.chown(files[0], 12345, 54321)
    apply(wanted)
    assert (files[0].stat().st_uid, files[0].stat().st_gid) == (12345, 54321)


SWINGING = """
import sys
from compat.formats.edit.files import Edit, apply
one, other, paths = b"one\\n" * 20000, b"other\\n" * 30000, sys.argv[1:]
print("ready", flush=True)
while True:
    apply([Edit(path, one, other) for path in paths])
    apply([Edit(path, other, one) for path in paths])
"""


def test_killed_at_any_moment_each_file_is_old_or_new(tmp_path: Path) -> None:
    whole = (b"one\n" * 20000, b"other\n" * 30000)
    files = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt")]
    for turn in range(25):
        for file in files:
            file.write_bytes(whole[0])
        words = [sys.executable, "-c", SWINGING, *map(str, files)]
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.001 + 0.0017 * turn)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert all(file.read_bytes() in whole for file in files)


@pytest.mark.skipif(os.name != "posix", reason="Windows cannot hold a signal back")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_waits_until_the_files_are_written(tmp_path: Path, ending: signal.Signals) -> None:
    """It arrives between the renaming of two files: both are written then, and nothing temporary is left."""
    program = (
        "import os, sys\nfrom compat.formats.edit import files\nreal = os.replace\n"
        "def replace(*paths):\n    os.kill(os.getpid(), int(sys.argv[1]))\n    real(*paths)\n"
        "files.os.replace = replace\nfiles.apply([files.Edit(path, b'0\\n', b'1\\n') for path in sys.argv[2:]])\n"
    )
    paths = [tmp_path / name for name in ("a.txt", "b.txt")]
    for path in paths:
        path.write_bytes(b"0\n")
    done = subprocess.run(
        [sys.executable, "-c", program, str(int(ending)), *map(str, paths)], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == -ending
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a.txt": b"1\n", "b.txt": b"1\n"}


def test_of_two_runs_at_once_one_writes_and_the_other_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    program = (
        "import sys\nfrom compat.formats.edit.files import Edit, apply\nfrom compat.errors import InputError\nsys.stdin.read(1)\n"
        "try: apply([Edit(sys.argv[1], b'0\\n', sys.argv[2].encode())]); print('wrote')\n"
        "except InputError as problem: print(problem)\n"
    )
    for _ in range(3):
        file.write_bytes(b"0\n")
        words = [sys.executable, "-c", program, str(file)]
        runs = [
            subprocess.Popen([*words, f"{n}\n"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for n in (1, 2, 3)
        ]
        for run in runs:
            assert run.stdin is not None
            run.stdin.write("x")
            run.stdin.flush()
        said = [run.communicate()[0].strip() for run in runs]
        winners = [number for number, text in enumerate(said, 1) if text == "wrote"]
        assert len(winners) == 1
        assert file.read_bytes() == f"{winners[0]}\n".encode()
        assert all("was changed after" in text for text in said if text != "wrote")
        assert os.listdir(tmp_path) == ["a.txt"]


def test_the_difference_names_the_file_and_reads_utf_16() -> None:
    edit = Edit("r.txt", "\ufefftorch==1\r\nx\r\n".encode("utf-16-le"), "\ufefftorch==2\r\nx\r\n".encode("utf-16-le"))
    assert difference(edit).splitlines() == ["--- r.txt", "+++ r.txt", "@@ -1,2 +1,2 @@", "-torch==1", "+torch==2", " x"]
    assert difference(Edit("r.txt", b"a", b"a")) == ""


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_bytes(b"old\n")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = [tmp_path / f".requirements.txt.{ended.pid}-0123abcd.{end}" for end in ("new", "old")]
    kept = [
        tmp_path / f".requirements.txt.{os.getppid()}-0123abcd.new",
        tmp_path / ".requirements.txt.notes",
        tmp_path / f".other.{ended.pid}-0123abcd.old",
    ]
    for path in (*left, *kept):
        path.write_bytes(b"x")
    apply([Edit(str(file), b"old\n", b"new\n")])
    assert file.read_bytes() == b"new\n"
    assert sorted(tmp_path.iterdir()) == sorted([file, *kept])
