"""Recorded answers: those that are committed hold, and an answer that changed is shown."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from scripts import golden
from scripts.golden_inputs import Input, described, sample

RECORDED_WITH = (3, 11)
"""Messages of the standard library (TOML, JSON, syntax errors) differ between releases of Python."""
PARTS = 8
"""Tests that share the groups, so that the workers of a run share them, too."""


@pytest.mark.skipif(sys.version_info[:2] != RECORDED_WITH, reason="the answers were recorded with another Python")
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_committed_is_what_is_answered(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    before = dict(os.environ), os.getcwd()
    groups = sorted(golden.ours())[part::PARTS]
    code = golden.main(["--quick", *(word for group in groups for word in ("--only", group))])
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert "0 new, 0 gone, 0 changed, 0 reworded" in printed
    assert (dict(os.environ), os.getcwd()) == before


def test_every_recorded_group_has_inputs() -> None:
    recorded = {path.relative_to(golden.ANSWERS).with_suffix("").as_posix() for path in golden.ANSWERS.rglob("*.txt")}
    assert recorded == set(golden.ours())


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One small group with the answers of this tree, in a folder of its own."""
    inputs = [
        Input("version", ("--version",)),
        Input(
            "fine",
            ("check", "--environment", "e.json", "--format", "json"),
            files={"e.json": b'{"python": "3.11"}'},
            digest=True,
        ),
    ]
    monkeypatch.setattr(golden, "ours", lambda: {"small": inputs})
    monkeypatch.setattr(golden, "ANSWERS", tmp_path)
    monkeypatch.setattr(golden, "PAGES", tmp_path)
    assert golden.main(["--quick", "--record"]) == 0
    assert golden.main(["--quick"]) == 0
    return tmp_path / "small.txt"


def test_recording_copies_the_help_into_the_pages(recorded: Path) -> None:
    page = recorded.parent / "mcp.md"
    page.write_text("# compat mcp\n\n```\nusage: an old one\n```\n\nMore.\n")
    assert golden.main(["--quick", "--record"]) == 0
    assert page.read_text().startswith("# compat mcp\n\n```\nusage: compat mcp [OPTIONS]\n")
    assert page.read_text().endswith("\n```\n\nMore.\n")


def test_a_changed_answer_is_shown_and_recorded_where_it_is_wanted(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = recorded.read_text()
    recorded.write_text(now.replace("compat <version>", "compat of old"))
    capsys.readouterr()
    assert golden.main(["--quick"]) == 1
    printed = capsys.readouterr().out
    assert "changed small: version" in printed
    assert "    -| compat of old\n    +| compat <version>\n" in printed
    assert "2 answers, 0 new, 0 gone, 1 changed, 0 reworded" in printed
    assert golden.main(["--quick", "--record"]) == 0
    assert recorded.read_text() == now


def test_new_inputs_and_gone_ones_are_differences(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.write_text(recorded.read_text().replace("=== version", "=== another"))
    (recorded.parent / "left.txt").write_text("=== a\nexit 0\n")
    capsys.readouterr()
    assert golden.main(["--quick"]) == 1
    printed = capsys.readouterr().out
    assert "new small: version" in printed
    assert "gone small: another" in printed
    assert "gone left: the group" in printed


def test_new_words_alone_are_counted(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.write_text(re.sub(r"words \w+", "words 00000000", recorded.read_text()))
    capsys.readouterr()
    assert golden.main(["--quick"]) == 1
    printed = capsys.readouterr().out
    assert "reworded: 1 examples of rules, such as fine" in printed
    assert "0 changed, 1 reworded" in printed


def test_what_is_kept_outside_git_is_recorded_where_there_is_nothing(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = recorded.parent.parent / f"{recorded.parent.name}-store"
    monkeypatch.setattr(golden, "of_shared", lambda: {"more": [Input("version", ("--version",))]})
    assert golden.main(["--store", str(store)]) == 0
    assert "shared/more: nothing was recorded" in capsys.readouterr().out
    path = store / "more.txt"
    path.write_text(path.read_text().replace("exit 0", "exit 1"))
    assert golden.main(["--store", str(store)]) == 1
    assert "changed shared/more: version" in capsys.readouterr().out


def test_a_crash_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: list[str]) -> int:
        raise RuntimeError("it broke")

    monkeypatch.setattr("compat.cli.main", crash)
    assert golden.run(["check"], None) == ("RuntimeError: it broke", "", "")


@pytest.mark.parametrize(
    "pattern",
    [
        r"^chunk expects at least a 1-dimensional tensor",
        r"size \((\d+)\) must (?:match|be) [a-z_]+\.",
        r"no [^'\"]+ '\w{2,}'",
        "a|b",
    ],
)
def test_a_sample_is_found_by_its_pattern(pattern: str) -> None:
    assert re.search(pattern, sample(pattern))


def test_examples_are_described_as_the_matrix_does() -> None:
    table = {
        "packages": {"trl": "1.0"},
        "sources": {"trl": "vcs"},
        "gpus": "A100:2,T4",
        "complete": False,
        "task": "sft",
        "os": "linux",
    }
    assert described(table) == {
        "schema": "compat/environment/1", "os": "linux", "distributions": [{"name": "trl", "version": "1.0", "source": "vcs"}],
        "distributions_complete": False, "accelerators": [{"name": "A100"}, {"name": "A100"}, {"name": "T4"}],
        "workload": {"task": "sft"},
    }  # fmt: skip
