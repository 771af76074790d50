"""The linter of the fact tables: the tables that ship hold together, and each kind of fault is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts.lint_facts import FACTS, main, problems


def test_the_tables_that_ship_hold_together() -> None:
    assert list(problems(FACTS)) == []


@pytest.mark.parametrize(
    ("table", "old", "new", "message"),
    [
        ("releases", ",declared,trl-0.11.4", ",,trl-0.11.4", "expected a source"),
        ("releases", "trl-0.11.4-py3-none-any.whl,", ",", "expected a source"),
        ("releases", "trl,0.11.4,2", "trl,0.11.3,2", "trl, 0.11.3 is there twice"),
        ("releases", "trl,0.11.4,2", "trl,9.9,2", "expected behind 9.9"),
        ("releases", "trl,0.11.4,2", "trl,oops,2", "version 'oops' is no version"),
        ("requirements", "accelerate,\"bitsandbytes; extra == \"\"dev\"\"\",0.22.0", "accelerate,bitsandbytes,0.0.1", "0.0.1"),
        ("gpus_nvidia", "TITAN Xp,,geforce,6.1,12", "GB10,,geforce,6.1,12", "GB10: compute_capability is 12.1 in one row"),
        ("code_runs_on", "50,5.0,,", "50,5.1,,", "5.1: is not among the capabilities"),
        ("cuda_driver", "13.4,615.71.09,,580,", "13.4,615.71.09,,570,", "the floor is"),
        ("triton_gpus", "2.0.0,50 52", "2.0.0,sm_50 52", "sm_50 is no architecture"),
        ("overlaps", "onnxruntime-genai,onnxruntime_genai/__init__.py,0.1.0..", "onnxruntime-genai,onnxruntime_genai/__init__.py,0.1.0", "'0.1.0' is no run of releases"),
        ("overlaps", "jwt,jwt/__init__.py,1.4.0..,,pyjwt", "jwt,jwt/__init__.py,1.4.0..,fastapi,pyjwt", "fastapi is in alike, and does not have it"),
        ("triton_gpus", "90a,12.0,,read", "90a,99.0,,read", "triton 2.0.0: no driver is known for CUDA 99.0"),
        ("torch_builds", "1.12.0,aarch64,,yes,", "1.12.0,aarch64,99.1,yes,", "no driver is known for CUDA 99.1"),
    ],
)  # fmt: skip
def test_a_fault_is_named(tmp_path: Path, table: str, old: str, new: str, message: str) -> None:
    for path in FACTS.glob("*.csv"):
        shutil.copy(path, tmp_path)
    path = tmp_path / f"{table}.csv"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    found = list(problems(tmp_path))
    assert any(line.startswith(f"{table}.csv:") and message in line for line in found), found


def test_missing_and_unknown_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "moons.csv").write_text("name\n", encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert "releases.csv: is missing" in printed
    assert "moons.csv: is no table that is known here" in printed
