"""Edits of setup.py and setup.cfg: what stays as it is, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for

SETUP_PY = """\
# -*- coding: utf-8 -*-
from setuptools import setup

extras = {'train': ['trl==0.8.6', "peft"]}  # é
setup(
    name='toy',
    install_requires=[
        'torch>=2.0,<2.3',   # tested
        "transformers == 4.40.1 ; python_version < '3.13'",
        'numpy<2'
    ],
    extras_require=extras,
)
"""
SETUP_CFG = """\
[options]
install_requires =
    torch>=2.0,<2.3
    # why
    transformers == 4.40.1  # pinned
zip_safe = False
[options.extras_require]
train = trl==0.8.6;peft
"""


def edited(folder: Path, name: str, text: str, *changes: Change) -> str:
    (folder / name).write_text(text)
    edits = {Path(each.path).name: each.after.decode() for each in edits_for(str(folder / name), changes)}
    return edits.get(name, text)


@pytest.mark.parametrize(("name", "text"), [("setup.py", SETUP_PY), ("setup.cfg", SETUP_CFG)])
def test_only_the_versions_change(tmp_path: Path, name: str, text: str) -> None:
    changes = (
        Change("torch", "2.2.0", "2.5.1"), Change("transformers", "4.40.1", "4.46.3"), Change("trl", "0.8.6", "0.12.2"),
    )  # fmt: skip
    after = edited(tmp_path, name, text, *changes)
    expected = text.replace("torch>=2.0,<2.3", "torch==2.5.1").replace("4.40.1", "4.46.3").replace("trl==0.8.6", "trl==0.12.2")
    assert after == expected


def test_a_new_requirement_goes_to_the_end_of_the_list(tmp_path: Path) -> None:
    change = Change("accelerate", None, "1.2.1", direct=True)
    after = edited(tmp_path, "setup.py", SETUP_PY, change)
    assert after == SETUP_PY.replace("        'numpy<2'\n", "        'numpy<2',\n        'accelerate==1.2.1'\n")
    one_line = "from setuptools import setup\nreqs = ['torch']\nsetup(install_requires=reqs)\n"
    assert "reqs = ['torch', 'accelerate==1.2.1']\n" in edited(tmp_path, "setup.py", one_line, change)
    looked_up = "from setuptools import setup\ndeps = {'torch': 'torch==2.2.0'}\nreqs = [\n    deps['torch'],  # why\n]\nsetup(install_requires=reqs)\n"
    after = edited(tmp_path, "setup.py", looked_up, change)
    assert after == looked_up.replace("  # why\n", '  # why\n    "accelerate==1.2.1",\n')
    after = edited(tmp_path, "setup.cfg", SETUP_CFG, change)
    assert "    transformers == 4.40.1  # pinned\n    accelerate==1.2.1\nzip_safe" in after


def test_a_removed_requirement_goes_with_its_line(tmp_path: Path) -> None:
    assert "torch" not in edited(tmp_path, "setup.py", SETUP_PY, Change("torch", "2.2.0", None))
    assert "'tested'" not in edited(tmp_path, "setup.py", SETUP_PY, Change("torch", "2.2.0", None))
    assert "['trl==0.8.6', \"peft\"]" in edited(tmp_path, "setup.py", SETUP_PY, Change("torch", "2.2.0", None))
    assert "    # why\n" in edited(tmp_path, "setup.cfg", SETUP_CFG, Change("torch", "2.2.0", None))


def test_the_requirements_file_that_the_code_reads_is_edited(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.2.0  # é\nnumpy\n")
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nsetup(install_requires=open('requirements.txt').readlines())\n"
    )
    changes = (Change("torch", "2.2.0", "2.5.1"), Change("accelerate", None, "1.2.1", direct=True, why="needed"))
    (edit,) = edits_for(str(tmp_path / "setup.py"), changes)
    assert Path(edit.path).name == "requirements.txt"
    assert edit.after.decode() == "torch==2.5.1  # é\nnumpy\naccelerate==1.2.1  # needed\n"


@pytest.mark.parametrize(
    ("text", "change", "line"),
    [
        ("V = '2.2.0'\nsetup(install_requires=['torch==' + V])\n", Change("torch", "2.2.0", "2.5.1"), 2),
        ("setup(install_requires=['torch==2.2.0'\n    ' '])\n", Change("torch", "2.2.0", "2.5.1"), 1),
        ("setup(install_requires=['torch'] + read())\n", Change("torch", "2.2.0", None), 1),
        ("setup()\n", Change("torch", None, "2.5.1", direct=True), None),
    ],
)  # fmt: skip
def test_what_is_computed_is_refused(tmp_path: Path, text: str, change: Change, line: int | None) -> None:
    with pytest.raises(InputError) as problem:
        edited(tmp_path, "setup.py", f"from setuptools import setup; {text}", change)
    assert problem.value.line == line


def test_a_table_that_other_code_looks_up_keeps_its_entries(tmp_path: Path) -> None:
    text = "from setuptools import setup\ndeps = {\n    'torch': 'torch==2.2.0',\n}\nsetup(install_requires=[deps['torch']])\n"
    assert "'torch': 'torch==2.5.1',\n" in edited(tmp_path, "setup.py", text, Change("torch", "2.2.0", "2.5.1"))
    with pytest.raises(InputError):
        edited(tmp_path, "setup.py", text, Change("torch", "2.2.0", None))
