"""Included files: what is opened and what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat.formats.include import COUNT, DEPTH, LIMIT, Includes, NotRead, root_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "requirements").mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    (folder / "base.txt").write_bytes(b"torch\n")
    (tmp_path / "secret.txt").write_bytes(b"secret\n")
    return folder


def test_a_file_of_the_project_is_opened_once_for_each_purpose(project: Path) -> None:
    given = str(project / "requirements" / "dev.txt")
    includes = Includes(given)
    assert includes.open(given, "../base.txt", "requirements", 1) == (str(project / "base.txt"), b"torch\n")
    assert includes.open(given, "../base.txt", "requirements", 1) is None
    assert includes.open(given, "../base.txt", "constraints", 1) is not None


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("../secret.txt", "outside"), ("../../../../../../etc/passwd", "outside"), ("/etc/passwd", "outside"), ("link.txt", "outside"),
        ("folder-link/secret.txt", "outside"), ("https://h.example/x.txt", "a URL"), ("file:///etc/passwd", "a URL"), ("FILE:x", "a URL"),
        ("missing.txt", "no such file"), ("requirements", "not a regular file"), ("pipe", "not a regular file"), ("${NAME}.txt", "unknown"),
        ("a\0b", "unknown"), ("large.txt", "larger"), ("base.txt/x", "opened"), ("x" * 5000, "opened"), ("loop", "opened"), ("", "not a regular file"),
    ],
)  # fmt: skip
def test_everything_else_is_not_opened(project: Path, target: str, reason: str) -> None:
    (project / "link.txt").symlink_to("../secret.txt")
    (project / "folder-link").symlink_to("..")
    (project / "loop").symlink_to("loop")
    os.mkfifo(project / "pipe")
    with open(project / "large.txt", "wb") as file:
        file.truncate(LIMIT + 1)
    given = str(project / "requirements.txt")
    with pytest.raises(NotRead, match=reason):
        Includes(given).open(given, target, "requirements", 1)


def test_depth_and_number_are_limited(project: Path) -> None:
    given = str(project / "requirements.txt")
    with pytest.raises(NotRead, match="deep"):
        Includes(given).open(given, "base.txt", "requirements", DEPTH + 1)
    includes = Includes(given)
    for number in range(COUNT):
        (project / f"{number}.txt").touch()
        includes.open(given, f"{number}.txt", "requirements", 1)
    with pytest.raises(NotRead, match=str(COUNT)):
        includes.open(given, "base.txt", "requirements", 1)


def test_the_root_is_the_project_or_the_own_folder(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert root_of(str(project / "requirements" / "dev.txt")) == os.path.realpath(project)
    (tmp_path / ".git").mkdir()
    (tmp_path / "other").mkdir()
    assert root_of(str(tmp_path / "other" / "r.txt")) == os.path.realpath(tmp_path / "other"), "not a home directory"
    assert root_of(str(tmp_path / "r.txt")) is None
    assert root_of("/requirements.txt") is None


def test_nothing_is_included_where_the_root_would_be_too_wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "base.txt").touch()
    given = str(tmp_path / "r.txt")
    with pytest.raises(NotRead, match="not in a project directory"):
        Includes(given).open(given, "base.txt", "requirements", 1)
