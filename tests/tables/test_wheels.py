"""Pythons and systems that releases have wheels for."""

from __future__ import annotations

import marshal
from pathlib import Path

import pytest

from compat.tables import declared
from compat.tables.declared import Run, fits, newest_python, wheels_of
from scripts.pack_wheels import packed_wheels


@pytest.mark.parametrize(
    ("offered", "system", "python", "expected"),
    [
        ("linux:3.8..3.11 sdist", "linux", "3.11.9", True),
        ("linux:3.8..3.11 sdist", "linux", "3.12", False),  # a source distribution is no wheel
        ("linux:3.8..3.11 sdist", "windows", "3.10", False),
        ("linux:3.8..3.11 windows:3.9", None, "3.9", True),
        ("linux:3.9..", "linux", "3.14", True),  # the stable ABI
        ("linux:3.8+3.10..3.11", "linux", "3.9", False),
        ("linux:3.8..3.11", "linux", None, True),
        ("sdist", None, None, False),
    ],
)
def test_whether_a_wheel_fits(offered: str, system: str | None, python: str | None, expected: bool) -> None:
    assert fits(offered, system, python) is expected


def test_the_newest_python_of_a_system() -> None:
    assert newest_python("darwin:3.8..3.13 linux:3.8+3.10..3.12 sdist", "linux") == "3.12"
    assert newest_python("linux:3.9..", None) == "3.9"


def test_rows_are_compiled_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "package,first,last,wheels,known,source,date\nx,1.0,1.2,linux:3.8,declared,,\nx,1.3,1.3,linux:3.8..3.9,declared,,\n"
    (tmp_path / "wheels.csv").write_text(rows, encoding="utf-8")
    content = packed_wheels(str(tmp_path))
    monkeypatch.setattr(declared, "open_wheels", lambda: marshal.loads(content))
    assert wheels_of("x") == (Run("1.0", "1.2", "linux:3.8"), Run("1.3", "1.3", "linux:3.8..3.9"))
    assert wheels_of("y") == ()
