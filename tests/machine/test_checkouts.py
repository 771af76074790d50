"""Notes on editable installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.machine.checkouts import checkout_notes
from compat.model import Distribution, Environment, Source


def notes(folder: Path, version: str = "0.24.0", *, editable: bool = True) -> list[str]:
    source = Source("directory", {"url": f"file://{folder}", "editable": editable})
    environment = Environment(distributions=(Distribution("trl", version, source=source), Distribution("numpy", "2.0.0")))
    return list(checkout_notes(environment, {"trl", "numpy"}))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", '[project]\nname = "trl"\nversion = "0.25.0.dev0"\n'),
        ("trl/__init__.py", '__version__ = "0.25.0.dev0"\n'),
        ("src/trl/__init__.py", "__version__ = '0.25.0.dev0'\n"),
        ("VERSION", "0.25.0.dev0\n"),
    ],
)
def test_a_source_tree_of_another_version_is_named(file: str, text: str, tmp_path: Path) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    (note,) = notes(tmp_path)
    assert "which is 0.25.0.dev0 by now: findings are for 0.24.0" in note
    (note,) = notes(tmp_path, "0.25.0.dev0")
    assert "by now" not in note
    assert note.startswith(f"trl 0.25.0.dev0 is an editable install of {tmp_path}")


def test_other_installs_and_trees_without_a_version(tmp_path: Path) -> None:
    assert notes(tmp_path, editable=False) == []
    (note,) = notes(tmp_path / "gone")
    assert note.endswith("what its code changes since a release is not known")
