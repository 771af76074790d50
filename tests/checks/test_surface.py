"""Findings of published source, with the shipped rows."""

from __future__ import annotations

from typing import Any

import pytest

from compat.checks import check_environment
from compat.checks import interfaces as surface
from compat.model import Distribution, Environment, Finding, Source, Workload
from compat.rules.compiled import Matrix
from compat.rules.facts import Facts

pytestmark = pytest.mark.skipif(surface.open_rows_once() is None, reason="the tables are not there: scripts/build_matrix.py")
BROKEN = {"peft": "0.15.0", "accelerate": "0.26.0"}


def _environment(versions: dict[str, str], workload: Workload | None = None, **source: Any) -> Environment:
    copies = tuple(Distribution(name, version, source=source.get(name)) for name, version in versions.items())
    return Environment(distributions=copies, distributions_complete=True, workload=workload)


def _found(environment: Environment) -> list[Finding]:
    return list(surface.judge(Facts(environment)))


def test_an_import_that_fails_at_once_is_an_error_with_both_lines() -> None:
    (found,) = _found(_environment(BROKEN))
    assert (found.rule, found.verdict, found.severity) == ("surface-peft-accelerate", "hit", "error")
    assert "clear_device_cache" in found.title
    assert found.evidence[0] == "peft 0.15.0 peft/utils/loftq_utils.py:25"
    assert [(fix.kind, fix.package, fix.spec) for fix in found.fixes] == [
        ("upgrade", "accelerate", ">=0.32.0"),
        ("downgrade", "peft", "==0.14.0"),
    ]


@pytest.mark.parametrize("versions", [{**BROKEN, "accelerate": "0.32.0"}, {**BROKEN, "peft": "0.14.0"}, {"peft": "0.15.0"}, {}])
def test_it_is_gone_where_it_is_mended(versions: dict[str, str]) -> None:
    assert _found(_environment(versions)) == []


@pytest.mark.parametrize("kind", ["vcs", "directory", "url", "nightly"])
def test_a_copy_that_no_index_has_is_not_known(kind: str) -> None:
    assert _found(_environment(BROKEN, peft=Source(kind))) == []


def test_a_release_in_no_table_is_not_known() -> None:
    assert _found(_environment({**BROKEN, "accelerate": "0.26.0.post99"})) == []


@pytest.mark.parametrize(
    ("application", "release", "start", "name"),
    [
        ("axolotl", "0.9.2", "axolotl.cli.train", "AutoModelForVision2Seq"),
        ("llamafactory", "0.9.3", "llamafactory.train.tuner", "AutoModelForVision2Seq"),
        ("vllm", "0.12.0", "vllm.entrypoints.llm", "ALLOWED_LAYER_TYPES"),
    ],
)
def test_a_module_that_any_use_of_an_application_runs_fails(application: str, release: str, start: str, name: str) -> None:
    found = _found(_environment({application: release, "transformers": "5.0.0"}))
    (finding,) = [each for each in found if each.packages.keys() == {application, "transformers"}]
    assert (finding.verdict, finding.severity) == ("hit", "error")
    assert name in finding.title
    assert f"runs on import {start}" in finding.why


def test_what_fails_later_is_told_where_the_trainer_comes_to_it() -> None:
    versions = {"trl": "0.16.0", "accelerate": "0.26.0"}
    assert _found(_environment(versions)) == []
    found = _found(_environment(versions, Workload(trainer="GRPOTrainer")))
    assert [each.rule for each in found] == ["surface-trl-accelerate-later"]
    assert _found(_environment(versions, Workload(trainer="SFTTrainer"))) == []


OLD_TRL = {"trl": "0.9.6", "transformers": "5.0.0"}


@pytest.mark.parametrize("workload", [None, Workload(launcher="accelerate")])
def test_where_no_main_trainer_works_it_is_an_error_whatever_the_job_is(workload: Workload | None) -> None:
    (found,) = _found(_environment(OLD_TRL, workload))
    assert (found.rule, found.verdict, found.severity) == ("surface-trl-transformers-later", "hit", "error")
    assert "SFTTrainer uses transformers.Trainer.__init__(tokenizer=)" in found.title
    assert ("upgrade", "trl") in [(fix.kind, fix.package) for fix in found.fixes]


@pytest.mark.parametrize(
    ("versions", "workload"),
    [
        ({**OLD_TRL, "transformers": "4.57.3"}, None),
        ({"trl": "0.17.0", "transformers": "5.0.0"}, None),  # only DPO fails
        ({**OLD_TRL, "llamafactory": "0.9.1"}, None),  # has trainers of its own
        (OLD_TRL, Workload(task="ppo")),
        (OLD_TRL, Workload(task="inference")),
    ],
)
def test_if_one_works_or_the_job_is_known_it_is_not(versions: dict[str, str], workload: Workload | None) -> None:
    found = _found(_environment(versions, workload))
    assert not any(each.rule == "surface-trl-transformers-later" for each in found)


def test_a_lock_file_with_main_trainers_that_fail_distinguishes_its_selections() -> None:
    assert surface.suspects(OLD_TRL.items(), None) == frozenset(OLD_TRL)
    assert surface.suspects({**OLD_TRL, "transformers": "4.57.3"}.items(), None) == frozenset()


def test_what_only_serving_runs_is_told_where_the_job_serves() -> None:
    versions = {"vllm": "0.11.1", "openai": "1.99.2"}
    assert _found(_environment(versions)) == []
    (found,) = _found(_environment(versions, Workload(task="serve")))
    assert (found.rule, found.verdict) == ("surface-vllm-openai-later", "hit")
    assert "chat_completion_message_tool_call_param.Function" in found.title


def test_the_rest_is_listed_on_request() -> None:
    versions = {"trl": "0.16.0", "accelerate": "0.26.0"}
    (found,) = surface.unreached(_environment(versions))
    assert (found.verdict, found.rule) == ("possible", "surface-trl-accelerate-later")
    assert list(surface.unreached(_environment(versions, Workload(trainer="GRPOTrainer")))) == []


def test_what_a_curated_rule_tells_is_told_once(matrix: Matrix) -> None:
    _, findings, _ = check_environment(_environment(BROKEN), matrix)
    about = [each for each in findings if each.packages.keys() == BROKEN.keys() and each.severity == "error"]
    assert [each.origin for each in about] == ["rule"]


@pytest.mark.parametrize(
    ("workload", "severity"),
    [(None, "warning"), (Workload(task="train", trainer="Trainer"), "error"), (Workload(trainer="SFTTrainer"), "error")],
)
def test_a_rule_s_task_is_an_error_where_it_is_known(matrix: Matrix, workload: Workload | None, severity: str) -> None:
    versions = {"transformers": "4.36.2", "accelerate": "1.10.0"}
    _, findings, _ = check_environment(_environment(versions, workload), matrix)
    about = [each for each in findings if each.verdict == "hit" and "accelerate" in each.packages and each.severity != "info"]
    assert [(each.rule, each.severity) for each in about] == [("accelerate-dispatch-batches-removed", severity)]


def test_guarded_imports_are_passed_over_below_the_least_release() -> None:
    """transformers 5 takes accelerate below 1.1.0 for not installed, so what it imports under that guard cannot fail."""
    rows = surface.open_rows_once()
    assert rows is not None
    lacking = {"transformers": "5.0.0", "accelerate": "0.28.0"}
    assert [row.what for row in rows.broken(lacking) if row.package == "accelerate"] == []
    found = rows.broken({**lacking, "accelerate": "1.1.0"})
    assert "accelerate.utils.modeling.get_module_size_with_ties" in [row.what for row in found]
