"""The files of a folder that are checked if no file is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.api.inputs import files_in
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


def test_a_folder_without_such_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError) as problem:
            files_in(str(folder))
        assert problem.value.file == str(folder)
