"""The figures of the code: what counts as a cycle, as a direction and as used once; and that they can be taken of this tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import shape
from scripts.shape import Import, against, cycles_of, functions_of, imports_of, modules_of, uses_of_any

FILES = {
    "__init__.py": "",
    "a.py": "from typing import TYPE_CHECKING, Any\nfrom compat import b\nif TYPE_CHECKING:\n    from compat.room import d\n"
            "def _once(x: Any) -> Any:\n    return x\ndef _twice():\n    return _once(1)\n_twice(), _twice()\n",
    "b.py": "def run():\n    import compat.c\n",
    "c.py": "from compat.a import _once\n",
    "room/__init__.py": "from . import d\n",
    "room/d.py": "from .. import a\nfrom ..room import e\n",
    "room/e.py": "",
}  # fmt: skip


@pytest.fixture
def found(tmp_path: Path) -> list[Import]:
    for name, text in FILES.items():
        path = tmp_path / "compat" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return imports_of(modules_of(tmp_path / "compat"), ("compat", "compat.room"))


def test_imports_are_found_wherever_they_stand(found: list[Import]) -> None:
    assert {(each.importer, each.imported, each.typing, each.local) for each in found} == {
        ("compat.a", "compat.b", False, False), ("compat.a", "compat.room.d", True, False), ("compat.b", "compat.c", False, True),
        ("compat.c", "compat.a", False, False), ("compat.room", "compat.room.d", False, False),
        ("compat.room.d", "compat.a", False, False), ("compat.room.d", "compat.room.e", False, False),
    }  # fmt: skip


def test_cycles_are_groups_and_those_of_type_checkers_are_apart(found: list[Import]) -> None:
    assert cycles_of(each for each in found if not each.typing) == [["compat.a", "compat.b", "compat.c"]]
    assert cycles_of(found) == [["compat.a", "compat.b", "compat.c", "compat.room.d"]]


@pytest.mark.parametrize(
    ("importer", "imported", "wrong"),
    [
        ("checks.metadata", "rules.load", False), ("rules.load", "checks.metadata", True), ("output.text", "cli.check", True),
        ("cli.check", "output.text", False), ("workload.launch", "formats.uv", True), ("checks.a", "checks.b", False),
        ("probe.peaks", "tables.gpus", True), ("probe.peaks", "model", False), ("checks.a", "probe.peaks", True),
        ("api", "probe.session", False), ("model", "formats.uv", True), ("versions", "model", False),
    ],
)  # fmt: skip
def test_the_direction_is_that_of_the_rooms(importer: str, imported: str, wrong: bool) -> None:
    assert against(Import(f"compat.{importer}", f"compat.{imported}", typing=False, local=False)) is wrong


def test_private_functions_and_any_are_counted(tmp_path: Path, found: list[Import]) -> None:
    modules = modules_of(tmp_path / "compat")
    assert functions_of(modules).private == {"compat.a._once": 1, "compat.a._twice": 2}
    assert functions_of(modules).once == 1
    assert uses_of_any(modules) == 2


def test_the_figures_of_this_tree(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("clingo")
    assert shape.main(["--list"]) == 0
    printed = capsys.readouterr().out
    figures = dict(re.findall(r"(?m)^\| (.+?) \| (.+?) \|$", printed))
    assert figures["modules without a room"] == "0"
    modules = int(figures["modules"])
    executed = [int(each) for each in figures["modules executed by doctor, by fix"].split(", ")]
    assert all(10 < each < modules for each in executed)
    assert executed[0] == len(re.findall("(?m)^executed by doctor: ", printed))
    assert len(re.findall("(?m)^cycle: ", printed)) == int(figures["import cycles (with those of TYPE_CHECKING)"].split()[0])
