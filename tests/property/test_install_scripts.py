"""Shell scripts and notebooks: whatever stands in them, a listing comes out or one line that says why not."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from compat.errors import InputError
from compat.formats.notebook import Notebook
from compat.formats.scripts import ShellScript

PIECES = st.sampled_from([
    "pip install ", "a==1 ", "b>=2 ", "-r r.txt ", "-c c.txt ", "if x; then\n", "else\n", "elif y; then ", "fi\n", "case $1 in\n", "a) ", ";;\n",
    "*)", "esac\n", "{ ", "}\n", "(", ")\n", "&&", "||", ";", "|", "<<EOF\n", "EOF\n", "'", '"', "`", "$(", "${X", "$X", "X=1 ", "export X=2\n",
    "\\\n", "\n", "#", "accelerate launch ", "python t.py ", "srun ", "bash -c ", "\x01if", "\x01at:99\n", "\x02", "\0", "é", "\ud800", "uv sync\n",
    "!pip install ", "%%bash\n", "%%capture\n", "%pip ", "%env A=1\n", "if x:\n    ", "else:\n    ", "try:\n    ", "except:\n    ", "v = 'a==1'\n",
    "{v} ", "{v", "import os\n", "os.system('pip install a==1')\n", "subprocess.run(['pip', 'install', v])\n", "get_ipython().system(v)\n",
])  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=25).map("".join))


@given(TEXTS)
def test_any_shell_script(text: str) -> None:
    try:
        (found,) = ShellScript().read("folder/run.sh", text)
    except InputError as problem:
        assert "\n" not in str(problem)
    else:
        lines = text.count("\n") + 1
        own = [entry for entry in found.entries if entry.file is None]  # uv sync installs the project around it
        assert all(entry.line is not None and 1 <= entry.line <= lines for entry in own)
        assert len({entry.distribution.name for entry in own}) == len(own)


@given(st.lists(TEXTS, max_size=4))
def test_any_cells(cells: list[str]) -> None:
    text = json.dumps({"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]}, indent=1)
    (found,) = Notebook().read("folder/nb.ipynb", text)
    lines = text.split("\n")
    assert all(entry.line is not None and lines[entry.line - 1].lstrip().startswith('"') for entry in found.entries)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda v: st.lists(v, max_size=3) | st.dictionaries(
    st.sampled_from(["cells", "cell_type", "source", "metadata", "kernelspec", "language_info", "colab", "gpuType", "version"]), v, max_size=4,
), max_leaves=15))  # fmt: skip
def test_any_json(value: object) -> None:
    for document in (value, {"cells": value}, {"cells": [value], "metadata": value}):
        try:
            Notebook().read("nb.ipynb", json.dumps(document))
        except InputError as problem:
            assert "\n" not in str(problem)
