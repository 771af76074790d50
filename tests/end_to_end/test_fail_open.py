"""What a file installs in a way that is not understood ends with exit code 3, never with 0.

Every text here hides two pins that exclude each other. A text whose value whoever runs it decides is a note, and with
``--strict`` undecided, too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from compat.cli import main

BAD = "transformers==4.51.3 huggingface-hub==0.20.0"
LINES = BAD.replace(" ", "\n") + "\n"
SCRIPT = f"# /// script\n# dependencies = {BAD.split()!r}\n# ///\nprint()\n"
SETUP = f"from setuptools import setup\nsetup(name='x', install_requires={BAD.split()!r})\n"
IMAGE = "FROM python:3.11\n"
POD = "apiVersion: v1\nkind: Pod\nspec:\n"
STEPS = "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n"
CONTAINER = "  containers:\n  - name: a\n    image: y\n"


def checked(folder: Path, name: str, text: str, *words: str) -> int:
    files = {
        name: text, "r.txt": LINES, "other.sh": f"pip install {BAD}\n", "sub/Dockerfile": f"{IMAGE}RUN pip install {BAD}\n",
        "other.mk": f"install:\n\tpip install {BAD}\n", "train.py": SCRIPT,
        "install.py": f"import os, sys, subprocess\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', {BAD.split()!r}])\n",
        "hint.py": "raise ImportError('pip install torch')\n", "lib/setup.py": SETUP, "justfile": f"a:\n  pip install {BAD}\n",
    }  # fmt: skip
    for each, content in files.items():
        (folder / each).parent.mkdir(exist_ok=True)
        (folder / each).write_text(content)
    (folder / ".git").mkdir(exist_ok=True)
    return main(["check", name, *words])


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        'inst() { pip install "$1"; }\ninst transformers==4.51.3\ninst huggingface-hub==0.20.0\n', f'inst() {{ pip install "$@"; }}\ninst {BAD}\n',
        f"inst() {{ shift; pip install $*; }}\ninst x {BAD}\n", f"inst() {{ local p=$1 q=$2; pip install $p $q; }}\ninst {BAD}\n",
        'while read p; do pip install "$p"; done < r.txt\n', "cat r.txt | while read -r p; do pip install $p; done\n",
        'mapfile -t A < r.txt\npip install "${A[@]}"\n', "for p in $(cat r.txt); do pip install $p; done\n", "pip install $(grep -v x r.txt)\n",
        f"pip install `echo {BAD}`\n", "P=$(cat r.txt)\npip install $P\n", "pip install -r <(grep -v x r.txt)\n", "cat r.txt | pip install -r /dev/stdin\n",
        "grep -v x r.txt > q.txt\npip install -r q.txt\n", "pip install -r *.txt\n", f"$PIP install {BAD}\n",
        "conda install $(cat r.txt)\n", "for f in *.txt; do pip install -r $f; done\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["run.sh", "Dockerfile"])
def test_shell_text_that_computes_what_it_installs(name: str, text: str, tmp_path: Path) -> None:
    if name == "Dockerfile":
        text = f"{IMAGE}RUN <<E\n{text}E\n"
    assert checked(tmp_path, name, text) == 3


@pytest.mark.parametrize(
    "text",
    [
        "pip install $(cat r.txt)\n", "pip install `cat r.txt`\n", "pip install -r <(cat r.txt)\n", f"python -mpip install {BAD}\n", "source other.sh\n",
        ". ./other.sh\n", "bash other.sh\n", "./other.sh\n", f"cat > i.sh <<E\npip install {BAD}\nE\nbash i.sh\n",
        "make -f other.mk install\n", "make -C . -f other.mk\n", f"bash <<< 'pip install {BAD}'\n", "sbatch other.sh\n", "uv run train.py\n",
        "pipx run train.py\n", "cp r.txt q.txt\npip install -r q.txt\n", "cp r.txt p.txt && mv p.txt q.txt; pip install -r q.txt\n",
        "bash < other.sh\n", "sh -s < other.sh\n", "cat other.sh | bash\n", "cat other.sh | sudo -E sh -\n", "cat < other.sh >/dev/null; sh -x <other.sh\n",
        "PIP_REQUIREMENT=r.txt pip install\n", "pip install --requirem r.txt\n", "cd lib && python setup.py develop\n",
        f"uv run --with {BAD.split()[0]} --with {BAD.split()[1]} python hint.py\n",
        ": ${V:=4.51.3}\npip install transformers==$V huggingface-hub==0.20.0\n", "pixi global install transformers=4.51.3 --with huggingface_hub=0.20.0\n",
        "pixi exec -s transformers=4.51.3 -s huggingface_hub=0.20.0 python -s x\n",
    ],
)  # fmt: skip
def test_what_can_be_followed_is_followed(text: str, tmp_path: Path) -> None:
    assert checked(tmp_path, "run.sh", text) == 1


@pytest.mark.parametrize(
    "text",
    [
        "python install.py\n", "./install.py\n", "just a\n", f"trap 'pip install {BAD}' EXIT\n", f"alias p='pip install'\np {BAD}\n",
        f"script -c 'pip install {BAD}' log\n", f"sbatch --wrap='pip install {BAD}'\n", f"fish -c 'pip install {BAD}'\n",
        f"tmux new -d 'pip install {BAD}'\n", f"at now <<E\npip install {BAD}\nE\n", f"source <(echo pip install {BAD})\n",
        f"python -c 'import pip; pip.main([\"install\", \"{BAD.split()[0]}\"])'\n",
    ],
)  # fmt: skip
def test_programs_that_install_in_ways_that_are_not_read(text: str, tmp_path: Path) -> None:
    assert checked(tmp_path, "run.sh", text) == 3


@pytest.mark.parametrize(
    "text",
    [
        "curl -sSL https://files.example/i.sh | bash\n", "wget -qO- https://files.example/i.sh | sh -s -- --yes\n",
        "bash <(curl -s https://files.example/i.sh)\n", 'sh -c "$(curl -fsSL https://files.example/i.sh)"\n',
        "echo aW5zdGFsbA== | base64 -d | sh\n", 'eval "$(base64 -d x)"\n', "sh -c `rev x`\n", 'bash -c "$(gunzip -c i.sh.gz)"\n', "xxd -r -p x | sh -s --\n",
        "curl -fsSL https://files.example/i.sh | sudo -E bash -\n", "tr a-z n-za-m < x | bash -\n", "$(base64 -d x)\n",
        "pipx inject tool torch\n", "source missing-install.sh\n",
        "pip $COMMAND torch\n", "conda-lock install\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["run.sh", "Dockerfile"])
def test_what_something_else_installs_is_a_note(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{IMAGE}RUN {text}" if name == "Dockerfile" else text
    assert checked(tmp_path, name, text) == 0
    assert "note" in (out := " ".join(capsys.readouterr().out.split()))
    assert out.count("not read") + out.count("only known") == 1
    assert checked(tmp_path, name, text, "--strict") == 3


@pytest.mark.parametrize(
    "text", ["python hint.py\n", "make\n", "echo | bash\n", "source venv/bin/activate\n", ". ~/.bashrc\n", 'eval "$(ssh-agent -s)"\n', 'eval "$(/c/bin/conda shell.bash hook 2> /dev/null)"\n', "source <(kubectl completion bash)\n",
     "cat r.txt | sort\n", "python hint.py < r.txt\n", "sed s/a/b/ r.txt | docker run -i x sh\n", "git commit -m 'pip install x'\n", "exec bash\n"]
)  # fmt: skip
def test_other_commands_leave_no_remark(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path, "run.sh", text, "--strict") == 0
    assert "not read" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", "V=4.38\nprintf -v V 4.51.3\npip install transformers==$V huggingface-hub==0.20.0\n"),
        ("run.sh", "echo $COMMAND | sh\n"), ("run.sh", 'sh <<< "$COMMAND"\n'), ("run.sh", "bash < $SCRIPT\n"),
        ("Dockerfile", f"{IMAGE}ADD https://files.example/i.sh /i\nRUN sh /i\n"), ("Dockerfile", f"{IMAGE}RUN wget https://files.example/i.sh; sh i.sh\n"),
        ("Dockerfile", f"{IMAGE}RUN curl -o /i.sh https://files.example/a\nRUN chmod +x /i.sh && /i.sh\n"),
        ("Dockerfile", f"{IMAGE}COPY other.sh /e\nCMD sh /e\n"), ("Dockerfile", f"{IMAGE}COPY other.sh /e.sh\nENTRYPOINT exec /e.sh\n"),
        ("run.sh", "pip install torch==$V\n"), ("run.sh", "conda install pytorch=$V\n"),
        ("run.sh", "pip install $PACKAGES\n"), ("run.sh", "pip install dist/*.whl\n"), ("run.sh", "pip install -r $REQUIREMENTS\n"),
        ("Dockerfile", f"{IMAGE}ARG MORE\nRUN pip install $MORE\n"), ("ci.yml", f"{STEPS}    - run: pip install ${{{{ matrix.d }}}}\n"),
        ("a.ipynb", json.dumps({"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": "!pip install $MORE", "metadata": {}}]})),
        ("compose.yaml", "services: {a: {build: nowhere}}\n"), ("compose.yaml", "services: {a: {build: 'https://git.example/a.git'}}\n"),
    ],
)  # fmt: skip
def test_what_somebody_else_decides_is_undecided_with_strict(name: str, text: str, tmp_path: Path) -> None:
    assert checked(tmp_path, name, text) in (0, 3)
    assert checked(tmp_path, name, text, "--strict") == 3


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("compose.yaml", "services: {a: {build: sub}}\n", 1), ("compose.yaml", "services: {a: {build: {context: ., dockerfile: sub/Dockerfile}}}\n", 1),
        ("compose.yaml", f"services:\n  a:\n    build:\n      dockerfile_inline: |\n        {IMAGE}        RUN pip install {BAD}\n", 1),
        ("compose.yaml", f"services:\n  a:\n    image: x\n    post_start:\n    - command: pip install {BAD}\n", 3),
        ("compose.yaml", "services:\n  a:\n    extends: {file: more.yaml, service: a}\n", 3),
        ("run.sh", f"if a; then P='{BAD}'; else P=torch; fi\npip install $P\n", 3),
        ("job.yaml", f"{POD}  initContainers:\n  - name: i\n    image: x\n    command: [sh, -c, 'pip install {BAD}']\n{CONTAINER}", 1),
        ("job.yaml", f"{POD}{CONTAINER}    lifecycle: {{postStart: {{exec: {{command: [sh, -c, 'pip install {BAD}']}}}}}}\n", 3),
        ("job.yaml", f"apiVersion: v1\nkind: ConfigMap\ndata:\n  i.sh: |\n    pip install {BAD}\n---\n{POD}{CONTAINER}    command: [bash, /s/i.sh]\n", 3),
        ("job.yaml", f"apiVersion: tekton.example/v1\nkind: Task\nspec:\n  steps:\n  - name: a\n    script: |\n      pip install {BAD}\n", 3),
        (".gitlab-ci.yml", f"a:\n  script: [echo]\n  after_script: [pip install {BAD}]\n", 3), ("ci.yml", f"{STEPS}    - run: bash other.sh\n", 1),
        ("Makefile", f"define X\npip install {BAD}\nendef\ninstall:\n\t$(X)\n", 3), ("Makefile", f"install: ; pip install {BAD}\n", 3),
        ("Makefile", f"i: ; true\nX = $(call run,pip install {BAD})\nj:\n\t$(call run,pip install {BAD})\n", 3), ("Makefile", "include other.mk\n", 0),
        ("Makefile", f"a:\n\tpip install {BAD.split()[0]}\nb:\n\tpip install {BAD.split()[1]}\nall: a b\n", 1),
        ("Makefile", f"i::\n\tpip install {BAD.split()[0]}\ni::\n\tpip install {BAD.split()[1]}\n", 1),
        ("Makefile", f"define X\npip install {BAD}\nendef\na:\n\tpip install torch\nb:\n\t$(X)\n", 3),
        ("tox.ini", f"[testenv]\ncommands = pip install {BAD}\n", 1), ("tox.ini", f"[testenv]\ncommands_pre =\n  pip install \\\n    {BAD}\n", 1),
        ("tox.ini", f"[testenv]\ninstall_command = pip install {BAD} {{opts}} {{packages}}\n", 1), ("tox.ini", "[testenv]\ncommands = bash other.sh\n", 1),
        ("tox.ini", f"[testenv]\ndeps = {BAD.split()[0]}\ncommands = pip install {BAD.split()[1]}\n", 1), ("tox.ini", "[testenv]\ncommands = pytest\n", 0),
        ("tox.ini", f"[testenv]\ndeps =\n  x: {BAD.split()[0]}\n  x: {BAD.split()[1]}\n", 1), ("tox.ini", "[testenv]\nconda_deps = torch\n", 3),
        ("tox.ini", "[testenv]\ndeps =\n  transformers\n  huggingface-hub\nconstraints = r.txt\n", 1), ("tox.ini", "[testenv]\ncommands = python install.py\n", 3),
        ("noxfile.py", f"import nox\n@nox.session\ndef a(s):\n  s.run('bash', '-c', 'pip install {BAD}')\n", 1),
        ("noxfile.py", f"import nox\nD = {BAD.split()!r}\n@nox.session\ndef a(s):\n  s.install(*D)\n", 1),
        ("noxfile.py", "import nox\n@nox.session\ndef a(s):\n  s.run('make', '-f', 'other.mk')\n", 1),
        ("a.ipynb", json.dumps({"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": "%run install.py", "metadata": {}}]}), 3),
        ("ci.yml", f"{STEPS}    - uses: a/retry@v1\n      with: {{command: 'pip install {BAD}'}}\n", 3), ("ci.yml", f"{STEPS}    - uses: ./local\n", 0),
        ("Dockerfile", f"{IMAGE}SHELL [\"python\", \"-c\"]\nRUN import os; os.system('pip install {BAD}')\n", 3),
        ("Dockerfile", f"{IMAGE}SHELL [\"/bin/bash\", \"-lc\"]\nRUN pip install {BAD}\n", 1),
        ("Makefile", "D=$(shell cat r.txt)\ninstall:\n\tpip install $(D)\n", 3), ("Makefile", "# pip install torch\ninstall:\n\techo pip install torch\n", 0),
        ("Dockerfile", f"{IMAGE}RUN <<E\n#!/usr/bin/env python3\nimport os\nos.system('pip install {BAD}')\nE\n", 3),
        ("Dockerfile", f"{IMAGE}COPY . .\nRUN pip install -r pipe.txt\n", 3), ("Dockerfile", f"{IMAGE}COPY . .\nRUN pip install -r dangling.txt\n", 3),
        ("Dockerfile", f"{IMAGE}COPY . .\nRUN pip install --group train\n", 3),
        ("a.ipynb", json.dumps({"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": "d=open('r.txt').read()\n!pip install {d}", "metadata": {}}]}), 3),
        ("a.ipynb", json.dumps({"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": "for d in f():\n    !pip install $d", "metadata": {}}]}), 3),
    ],
)  # fmt: skip
def test_other_places_of_install_commands(name: str, text: str, wanted: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "dangling.txt").symlink_to("nowhere")
    assert checked(tmp_path, name, text) == wanted


def test_a_script_that_starts_itself_is_read_once(tmp_path: Path) -> None:
    assert checked(tmp_path, "run.sh", "source run.sh\n" * 2000 + "pip install torch==2.6.0\n") == 0


@pytest.mark.parametrize(
    "name", ["requirements.txt", "Makefile", "Dockerfile", "ci.yml", "run.sh", "tox.ini", "environment.yml", "setup.py"]
)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-be", "latin-1"])
def test_other_encodings_are_not_passed_over(name: str, encoding: str, tmp_path: Path) -> None:
    text = f"# caf\xe9\n{LINES if name == 'requirements.txt' else IMAGE if name == 'Dockerfile' else 'install:'}\n"
    (tmp_path / name).write_bytes(text.encode(encoding))
    wanted = (1, 2) if name == "requirements.txt" else (2,)  # pip decodes UTF-16 with a byte order mark
    assert main(["check", name]) in wanted


@pytest.mark.parametrize(("name", "text"), [("ci.yml", f"{STEPS}    - uses: ./local\n"), ("Makefile", "include other.mk\n")])
def test_other_files_of_the_project_are_undecided_with_strict(name: str, text: str, tmp_path: Path) -> None:
    assert checked(tmp_path, name, text, "--strict") == 3


FILLED = 3000
BEYOND = {
    "run.sh": f"for p in {' '.join(f'a{n}==1.0' for n in range(FILLED))} {{0}} {{1}}; do pip install $p; done\n",
    "Dockerfile": "FROM python:3.11\nRUN echo '" + "#" * 200_000 + "\\n{0}\\n{1}' > /r.txt && pip install -r /r.txt\n",
    "tox.ini": f"[tox]\nenvlist={','.join(f'e{n}' for n in range(300))},bad\n[testenv:bad]\ndeps=\n  {{0}}\n  {{1}}\n",
    "requirements.txt": "-c c.txt\ntransformers\n{1}\n",
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_stands_behind_many_others_is_not_passed_over(name: str, tmp_path: Path) -> None:
    """Nothing is cut off in silence: limits are errors, or what lies behind them is named."""
    pins = ("transformers==4.51.3", "huggingface-hub==0.20.0")
    (tmp_path / name).write_text(BEYOND[name].format(*pins))
    (tmp_path / "c.txt").write_text("".join(f"transformers>=4.{n % 50}\n" for n in range(300)) + f"{pins[0]}\n")
    assert main(["check", str(tmp_path / name)]) in (1, 2, 3)
