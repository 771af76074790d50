"""Overrides of transformers' methods that do not take what a later release passes."""

from __future__ import annotations

import pytest

from compat.model import Distribution, Environment
from tests.diagnosis.test_symptoms import said, trace


@pytest.mark.parametrize(
    ("error", "parameter", "since"),
    [
        ("ChatGLMTokenizer._pad() got an unexpected keyword argument 'padding_side'", "padding_side", "4.45.0"),
        ("MyTrainer.compute_loss() got an unexpected keyword argument 'num_items_in_batch'", "num_items_in_batch", "4.46.0"),
        ("MyTrainer.training_step() takes 3 positional arguments but 4 were given", "num_items_in_batch", "4.46.0"),
        ("MyTrainer._get_train_sampler() takes 1 positional argument but 2 were given", "train_dataset", "4.52.0"),
        ("_unsloth_get_batch_samples() takes 3 positional arguments but 4 were given", "device", "4.50.0"),
        ("MyTrainer.log() takes 2 positional arguments but 3 were given", "start_time", "4.47.0"),
    ],
)
def test_the_release_that_passes_more(error: str, parameter: str, since: str) -> None:
    (finding,) = said(f"TypeError: {error}")
    assert finding.rule == "symptom-override"
    assert finding.title.startswith(f"transformers passes {parameter} to ")
    assert (finding.fixes[0].package, finding.fixes[0].spec) == ("transformers", f"<{since}")


def test_a_subclass_of_a_known_package_is_upgraded() -> None:
    (finding,) = said("TypeError: SFTTrainer.compute_loss() takes from 3 to 4 positional arguments but 5 were given")
    assert list(finding.packages) == ["trl", "transformers"]
    assert [(fix.kind, fix.package) for fix in finding.fixes] == [("downgrade", "transformers"), ("upgrade", "trl")]


@pytest.mark.parametrize(
    "error",
    [
        "Trainer.training_step() takes 3 positional arguments but 4 were given",  # no override
        "MyTrainer.my_own() takes 2 positional arguments but 3 were given",  # no method of the base
        "Reader.read() got an unexpected keyword argument 'limit'",  # no class of transformers
    ],
)
def test_other_calls_are_left_to_others(error: str) -> None:
    assert [each for each in said(f"TypeError: {error}") if each.rule == "symptom-override"] == []


def test_a_release_that_does_not_pass_it_is_not_at_fault() -> None:
    environment = Environment(distributions=(Distribution("transformers", "4.44.2"),))
    error = "TypeError: MyTrainer.compute_loss() got an unexpected keyword argument 'num_items_in_batch'"
    assert [each for each in said(error, environment) if each.rule == "symptom-override"] == []


def test_a_method_that_the_base_did_not_have() -> None:
    error = "TypeError: ChatGLMPreTrainedModel._set_gradient_checkpointing() got an unexpected keyword argument 'enable'"
    (finding,) = said(error)
    assert finding.title.startswith("transformers passes enable to _set_gradient_checkpointing() since 4.35.0")
    assert finding.why.startswith("PreTrainedModel has _set_gradient_checkpointing only since transformers 4.35.0")
    assert (finding.verdict, finding.fixes[0].spec) == ("possible", "<4.35.0")


def test_an_argument_that_the_models_of_transformers_take_since_a_release() -> None:
    error = "TypeError: NeuronAttention.forward() got an unexpected keyword argument 'position_embeddings'"
    (finding,) = said(error)
    assert finding.title.startswith("Models of transformers take position_embeddings in forward() since 4.43.0")
    assert (finding.verdict, finding.confidence, finding.fixes[0].spec) == ("possible", "reported", "<4.43.0")
    before = Environment(distributions=(Distribution("transformers", "4.42.4"),))
    assert [each for each in said(error, before) if each.rule == "symptom-override"] == []


@pytest.mark.parametrize(
    ("error", "title"),
    [
        (
            "'list' object has no attribute 'get_usable_length'",
            "transformers calls get_usable_length() of Cache, and got a list",
        ),
        (
            "'NoneType' object has no attribute 'to_legacy_cache'",
            "transformers calls to_legacy_cache() of DynamicCache, and got None",
        ),
    ],
)
def test_a_plain_value_where_a_newer_release_expects_an_object(error: str, title: str) -> None:
    (finding,) = said(trace(f"AttributeError: {error}", "transformers/models/llama/modeling_llama.py"))
    assert (finding.title, finding.verdict) == (title, "possible")
    assert [(fix.kind, fix.spec) for fix in finding.fixes] == [("downgrade", "<4.36.0"), ("config", None)]
    before = Environment(distributions=(Distribution("transformers", "4.35.2"),))
    assert said(trace(f"AttributeError: {error}", "transformers/models/llama/modeling_llama.py"), before) == []
    assert said(trace(f"AttributeError: {error}", "peft/peft_model.py")) == []


def test_an_argument_that_transformers_itself_requires_is_the_callers_fault() -> None:
    error = "TypeError: Qwen2Attention.forward() missing 1 required positional argument: 'attention_mask'"
    found = said(
        trace(error, "awq/quantize/quantizer.py"), Environment(distributions=(Distribution("transformers", "4.48.0"),))
    )
    assert [each.rule for each in found] == ["symptom-interface"]
    assert "Qwen2Attention.forward() without attention_mask" in found[0].title
