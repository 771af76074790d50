"""Edits of the install commands in notebook cells: nothing else in the JSON text changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.model import Source
from compat.syntax.json import letters

TRL = Change("trl", "0.15.2", "0.16.1")
TORCH = Change("torch", "2.6.0", "2.7.0")


def notebook(*sources: str | list[str], ascii_only: bool = True) -> str:
    """Return a notebook whose source is written as given: one text, or a list of lines."""
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": each} for each in sources]
    document = {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=ascii_only)


def edited(tmp_path: Path, text: str, *changes: Change) -> str:
    path = tmp_path / "train.ipynb"
    path.write_bytes(text.encode())
    (edit,) = edits_for(str(path), changes)
    return edit.after.decode()


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        ("!pip install trl==0.15.2", "trl==0.15.2", "trl==0.16.1"),
        ("import os\n\n%pip install -q trl==0.15.2 peft\n", "trl==0.15.2", "trl==0.16.1"),
        ("pip install trl==0.15.2", "trl==0.15.2", "trl==0.16.1"),
        ('!pip install "trl==0.15.2" "peft>=0.15"', '\\"trl==0.15.2\\"', '\\"trl==0.16.1\\"'),
        ("out = !uv pip install 'trl == 0.15.2'", "trl == 0.15.2", "trl == 0.16.1"),
        ("!{sys.executable} -m pip install trl==0.15.2", "trl==0.15.2", "trl==0.16.1"),
        ("%%bash\nset -e\npip install peft trl==0.15.2", "trl==0.15.2", "trl==0.16.1"),
        ("# \N{GRINNING FACE} \t\n!pip install peft \\\n    trl==0.15.2", "trl==0.15.2", "trl==0.16.1"),
        ("if True:\n    !pip install trl==0.15.2\n", "trl==0.15.2", "trl==0.16.1"),
        ("%%bash\nTRL=0.15.2\npip install trl==$TRL", "TRL=0.15.2", "TRL=0.16.1"),
    ],
)
@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_only_the_version_changes(
    source: str, old: str, new: str, as_list: bool, ascii_only: bool, tmp_path: Path
) -> None:  # fmt: skip
    before = notebook("print('a')\n", source.splitlines(keepends=True) if as_list else source, ascii_only=ascii_only)
    assert before.count(old) == 1
    assert edited(tmp_path, before, TRL) == before.replace(old, new)


def test_every_command_that_states_it_changes(tmp_path: Path) -> None:
    before = notebook("if colab:\n    !pip install trl==0.15.2\nelse:\n    !pip install --no-deps trl==0.15.2\n")
    assert edited(tmp_path, before, TRL) == before.replace("0.15.2", "0.16.1")


def test_a_byte_order_mark_and_windows_lines_stay(tmp_path: Path) -> None:
    before = "\ufeff" + notebook("!pip install trl==0.15.2\r\nprint()\r\n").replace("\n", "\r\n")
    assert edited(tmp_path, before, TRL) == before.replace("0.15.2", "0.16.1")


def test_a_new_requirement_joins_the_command_it_is_for(tmp_path: Path) -> None:
    before = notebook('!pip install "trl==0.15.2"\n!pip install rich\n')
    after = edited(tmp_path, before, TRL, Change("vllm", None, "0.7.3", direct=True, why="trl 0.16.1 requires it"))
    assert after == before.replace('\\"trl==0.15.2\\"', '\\"trl==0.16.1\\" \\"vllm==0.7.3\\"')


def test_the_index_of_a_build_is_written_beside_it(tmp_path: Path) -> None:
    url = "https://index.example/whl/cu128"
    before = notebook("!pip install torch==2.6.0 trl\n")
    after = edited(tmp_path, before, Change("torch", "2.6.0", "2.7.0+cu128", source=Source("index", {"url": url})))
    cell = json.loads(after)["cells"][0]["source"]
    assert cell == f"!pip install torch==2.7.0+cu128 trl --extra-index-url {url}\n"


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess\nsubprocess.run(['pip', 'install', 'trl==0.15.2'])\n",
        "import os\nos.system('pip install trl==0.15.2')\n",
        "get_ipython().system('pip install trl==0.15.2')\n",
    ],
)
def test_a_call_of_python_is_left_to_the_user(source: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trl is installed here in a way that cannot be changed safely"):
        edited(tmp_path, notebook(source), TRL)


def test_a_version_that_python_computes_is_not_overwritten(tmp_path: Path) -> None:
    before = notebook("v = '0.15.2'\n!pip install trl=={v}\n")
    with pytest.raises(InputError, match=r"only known when the script runs: trl==\{v\}"):
        edited(tmp_path, before, TRL)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.booleans())
def test_letters_of_a_string_are_those_that_json_reads(text: str, ascii_only: bool) -> None:
    written = f"[1, {json.dumps(text, ensure_ascii=ascii_only)}]"
    found = list(letters(written, 4, len(written) - 1))
    assert "".join(letter for letter, _, _ in found).encode("utf-16", "surrogatepass").decode("utf-16") == text
    at = 5
    for _, start, width in found:
        assert start == at
        at += width
    assert at == len(written) - 2
