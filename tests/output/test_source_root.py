"""The root of the source tree, and paths below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.output.github import in_source, source_root


def test_the_nearest_repository_is_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    (tmp_path / "a" / ".git").write_text("gitdir: elsewhere")  # as in a submodule or a work tree
    assert source_root() == str(tmp_path / "a")


def test_without_a_repository_it_is_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if any((parent / ".git").exists() for parent in tmp_path.parents):
        pytest.skip("the temporary folder is in a repository")
    monkeypatch.chdir(tmp_path)
    assert source_root() == str(tmp_path)


def test_a_current_directory_that_is_gone_is_an_input_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(InputError, match="current directory"):
        source_root()


def test_only_what_lies_inside_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = str(tmp_path)
    assert in_source("a/./b/../c", root) == "a/c"
    assert in_source(str(tmp_path / "a"), root) == "a"
    assert in_source("../a", root) is None
    assert in_source("..", root) is None
    assert in_source("..a", root) == "..a"
