from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat.checks import code as findings
from compat.model import Finding
from tests.growth import assert_linear
from tests.interfaces.code.made_up import TRACKED, releases


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "tracked", lambda: TRACKED)
    monkeypatch.setattr(findings, "_releases", [releases()])
    monkeypatch.setattr(findings, "_kept", {})


def _found(folder: Path, text: str, **installed: str) -> list[Finding]:
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    return list(findings.judge_code((str(path),), installed))


def test_a_keyword_that_the_installed_release_does_not_take(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, "from lib import Special\nSpecial(1, tokenizer=2)", lib="0.3", base="3.0")
    assert (found.rule, found.origin, found.severity) == ("surface-lib-Special-tokenizer", "surface", "error")
    assert found.location is not None
    assert (found.location.file, found.location.line) == (str(tmp_path / "train.py"), 2)
    assert [(fix.kind, fix.spec) for fix in found.fixes] == [("config", None), ("downgrade", "==0.2")]
    assert "processing" in found.fixes[0].text


def test_a_line_under_a_condition_is_a_warning(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, "import sys\nfrom lib import Special\nif sys.argv:\n    Special(1, tokenizer=2)", lib="0.3")
    assert found.severity == "warning"


def test_an_inherited_field_is_looked_for_in_the_other_package(tmp_path: Path) -> None:
    text = "from lib import Config\nConfig(evaluation='no')"
    (found,) = _found(tmp_path, text, lib="0.3", base="2.0")
    assert found.packages == {"lib": "0.3", "base": "2.0"}
    assert "neither lib 0.3 nor base 2.0" in found.title
    assert [(fix.package, fix.spec) for fix in found.fixes] == [("base", "==1.0")]
    assert _found(tmp_path, text, lib="0.3", base="1.0") == []
    assert _found(tmp_path, text, lib="0.3") == []  # which base is installed is unknown


@pytest.mark.parametrize("installed", [{}, {"lib": "0.9"}, {"base": "1.0"}])
def test_of_releases_that_are_not_known_nothing_is_said(tmp_path: Path, installed: dict[str, Any]) -> None:
    assert _found(tmp_path, "from lib import Special, nothing\nSpecial(1, tokenizer=2)", **installed) == []


def test_what_is_missing_is_told_once(tmp_path: Path) -> None:
    found = _found(tmp_path, "from lib import helper\nhelper.more()\nhelper(1, 2, 3)", lib="0.3")
    assert [each.rule for each in found] == ["surface-lib-helper"]


def test_a_fix_keeps_what_else_the_code_uses(tmp_path: Path) -> None:
    """0.2 and 0.1 take the keyword, and only they have the helper; 0.3 has neither."""
    found = _found(tmp_path, "from lib import Config, helper\nConfig(max_length=1)", lib="0.2", base="1.0")
    assert [each.rule for each in found] == ["surface-lib-Config-max_length"]
    assert not any(fix.spec for fix in found[0].fixes)


def test_code_that_cannot_be_read_is_kept_as_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("print 'x'\n", encoding="utf-8")
    (problem,) = findings.code_needs((str(path),)).code.problems
    assert (problem.line, "is not Python" in problem.message) == (1, True)


def test_generated_code_takes_linear_time_and_loses_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the shipped tables, which have many releases
    path = tmp_path / "train.py"

    def judge(count: int) -> int:
        arguments = ", ".join(f"unknown_{count}_{each}=1" for each in range(count))
        path.write_text(f"from transformers import TrainingArguments\nTrainingArguments('out', {arguments})\n")
        found = list(findings.judge_code((str(path),), {"transformers": "4.51.3"}))
        assert all(each.severity == "error" for each in found)
        assert sum(bool(each.evidence) for each in found) == min(count, findings._EXPLAINED)
        return len(found)

    assert judge(250) == 250
    assert_linear(judge, int, 2_000)


@pytest.mark.parametrize(("others", "errors"), [({}, 1), ({"optimum-onnx": "0.0.2"}, 0), ({"transformers": "4.55.4"}, 1)])
def test_a_module_that_another_part_of_a_namespace_package_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: dict[str, str], errors: int
) -> None:
    monkeypatch.undo()  # the shipped tables
    found = _found(tmp_path, "from optimum.onnxruntime import ORTQuantizer\n", optimum="2.0.0", **others)
    assert len(found) == errors


def test_generated_code_with_hundreds_of_wrong_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the shipped tables, with dozens of releases
    path = tmp_path / "train.py"

    installed = {"trl": "0.14.0", "transformers": "4.51.3", "torch": "2.6.0", "accelerate": "1.0.0", "datasets": "3.0.0"}

    def judged(count: int) -> None:
        path.write_text("from trl import SFTConfig\n" + "".join(f"SFTConfig(a{number}=1)\n" for number in range(count)))
        assert len(list(findings.judge_code((str(path),), installed))) == count

    assert_linear(judged, lambda count: count, 160, allowed=2.5)
