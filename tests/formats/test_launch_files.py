"""Configurations of launchers are no lists of what is installed, and the message says where they belong."""

from __future__ import annotations

import json

import pytest

from compat.errors import InputError
from compat.formats.registry import format_of

ACCELERATE = {"compute_environment": "LOCAL_MACHINE", "distributed_type": "FSDP", "num_processes": 8}
DEEPSPEED = {"zero_optimization": {"stage": 3}, "train_batch_size": "auto"}


def refused(path: str, text: str) -> str:
    with pytest.raises(InputError) as caught:
        format_of(path, text.encode())
    assert str(caught.value).startswith(f"{path}: ")
    return caught.value.message


def yaml(document: dict[str, object]) -> str:
    return "".join(f"{key}: {value}\n" for key, value in document.items())


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("acc.yaml", yaml(ACCELERATE)),
        ("c/acc.yml", "distributed_type: MULTI_GPU\nnum_processes: 2\n"),
        ("default_config.json", json.dumps(ACCELERATE)),
    ],
)
def test_an_accelerate_configuration(path: str, text: str) -> None:
    message = refused(path, text)
    assert message.startswith("is an accelerate configuration")
    assert message.endswith(f"compat check uv.lock -- accelerate launch --config_file {path} train.py")


@pytest.mark.parametrize(
    "document",
    [DEEPSPEED, {"train_micro_batch_size_per_gpu": 1}, {"train_batch_size": 8, "fp16": {"enabled": True}}],
)
def test_a_deepspeed_configuration(document: dict[str, object]) -> None:
    message = refused("ds.json", json.dumps(document))
    assert message.startswith("is a DeepSpeed configuration")
    assert message.endswith("compat check uv.lock -- deepspeed train.py --deepspeed ds.json")


@pytest.mark.parametrize(
    "text",
    [
        '{"python": "3.11"}',
        '{"workload": {"zero_optimization": 1}}',
        '{"train_batch_size": 8, "global_step": 100}',
        '{"zero_optimization": ',
        '["zero_optimization"]',
    ],
)
def test_other_json_is_left_to_its_reader(text: str) -> None:
    assert format_of("x.json", text.encode()).kind == "described"


def test_other_yaml_is_what_it_was() -> None:
    assert format_of("e.yml", b"name: x\ndependencies: [python]\n").kind == "environment.yml"
    assert "unrecognized file type" in refused("x.yaml", "a: 1\n")


CHART = """apiVersion: v2
name: vllm
version: 0.1.0
dependencies:
  - name: postgresql
    version: 12.1.3
    repository: https://charts.example
"""


def test_the_chart_of_helm() -> None:
    message = refused("charts/vllm/Chart.yaml", CHART)
    assert message.startswith("is the Chart.yaml of a Helm chart")
    assert "helm template" in message
    assert format_of("e.yml", b"name: x\nversion: 1\ndependencies: [python]\n").kind == "environment.yml"


@pytest.mark.parametrize("text", ['{"python": "3.11"}', ' {\n "schema": "compat/environment/1"}', '{"distributions": []}'])
def test_an_object_in_a_file_without_an_ending_is_a_described_environment_by_its_keys(text: str) -> None:
    assert format_of("environment", text.encode()).kind == "described"


@pytest.mark.parametrize("text", ['{"a": 1}', "{}", "{% set x = 1 %}\ntorch\n", "{{ torch }}\n"])
def test_other_text_that_begins_with_a_brace_is_no_described_environment(text: str) -> None:
    assert refused("environment", text).startswith("unrecognized file type")
    assert format_of("requirements.j2", b"{% set x = 1 %}\ntorch\n").kind == "requirements"
