"""Python's messages in other words, as titles of issues have them."""

from __future__ import annotations

import pytest

from compat.reports.log.paraphrases import paraphrased
from compat.reports.log.traceback import parse_log


@pytest.mark.parametrize(
    ("sentence", "exception", "message"),
    [
        ("train.py SFTTrainer: got unexpected keyword packing_x", "TypeError", "SFTTrainer.__init__() got an unexpected keyword argument 'packing_x'"),
        ("it got an unexpected kwarg `tokenizer`", "TypeError", "got an unexpected keyword argument 'tokenizer'"),
        ("HybridCache was removed from transformers 5", "ImportError", "cannot import name 'HybridCache' from 'transformers'"),
        ("transformers 5.0.0 removed the class HybridCache", "ImportError", "cannot import name 'HybridCache' from 'transformers'"),
        ("Unable to import is_npu_available from accelerate.utils", "ImportError", "cannot import name 'is_npu_available' from 'accelerate.utils'"),
        ("AsyncLLM has no method get_decoding_config", "AttributeError", "'AsyncLLM' object has no attribute 'get_decoding_config'"),
        ("no attribute `get_max_length` on DynamicCache", "AttributeError", "'DynamicCache' object has no attribute 'get_max_length'"),
        ("torch.utils has no function some_name", "AttributeError", "module 'torch.utils' has no attribute 'some_name'"),
        ("does not start: missing dependency on setuptools", "ModuleNotFoundError", "No module named 'setuptools'"),
    ],
)  # fmt: skip
def test_each_form(sentence: str, exception: str, message: str) -> None:
    assert list(paraphrased(sentence)) == [(exception, message)]


def test_a_dotted_name_may_be_a_module_or_a_name_of_one() -> None:
    assert list(paraphrased("vllm.model_executor.input_metadata is gone in 0.4")) == [
        ("ModuleNotFoundError", "No module named 'vllm.model_executor.input_metadata'"),
        ("ImportError", "cannot import name 'input_metadata' from 'vllm.model_executor'"),
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "The option was removed from the latest release",
        "support for old GPUs was dropped in version 2",
        "Why is it so slow? I removed from the config what I could",
        "unexpected keyword arguments are ignored",
        "the model has no attribute that I know of",
        "some files are missing",
        "missing package",
    ],
)
def test_plain_sentences_tell_of_none(sentence: str) -> None:
    assert list(paraphrased(sentence)) == []


def test_a_text_with_an_exception_is_not_searched() -> None:
    (error,) = parse_log("HybridCache was removed from transformers\nValueError: something else\n")
    assert (error.exception, error.message) == ("ValueError", "something else")
