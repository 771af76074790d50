"""Errors of a library that does not know a model: the releases that do, by published source."""

from __future__ import annotations

import pytest

from compat.diagnosis.diagnose import diagnose
from compat.model import Distribution, Environment
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.compiled import in_memory
from tests.diagnosis.test_symptoms import said, trace

NOT_RECOGNIZED = (
    "ValueError: The checkpoint you are trying to load has model type `{}` but Transformers does not recognize this"
)


def with_release(name: str, version: str) -> Environment:
    return Environment(distributions=(Distribution(name, version),))


@pytest.mark.parametrize(
    ("error", "package", "spec"),
    [
        (NOT_RECOGNIZED.format("gemma3"), "transformers", ">=4.50.0"),
        (NOT_RECOGNIZED.format("gpt_oss"), "transformers", ">=4.55.0"),
        ("KeyError: 'qwen3'", "transformers", ">=4.51.0"),
        ("ValueError: Tokenizer class Qwen2Tokenizer does not exist or is not currently imported.", "transformers", ">=4.37.0"),
        ("ValueError: Model architectures ['Qwen3ForCausalLM'] are not supported for now. Supported", "vllm", ">=0.8.4"),
        ("ValueError: Model architectures ['LlamaModel'] are not supported for now. Supported", "vllm", ">=0.6.4"),
        (NOT_RECOGNIZED.format("qwen3_vl_text"), "transformers", ">=4.57.0"),  # a type in the module of another
        ("ValueError: Gemma3ForConditionalGeneration has no vLLM implementation and the Transformers", "vllm", ">=0.8.0"),
    ],
)
def test_the_releases_with_the_model_are_the_fix(error: str, package: str, spec: str) -> None:
    (finding,) = said(error)
    assert (finding.rule, finding.verdict, list(finding.packages)) == ("symptom-unknown-model", "possible", [package])
    assert [(fix.package, fix.spec) for fix in finding.fixes] == [(package, spec)]


def test_a_message_without_its_class_is_enough() -> None:
    (finding,) = said("Loading fails\n\n" + NOT_RECOGNIZED.format("gemma3").removeprefix("ValueError: "))
    assert (finding.fixes[0].package, finding.fixes[0].spec) == ("transformers", ">=4.50.0")


def test_a_release_without_the_model_is_certain_and_one_with_it_is_not_at_fault() -> None:
    error = NOT_RECOGNIZED.format("mistral3")
    (finding,) = said(error, with_release("transformers", "4.49.0"))
    assert (finding.verdict, finding.fixes[0].kind) == ("hit", "upgrade")
    assert said(error, with_release("transformers", "4.52.4")) == []


def test_a_server_of_which_only_the_text_tells() -> None:
    (finding,) = said("sglang 0.4.4\nValueError: Model architectures ['Qwen3ForCausalLM'] are not supported for now.")
    assert list(finding.packages) == ["sglang"]


def test_the_server_that_is_installed_is_asked() -> None:
    error = (
        "ValueError: Model architectures ['GptOssForCausalLM'] are not supported for now. Supported architectures: dict_keys(["
    )
    (finding,) = said(error, with_release("sglang", "0.4.9"))
    assert [(fix.package, fix.spec) for fix in finding.fixes] == [("sglang", ">=0.5.1")]


def test_a_model_that_was_removed_names_the_last_release_with_it() -> None:
    error = "ValueError: Model architectures ['MotifForCausalLM'] are not supported for now."
    (finding,) = said(error, with_release("vllm", "0.12.0"))
    assert (finding.verdict, finding.fixes[0].spec) == ("hit", ">=0.10.2,<=0.11.0")


def test_a_model_of_no_release_may_bring_its_own_code() -> None:
    (finding,) = said(NOT_RECOGNIZED.format("foobar9"))
    assert finding.title.startswith("No release of transformers up to ")
    assert [fix.kind for fix in finding.fixes] == ["config", "upgrade", "source-install"]


def test_a_class_that_does_not_load_the_model_names_the_one_that_does() -> None:
    (finding,) = said(
        "ValueError: Unrecognized configuration class <class 'transformers.models.qwen2_vl.configuration_qwen2_vl.Qwen2VLConfig'>"
        " for this kind of AutoModel: AutoModelForCausalLM."
    )
    assert "Qwen2VLForConditionalGeneration" in finding.fixes[0].text


@pytest.mark.parametrize(
    "error",
    [
        "KeyError: 'labels'",  # no model type
        "KeyError: 'auto'",  # a module of every release
        "ValueError: Model architectures ['LlamaForCausalLM'] are not supported for now.",  # of every release
        "ValueError: Model architectures ['Qwen3ForCausalLM'] failed to be inspected.",  # by an import error, in most cases
    ],
)
def test_other_errors_are_left_to_others(error: str) -> None:
    assert [each.rule for each in said(error) if each.rule == "symptom-unknown-model"] == []


def test_the_key_of_a_users_dictionary_is_no_model_type() -> None:
    error = "KeyError: 'qwen3'"
    mine = f'Traceback (most recent call last):\n  File "/home/me/train.py", line 3, in f\n    d["qwen3"]\n{error}\n'
    assert said(mine) == []
    assert said(trace(error, "transformers/models/auto/configuration_auto.py"))[0].rule == "symptom-unknown-model"


def test_a_package_that_is_missing_where_the_model_is_inspected_is_named_first() -> None:
    text = (
        'ERROR 10-25 00:26:24 registry.py:272]   File "/home/me/vllm/vllm/config.py", line 8, in <module>\n'
        "ERROR 10-25 00:26:24 registry.py:272]     from transformers import PretrainedConfig\n"
        "ERROR 10-25 00:26:24 registry.py:272] ModuleNotFoundError: No module named 'transformers'\n"
        "ValueError: Model architectures ['LlamaForCausalLM'] are not supported for now. Supported architectures: ['LlamaForCausalLM']\n"
    )
    errors = parse_log(text)
    found = diagnose(text, errors, decisive(errors), Environment(), in_memory(()))
    assert [each.rule for each in found][:1] == ["symptom-not-installed"]
