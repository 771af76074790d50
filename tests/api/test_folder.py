"""The files of a folder that are checked if no file is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat.api.inputs import files_in
from compat.cli import main
from compat.errors import InputError
from compat.formats import registry

PROJECT = "[project]\nname = 'toy'\ndependencies = ['torch==2.2.0']\n"
SETUP = "from setuptools import setup\nsetup(install_requires=['torch==2.2.0'])\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"uv.lock": "", "pyproject.toml": PROJECT, "requirements.txt": ""}, ["uv.lock", "requirements.txt"]),
        ({"pyproject.toml": PROJECT, "setup.py": SETUP}, ["pyproject.toml"]),
        ({"pyproject.toml": "[tool.ruff]\n", "setup.py": SETUP, "setup.cfg": "[options]\n"}, ["setup.py"]),
        ({"pyproject.toml": "not toml", "setup.py": SETUP}, ["pyproject.toml", "setup.py"]),
        ({"pixi.lock": "", "pyproject.toml": PROJECT}, ["pixi.lock"]),
        ({"pylock.toml": "", "conda-lock.yaml": "", "old.uv.lock": ""}, ["pylock.toml", "conda-lock.yaml"]),
        ({"Pipfile": "[packages]\ntorch = '*'\n", "Pipfile.lock": "{}"}, ["Pipfile.lock"]),
        (
            {"requirements.in": "", "requirements.txt": "", "requirements-dev.in": "", "requirements/gpu.txt": "", "a.txt": ""},
            ["requirements-dev.in", "requirements.txt", "requirements/gpu.txt"],
        ),
        (
            {"environment.yml": "", "Dockerfile": "", "Dockerfile.gpu": "", "Dockerfile.j2": "", "gpu.dockerfile": "", "cog.yaml": "",
             "docker-compose.yml": "", "compose.py": "", "train.def": "", ".dockerignore": "", "docker.sh": "", "Makefile": ""},
            ["environment.yml", "Dockerfile", "Dockerfile.gpu", "cog.yaml", "docker-compose.yml", "gpu.dockerfile", "train.def"],
        ),
    ],
)  # fmt: skip
def test_locks_before_sources_before_images(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [str(Path(each).relative_to(tmp_path)) for each in files_in(str(tmp_path))] == expected


def test_a_registered_lock_format_is_found_with_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = registry.Registered("toy.lock", "locks.pdm:PdmLock", ("*toy.lock",), program="toy")
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, toy))
    for name in ("pyproject.toml", "toy.lock"):
        (tmp_path / name).write_text(PROJECT)
    assert [Path(each).name for each in files_in(str(tmp_path))] == ["toy.lock"]


def test_no_file_is_left_out_however_many_there_are(tmp_path: Path) -> None:
    """A conflict stood in the 61st file, and the folder had no findings."""
    names = [f"requirements-{number:03}.txt" for number in range(300)]
    for name in names:
        (tmp_path / name).write_text("torch==2.6.0\n")
    assert [Path(each).name for each in files_in(str(tmp_path))] == names


@pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")
def test_what_cannot_be_read_is_named_and_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\n")
    (tmp_path / "requirements-a.txt").symlink_to(tmp_path / "none")
    (tmp_path / "poetry.lock").symlink_to(tmp_path / "poetry.lock")
    (tmp_path / "uv.lock").mkdir()
    (tmp_path / ".#requirements.txt").symlink_to("bob@host.1234")  # a lock of Emacs
    (tmp_path / "environment.d").mkdir()
    os.mkfifo(tmp_path / "environment.yml")
    found = [Path(each).name for each in files_in(str(tmp_path))]
    assert sorted(found) == ["environment.yml", "poetry.lock", "requirements-a.txt", "requirements.txt", "uv.lock"]
    assert main(["check", str(tmp_path)]) == 2


def test_a_folder_without_such_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError) as problem:
            files_in(str(folder))
        assert problem.value.file == str(folder)
