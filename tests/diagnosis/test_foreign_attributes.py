"""Attributes that an object has from another package than its class."""

from __future__ import annotations

import pytest

from compat.diagnosis.foreign_attributes import without_reading
from compat.model import Distribution, Environment
from tests.diagnosis.test_symptoms import said, trace


def lacks(owner: str, name: str) -> str:
    return f"AttributeError: '{owner}' object has no attribute '{name}'"


def with_release(name: str, version: str) -> Environment:
    return Environment(distributions=(Distribution(name, version),))


def test_what_a_package_sets_on_objects_of_another_one() -> None:
    (finding,) = said(lacks("Parameter", "ds_numel") + "\n")
    assert (finding.rule, finding.verdict, list(finding.packages)) == ("symptom-foreign-attribute", "possible", ["deepspeed"])
    assert finding.title == "deepspeed sets ds_numel on objects of other packages, but this Parameter does not have it"
    assert [fix.kind for fix in finding.fixes] == ["config"]  # every release sets it


def test_the_release_that_sets_it_first() -> None:
    error = trace(lacks("Linear", "ds_grad_is_ready"), "deepspeed/runtime/zero/stage3.py")
    (finding,) = said(error, with_release("deepspeed", "0.12.0"))
    assert (finding.fixes[0].kind, finding.fixes[0].spec) == ("upgrade", ">=0.17.0")


def test_what_a_package_adds_to_a_class_of_another_one() -> None:
    (finding,) = said(lacks("TrainingArguments", "packing") + "\n", with_release("trl", "0.9.3"))
    assert finding.title == "packing is in trl's SFTConfig, but the object is a plain TrainingArguments"
    assert finding.fixes[0].text == "pass SFTConfig instead of TrainingArguments"
    assert finding.fixes[1].spec == "<0.9.2"


def test_the_name_alone() -> None:
    frame = '  File "/v/lib/python3.11/site-packages/unsloth/models/llama.py", line 1, in for_training\n    del model._unwrapped_old_generate\n'
    (finding,) = said(f"Traceback (most recent call last):\n{frame}AttributeError: _unwrapped_old_generate\n")
    assert list(finding.packages) == ["unsloth"]
    assert (finding.fixes[-1].kind, finding.fixes[-1].spec) == ("upgrade", ">=2025.3.9")


@pytest.mark.parametrize("message", ["failed", "KeyError", "no_such_attribute_anywhere"])
def test_a_word_is_no_attribute(message: str) -> None:
    assert said(trace(f"AttributeError: {message}", "unsloth/models/llama.py")) == []


def test_the_releases_of_the_reader_that_no_longer_read_it() -> None:
    """transformers' GPTQConfig has lost it, and peft reads it up to 0.18.1."""
    error = trace(lacks("GPTQConfig", "disable_exllama"), "peft/utils/other.py")
    (finding,) = said(error, with_release("peft", "0.10.0"))
    assert [(fix.kind, fix.package, fix.spec) for fix in finding.fixes] == [
        ("upgrade", "peft", ">=0.19.0"),
        ("pin", "transformers", ">=4.32.0,<=4.50.3"),
    ]
    assert without_reading("disable_exllama", "peft", "0.20.0") is None  # this release does not read it


def test_an_attribute_of_the_class_of_another_package_is_not_foreign() -> None:
    """verl sets model_executor on an engine of vllm, whose class has it in other releases."""
    (finding,) = said(lacks("LLMEngine", "model_executor") + "\n", with_release("verl", "0.8.0"))
    assert finding.title == "verl 0.8.0 reads model_executor, but this LLMEngine does not have it"
    assert said(lacks("LLMEngine", "model_executor") + "\n") == []


def test_the_line_that_failed_is_of_another_package_than_the_class_of_that_name() -> None:
    """sglang has a VisionAttention as well, whose head_dim went."""
    frame = '  File "/v/lib/python3.11/site-packages/transformers/models/qwen2_vl/modeling_qwen2_vl.py", line 1, in forward\n    q / math.sqrt(self.head_dim)\n'
    found = said(f"Traceback (most recent call last):\n{frame}{lacks('VisionAttention', 'head_dim')}\n")
    assert all("sglang" not in finding.packages for finding in found)


def test_what_an_installed_package_reads_of_a_class_that_never_had_it() -> None:
    """The classes of transformers that have this are others: BartFlashAttention2 up to 4.52.4, and so on."""
    both = Environment(distributions=(Distribution("transformers", "4.54.0"), Distribution("verl", "0.4.1")))
    (finding,) = said(lacks("Qwen2_5_VLAttention", "_flash_attn_uses_top_left_mask") + "\n", both)
    assert finding.title == "verl 0.4.1 reads _flash_attn_uses_top_left_mask, but this Qwen2_5_VLAttention does not have it"
    assert [(fix.kind, fix.package, fix.spec) for fix in finding.fixes] == [
        ("upgrade", "verl", ">=0.6.0"),
        ("downgrade", "transformers", "<=4.52.4"),
    ]


@pytest.mark.parametrize(
    ("owner", "name", "version"),
    [
        ("Qwen2_5_VLAttention", "_flash_attn_uses_top_left_mask", "0.6.0"),  # it does not read this
        ("dict", "_flash_attn_uses_top_left_mask", "0.4.1"),
        ("Qwen2_5_VLAttention", "_no_such_name_anywhere", "0.4.1"),
    ],
)
def test_nothing_is_read(owner: str, name: str, version: str) -> None:
    assert said(lacks(owner, name) + "\n", with_release("verl", version)) == []
