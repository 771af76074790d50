"""Notebooks: what their cells install, and what their code trains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat.errors import InputError
from compat.formats.listing import Listing
from compat.formats.notebook import LONGEST, Notebook
from compat.syntax import python as notebook_cells
from tests.formats.listings import pins


def text_of(*cells: str, **metadata: Any) -> str:
    code = [{"cell_type": "code", "metadata": {}, "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells]
    return json.dumps(
        {"cells": [{"cell_type": "markdown", "source": ["!pip install no"]}, *code], "metadata": metadata, "nbformat": 4},
        indent=1,
    )


def read(folder: Path, *cells: str, **metadata: Any) -> Listing:
    path = folder / "nb.ipynb"
    path.write_text(text_of(*cells, **metadata))
    (found,) = Notebook().read(str(path), path.read_text())
    return found


@pytest.mark.parametrize(
    "cell",
    [
        "!pip install torch==2.6",
        "%pip install torch==2.6",
        "%pip install -q \\\n    torch==2.6",
        "!uv pip install --system -qqq torch==2.6",
        "%%capture\n!pip install torch==2.6",
        "#@title Install\n%%capture\n!pip install torch==2.6",
        "%%bash\nset -e\npip install \\\n  torch==2.6",
        "%%sh\npip install torch==2.6",
        "%%script bash\npip install torch==2.6",
        "!python -m pip install torch==2.6",
        "import sys\n!{sys.executable} -m pip install torch==2.6",
        "!eval 'pip install torch==2.6'",
        "!pip uninstall -y torch && pip install torch==2.6",
        "pip install torch==2.6",
        "out = !pip install torch==2.6",
        "%time\n!pip install torch==2.6",
        "get_ipython().system('pip install torch==2.6')",
        "get_ipython().run_line_magic('pip', 'install torch==2.6')",
        "get_ipython().run_cell_magic('bash', '', 'pip install torch==2.6\\n')",
        "import os\nos.system('pip install torch==2.6')",
        "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install',\n  'torch==2.6'])",
        "import subprocess\nsubprocess.run('pip install torch==2.6', shell=True)",
        "import subprocess\nsubprocess.run('pip install torch==2.6'.split())",
        "import subprocess\nsubprocess.run(['bash', '-c', 'pip install torch==2.6'])",
        "with x:\n    !pip install torch==2.6",
        "def install():\n    !pip install torch==2.6\ninstall()",
        "v = '2.6'\n!pip install torch=={v}",
        "v = '2.6'\n!pip install torch==$v",
        "v = '2' + '.6'; spec = f'torch=={v}'\n!pip install '{spec}'",
        "packages = ['torch==2.6']\n!pip install {' '.join(packages)}",
        "if True:\n    !pip install torch==2.6\nelse:\n    !pip install torch==2.5",
        "if False:\n    !pip install torch==2.5\nelse:\n    !pip install torch==2.6",
        "if x:\n    !pip install torch==2.6\nelse:\n    !pip install torch==2.6",
        "if x:\n    !pip install torch==2.5\n!pip install torch==2.6",
        "for x in y:\n    !pip install torch==2.6",
        "'''\n!pip install torch==2.5\n'''\n!pip install torch==2.6",
        "x = (1\n % 2)\n!pip install torch==2.6",
        "print 1\n!pip install torch==2.6",
    ],
)
def test_the_ways_to_install(cell: str, tmp_path: Path) -> None:
    found = read(tmp_path, "x = 1", cell)
    assert pins(found) == {"torch": "2.6"}
    (entry,) = found.entries
    written = (tmp_path / "nb.ipynb").read_text().splitlines()[(entry.line or 0) - 1]
    assert "install" in written or "torch==2.6" in written


@pytest.mark.parametrize(
    "cell",
    [
        "# !pip install torch==2.6", "%%writefile x.sh\npip install torch==2.6", "%%script false\npip install torch", "%%html\npip install x",
        "print('pip install torch')", "%load_ext x", "!ls", "!pip list", "x = '''\n!pip install torch\n'''", "torch?",
    ],
)  # fmt: skip
def test_what_installs_nothing(cell: str, tmp_path: Path) -> None:
    assert read(tmp_path, cell).entries == ()


@pytest.mark.parametrize(
    "cell",
    [
        "if 'COLAB_' not in names:\n    !pip install torch\nelse:\n    !pip install --no-deps torch==2.6",
        "if x:\n    !pip install torch==2.5\nelif y:\n    pass\nelse:\n    !pip install torch==2.6",
        "try:\n    import torch\nexcept ImportError:\n    !pip install torch==2.6",
        "!pip install torch==2.5\nif x:\n    !pip install torch==2.6",
        "match x:\n    case 1:\n        !pip install torch==2.6",
        "v = x()\nt = 'torch==' + {'a': '2.6'}.get(v, '2.5')\n!pip install {t}",
        "try: import y; t = f'torch=={y.__version__}'\nexcept: t = 'torch'\n!pip install {t}",
        "_v, _t = ('vllm==1', 'torch==2.6') if x else ('vllm==2', 'torch==2.5')\n!pip install {_t}",
        "v = '2.5'\nv = '2.6'\n!pip install torch=={v}",
        "v = '2.5'\nif x:\n    v = '2.6'\n!pip install torch=={v}",
        "for v in y:\n    !pip install torch=={v}",
        "def f(v):\n    !pip install torch=={v}",
        "v = '2.6'\nv += x\n!pip install torch=={v}",
        "!pip install torch=={unknown}",
        "!pip install torch==$UNKNOWN",
    ],
)
def test_a_version_that_is_not_known(cell: str, tmp_path: Path) -> None:
    found = read(tmp_path, cell)
    assert pins(found) == {"torch": None}
    assert len(found.notes) == 1
    assert "torch" in found.notes[0]


def test_the_branches_of_a_real_installation_cell(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '%%capture\nimport os, re\nif "COLAB_" not in "".join(os.environ.keys()):\n    !pip install unsloth  # here\nelse:\n'
        "    import torch; v = re.match(r'[\\d]{1,}', str(torch.__version__)).group(0)\n"
        "    xformers = 'xformers==' + {'2.9':'0.0.33.post1','2.8':'0.0.32.post2'}.get(v, \"0.0.34\")\n"
        '    !pip install sentencepiece "datasets==4.3.0"\n    !pip install --no-deps accelerate {xformers} peft trl unsloth\n'
        "!pip install transformers==4.56.2\n!pip install --no-deps trl==0.22.2\n",
    )
    assert pins(found) == {
        "unsloth": None, "sentencepiece": None, "datasets": None, "accelerate": None, "xformers": None, "peft": None,
        "transformers": "4.56.2", "trl": "0.22.2",
    }  # fmt: skip
    written = (tmp_path / "nb.ipynb").read_text().splitlines()
    for entry in found.entries:
        assert entry.distribution.name in written[(entry.line or 0) - 1]
    assert [note.partition(": ")[2] for note in found.notes] == [
        "xformers==${xformers}: its version is only known at run time",
        "datasets: what is installed depends on a condition (line 20): its version is not known",
    ]


def test_lines_of_a_continued_command(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "!uv pip install -qqq \\\n    'torch>=2.8' {numpy} \\\n    'unsloth_zoo[base] @ git+https://github.com/unslothai/unsloth-zoo'\n",
    )
    written = (tmp_path / "nb.ipynb").read_text().splitlines()
    assert [(e.distribution.name, e.distribution.source and e.distribution.source.kind) for e in found.entries] == [
        ("torch", "index"),
        ("unsloth-zoo", "vcs"),
    ]
    assert "torch>=2.8" in written[(found.entries[0].line or 0) - 1]
    assert "unsloth_zoo" in written[(found.entries[1].line or 0) - 1]


def test_source_in_one_text_and_on_one_line(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": "import x\n!pip install a==1\n"}
    for text, line in (
        (json.dumps({"cells": [cell]}), 1),
        (json.dumps({"metadata": {}, "cells": [cell]}, indent=1), 6),
        (json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": cell["source"]}]}]}, indent=1), 7),
        ('\ufeff{"cells": [\n{"cell_type": "code", "source":\n["!pip ",\n"install a==1"]}]}', 3),
    ):
        (found,) = Notebook().read(str(tmp_path / "nb.ipynb"), text)
        assert pins(found) == {"a": "1"}
        assert found.entries[0].line == line


def test_the_code_is_the_workload_of_one_plain_process(tmp_path: Path) -> None:
    code = (
        "from trl import SFTConfig, SFTTrainer\nSFTTrainer(model='m', args=SFTConfig(per_device_train_batch_size=2)).train()\n"
    )
    work = read(tmp_path, "!pip install trl", code).context.workload
    assert work is not None
    assert (work.task, work.trainer, work.batch_size, work.launcher, work.processes) == ("sft", "SFTTrainer", 2, "python", 1)
    assert work.origins["task"].endswith("nb.ipynb cell 2")
    several = read(
        tmp_path, "from accelerate import notebook_launcher\nnotebook_launcher(f, num_processes=2)\n"
    ).context.workload
    assert several is not None
    assert (several.launcher, several.processes) == ("accelerate", 2)


def test_a_job_that_a_cell_starts(tmp_path: Path) -> None:
    found = read(tmp_path, "!accelerate launch --num_processes 2 train.py")
    assert found.context.workload is not None
    assert found.context.workload.launcher is None
    assert found.notes == (
        f"{tmp_path}/nb.ipynb cell 1: accelerate launch --num_processes 2 train.py is not checked; only the code of the cells is",
    )


@pytest.mark.parametrize(
    ("metadata", "names"),
    [
        ({"accelerator": "GPU", "colab": {"gpuType": "T4"}}, ["Tesla T4"]),
        ({"accelerator": "GPU", "colab": {"gpuType": "A100"}}, ["A100"]),
        ({"accelerator": "GPU", "colab": {}}, [None]),
        ({"accelerator": "GPU", "colab": {"gpuType": "\x1b[1m"}}, [None]),
        ({"accelerator": "TPU", "colab": {"gpuType": "V28"}}, None),
        ({"colab": {"gpuType": "T4"}}, None),
        ({"accelerator": ["GPU"]}, None),
    ],
)
def test_the_device_it_asks_for(metadata: dict[str, Any], names: list[str | None] | None, tmp_path: Path) -> None:
    found = read(tmp_path, "x = 1", **metadata).context.accelerators
    assert (None if found is None else [device.name for device in found]) == names
    assert all(device.vendor == "nvidia" for device in found or ())


@pytest.mark.parametrize(
    ("version", "python"), [("3.11.9", "3.11.9"), ("3.11", None), ("3", None), ("", None), (3.11, None), ("3.11.x", None)]
)
def test_the_python_it_was_saved_with(version: object, python: str | None, tmp_path: Path) -> None:
    assert read(tmp_path, "x = 1", language_info={"name": "python", "version": version}).context.python == python


def test_variables_without_secrets(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "import os\nos.environ['A'] = '1'\nos.environ['HF_TOKEN'] = 'hf_x'\n%env B = 2\n%set_env C 3\nif x:\n    %env D=4\n",
        "%env API_KEY=x\n%env HOME",
    )
    assert found.context.variables == {"A": "1", "B": "2", "C": "3"}


def test_a_notebook_of_another_language(tmp_path: Path) -> None:
    found = read(tmp_path, "install.packages('x')", kernelspec={"language": "R"})
    assert found.unread == (f"{tmp_path}/nb.ipynb: its cells are not Python but r",)


def test_requirements_of_the_project_are_read(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.6\n")
    found = read(tmp_path, "!pip install -r requirements.txt -r /etc/passwd")
    assert pins(found) == {"torch": "2.6"}
    assert (found.entries[0].file, found.entries[0].line) == (f"{tmp_path}/requirements.txt", 1)
    assert "-r /etc/passwd was not read: it is not in the project" in found.notes[0]


def test_a_cell_that_is_no_python_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, "x = 1", "!pip install a==1\nprint 1\n")
    assert pins(found) == {"a": "1"}
    assert "cell 2, line 2: is not Python" in found.notes[0]
    assert read(tmp_path, "print 1").unread != ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "nb.ipynb:1: is not a Jupyter notebook"),
        ('{"cells": {}}', "expected a list of cells"),
        ('{"cells": [\n{"cell_type": "code",\n"source": 3}]}', "nb.ipynb:3: is not a Jupyter notebook: expected text"),
        ('{"cells": [\n{"cell_type": "code",\n"source": [3]}]}', "nb.ipynb:3: is not a Jupyter notebook: expected text"),
        ('{"cells": [\n<<<<<<< HEAD\n', "nb.ipynb:2: is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("", "is not JSON"),
    ],
)
def test_what_is_no_notebook(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        Notebook().read(str(tmp_path / "nb.ipynb"), text)


def test_a_notebook_of_another_name(tmp_path: Path) -> None:
    (found,) = Notebook().read(str(tmp_path / "nb.json"), text_of("!pip install a==1"))
    assert pins(found) == {"a": "1"}
    assert "its code was not searched" in found.notes[0]


def test_what_is_too_much_is_unread(tmp_path: Path) -> None:
    assert "only 5000 shell commands" in read(tmp_path, "!pip install a\n" * 5001).unread[0]
    assert "of code: the rest was not read" in read(tmp_path, "#" * LONGEST).unread[0]
    assert read(tmp_path, "#" * (LONGEST - 1)).unread == ()


def test_no_notebook_has_so_many_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_cells, "CELLS", 3)
    assert pins(read(tmp_path, *["!pip install a==1"] * 3)) == {"a": "1"}
    with pytest.raises(InputError, match=r"nb\.ipynb: has more than 3 code cells"):
        read(tmp_path, *["!pip install a==1"] * 4)


def test_a_file_that_a_cell_writes_is_read_with_the_lines_of_the_notebook(tmp_path: Path) -> None:
    listing = read(tmp_path, "%%writefile -a reqs.txt\ntrl==0.17.0\n\ntorch==2.6.0\n", "!pip install -r /content/reqs.txt")
    assert pins(listing) == {"trl": "0.17.0", "torch": "2.6.0"}
    lines = (tmp_path / "nb.ipynb").read_text().splitlines()
    for entry in listing.entries:
        assert entry.file is None
        assert entry.line is not None
        assert entry.distribution.name in lines[entry.line - 1]
    assert (listing.notes, listing.elsewhere) == ((), ())


def test_other_files_that_cells_write_are_not_requirements(tmp_path: Path) -> None:
    listing = read(tmp_path, "%%writefile train.py\nimport torch", "%%writefile", "!pip install -r reqs.txt")
    assert pins(listing) == {}
    assert len(listing.elsewhere) == 1


@pytest.mark.parametrize(("change", "expected"), [
    ("pk.append('trl==0.14.0')", {"torch": "2.6.0", "trl": "0.14.0"}), ("pk.extend(['trl==0.14.0'])", {"torch": "2.6.0", "trl": "0.14.0"}),
    ("pk.append('trl')\npk.append('peft==0.14.0')", {"torch": "2.6.0", "trl": None, "peft": "0.14.0"}),
    ("for p in more:\n    pk.append(p)", {"torch": "2.6.0"}), ("if x:\n    pk.append('trl==0.14.0')", {}), ("pk.remove('torch')", {}),
])  # fmt: skip
def test_a_list_that_the_code_adds_to(change: str, expected: dict[str, str | None], tmp_path: Path) -> None:
    found = read(tmp_path, f"pk = ['torch==2.6.0']\n{change}\n!pip install {{' '.join(pk)}}")
    assert {each.distribution.name: each.distribution.version for each in found.entries} == expected
    known = "for" not in change and expected
    assert any("only known at run time" in text for text in (*found.notes, *found.unread, *found.elsewhere)) != bool(known)
