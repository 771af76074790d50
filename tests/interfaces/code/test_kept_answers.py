"""A script that is checked again: the same findings, and no table is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.interfaces import table
from compat.interfaces.code.releases import Answer, KeptAnswers, Lean, Releases
from tests.interfaces.code.made_up import TRACKED, releases, wanted_in

_SCRIPT = "from lib import Config, Special, gone\nSpecial(1, tokenizer=2)\nConfig(eval='no')"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are files, as made-up ones are none."""
    monkeypatch.setenv("COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(table, "path_of", lambda package: str(tmp_path / f"{package}.bin"))
    for package in TRACKED:
        (tmp_path / f"{package}.bin").write_bytes(b"a table")


def _answers(folder: Path, known: Releases) -> list[Answer]:
    known.remember({"lib": "0.2", "base": "2.0"})
    found = [known.answer("lib", "0.2", each.need) for each in wanted_in(folder, _SCRIPT).all]
    found += [known.answer(lean.package, "2.0", lean.need) for each in found if (lean := each.lean) is not None]
    known.save()
    return found


def _closed(package: str) -> None:
    raise AssertionError(f"the table of {package} is opened")


def test_answers_are_the_same_without_the_tables(tmp_path: Path) -> None:
    first = _answers(tmp_path, releases())
    assert {each.met for each in first} == {True, False, None}
    assert any(isinstance(each.lean, Lean) for each in first)
    assert _answers(tmp_path, Releases(_closed, TRACKED)) == first  # type: ignore[arg-type]


def test_where_a_class_is_defined_is_kept_too(tmp_path: Path) -> None:
    for known in (releases(), Releases(_closed, TRACKED)):  # type: ignore[arg-type]
        known.remember({"lib": "0.2"})
        assert known.home("lib", "0.2", "lib", "Special") == "lib"
        assert known.home("lib", "0.2", "lib", "helper") is None
        known.save()


def test_another_table_has_other_answers(tmp_path: Path) -> None:
    _answers(tmp_path, releases())
    (tmp_path / "lib.bin").write_bytes(b"another table")
    with pytest.raises(AssertionError, match="the table of lib is opened"):
        _answers(tmp_path, Releases(_closed, TRACKED))  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"", b"no marshal", b"\xe9\x05", b"N"])
def test_a_file_that_was_spoilt_counts_for_nothing(tmp_path: Path, content: bytes) -> None:
    first = _answers(tmp_path, releases())
    kept = tmp_path / "cache" / "answers" / "lib-0.2"
    kept.write_bytes(content)
    assert _answers(tmp_path, releases()) == first
    assert KeptAnswers("lib", "0.2").answers


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COMPAT_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert _answers(tmp_path, releases()) == _answers(tmp_path, releases())


def test_what_was_judged_before_is_not_asked_for_again(tmp_path: Path) -> None:
    known = releases()
    known.answer("lib", "0.2", wanted_in(tmp_path, _SCRIPT).all[0].need)
    known.remember({"lib": "0.2"})
    known.save()
    assert not (tmp_path / "cache" / "answers").exists()
