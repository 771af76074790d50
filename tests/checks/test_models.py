"""Models that the installed releases do not support."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.checks import derived_findings
from compat.checks.models import judge, judge_named
from compat.model import Distribution, Environment, Workload
from compat.workload.model_files import read_model
from tests.workload.test_model_files import MODELS


def found(
    tmp_path: Path, installed: dict[str, str], *, task: str | None = "serve", **values: object
) -> list[tuple[str, str, str | None]]:
    config = {"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], **MODELS["llama"][0], **values}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    environment = Environment(
        distributions=tuple(Distribution(name, version) for name, version in installed.items()), workload=Workload(task=task)
    )
    return [(each.severity, each.title, each.fixes[0].spec) for each in judge(read_model(str(tmp_path)), environment)]


def test_releases_without_the_model(tmp_path: Path) -> None:
    assert found(tmp_path, {"transformers": "4.53.3", "vllm": "0.10.0"}) == [
        ("error", "transformers 4.53.3 does not have the model type gpt_oss", ">=4.55.0"),
        ("warning", "vllm 0.10.0 does not have GptOssForCausalLM", ">=0.10.1"),
    ]
    assert found(tmp_path, {"sglang": "0.4.9"}) == [("warning", "sglang 0.4.9 does not have GptOssForCausalLM", ">=0.5.1")]


@pytest.mark.parametrize(
    ("installed", "task", "values"),
    [
        ({"transformers": "4.57.1", "vllm": "0.11.0"}, "serve", {}),
        ({"transformers": "4.53.3"}, "serve", {"auto_map": {"AutoConfig": "configuration_x.XConfig"}}),  # brings its own code
        ({"vllm": "0.10.0"}, "sft", {}),  # the engine is not what runs
        ({"transformers": "99.0", "vllm": "99.0"}, "serve", {}),  # newer than what was read
        ({"transformers": "4.53.3"}, "serve", {"model_type": "my_own_model"}),  # nothing is known of it
    ],
)
def test_nothing_is_said(tmp_path: Path, installed: dict[str, str], task: str, values: dict[str, object]) -> None:
    assert found(tmp_path, installed, task=task, **values) == []


def named(model: str, installed: dict[str, str], **workload: object) -> list[tuple[str, str, str | None]]:
    environment = Environment(
        distributions=tuple(Distribution(name, version) for name, version in installed.items()),
        workload=Workload(model=model, **workload),  # type: ignore[arg-type]
    )
    found = list(judge_named(environment))
    assert [each for each in derived_findings(environment) if each.rule == "model-unsupported"] == found
    return [(each.severity, each.title, each.fixes[0].spec) for each in found]


@pytest.mark.parametrize("model", ["qwen2_5_vl", "qwen2.5-vl", "Qwen2_5_VL"])
def test_a_model_is_known_by_its_type(model: str) -> None:
    assert named(model, {"transformers": "4.48.0"}) == [("error", f"transformers 4.48.0 does not support {model}", ">=4.49.0")]
    assert named(model, {"transformers": "4.49.0"}) == []
    assert named(model, {"vllm": "0.7.1"}, task="serve") == [("warning", f"vllm 0.7.1 does not support {model}", ">=0.7.2")]


def test_a_folder_is_of_the_type_in_its_configuration() -> None:
    installed = {"transformers": "4.48.0"}
    assert named("./Qwen2-VL-7B", installed, model_type="qwen2_5_vl")[0][1].endswith("does not support ./Qwen2-VL-7B")
    assert named("./Qwen2.5-VL-7B", installed, model_type="qwen2_vl") == []
    assert named("./Qwen2.5-VL-7B", installed) == []


def test_a_published_model_is_known_by_its_name() -> None:
    gemma = "google/gemma-3-4b-it"
    assert named(gemma, {"transformers": "4.49.0"}, task="sft") == [
        ("error", f"transformers 4.49.0 does not support {gemma}", ">=4.50.0")
    ]
    assert named(gemma, {"transformers": "4.50.0"}, task="sft") == []
    assert named("Qwen/Qwen3-8B", {"vllm": "0.8.2", "transformers": "4.50.0"}, task="serve") == [
        ("error", "transformers 4.50.0 does not support Qwen/Qwen3-8B", ">=4.51.0"),
        ("warning", "vllm 0.8.2 does not support Qwen/Qwen3-8B", ">=0.8.4"),
    ]


def test_an_engine_that_implements_a_model_may_have_its_configuration() -> None:
    model = "Qwen/Qwen3-Next-80B-A3B-Instruct"
    old = {"vllm": "0.10.2", "transformers": "4.56.1"}
    assert named(model, old, task="serve") == []
    assert [each[0] for each in named(model, old, task="sft")] == ["error"], "trained by transformers"


def test_a_trainer_that_generates_with_vllm_needs_the_model_in_both() -> None:
    installed = {"vllm": "0.10.0", "transformers": "4.55.0"}
    assert named("openai/gpt-oss-20b", installed, task="grpo", features=("vllm",)) == [
        ("warning", "vllm 0.10.0 does not support openai/gpt-oss-20b", ">=0.10.1")
    ]
    assert named("openai/gpt-oss-20b", installed, task="grpo") == []


def test_models_with_their_own_code_do_not_need_their_type_in_transformers() -> None:
    assert named("microsoft/Phi-3-mini-4k-instruct", {"transformers": "4.39.0"}, task="sft") == []
    assert named("somebody/gemma-3-4b-it", {"transformers": "4.49.0"}, task="sft") == [], "another model of that name"
