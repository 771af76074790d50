"""Models that the installed releases do not support."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.checks.models import judge
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
