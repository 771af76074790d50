"""What is known to fail in every training job, in an environment that is made for training and says nothing about the job."""

from __future__ import annotations

from typing import Any

import pytest

from compat.checks import check_environment, installation
from compat.model import Distribution, Environment, Finding, Workload
from compat.rules.compiled import open_matrix
from compat.rules.facts import Facts


def environment(*distributions: str, **keys: Any) -> Environment:
    copies = tuple(Distribution(name, version) for name, _, version in (each.partition("==") for each in distributions))
    return Environment(distributions=copies, distributions_complete=True, os="linux", python="3.11", **keys)


def found(*distributions: str, **keys: Any) -> dict[str, Finding]:
    _, findings, _ = check_environment(environment(*distributions, **keys), open_matrix())
    return {finding.rule: finding for finding in findings}


OLD = ("torch==2.13.0", "transformers==5.0.0", "accelerate==0.28.0")
KEPT = "accelerate-keep-torch-compile"


def test_a_rule_on_every_training_job_is_an_error_where_a_package_does_nothing_else() -> None:
    finding = found(*OLD, "trl==0.8.6")[KEPT]
    assert (finding.verdict, finding.severity) == ("hit", "error")
    assert finding.here.endswith("task taken as train")
    assert finding.here.count("train") == 1


def test_without_such_a_package_or_with_another_job_it_is_none() -> None:
    assert found(*OLD)[KEPT].verdict == "possible"
    assert KEPT not in found(*OLD, "trl==0.8.6", workload=Workload(task="inference"))


def test_a_rule_on_some_trainers_stays_a_question() -> None:
    assert found(*OLD, "trl==0.8.6")["trl-get-batch-samples-hook"].verdict == "possible"


@pytest.mark.parametrize(
    ("others", "workload", "severity"),
    [
        ((), None, "warning"),
        (("trl==0.12.2",), None, "error"),
        ((), Workload(task="train"), "error"),
        ((), Workload(task="inference"), "warning"),
        ((), Workload(task="serve"), None),
        (("vllm==0.6.4",), None, None),
    ],
)
def test_an_accelerate_that_transformers_ignores(
    others: tuple[str, ...], workload: Workload | None, severity: str | None
) -> None:
    known = environment("transformers==4.46.3", "accelerate==0.21.0", *others, workload=workload)
    findings = list(installation.judge_ignored(Facts(known)))
    assert [each.severity for each in findings] == ([] if severity is None else [severity])
    assert all([fix.spec for fix in each.fixes] == [">=0.26.0"] for each in findings)


def test_a_release_that_it_accepts_is_none() -> None:
    for accelerate in ("0.26.0", "1.9.0"):
        assert not list(
            installation.judge_ignored(Facts(environment("transformers==4.46.3", f"accelerate=={accelerate}", "trl==0.12.2")))
        )


def test_bitsandbytes_matters_to_jobs_that_quantize() -> None:
    copies = ("transformers==5.0.0", "accelerate==1.2.0", "bitsandbytes==0.45.0")
    assert not list(installation.judge_ignored(Facts(environment(*copies, workload=Workload(task="sft")))))
    (finding,) = installation.judge_ignored(Facts(environment(*copies, workload=Workload(task="sft", quantization="4bit"))))
    assert finding.rule == "ignored-transformers-bitsandbytes"
