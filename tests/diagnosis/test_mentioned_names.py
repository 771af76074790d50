"""Titles that mention a name of code without any message."""

from __future__ import annotations

import pytest

from compat.diagnosis.diagnose import diagnose
from compat.diagnosis.mentioned_names import extension_with_symbol, mentioned
from compat.model import Distribution, Environment, Finding
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.compiled import open_matrix


def said(text: str, *listed: str) -> tuple[Finding, ...]:
    errors = parse_log(text)
    copies = tuple(Distribution(*each.split("==")) for each in listed)
    return diagnose(text, errors, decisive(errors), Environment(distributions=copies), open_matrix(()))


def test_which_words_are_names() -> None:
    text = "The SFTTrainer of trl raises AttributeError, HybridCache and is_offline_mode and BUFSIZE are not there"
    assert mentioned(text) == ["HybridCache", "is_offline_mode", "BUFSIZE"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("peft 0.14 and EncoderDecoderCache of transformers: broken", "EncoderDecoderCache"),
        ("trl vllm-serve and worker_extension_cls, what is this?", "worker_extension_cls"),
        ("accelerate says 'worker_extension_c", ""),  # no rule of a package that the text names
        ("trl vllm-serve says 'worker_extension_c", "worker_extension_cls"),
    ],
)
def test_a_rule_is_told_by_a_name_of_its_errors(text: str, name: str) -> None:
    found = said(text)
    assert [each.verdict for each in found] == (["possible"] if name else [])
    assert all(name in each.title for each in found)


def test_a_release_outside_the_range_of_the_rule_is_not_named() -> None:
    assert said("peft and EncoderDecoderCache of transformers: broken", "peft==0.10.0", "transformers==4.57.1") == ()


def test_a_name_that_only_tables_know() -> None:
    (finding,) = said("torch_cache_home of transformers, where did it go?")
    assert (finding.rule, list(finding.packages)) == ("symptom-interface", ["transformers"])


def test_an_undefined_symbol_that_nobody_spells_out_belongs_to_the_extension() -> None:
    assert extension_with_symbol("import of flash_attn: undefined symbol in the .so") == "flash-attn"
    assert extension_with_symbol("an undefined symbol in my own module") is None
    (finding,) = said("h2ogpt: flash_attn .so has an undefined symbol since torch moved")
    assert next(iter(finding.packages)) == "flash-attn"


def test_the_end_of_a_message_may_be_cut() -> None:
    whole = "FSDP parameters should be materialized on CPU when enabling CPU offloading"
    for cut in (whole, whole[:50], f"{whole[:45]}…"):
        assert "accelerate-fsdp2-loads-onto-offloaded" in [each.rule for each in said(f"accelerate: {cut}")]
    assert said(f"accelerate: {whole[:25]}") == ()


def test_the_beginning_of_one_of_python_s_messages_tells_nothing() -> None:
    assert "accelerate-keep-torch-compile" not in [each.rule for each in said("unwrap_model() got an unexpected keyword")]


def test_a_message_inside_a_document_is_found() -> None:
    inner = "Requested float16 compute type, but the target device or backend do not support efficient float16 computation."
    assert {each.rule for each in said(f'{{"detail": "{inner}"}}')} == {each.rule for each in said(f"ValueError: {inner}")}


def test_another_exception_is_not_explained_by_a_name_in_the_text() -> None:
    assert said("OSError: disk full while trl saves worker_extension_cls of vllm") == ()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("GPTNeoXSdpaAttention doesn't exist any more in transformers", "GPTNeoXSdpaAttention is in transformers"),
        (
            "my old patch of transformers: Qwen2_5_VLSdpaAttention was removed",
            "Qwen2_5_VLSdpaAttention is in transformers from 4.49.0",
        ),
    ],
)
def test_a_name_that_a_text_says_is_not_there(text: str, title: str) -> None:
    (finding,) = said(text)
    assert (finding.rule, title in finding.title) == ("symptom-interface", True)


@pytest.mark.parametrize(
    "text",
    [
        "How does GPTNeoXSdpaAttention of transformers compute the mask?",  # nothing is denied
        "GPTNeoXSdpaAttention doesn't exist any more",  # nor is it said where
        "DeepSpeed does not start with transformers",  # the name of a package
    ],
)
def test_a_name_that_is_only_mentioned(text: str) -> None:
    assert said(text) == ()
