"""Edits and the lock command together, with the real uv and wheels that lie in a folder: only what is meant moves."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import commands_for, edits_for
from compat.formats.edit.files import apply
from compat.syntax.toml import parse_toml

UV = Path(sys.executable).with_name("uv")
PROJECT = """\
[project]
name = "demo"
version = "0"
requires-python = ">=3.10"
dependencies = [
  "alpha>=1",  # keep this
  "beta<3",
]

[tool.uv]
no-index = true
find-links = ["wheels"]
{}"""


def wheel(folder: Path, name: str, version: str, *requires: str) -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        needed = "".join(f"Requires-Dist: {each}\n" for each in requires)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def locked(folder: Path, *options: str) -> dict[str, str]:
    words = [str(UV), "lock", "--offline", "--no-cache", "--python", sys.executable, *options]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, content = parse_toml(str(folder / "uv.lock"))
    return {each["name"]: each["version"] for each in content["package"] if each["name"] != "demo"}


def test_only_what_changes_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not UV.is_file():
        pytest.skip("uv is not installed beside this interpreter")
    (tmp_path / "wheels").mkdir()
    for version in ("1.0", "2.0", "3.0"):
        wheel(tmp_path / "wheels", "alpha", version, "gamma")
        wheel(tmp_path / "wheels", "beta", version)
        wheel(tmp_path / "wheels", "gamma", version)
    project = tmp_path / "pyproject.toml"
    project.write_text(PROJECT.format('constraint-dependencies = ["alpha<2", "beta<2", "gamma<2"]\n'), encoding="utf-8")
    before = locked(tmp_path)
    project.write_text(PROJECT.format(""), encoding="utf-8")
    assert locked(tmp_path) == before == {"alpha": "1.0", "beta": "1.0", "gamma": "1.0"}
    changes = [Change("alpha", "1.0", "2.0", direct=True), Change("gamma", "1.0", "2.0", why="alpha needs it")]
    monkeypatch.chdir(tmp_path)
    apply(edits_for("uv.lock", changes))
    (command,) = commands_for("uv.lock", changes).lock
    assert command.startswith("uv lock ")
    after = locked(tmp_path, *(word.strip('"') for word in command.split()[2:]))
    assert after == {"alpha": "2.0", "beta": "1.0", "gamma": "2.0"}
    assert '  "alpha>=2.0",  # keep this\n' in project.read_text(encoding="utf-8")
