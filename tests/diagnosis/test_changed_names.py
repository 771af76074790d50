"""Names inside packages, which no table of a package has: arguments, members and modules that errors of plugins name."""

from __future__ import annotations

import pytest

from compat.diagnosis.changed_names import releases_with_name
from compat.diagnosis.python_messages import lack_in
from compat.model import Distribution, Environment, Finding
from tests.diagnosis.test_symptoms import said, trace


def with_release(name: str, version: str) -> Environment:
    return Environment(distributions=(Distribution(name, version),))


def spec_of(finding: Finding) -> str | None:
    return next((fix.spec for fix in finding.fixes if fix.package), None)


@pytest.mark.parametrize(
    ("error", "package", "specifier"),
    [
        ("TypeError: OpenAIServingChat.__init__() got an unexpected keyword argument 'enable_reasoning'",
         "vllm", ">=0.7.1,<=0.8.5.post1"),
        ("TypeError: get_rope() got an unexpected keyword argument 'rope_scaling'", "vllm", "<=0.11.2"),
        ("TypeError: OpenAIServingCompletion.__init__() missing 1 required positional argument: 'models'",
         "vllm", "<=0.6.6.post1"),
        # a class that moved; where it was, a function of the name passes everything on; another package has one as well
        ("TypeError: PPOTrainer.__init__() missing 3 required positional arguments: 'reward_model', 'train_dataset', and 'value_model'",
         "trl", "<=0.11.4"),
        ("AttributeError: 'LLMEngine' object has no attribute 'driver_worker'", "vllm", ">=0.2.7,<=0.3.3"),
        ("AttributeError: 'ModelRunner' object has no attribute 'init_attention_backend'", "sglang", ">=0.3.1,<=0.5.15.post1"),
        # a method of a base, which the message does not name
        ("AttributeError: 'LlamaForCausalLM' object has no attribute '_extract_past_from_model_output'",
         "transformers", "<=4.48.3"),
        # a later release inherits it
        ("AttributeError: 'DynamicCache' object has no attribute 'get_max_length'", "transformers", "<=4.48.3"),
        # xformers has a copy of the package
        ("TypeError: flash_attn_varlen_func() got an unexpected keyword argument 'alibi_slopes'", "flash-attn", ">=2.4.0.post1"),
        ("TypeError: _flash_attn_forward() missing 1 required positional argument: 'softcap'", "flash-attn", "<=2.5.9.post1"),
        # the class has moved to another module, and has it there as well
        ("AttributeError: 'UNet2DConditionModel' object has no attribute 'encoder_hid_proj'", "diffusers", ">=0.15.0"),
    ],
)  # fmt: skip
def test_the_releases_that_have_it(error: str, package: str, specifier: str) -> None:
    (finding,) = said(error + "\n")
    assert (finding.verdict, list(finding.packages), spec_of(finding)) == ("possible", [package], specifier)


def test_the_installed_release_decides() -> None:
    error = "TypeError: OpenAIServingChat.__init__() got an unexpected keyword argument 'enable_reasoning'"
    text = trace(error, "kserve/server.py", "vllm/entrypoints/openai/api_server.py")
    (finding,) = said(text, with_release("vllm", "0.9.0"))
    assert finding.verdict == "hit"
    assert [(fix.kind, fix.package) for fix in finding.fixes] == [("upgrade", "kserve"), ("downgrade", "vllm")]
    (finding,) = said(text, with_release("vllm", "0.8.0"))  # this release takes it: another one ran
    assert (finding.verdict, "0.7.1" in finding.why) == ("possible", False)


@pytest.mark.parametrize(
    "error",
    [
        "TypeError: forward() got an unexpected keyword argument 'padding_mask'",  # many functions have this name
        "TypeError: my_function() got an unexpected keyword argument 'enable_reasoning'",
        "AttributeError: 'Mine' object has no attribute 'drafter'",  # too short to tell whose it is
        "AttributeError: 'Mine' object has no attribute 'nobody_has_this_attribute'",
    ],
)
def test_what_could_be_anybodys_is_no_answer(error: str) -> None:
    lack = lack_in(error)
    assert lack is not None
    assert releases_with_name(lack, ()) is None


def test_of_several_packages_the_installed_one_is_meant() -> None:
    error = "TypeError: FusedMoE.__init__() got an unexpected keyword argument 'apply_router_weight_on_input'"
    lack = lack_in(error)
    assert lack is not None
    assert releases_with_name(lack, ()) is None
    assert releases_with_name(lack, (), ("sglang", "vllm")) is None
    (finding,) = said(error, with_release("vllm", "0.8.0"))
    assert (finding.verdict, list(finding.packages)) == ("possible", ["vllm"])


def test_a_name_that_the_package_passes_on_from_one_of_its_modules() -> None:
    """The tables only know that releases from 1.3.0 on have the module swift.llm."""
    error = "ImportError: cannot import name 'get_vllm_engine' from 'swift.llm' (/v/swift/llm/__init__.py)"
    (finding,) = said(error, with_release("ms-swift", "3.1.0"))
    assert (finding.verdict, spec_of(finding)) == ("possible", ">=1.5.0,<=2.6.1")
    assert "It is a guess that swift.llm forwards the name from swift.llm.utils." in finding.why


def test_the_releases_that_have_a_name_and_not_only_its_module() -> None:
    """torchao.dtypes exists since 0.0.3."""
    error = "ImportError: cannot import name 'TensorCoreTiledLayoutType' from 'torchao.dtypes' (/v/torchao/dtypes/__init__.py)"
    (finding,) = said(error, with_release("torchao", "0.8.0"))
    assert (finding.verdict, spec_of(finding)) == ("hit", ">=0.4.0,<=0.6.1")
    (finding,) = said(error, with_release("torchao", "0.6.0+gitbd09e9d2"))
    assert (finding.rule, finding.verdict) == ("symptom-another-copy", "possible")


@pytest.mark.parametrize(
    "text",
    [
        "ImportError: cannot import name 'resolve_hf_chat_template'\n    from 'vllm.entrypoints.chat_utils' (/v/vllm/chat_utils.py)",
        "I got an ImportError. Then:\ncannot import name 'resolve_hf_chat_template' from 'vllm.entrypoints.chat_utils'",
    ],
)
def test_a_wrapped_message_and_one_in_a_sentence(text: str) -> None:
    (finding,) = said(text, with_release("vllm", "0.22.1"))
    assert (finding.verdict, spec_of(finding)) == ("hit", ">=0.8.3,<=0.21.0")


def test_a_buffer_that_a_module_registers_is_a_member() -> None:
    error = "AttributeError: 'LlamaRotaryEmbedding' object has no attribute 'cos_cached'"
    (finding,) = said(trace(error, "auto_gptq/nn_modules/fused_llama_attn.py", "transformers/models/llama/modeling_llama.py"))
    assert set(finding.packages) == {"auto-gptq", "transformers"}
    assert "<=4.40.2" in [fix.spec for fix in finding.fixes]


def test_a_class_of_another_package_that_did_not_change_there() -> None:
    """Every transformers has it, so that a change in unsloth's class of that name tells nothing."""
    assert said("AttributeError: 'LlamaRotaryEmbedding' object has no attribute 'inv_freq'\n") == []
