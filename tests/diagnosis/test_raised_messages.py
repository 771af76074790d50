"""What a message advises, and which releases are free of it."""

from __future__ import annotations

from typing import Any

import pytest

import compat
from compat.diagnosis.raised_messages import explain_raised_message, span_of
from compat.diagnosis.stated import divisors_in, installs_in, requirements_in, satisfies_specifier, settings_in
from compat.model import Distribution, Environment, Finding
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.facts import Facts

NAMES = ("torch", "transformers", "vllm", "accelerate", "bitsandbytes", "flash-attn", "peft", "triton")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("bitsandbytes version is wrong. Please install bitsandbytes>=0.46.1.", {"bitsandbytes": ">=0.46.1"}),
        ("Install it with: pip install 'vllm>=0.22.0'", {"vllm": ">=0.22.0"}),
        ("Disabling PyTorch because PyTorch >= 2.4 is required but found 2.3.0", {"torch": ">=2.4"}),
        ("This needs at least accelerate 0.26", {"accelerate": ">=0.26"}),
        ("requires transformers version 4.51 or newer", {"transformers": ">=4.51"}),
        ("Please upgrade transformers to 4.40.", {"transformers": ">=4.40"}),
        ("Use PEFT<0.12 with this model", {"peft": "<0.12"}),
        ("Please update transformers to load it", {"transformers": ""}),
        ("try `pip install -U accelerate`", {"accelerate": ""}),
        ("model 7B needs 2 GPUs", {}),
        ("requires numpy>=1.17", {}),
        ("expected shape 3.0 or more", {}),
    ],
)
def test_releases_that_a_message_asks_for(text: str, wanted: dict[str, str]) -> None:
    assert requirements_in(text, NAMES) == wanted


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("It failed. Set VLLM_USE_V1=0 to go on.", ("env-var", "export VLLM_USE_V1=0")),
        ("Please set the CUDA_HOME environment variable.", ("env-var", None)),
        ("You can disable it by setting `use_cache=False`.", ("config", None)),
        ("You can use float16, for example: --dtype=half.", ("config", None)),
        ("This is not supported.", None),
        ("The value of MAX_LEN is wrong.", None),
    ],
)
def test_settings_that_a_message_names(text: str, fix: tuple[str, str | None] | None) -> None:
    assert [(each.kind, each.command) for each in settings_in(text)] == ([fix] if fix else [])


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            "Total number of attention heads (40) must be divisible by tensor parallel size (6).",
            ("launch", "set the tensor parallel size to 5 or 4 or 2, which divide 40"),
        ),
        (
            "The hidden size (12) should be evenly divisible by the number of heads (5)",
            ("config", "set the number of heads to 4 or 3 or 2, which divide 12"),
        ),
        ("heads (40) must be divisible by tensor parallel size (8)", None),
        ("heads (40) must be divisible by the size", None),
        ("heads (7) must be divisible by groups (1)", None),
    ],
)
def test_values_that_divide_a_number(text: str, fix: tuple[str, str] | None) -> None:
    assert [(each.kind, each.text) for each in divisors_in(text)] == ([fix] if fix else [])


def test_a_release_meets_what_is_asked_for() -> None:
    assert satisfies_specifier("2.4.0+cu121", ">=2.4")
    assert not satisfies_specifier("2.3.1", ">=2.4")
    assert not satisfies_specifier("2.3.1", "")


@pytest.mark.parametrize(
    ("having", "words"),
    [
        ("bc", "since b, until c"),
        ("bcd", "since b up to the newest release that was analyzed (d)"),
        ("ab", "from a or earlier until b"),
        ("abcd", "in a and possibly earlier up to the newest release that was analyzed (d)"),
    ],
)
def test_releases_in_words(having: str, words: str) -> None:
    assert span_of(set(having), tuple("abcd")) == words


def diagnosed(text: str, packages: dict[str, str], **keys: Any) -> tuple[Finding, ...]:
    errors = parse_log(text)
    distributions = tuple(Distribution(name, version) for name, version in packages.items())
    return explain_raised_message(errors, decisive(errors), Facts(Environment(distributions=distributions, **keys)))


DYNAMO = "RuntimeError: Dynamo is not supported on Python 3.12+\n"


def test_the_next_release_that_cannot_raise_it_on_this_python_is_a_fix() -> None:
    (found,) = diagnosed(DYNAMO, {"torch": "2.2.0"}, python="3.12.3")
    assert found.verdict == "hit"
    assert "python" in found.facts
    assert "Here: Python 3.12.3" in found.why
    assert [(fix.kind, fix.package, fix.spec) for fix in found.fixes] == [("upgrade", "torch", ">=2.4.0")]


def test_a_message_whose_condition_is_false_here_is_only_possible() -> None:
    (found,) = diagnosed(DYNAMO, {"torch": "2.2.0"}, python="3.10.3")
    assert found.verdict == "possible"


def test_a_release_that_says_the_same_with_other_advice_is_no_fix() -> None:
    """Since 0.17 torchao asks for torch 2.11 where it pointed to a table before: it still skips its extensions."""
    text = "Skipping import of cpp extensions due to incompatible torch version 2.7.1 for torchao version 0.15.0"
    (found,) = diagnosed(f"{text} Please see https://github.com/pytorch/ao/issues/2919 for more info\n", {"torchao": "0.15.0"})
    assert found.rule.startswith("message-torchao-")
    assert found.fixes == ()


def test_options_that_exclude_each_other_are_to_be_separated() -> None:
    text = "ValueError: DeepSpeed Zero-3 is not compatible with `low_cpu_mem_usage=True` or with passing a `device_map`.\n"
    (found,) = diagnosed(text, {"transformers": "4.39.0"})
    assert found.fixes[0].text == "leave out low_cpu_mem_usage=True or device_map"


def test_a_message_without_advice_names_the_next_release_that_does_not_raise_it() -> None:
    text = "RuntimeError: CUDA Setup failed despite GPU being available.\n"
    (found,) = diagnosed(text, {})
    assert [(fix.kind, fix.package) for fix in found.fixes] == [("upgrade", "bitsandbytes")]


def test_a_text_of_python_itself_is_nobodys_message() -> None:
    assert diagnosed("TypeError: fully_shard() got an unexpected keyword argument 'ignored_params'\n", {"torch": "2.6.0"}) == ()


def test_frames_tell_whose_a_short_message_is() -> None:
    short = "ValueError: `args` must be provided.\n"
    frame = '  File "/v/site-packages/trl/trainer/online_dpo_trainer.py", line 3, in __init__\n    raise ValueError(\n'
    assert diagnosed(short, {"trl": "0.12.0"}) == ()
    (found,) = diagnosed(f"Traceback (most recent call last):\n{frame}{short}", {})
    assert (found.verdict, dict(found.packages)) == ("hit", {"trl": None})


def test_who_passes_an_error_on_is_not_the_cause() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/v/site-packages/transformers/utils/import_utils.py", line 3, in _get_module\n'
        "    raise RuntimeError(\nRuntimeError: Failed to import transformers.models.auto.processing_auto because of the following "
        "error (look up to see its traceback):\nstrange\n"
    )
    errors = parse_log(text)
    facts = Facts(Environment(distributions=(Distribution("transformers", "4.49.0"),)))
    assert explain_raised_message(errors, decisive(errors), facts) == ()


def test_who_looks_an_attribute_up_is_not_to_blame_for_it() -> None:
    frame = '  File "/v/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1931, in __getattr__\n    raise AttributeError(\n'
    text = f"Traceback (most recent call last):\n{frame}AttributeError: 'ValueHead' object has no attribute 'warnings_issued'\n"
    assert diagnosed(text, {"torch": "2.6.0"}) == ()


def test_a_message_that_packages_share_comes_from_the_one_that_the_others_require() -> None:
    """ms-swift has a copy of peft's code, and nine packages one of transformers'."""
    for error, package in (
        (
            "ValueError: Target modules {'c_attn'} not found in the base model. Please check the target modules and try again.",
            "peft",
        ),
        ("ValueError: Attention mask should be of size (1, 1, 1, 1024), but is torch.Size([1, 1, 1, 1])", "transformers"),
    ):
        errors = parse_log(error)
        (finding,) = explain_raised_message(errors, decisive(errors), Facts(Environment()))
        assert next(iter(finding.packages)) == package


def test_what_a_message_says_to_install() -> None:
    found = installs_in("Loading a GPTQ quantized model requires optimum (`pip install optimum`) or pip install nothing-known")
    assert [(fix.package, fix.command) for fix in found] == [("optimum", "pip install optimum")]


@pytest.mark.parametrize(
    ("message", "package"),
    [
        ("To support decoding audio data, please install 'torchcodec'.", "torchcodec"),
        ("Please install librosa to use AudioProcessor.", "librosa"),
        ("Loading a compressed-tensors quantized model requires compressed-tensors library", "compressed-tensors"),
        ("This needs soundfile to be installed", "soundfile"),
        ("Pytorch is not installed", "torch"),
        ("The 'ninja' distribution was not found and is required by the application", "ninja"),
        ("please install it", None),
        ("the model is not found", None),
        ("a tokenizer is required", None),
    ],
)
def test_a_message_asks_for_a_package_in_words(message: str, package: str | None) -> None:
    assert [fix.package for fix in installs_in(message)] == ([] if package is None else [package])


def test_messages_of_python_belong_to_no_package() -> None:
    for error in (
        "TypeError: argument of type 'NoneType' is not iterable",
        "TypeError: Object of type float32 is not JSON serializable",
        "TypeError: can't multiply sequence by non-int of type 'float'",
        "RuntimeError: shape '[1, 32, 128]' is invalid for input of size 8192",
    ):
        errors = parse_log(error)
        assert explain_raised_message(errors, decisive(errors), Facts(Environment())) == ()


def test_a_message_that_refuses_a_value_names_the_releases_that_accept_it() -> None:
    """diffusers and auto-round raise the same message, so that the value alone does not tell whose it is."""
    errors = parse_log("ValueError: Unknown quantization type, got mxfp4 - supported types are: ['awq', 'bitsandbytes_4bit']")
    (found,) = explain_raised_message(errors, decisive(errors), Facts(Environment()))
    assert [(fix.package, fix.spec) for fix in found.fixes] == [("transformers", ">=4.55.0")]
    assert "AUTO_QUANTIZATION_CONFIG_MAPPING['mxfp4'] is in transformers from 4.55.0 on" in found.why


_ASSERTED = """Traceback (most recent call last):
  File "/v/site-packages/sglang/srt/model_executor/forward_batch_info.py", line 312, in {function}
    assert isinstance(batch.spec_info, EagleVerifyInput)
AssertionError{message}
"""


def asserted(function: str = "init_new", message: str = "", version: str | None = None) -> tuple[Finding, ...]:
    log = parse_log(_ASSERTED.format(function=function, message=message))
    copies = () if version is None else (Distribution("sglang", version),)
    return explain_raised_message(log, [len(log) - 1], Facts(Environment(distributions=copies)))


def test_an_assertion_without_a_message_is_found_by_its_line() -> None:
    """The line is in SGLang 0.4.9.post4 to 0.5.2."""
    for version in (None, "0.5.1", "0.3.4"):  # the last one does not have it, so another release raised the error
        (found,) = asserted(version=version)
        assert found.packages == {"sglang": version}
        assert [fix.command for fix in found.fixes] == ['pip install "sglang>=0.5.3"', 'pip install "sglang==0.4.9.post3"']


def test_an_assertion_elsewhere_or_with_a_message_is_another_one() -> None:
    assert asserted("elsewhere") == ()
    assert asserted(message=": the batch has no draft") == ()


def test_a_message_that_another_package_raises_in_python_is_not_that_of_the_innermost_frame() -> None:
    message = "ImportError: Found an incompatible version of torchao. Found version 0.15.0, but only versions above 0.16.0 are supported"
    frame = 'Traceback (most recent call last):\n  File "/v/lib/python3.11/site-packages/{}", line 1, in f\n    x()\n'
    assert diagnosed(message, {})[0].packages.keys() >= {"peft"}
    assert diagnosed(frame.format("peft/import_utils.py") + message, {})[0].packages.keys() >= {"peft"}
    assert diagnosed(frame.format("vllm/engine.py") + message, {}) == ()
    assert diagnosed(frame.format("ray/_private/worker.py") + message, {})[0].packages.keys() >= {"peft"}


def test_a_message_that_a_web_page_rendered_has_lost_its_backticks() -> None:
    said = "You passed packing=False to the SFTTrainer/SFTConfig, but you didn't pass a dataset_text_field or formatting_func argument"
    here = Environment(distributions=(Distribution("trl", "0.10.1"),))
    report = compat.diagnose(f"ValueError: {said}.", environment=here)
    assert [(each.origin, list(each.packages)) for each in report.findings][:1] == [("message", ["trl"])]
