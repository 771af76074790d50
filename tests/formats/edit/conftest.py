"""A folder with files, edited by a plan's changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.model import Source

Edited = Callable[..., str]

VENDOR = Source("index", {"url": "https://download.pytorch.org/whl/cu128"})
COMMIT = Source("vcs", {"url": "https://github.com/huggingface/trl", "commit": "c" * 40})


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edited:
    """Writes a file (and others) into a project's folder, and returns what the changes make of it.

    ``of`` asks for the text of another file. Nothing is written by the edits themselves.
    """

    def run(name: str, text: str | bytes, *changes: Change, of: str | None = None, **others: str) -> str:
        monkeypatch.chdir(tmp_path)
        (tmp_path / ".git").mkdir(exist_ok=True)
        for other, content in {name: text, **others}.items():
            (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / other).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        found = {edit.path: edit for edit in edits_for(name, changes)}
        for path, edit in found.items():
            assert (tmp_path / path).read_bytes() == edit.before
        wanted = of or name
        content = found[wanted].after if wanted in found else (tmp_path / wanted).read_bytes()
        return content.decode("utf-8")

    return run
