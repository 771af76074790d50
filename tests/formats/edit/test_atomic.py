"""Files are replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit.files import difference, replace_file


def test_the_text_the_mode_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("old\n", encoding="utf-8")
    file.chmod(0o640)
    replace_file(str(file), "new\r\n")
    assert file.read_bytes() == b"new\r\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["pyproject.toml"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "real.toml"
    file.write_text("old", encoding="utf-8")
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    replace_file(str(link), "new")
    assert link.is_symlink()
    assert file.read_text(encoding="utf-8") == "new"


def test_what_cannot_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        replace_file(str(tmp_path / "no" / "such" / "folder.toml"), "new")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        replace_file(str(folder), "new")
    assert sorted(os.listdir(tmp_path)) == ["folder"]


def test_a_difference_names_the_file() -> None:
    assert difference("a\n", "a\nb\n", "x.toml").splitlines() == ["--- x.toml", "+++ x.toml", "@@ -1 +1,2 @@", " a", "+b"]
