"""Packages through a pipe: ``pip list | compat check -``, and lists without an error given to ``compat diagnose``."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from compat.cli import main

LIST = """\
Package      Version
------------ -------
accelerate   0.28.0
torch        2.13.0
transformers 5.0.0
trl          0.8.6
"""
BROKEN = "accelerate-keep-torch-compile"


def answer(
    arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
    code = main(arguments)
    said = capsys.readouterr()
    return code, said.out + said.err


@pytest.mark.parametrize("command", ["check", "diagnose"])
def test_the_output_of_pip_list(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = answer([command, "-"], LIST, monkeypatch, capsys)
    assert (code, BROKEN in said) == (1, True)
    code, said = answer([command, "-"], LIST.replace("0.28.0", "1.12.0").replace("0.8.6", "1.0.0"), monkeypatch, capsys)
    assert (code, BROKEN in said) == (0, False)


@pytest.mark.parametrize(
    "text",
    [
        "# pins\nvllm==0.10.2\ntorch==2.4.0\n",
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["vllm==0.10.2", "torch==2.4.0"]\n',
        "FROM python:3.11\nRUN pip install vllm==0.10.2 torch==2.4.0\n",
        '{"distributions": [{"name": "vllm", "version": "0.10.2"}, {"name": "torch", "version": "2.4.0"}]}',
    ],
    ids=["requirements", "pyproject", "dockerfile", "described"],
)
def test_files_of_known_formats(text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = answer(["check", "-"], text, monkeypatch, capsys)
    assert (code, "build-vllm-torch" in said) == (1, True)


def test_what_is_nothing_of_all_that_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("", "hello world, how are you\n", '{"zero_optimization": {"stage": 3}}'):
        code, said = answer(["check", "-"], text, monkeypatch, capsys)
        assert code == 2, said
        assert said.startswith("compat: standard input: ")
