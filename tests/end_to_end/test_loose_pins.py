"""A pin that no statement read from a file accounts for ends with exit code 3, whatever the text around it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.cli import main

PINS = ("transformers==4.38.0", "trl==0.15.2")
BAD = " ".join(PINS)
STEPS = "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n"


def notebook(code: str) -> str:
    cell = {"cell_type": "code", "source": code, "metadata": {}}
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": [cell]})


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def checked(name: str, text: str) -> int:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)
    return main(["check", name])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("run.sh", f"{command} pip install {BAD}\n") for command in ("docker exec c", "ssh host", "kubectl exec p --", "pdsh -w n[1-4]", "sky exec c")),
        ("run.sh", f"$INSTALL {BAD}\n"), ("run.sh", f"$CMD install {BAD}\n"), ("run.sh", f"ssh host <<E\npip install {BAD}\nE\n"),
        ("run.sh", f"gcloud compute ssh vm --command 'pip install {BAD}'\n"), ("run.sh", f"pip install --target lib {BAD}\n"),
        ("run.sh", f"ray job submit --runtime-env-json '{{\"pip\": {json.dumps(PINS)}}}' -- python t.py\n"), ("run.sh", f"pip download {BAD}\n"),
        ("run.sh", f"echo 'pip install {BAD}' | crontab -\n"), ("run.sh", f"docker build - <<E\nFROM x\nRUN pip install {BAD}\nE\n"),
        ("run.sh", f"pipx install {PINS[1]} --preinstall {PINS[0]}\n"), ("run.sh", f"uv add --script t.py {BAD}\n"),
        ("Dockerfile", f"FROM python:3.11\nRUN pip install --target /opt/d {BAD}\n"),
        ("Dockerfile", f"FROM python:3.11\nRUN python -c \"import pip._internal as p; p.main(['install', '{PINS[0]}'])\"\n"),
        ("Dockerfile", f"FROM python:3.11\nHEALTHCHECK --interval=9s CMD pip install {BAD}\n"),
        ("ci.yml", f"{STEPS}    - uses: a/install@v1\n      with:\n        packages: {BAD}\n"),
        ("ci.yml", f"on: push\njobs:\n  a:\n    uses: ./.github/workflows/b.yml\n    with:\n      deps: {BAD}\n"),
        (".gitlab-ci.yml", f"a:\n  script: [pip install torch]\n  after_script: [pip install {BAD}]\n"),
        ("values.yaml", f"image: {{repository: x}}\nextraPipPackages: [{', '.join(PINS)}]\n"),
        ("pod.yaml", f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: x\n    env: [{{name: P, value: {BAD}}}]\n"),
        ("config.yaml", f"apiVersion: v1\nkind: ConfigMap\ndata:\n  r.txt: |\n    {PINS[0]}\n    {PINS[1]}\n"),
        ("compose.yaml", f"services: {{a: {{image: x}}}}\nconfigs:\n  r:\n    content: |\n      {PINS[0]}\n      {PINS[1]}\n"),
        (".devcontainer/devcontainer.json", json.dumps({"image": "x", "features": {"a/python:1": {"packages": BAD}}})),
        (".devcontainer/devcontainer.json", json.dumps({"image": "x", "postAttachCommand": f"pip install {BAD}"})),
        ("x.def", f"Bootstrap: docker\nFrom: python:3.11\n%appinstall x\n  pip install {BAD}\n"),
        ("tox.ini", f"[testenv]\nsetenv = P={BAD}\ncommands = pip install {{env:P}}\n"),
        *(("pyproject.toml", f"[tool.{table}]\nsetup = 'pip install {BAD}'\n") for table in ("poe.tasks", "pdm.scripts", "taskipy.tasks", "hatch.envs.a.scripts")),
        ("pyproject.toml", f"[tool.tox.env_run_base]\ndeps = {list(PINS)}\n"),
        *(("noxfile.py", f"import nox, os, subprocess\n@nox.session\ndef a(s):\n  {call}\n") for call in (
            f"os.system('pip install {BAD}')", f"subprocess.run(['pip', 'install', *{PINS}])", f"cmd = ['pip', 'install', *{PINS}]; subprocess.run(cmd)",
            f"i = s.install; i{PINS}", f"[s.install(p) for p in {PINS}]",
        )),
        ("noxfile.py", f"import nox\nsession = nox.session\nif True:\n  @session\n  def a(s):\n    s.install{PINS}\n"),
        ("app.py", f"import modal\nimage = modal.Image.debian_slim().pip_install{PINS}\n"),
        ("app.py", f"from kfp import dsl\n@dsl.component(packages_to_install=list({PINS}))\ndef f(): pass\n"),
        ("app.py", f"import ray\nray.init(runtime_env={{'uv': {{'packages': {list(PINS)}}}}})\n"),
        ("app.py", f"import os\nos.system('pip install {BAD}')\n"),
        ("a.ipynb", notebook(f"import micropip\nawait micropip.install({list(PINS)})")),
    ],
)  # fmt: skip
def test_pins_in_places_that_are_not_understood(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = checked(name, text)
    out = " ".join(capsys.readouterr().out.split())
    assert code == 1 or (code == 3 and "not read" in out)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", f"# pip install {BAD}\necho 'use {BAD}'\npip list | grep transformers==4.38.0\npip uninstall -y {BAD}\n"),
        ("run.sh", "pip install torch==2.5.1\npip install torch==2.6.0\n"), ("run.sh", "ssh host pip install left-pad==1.2.3\n"),
        ("run.sh", "[ $torch == 2.6.0 ] && x\nif [[ ${V}==2.6.0 ]]; then y; fi\n"), ("run.sh", "pip install torch==2.6\nssh h pip install torch==2.6.0\n"),
        ("Dockerfile", "FROM python:3.11 AS b\nRUN pip install torch==2.6.0\nRUN pip wheel -w /w x\nFROM python:3.11\nCOPY --from=b /w /w\nLABEL x=torch==2.5.1\n"),
        ("ci.yml", f"{STEPS}    - name: Install torch==2.6.0\n      run: pip install torch\n"),
        ("pyproject.toml", "[build-system]\nrequires = ['torch==2.6.0']\n"),
        # an override applies to what something requires; projects override dependencies of their dependencies
        ("pyproject.toml", "[project]\nname='x'\nversion='1'\n[tool.uv]\noverride-dependencies = ['nvidia-cublas==13.4.1.1']\n"),
        ("pyproject.toml", "[project]\nname='x'\nversion='1'\ndependencies = ['torch==2.9.*']\n"), ("app.py", f"'''Needs {BAD}.'''\nraise ImportError('pip install {BAD}')\n"),
        ("app.py", f"import logging\nprint('use {BAD}')\nlogging.warning('use {BAD}')\nassert x, '{BAD}'\n"),
        ("a.ipynb", notebook("v = 'vllm==0.9.2' if a else 'vllm==0.15.1'\n!pip install {v}")),
    ],
)  # fmt: skip
def test_pins_that_are_read_or_only_mentioned(name: str, text: str) -> None:
    assert checked(name, text) == 0


TASKS = f"pip install {BAD}"
FUNCTION = f"def setup(c):\n  c.run('{TASKS}')\n"


@pytest.mark.parametrize(
    ("command", "name", "text"),
    [
        ("tox -e a", "tox.ini", f"[testenv]\ndeps =\n  {PINS[0]}\n  {PINS[1]}\n"), ("python -m tox", "tox.toml", f"[env_run_base]\ndeps = {list(PINS)}\n"),
        ("tox", "pyproject.toml", f"[tool.tox.env_run_base]\ndeps = {list(PINS)}\n"), ("nox -s a", "noxfile.py", f"import nox\n@nox.session\ndef a(s):\n  s.install{PINS}\n"),
        ("just setup", "Justfile", f"setup:\n  {TASKS}\n"), ("task setup", "Taskfile.yaml", f"version: '3'\ntasks: {{setup: {{cmds: ['{TASKS}']}}}}\n"),
        ("inv setup", "tasks.py", f"from invoke import task\n@task\n{FUNCTION}"), ("doit", "dodo.py", f"def task_a():\n  return {{'actions': ['{TASKS}']}}\n"),
        ("poe setup", "pyproject.toml", f"[tool.poe.tasks]\nsetup = '{TASKS}'\n"), ("pdm run setup", "pyproject.toml", f"[tool.pdm.scripts]\nsetup = '{TASKS}'\n"),
        ("hatch run setup", "pyproject.toml", f"[tool.hatch.envs.default]\ndependencies = {list(PINS)}\n"), ("pixi run setup", "pixi.toml", f"[tasks]\nsetup = '{TASKS}'\n"),
        ("npm run setup", "package.json", json.dumps({"scripts": {"setup": TASKS}})), ("dvc repro", "dvc.yaml", f"stages: {{a: {{cmd: '{TASKS}'}}}}\n"),
        ("python -m tools.install", "tools/install.py", f"import subprocess\ncmd = '{TASKS}'\nsubprocess.run(cmd, shell=True)\n"),
        ("python install.py", "install.py", f"def pip(*a): ...\npip('install', *{PINS})\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("started_from", ["run.sh", "Dockerfile", "ci.yml", "Makefile"])
def test_pins_in_files_that_a_command_starts(
    started_from: str, command: str, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)
    around = {
        "run.sh": f"{command}\n", "Dockerfile": f"FROM python:3.11\nCOPY . .\nRUN {command}\n",
        "ci.yml": f"{STEPS}    - run: {command}\n", "Makefile": f"a:\n\t{command}\n",
    }  # fmt: skip
    assert checked(started_from, around[started_from]) == 3
    assert f"{name}:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        f"if x; then\n  pip install {BAD}\nfi\n", f"pip show trl || pip install {BAD}\n", f"[ -d x ] && pip install {BAD}\n",
        f"case $1 in\n a) pip install {BAD};;\n *) pip install torch;;\nesac\n", f"pip install {PINS[0]}\nif x; then pip install {PINS[1]}; fi\n",
        f"if x; then pip install {BAD}; else pip install transformers==4.52.4 trl==0.18.0; fi\n",
        f"if x; then\n  if y; then pip install {BAD}; fi\nfi\n", f"pip install transformers==4.52.4 trl==0.18.0\nif x; then pip install {PINS[0]}; fi\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["run.sh", "Dockerfile", "ci.yml"])
def test_a_branch_is_judged_as_if_it_ran(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "Dockerfile":
        text = f"FROM python:3.11\nRUN <<E\n{text}E\n"
    elif name == "ci.yml":
        text = f"{STEPS}    - run: |\n" + "".join(f"        {line}\n" for line in text.splitlines())
    assert checked(name, text) == 1
    assert name == "Dockerfile" or "the branch on line" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "if x; then pip install transformers==4.52.4; else pip install trl==0.15.2 transformers==4.46.0; fi\n",
        f"if x; then pip install {PINS[0]}; else pip install {PINS[1]}; fi\n",
    ],
)  # fmt: skip
def test_branches_that_exclude_each_other_are_not_mixed(text: str) -> None:
    assert checked("run.sh", text) == 0


def test_too_many_branches_are_undecided() -> None:
    assert checked("run.sh", "".join(f"if x{n}; then pip install torch==2.{n % 7}.0; fi\n" for n in range(150))) == 3


DECLARED = f"[project]\nname = 'x'\nversion = '1'\n[project.optional-dependencies]\na = {list(PINS)}\n[dependency-groups]\nb = {list(PINS)}\n"
PROJECT = f"[project]\nname = 'x'\nversion = '1'\ndependencies = {list(PINS)}\n"


@pytest.mark.parametrize(
    ("name", "text", "other", "content", "wanted"),
    [
        ("run.sh", "./setup\n", "setup", f"#!/bin/bash\npip install {BAD}\n", 1), ("run.sh", "bash -euo pipefail tools/a.sh\n", "tools/a.sh", f"pip install {BAD}\n", 1),
        ("run.sh", 'bash "$(dirname "$0")/a.sh"\n', "a.sh", f"pip install {BAD}\n", 1), ("run.sh", "source $DIR/a.sh\n", "a.sh", f"pip install {BAD}\n", 1),
        ("run.sh", "for s in d/*.sh; do bash $s; done\n", "d/a.sh", f"pip install {BAD}\n", 3), ("run.sh", "run-parts d\n", "d/a.sh", f"pip install {BAD}\n", 3),
        ("run.sh", "source v.env\npip install transformers==$T trl==$R\n", "v.env", "T=4.38.0\nR=0.15.2\n", 1),
        ("run.sh", "pushd sub\npip install -r r.txt\n", "sub/r.txt", "\n".join(PINS), 1), ("run.sh", f"alias m=mamba\nm install {BAD.replace('==', '=')}\n", "x", "", 3),
        ("run.sh", "uv sync\n", "pyproject.toml", PROJECT, 1), ("run.sh", "uv sync --group b\n", "pyproject.toml", DECLARED, 1),
        ("run.sh", "uv sync --script t.py\n", "t.py", f"# /// script\n# dependencies = {list(PINS)}\n# ///\n", 1),
        ("run.sh", f"uv add --script t.py {BAD}\n", "t.py", "print()\n", 1), ("run.sh", f"uvx --with {PINS[0]} trl@0.15.2 sft\n", "x", "", 1),
        ("Makefile", "a:\n\t$(MAKE) -C sub install\n", "sub/Makefile", f"install:\n\tpip install {BAD}\n", 1),
        ("Dockerfile", "FROM python:3.11\nCOPY e.sh /e.sh\nENTRYPOINT [\"/e.sh\"]\n", "e.sh", f"#!/bin/sh\npip install {BAD}\n", 3),
        ("tox.ini", "[testenv]\nextras = a\n", "pyproject.toml", DECLARED, 3), ("tox.ini", "[testenv]\ndependency_groups = b\n", "pyproject.toml", DECLARED, 3),
        ("requirements.txt", "-e .\n", "pyproject.toml", PROJECT, 3), ("requirements.txt", "./sub[a]\n", "sub/pyproject.toml", DECLARED, 3),
        ("ci.yml", f"{STEPS}    - uses: ./x\n", "x/action.yml", f"runs: {{using: composite, steps: [{{run: 'pip install {BAD}'}}]}}\n", 3),
        ("env.yml", "dependencies:\n- -r r.txt\n", "r.txt", "\n".join(PINS), 2),
    ],
)  # fmt: skip
def test_pins_in_other_files(name: str, text: str, other: str, content: str, wanted: int) -> None:
    Path(other).parent.mkdir(exist_ok=True)
    Path(other).write_text(content)
    assert checked(name, text) == wanted
