"""The job of the tests of launch commands, and the script of those of training scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workload.launching import SCRIPT


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a training script, which is also the current one."""
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The training script of a test, in the current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "train.py"
