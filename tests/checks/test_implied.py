"""Releases that a partial description implies, and the questions they raise."""

from __future__ import annotations

from compat.checks import check_environment
from compat.checks.questions import implied_by
from compat.model import Accelerator, Distribution, Environment, Finding, Source, Workload
from compat.records import replace
from compat.rules.compiled import open_matrix
from compat.tables.declared import open_declared


def environment(*, complete: bool = False, os: str = "linux", python: str | None = "3.11", **packages: str) -> Environment:
    copies = tuple(Distribution(name.replace("_", "-"), version) for name, version in packages.items())
    return Environment(os=os, python=python, distributions=copies, distributions_complete=complete)


def versions(here: Environment) -> dict[str, str]:
    return {name: each.version for name, each in implied_by(here, open_declared()).items()}


def questions(here: Environment) -> dict[str, Finding]:
    return {each.rule: each for each in check_environment(here, open_matrix(()))[1] if each.verdict == "possible"}


def test_pins_are_followed_and_open_requirements_are_not() -> None:
    found = versions(environment(vllm="0.10.0"))
    assert (found["torch"], found["triton"]) == ("2.7.1", "3.3.1")
    assert "vllm" not in found
    assert "transformers" not in found


def test_what_is_listed_is_not_implied() -> None:
    assert "triton" not in versions(environment(torch="2.9.1", triton="3.4.0"))


def test_markers_of_another_system_imply_nothing() -> None:
    assert "triton" not in versions(environment(os="windows", torch="2.9.1"))


def test_pins_that_differ_by_interpreter_imply_nothing_where_it_is_unknown() -> None:
    assert "numba" not in versions(environment(python=None, vllm="0.10.0"))
    assert versions(environment(python="3.11", vllm="0.10.0"))["numba"] == "0.61.2"


def test_a_complete_list_implies_nothing() -> None:
    assert versions(environment(torch="2.9.1", complete=True)) == {}


def test_a_pin_makes_a_question_of_a_rule_and_never_a_hit() -> None:
    here = replace(environment(sglang="0.5.8", torch="2.9.1"), workload=Workload(model="Qwen/Qwen2.5-VL-7B-Instruct"))
    asked = questions(here)["sglang-cudnn-conv3d-check"]
    assert asked.packages["nvidia-cudnn-cu12"] is None
    assert asked.unknown == ("distributions.nvidia-cudnn-cu12",)
    assert asked.here.endswith("nvidia-cudnn-cu12 9.10.2.21, which torch 2.9.1 requires")
    assert asked.likelihood == 0.8


def test_vllm_from_an_image_without_a_name_is_that_of_the_project() -> None:
    here = Environment(
        os="linux",
        accelerators=(Accelerator(name="NVIDIA GeForce RTX 5070 Ti"),),
        distributions=(Distribution("vllm", "0.10.0", Source("image")),),
    )
    asked = questions(here)["build-torch-gpu"]
    assert asked.here.endswith("torch 2.7.1, which the image of vllm 0.10.0 contains")
    assert (asked.verdict, asked.likelihood) == ("possible", 0.8)
    named = Distribution("vllm", "0.10.0", Source("image", {"image": "someone/vllm:0.10.0"}))
    assert "build-torch-gpu" not in questions(replace(here, distributions=(named,)))
    newer = Distribution("vllm", "0.10.1", Source("image"))
    assert "build-torch-gpu" not in questions(replace(here, distributions=(newer,)))
