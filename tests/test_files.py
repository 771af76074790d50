"""The user's cache: what anybody else wrote, or what is damaged, is none, and is never interpreted."""

from __future__ import annotations

import marshal
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat import files
from compat.files import place_in_cache, read_cache, write_cache

CONTENT = marshal.dumps(("stamp", {("a", 1): True}), 4)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    files._keys.clear()
    found = place_in_cache("answers", "a-1.0")
    assert found is not None
    write_cache(found, CONTENT)
    return found


def test_what_is_kept_is_this_users_alone(place: str, tmp_path: Path) -> None:
    assert read_cache(place) == CONTENT
    for path in (tmp_path / "cache", tmp_path / "cache" / "answers", tmp_path / "state" / "compat"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (Path(place), tmp_path / "state" / "compat" / "cache-key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@given(st.data())
def test_any_change_of_a_file_makes_it_none(data: st.DataObject) -> None:
    place = place_in_cache("answers", "changed")
    write_cache(place, CONTENT)
    assert place is not None
    whole = Path(place).read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(
        st.one_of(
            st.just(whole[:at]),
            st.binary(max_size=80),
            st.integers(1, 255).map(lambda x: whole[:at] + bytes([whole[at] ^ x]) + whole[at + 1 :]),
        )
    )
    Path(place).write_bytes(other)
    assert read_cache(place) == (CONTENT if other == whole else None)


def test_what_others_wrote_is_none(place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = Path(place).read_bytes()
    other = Path(place).with_name("b-1.0")
    other.write_bytes(whole)
    assert read_cache(str(other)) is None  # another release's answers
    Path(place).write_bytes(CONTENT)
    assert read_cache(place) is None
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "stranger"))
    files._keys.clear()
    Path(place).write_bytes(whole)
    assert read_cache(place) is None
    write_cache(place, CONTENT)
    assert read_cache(place) == CONTENT


def test_what_is_no_file_is_not_waited_for(place: str, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(Path(place).read_bytes())
    os.unlink(place)
    os.mkfifo(place)
    assert read_cache(place) is None
    os.unlink(place)
    os.symlink(target, place)
    assert read_cache(place) is None
    os.unlink(place)
    os.mkdir(place)
    assert read_cache(place) is None


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_nothing_is_kept_where_others_may_write(place: str, tmp_path: Path) -> None:
    os.chmod(os.path.dirname(place), 0o777)
    os.unlink(place)
    write_cache(place, CONTENT)
    assert read_cache(place) is None
    os.chmod(os.path.dirname(place), 0o700)
    os.chmod(tmp_path / "state" / "compat" / "cache-key", 0o644)
    files._keys.clear()
    write_cache(place, CONTENT)
    assert not os.path.exists(place)


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    files._keys.clear()
    write_cache(str(tmp_path / "cache" / "a"), CONTENT)
    assert read_cache(str(tmp_path / "cache" / "a")) is None
    files._keys.clear()


def test_two_processes_make_one_key(tmp_path: Path) -> None:
    code = "from compat.files import user_key; print(user_key().hex())"
    variables = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    assert len({each.communicate()[0] for each in running}) == 1
    assert [path.name for path in (tmp_path / "compat").iterdir()] == ["cache-key"]
