"""Notebooks: code cells joined, magics and shell lines left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat.errors import InputError
from compat.workload.script import ScriptFacts, read_script


def write(folder: Path, *cells: str, **extra: Any) -> str:
    path = folder / "nb.ipynb"
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# title"}, *code], "nbformat": 4, **extra}))
    return str(path)


def read(folder: Path, *cells: str) -> ScriptFacts:
    return read_script(write(folder, *cells))


def test_a_typical_notebook(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '%%capture\nimport os\nif "COLAB_" not in os.environ:\n    !pip install unsloth  # here\nelse:\n    !pip install --no-deps \\\n        trl peft\n',
        "from unsloth import FastLanguageModel\nload_in_4bit = True\nmodel, tokenizer = FastLanguageModel.from_pretrained(\n"
        "    model_name = 'unsloth/mistral-7b-bnb-4bit', load_in_4bit = load_in_4bit,\n)\n",
        "from trl import SFTConfig, SFTTrainer\ntrainer = SFTTrainer(\n    model = model, packing = False,\n"
        "    args = SFTConfig(per_device_train_batch_size = 2, gradient_accumulation_steps = 4),\n)\n",
        "%time trainer.train()\n!nvidia-smi\nfiles = !ls\ntrainer?\n",
        "if False:\n    from unsloth import FastLanguageModel\n    FastLanguageModel.from_pretrained('lora_model')\n",
    )
    work = found.workload
    assert (work.task, work.model, work.batch_size, work.quantization) == ("sft", "unsloth/mistral-7b-bnb-4bit", 2, "4bit")
    assert work.features == ("gradient-accumulation", "default-precision", "unsloth")
    assert work.features_absent == ("packing", "unsloth-imported-late")
    assert work.origins["task"].endswith("nb.ipynb cell 3")
    assert found.imports == (("os", 1), ("unsloth", 2), ("trl", 3))
    assert found.notes == ()


@pytest.mark.parametrize(
    "cell", ["%%bash\nexport X=1\nif [ 1 ]; then", "%%writefile x.py\ndef (", "%%html\n<b>", "%%\n(", "%%sh\necho $("]
)
def test_cells_for_something_else_are_dropped(cell: str, tmp_path: Path) -> None:
    assert read(tmp_path, cell, "import trl").imports == (("trl", 2),)


@pytest.mark.parametrize(
    "cell",
    [
        "await f()",
        "%run -i train.py \\\n  --config a \\\n  --seed=1\nx = 1",
        "# first\n%%time\nx = 1",
        "%pip install \\\n  trl",
        "x = (1\n% 2)\ny = !ls \\\n  -l",
        "async for x in y: pass",
        "%%time\nx = 1",
        "",
        "# only a comment",
        "%matplotlib inline",
        "x = '''\n!not a command\n'''",
    ],
)
def test_cells_that_are_fine(cell: str, tmp_path: Path) -> None:
    found = read(tmp_path, cell, "import trl")
    assert (found.imports, found.notes) == ((("trl", 2),), ())


def test_a_cell_that_is_no_python_is_left_out_and_told(tmp_path: Path) -> None:
    found = read(tmp_path, "import trl", "x = 1\nprint 'two'", "import peft")
    assert found.imports == (("trl", 1), ("peft", 3))
    assert len(found.notes) == 1
    assert "nb.ipynb cell 2, line 2: is not Python 3." in found.notes[0]


def test_a_notebook_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nb\.ipynb: cell 1, line 1: is not Python 3\."):
        read(tmp_path, "def (")


def test_text_in_one_piece_and_the_older_format(tmp_path: Path) -> None:
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": "import trl\r\nimport peft"}]}]}))
    assert read_script(str(path)).imports == (("trl", 1), ("peft", 1))


@pytest.mark.parametrize(("text", "message"), [
    ("", "is not JSON"), ("[]", "is not a Jupyter notebook: expected a JSON object"), ('{"cells": 3}', "expected a list of cells"),
    ('{"cells": [{"cell_type": "code", "source": 3}]}', "expected text in every code cell"), ('{"cells": [', "is not JSON"),
    ('{"worksheets": [3]}', "expected a list of cells"),
])  # fmt: skip
def test_files_that_are_no_notebooks(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "nb.ipynb").write_text(text)
    with pytest.raises(InputError, match=message):
        read_script(str(tmp_path / "nb.ipynb"))
