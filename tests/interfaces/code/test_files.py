from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.interfaces.code import files
from compat.interfaces.code.files import read_code


def _write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_package_folder_has_the_names_that_imports_use(tmp_path: Path) -> None:
    _write(tmp_path / "mine" / "__init__.py", "")
    _write(tmp_path / "mine" / "deep" / "train.py", "from ..other import x\nfrom trl import y\n")
    _write(tmp_path / "mine" / ".venv" / "lib.py", "import left_out\n")
    code = read_code((str(tmp_path / "mine"),))
    assert [each.module.name for each in code.files] == ["mine", "mine.deep.train"]
    assert [each.module for each in code.files[1].module.imports] == ["mine.other", "trl"]


def test_what_cannot_be_read_has_a_line_and_the_others_are_read(tmp_path: Path) -> None:
    good = _write(tmp_path / "good.py", "import trl\n")
    old = _write(tmp_path / "old.py", "x = 1\nprint 'y'\n")
    code = read_code((old, good, str(tmp_path / "nothing.py")))
    assert [each.path for each in code.files] == [good]
    assert [(problem.file, problem.line) for problem in code.problems] == [(old, 2), (str(tmp_path / "nothing.py"), None)]


def test_a_notebook_with_magics_is_called_by_cell(tmp_path: Path) -> None:
    cells = ["%pip install trl\n", "!ls\nfrom trl import SFTTrainer\n", "%%bash\nnot python\n", "await thing()\n"]
    notebook = {"cells": [{"cell_type": "code", "source": cell} for cell in cells], "nbformat": 4}
    code = read_code((_write(tmp_path / "run.ipynb", json.dumps(notebook)),))
    (file,) = code.files
    (imported,) = file.module.imports
    assert file.place(imported.line) == f"{tmp_path}/run.ipynb cell 2, line 2"
    assert code.problems == ()


def test_a_generated_file_is_not_read(tmp_path: Path) -> None:
    path = _write(tmp_path / "big.py", "x = [\n" + "1,\n" * 1_700_000 + "]\n")
    (problem,) = read_code((path,)).problems
    assert "2 MB" in problem.message


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    _write(tmp_path / "code" / "train.py", "import trl\n")
    (tmp_path / "code" / "again").symlink_to(tmp_path / "code")
    (tmp_path / "code" / "self.py").symlink_to(tmp_path / "code" / "self.py")
    code = read_code((str(tmp_path / "code"),))
    assert [Path(each.path).name for each in code.files] == ["train.py"]
    assert [Path(problem.file or "").name for problem in code.problems] == ["self.py"]


def test_a_large_tree_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 3)
    for number in range(5):
        _write(tmp_path / f"m{number}.py", "import trl\n")
    code = read_code((str(tmp_path),))
    assert len(code.files) == 3
    assert "more than 3 Python files" in code.notes[0]


def test_a_folder_without_python_is_no_code(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no Python files"):
        read_code((str(tmp_path),))


def test_two_scripts_of_one_name_are_two_modules(tmp_path: Path) -> None:
    paths = tuple(_write(tmp_path / folder / "train.py", "import trl\n") for folder in ("a", "b"))
    names = [each.module.name for each in read_code(paths).files]
    assert len(set(names)) == 2


def test_what_a_script_states_itself(tmp_path: Path) -> None:
    text = '# /// script\n# dependencies = ["trl>=0.20", "torch"]\n# ///\nfrom transformers.utils import check_min_version\n'
    text += 'check_min_version("4.46.0.dev0")\nrequire_version("datasets[vision]>=2.14", "help")\nrequire_version(name)\n'
    text += "def for_one_task():\n    require_version('peft>=9')\n"
    (file,) = read_code((_write(tmp_path / "run.py", text),)).files
    assert [(each.package, each.specifier, each.line) for each in file.bounds] == [
        ("transformers", ">=4.46.0.dev0", 5),
        ("datasets", ">=2.14", 6),
        ("trl", ">=0.20", 2),
    ]
