"""Overrides of transformers' methods that do not take what a later release passes."""

from __future__ import annotations

import pytest

from compat.diagnosis.overrides import left_over
from compat.diagnosis.python_messages import lack_in
from compat.model import Distribution, Environment
from tests.diagnosis.test_named_releases import fix_of, with_release
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
        ("GradAscent.compute_loss() got an unexpected keyword argument 'num_items_in_batch'", "num_items_in_batch", "4.46.0"),
    ],
)
def test_the_release_that_passes_more(error: str, parameter: str, since: str) -> None:
    (finding,) = said(f"TypeError: {error}")
    assert finding.rule == "symptom-override"
    assert finding.title.startswith(f"transformers passes {parameter} to ")
    assert (finding.fixes[0].package, finding.fixes[0].spec) == ("transformers", f"<{since}")


def test_a_method_that_the_classes_of_another_package_share() -> None:
    (finding,) = said("TypeError: MyExecutor.collective_rpc() got an unexpected keyword argument 'non_block'")
    assert (finding.rule, finding.verdict) == ("symptom-override", "possible")
    assert [(fix.kind, fix.package, fix.spec) for fix in finding.fixes] == [
        ("downgrade", "vllm", "<0.11.0"),
        ("config", None, None),
    ]


def test_a_method_that_anybody_may_have_is_of_no_package() -> None:
    assert said("TypeError: MyExecutor.run() got an unexpected keyword argument 'non_block'") == []


def test_a_class_of_the_same_name_that_transformers_calls() -> None:
    error = "TypeError: Trainer.training_step() takes 3 positional arguments but 4 were given"
    (finding,) = said(trace(error, "transformers/trainer.py"))
    assert finding.rule == "symptom-override"
    assert finding.title.endswith("but another class Trainer does not accept it")
    assert (finding.fixes[0].package, finding.fixes[0].spec) == ("transformers", "<4.46.0")


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
        "Reader.log() takes from 2 to 3 positional arguments but 4 were given",  # nor one that its method shows
        "Reader.prediction_step() got an unexpected keyword argument 'limit'",
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
    assert finding.why.startswith(
        "According to its published source, transformers 4.35.0 added PreTrainedModel._set_gradient_checkpointing"
    )
    assert (finding.verdict, finding.fixes[0].spec) == ("possible", "<4.35.0")


@pytest.mark.parametrize(
    ("argument", "since", "before"),
    [("position_embeddings", "4.43.0", "4.42.4"), ("cache", "5.24.0", "5.23.0")],  # past_key_values until then
)
def test_an_argument_that_the_models_of_transformers_take_since_a_release(argument: str, since: str, before: str) -> None:
    error = f"TypeError: NeuronAttention.forward() got an unexpected keyword argument '{argument}'"
    (finding,) = said(error)
    assert finding.title.startswith(f"Models of transformers take {argument} in forward() since {since}")
    assert (finding.verdict, finding.confidence, finding.fixes[0].spec) == ("possible", "reported", f"<{since}")
    installed = Environment(distributions=(Distribution("transformers", before),))
    assert [each for each in said(error, installed) if each.rule == "symptom-override"] == []


@pytest.mark.parametrize(
    ("error", "title"),
    [
        (
            "'list' object has no attribute 'get_usable_length'",
            "transformers calls Cache.get_usable_length(), but got a list",
        ),
        (
            "'NoneType' object has no attribute 'to_legacy_cache'",
            "transformers calls DynamicCache.to_legacy_cache(), but got None",
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


OWN_CODE = """Traceback (most recent call last):
  File "/home/me/.cache/huggingface/modules/transformers_modules/a/b/modeling_b.py", line 285, in chat
    outputs = self.language_model.generate(**inputs)
AttributeError: 'InternLM2ForCausalLM' object has no attribute 'generate'
"""
LOADING = """Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/transformers/modeling_utils.py", line 4000, in from_pretrained
    model.mark_tied_weights_as_initialized()
  File "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1964, in __getattr__
    raise AttributeError(
AttributeError: 'DeepseekOCRForCausalLM' object has no attribute 'all_tied_weights_keys'
"""


def test_a_member_that_a_model_has_from_its_base() -> None:
    finding = said(OWN_CODE, with_release("transformers", "4.52.1"))[0]
    assert finding.title == "PreTrainedModel.generate is in transformers at least up to 4.51.3"
    assert "InternLM2ForCausalLM is assumed to derive from PreTrainedModel because of its name." in finding.why
    assert not any("PreTrainedModel" in each.title for each in said(OWN_CODE, with_release("transformers", "4.51.3")))


@pytest.mark.parametrize(
    ("error", "title"),
    [
        (
            "Qwen2TokenizerFast has no attribute encode_plus",
            "PreTrainedTokenizerBase.encode_plus is in transformers at least up to 4.57.6",
        ),
        (
            "'XLMRobertaModel' object has no attribute 'get_head_mask'",
            "PreTrainedModel.get_head_mask is in transformers at least up to 4.57.6",
        ),
    ],
)
def test_a_member_that_a_class_of_transformers_has_from_its_base(error: str, title: str) -> None:
    assert said(f"AttributeError: {error}\n", with_release("transformers", "5.1.0"))[0].title == title


@pytest.mark.parametrize(
    ("error", "release"),
    [
        ("'Florence2LanguageConfig' object has no attribute 'forced_bos_token_id'", "4.57.6"),  # set by a loop since 4.37
        ("'DeepseekV2Config' object has no attribute 'pad_token_id'", "4.57.6"),
        ("'ChatGLMConfig' object has no attribute 'max_length'", "4.57.6"),
    ],
)
def test_an_attribute_that_the_base_gave_every_configuration(error: str, release: str) -> None:
    (finding,) = said(f"AttributeError: {error}\n", with_release("transformers", "5.1.0"))
    name = error.split("'")[3]
    assert finding.title == f"PretrainedConfig.{name} is in transformers at least up to {release}"
    assert (finding.verdict, finding.fixes[0].spec) == ("possible", f"<={release}")
    rules = [each.title for each in said(f"AttributeError: {error}\n", with_release("transformers", release))]
    assert not any("PretrainedConfig" in title for title in rules)


@pytest.mark.parametrize(
    "error",
    [
        "'ServerConfig' object has no attribute 'max_length'",  # nothing speaks of transformers
        "'DeepseekV2Config' object has no attribute 'max_new_tokens'",  # of GenerationConfig alone
        "'PhiConfig' object has no attribute 'use_return_dict'",  # the base has it under its new name, too
    ],
)
def test_other_attributes_of_configurations(error: str) -> None:
    assert not any("PretrainedConfig" in each.title for each in said(f"AttributeError: {error}\n"))


def test_what_transformers_takes_from_a_class_that_was_written_before_its_base_had_it() -> None:
    (finding,) = said(LOADING, with_release("transformers", "5.0.0"))
    start = "transformers uses PreTrainedModel.all_tied_weights_keys since 5.0.0"
    assert finding.title == f"{start}, but DeepseekOCRForCausalLM does not have it"
    assert [fix.spec for fix in finding.fixes] == ["<5.0.0", None]
    (elsewhere,) = said(LOADING, with_release("transformers", "4.57.6"))  # its code is in the frames, and does not ask for it
    assert "transformers 4.57.6 does not use it, so another copy was running" in elsewhere.why
    assert [fix.spec for fix in elsewhere.fixes] == ["<5.0.0", None]


def test_a_class_of_another_package_is_not_taken_for_one_of_transformers() -> None:
    error = "AttributeError: 'SmallModel' object has no attribute 'get_head_mask'"
    assert not any("PreTrainedModel" in each.title for each in said(error, with_release("transformers", "5.1.0")))


def test_an_argument_that_only_older_releases_pass() -> None:
    error = "TypeError: Phi3VTrainer._save_checkpoint() got an unexpected keyword argument 'metrics'\n"
    (finding,) = said(error, with_release("transformers", "4.41.2"))
    assert (
        finding.title == "transformers passes metrics to _save_checkpoint() up to 4.46.3, but Phi3VTrainer does not accept it"
    )
    assert [fix.spec for fix in finding.fixes] == [">4.46.3", None]
    assert said(error, with_release("transformers", "4.49.0")) == []


@pytest.mark.parametrize(
    ("call", "installed", "specifier"),
    [
        ("Trainer._save_checkpoint() takes 3 positional arguments but 4 were given", "4.49.0", "<=4.46.3"),
        ("Trainer.training_step() takes 3 positional arguments but 4 were given", "4.45.2", ">=4.46.0"),
    ],
)
def test_positional_arguments_that_other_releases_take(call: str, installed: str, specifier: str) -> None:
    finding = said(trace(f"TypeError: {call}", "transformers/trainer.py"), with_release("transformers", installed))[0]
    assert (finding.verdict, fix_of(finding)) == ("hit", specifier)


UNUSED = (
    "ValueError: The following `model_kwargs` are not used by the model: ['typo', 'logits_to_keep'] (note: typos in the …)\n"
)


def test_an_argument_of_generate_that_newer_models_take() -> None:
    (finding,) = said(UNUSED, with_release("transformers", "4.57.0"))
    assert (
        finding.title
        == "Models of transformers take logits_to_keep in forward() since 4.49.0, but the model does not accept it"
    )
    assert finding.fixes[0].spec == "<4.49.0"
    assert said(UNUSED, with_release("transformers", "4.40.0")) == []
    assert said(UNUSED.replace("logits_to_keep", "nothing_like_it"), with_release("transformers", "4.57.0")) == []


@pytest.mark.parametrize(
    ("owner", "name", "specifier", "guessed"),
    [
        ("LlamaForCausalLM", "load_in_4bit", ">=4.30.0,<=4.57.6", False),
        ("LlamaForCausalLM", "use_flash_attention_2", ">=4.34.0,<=4.52.4", False),
        ("GPT2LMHeadModel", "attn_implementation", ">=4.36.0", False),  # the configuration takes it
        ("BertForSequenceClassification", "dtype", ">=4.56.0", False),  # earlier releases pass a variable of this name on
        ("SomeonesForConditionalGeneration", "dtype", ">=4.56.0", True),
    ],
)
def test_an_argument_that_loading_a_model_leaves_over(owner: str, name: str, specifier: str, guessed: bool) -> None:
    (finding,) = said(f"TypeError: {owner}.__init__() got an unexpected keyword argument '{name}'\n")
    assert (list(finding.packages), finding.fixes[0].spec) == (["transformers"], specifier)
    assert ("because of its name" in finding.why) == guessed


@pytest.mark.parametrize(
    "call",
    [
        "Model.__init__() got an unexpected keyword argument 'dtype'",  # anybody's class
        "LlamaForCausalLM.forward() got an unexpected keyword argument 'dtype'",
        "LlamaForCausalLM.__init__() got an unexpected keyword argument 'nonsense'",
        "LlamaForCausalLM.__init__() got an unexpected keyword argument 'torch_dtype'",  # every release takes it
    ],
)
def test_what_loading_a_model_does_not_leave_over(call: str) -> None:
    lack = lack_in(f"TypeError: {call}")
    assert lack is not None
    assert left_over(lack, ()) is None
