"""Strings that a release refuses, and the releases that accept them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.diagnosis.test_named_releases import fix_of, with_release
from tests.diagnosis.test_symptoms import said

MAPPING = """Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/{module}.py", line 70, in get
    return {code}
KeyError: {key!r}
"""
VALIDATION = """pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
quantization
  Input should be 'aqlm', 'awq' or 'fp8' [type=literal_error, input_value='mxfp4', input_type=str]
"""


@pytest.mark.parametrize(
    ("error", "package", "installed", "title", "specifier"),
    [
        ("ValueError: Unknown loss type: dr_grpo", "trl", "0.15.0", "loss_type='dr_grpo' is in trl from 0.17.0 on", ">=0.17.0"),
        (
            "ValueError: Unknown initialization init_lora_weights='pissa'",
            "peft",
            "0.9.0",
            "init_lora_weights='pissa' is in peft from 0.11.0 on",
            ">=0.11.0",
        ),
        (
            "ValueError: 'cosine_with_min_lr' is not a valid SchedulerType",
            "transformers",
            "4.38.0",
            "SchedulerType('cosine_with_min_lr') is in transformers from 4.40.0 on",
            ">=4.40.0",
        ),
        (
            "ValueError: Unknown quantization type, got mxfp4 - supported types are: ['awq', 'gptq']",
            "transformers",
            "4.51.0",
            "AUTO_QUANTIZATION_CONFIG_MAPPING['mxfp4'] is in transformers from 4.55.0 on",
            ">=4.55.0",
        ),
        (
            "vllm serve: error: argument --tool-call-parser: invalid choice: 'qwen3_coder' (choose from 'hermes', 'mistral')",
            "vllm",
            "0.9.1",
            "--tool-call-parser qwen3_coder is in vllm from 0.10.0 on",
            ">=0.10.0",
        ),
        (VALIDATION, "vllm", "0.8.5", "quantization='mxfp4' is in vllm from 0.10.1 on", ">=0.10.1"),
        (
            MAPPING.format(
                module="peft/mapping", code="PEFT_TYPE_TO_CONFIG_MAPPING[config_dict['peft_type']](**config_dict)", key="VBLORA"
            ),
            "peft",
            "0.10.0",
            "PEFT_TYPE_TO_CONFIG_MAPPING['VBLORA'] is in peft from 0.13.0 on",
            ">=0.13.0",
        ),
        (
            MAPPING.format(
                module="transformers_modules/a/modeling_a", code="ROPE_INIT_FUNCTIONS[self.rope_type]", key="default"
            ),
            "transformers",
            "5.0.0",
            "ROPE_INIT_FUNCTIONS['default'] is in transformers up to 4.57.6",
            "<=4.57.6",
        ),
    ],
)
def test_the_releases_that_accept_a_string(error: str, package: str, installed: str, title: str, specifier: str) -> None:
    finding = said(error, with_release(package, installed))[0]
    assert (finding.title, finding.verdict, fix_of(finding)) == (title, "hit", specifier)


def test_without_the_release_it_is_possible() -> None:
    (finding,) = said("ValueError: 'cosine_with_min_lr' is not a valid SchedulerType")
    assert (finding.verdict, fix_of(finding)) == ("possible", ">=4.40.0")


def test_a_key_is_looked_up_in_the_container_that_the_line_names() -> None:
    code = "ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]"
    error = MAPPING.format(module="transformers/models/llama/modeling_llama", code=code, key="flash_attention_3")
    finding = said(error, with_release("transformers", "4.51.3"))[0]
    assert finding.title == "ALL_ATTENTION_FUNCTIONS['flash_attention_3'] is in transformers from 4.53.0 on"


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: Unknown loss type: no_such_loss_anywhere",
        "ValueError: Unknown animal: dr_grpo",  # given for something else
        "ValueError: The loss type is dr_grpo",  # not refused
        "ImportError: cannot import name 'TasksManager' from 'tasks' (unknown location)",  # no value is called unknown
        "ValueError: Unknown loss type: x, must be one of ['dr_grpo']",  # accepted
        MAPPING.format(module="mine/train", code="CONFIG[name]", key="default"),
        MAPPING.format(module="mine/train", code="row[name]", key="labels"),
        "I was setting up a training, and when i hit the train button it gave some torch.custom_ops not found error.",  # prose
        "Skipping import of cpp extensions: incompatible torch for torchao version 0.15. Redirects are currently not supported",
    ],
)
def test_other_messages_are_not_explained(error: str) -> None:
    assert [each.title for each in said(error, with_release("trl", "0.15.0")) if "is in" in each.title] == []


def test_a_release_that_accepts_it_is_not_accused() -> None:
    assert said("ValueError: Unknown loss type: dr_grpo", with_release("trl", "0.17.0")) == []


@given(st.text(max_size=80), st.sampled_from(["Unknown {}", "KeyError: '{}'", "argument --{0}: invalid choice: '{0}'"]))
def test_any_message(text: str, form: str) -> None:
    said(f"ValueError: {form.format(text)}")
