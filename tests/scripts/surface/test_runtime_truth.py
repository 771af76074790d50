"""The comparison of the tables with what Python says of an installed release."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from compat.interfaces.world import World
from scripts.surface.runtime_truth import compared
from tests.interfaces.test_world import release

_SOURCE = "class Model:\n    def load(self, path, strict=True): ...\ndef build(size, **options): ...\n"


@pytest.mark.parametrize(
    ("stated", "wrong"),
    [
        (_SOURCE, []),
        (_SOURCE.replace("def build(size, **options)", "def build(scale)"), ["madeup.build(size=) is accepted"]),
        (_SOURCE.replace("strict=True", "check"), ["madeup.Model.load(strict=) is accepted"]),
        (_SOURCE.replace("load", "open"), ["madeup.Model.load exists"]),
        (_SOURCE.replace("Model", "Other"), ["madeup.Model exists"]),
    ],
)
def test_what_the_tables_deny_and_the_interpreter_has(
    stated: str, wrong: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "madeup").mkdir()
    (tmp_path / "madeup" / "__init__.py").write_text(_SOURCE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    world = World((release("madeup", {"madeup/": stated}),))
    counts: Counter[str] = Counter()
    found = list(compared(world, sys.executable, "madeup", counts))
    assert found == wrong
    assert counts["names"] == 3
