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


@pytest.mark.parametrize(
    ("sentence", "exception", "message"),
    [
        ("fully_shard nimmt ignored_params nicht an", "TypeError", "got an unexpected keyword argument 'ignored_params'"),
        ("SFTTrainer n'accepte plus tokenizer", "TypeError", "SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'"),
        ("SFTTrainer no acepta max_seq_length", "TypeError", "SFTTrainer.__init__() got an unexpected keyword argument 'max_seq_length'"),
        ("GRPOTrainer não aceita mais vllm_device", "TypeError", "GRPOTrainer.__init__() got an unexpected keyword argument 'vllm_device'"),
        ("SFTConfig не принимает аргумент max_seq_length", "TypeError", "SFTConfig.__init__() got an unexpected keyword argument 'max_seq_length'"),
        ("SFTConfig 不支持 max_seq_length", "TypeError", "SFTConfig.__init__() got an unexpected keyword argument 'max_seq_length'"),
        ("unwrap_model 没有 keep_torch_compile 这个参数", "TypeError", "got an unexpected keyword argument 'keep_torch_compile'"),
        ("max_seq_length という引数を受け取らない", "TypeError", "got an unexpected keyword argument 'max_seq_length'"),
        ("max_seq_length 라는 인자를 안 받음", "TypeError", "got an unexpected keyword argument 'max_seq_length'"),
        ("transformers hat keine Klasse HybridCache mehr", "AttributeError", "module 'transformers' has no attribute 'HybridCache'"),
        ("transformers n'a plus HybridCache", "AttributeError", "module 'transformers' has no attribute 'HybridCache'"),
        ("transformers ya no tiene HybridCache", "AttributeError", "module 'transformers' has no attribute 'HybridCache'"),
        ("в transformers нет HybridCache", "AttributeError", "module 'transformers' has no attribute 'HybridCache'"),
        ("从 transformers 导入 HybridCache 失败", "AttributeError", "module 'transformers' has no attribute 'HybridCache'"),
        ("transformers に HybridCache がない", "AttributeError", "module 'transformers' has no attribute 'HybridCache'"),
        ("transformers에서 HybridCache 를 못 찾음", "AttributeError", "module 'transformers' has no attribute 'HybridCache'"),
        ("it says GRPOConfig isn't in my trl", "AttributeError", "module 'trl' has no attribute 'GRPOConfig'"),
        ("python can't find triton.ops", "ModuleNotFoundError", "No module named 'triton.ops'"),
        ("找不到 triton.ops 这个模块", "ModuleNotFoundError", "No module named 'triton.ops'"),
    ],
)  # fmt: skip
def test_other_languages_and_short_forms(sentence: str, exception: str, message: str) -> None:
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
        "my_dataset isn't in the cache",
        "can't find config.json",
        "HotPotQA no longer loads in dspy",
        "the model does not take the device_map into account",
        "missing package",
    ],
)
def test_plain_sentences_tell_of_none(sentence: str) -> None:
    assert list(paraphrased(sentence)) == []


def test_a_text_with_an_exception_is_not_searched() -> None:
    (error,) = parse_log("HybridCache was removed from transformers\nValueError: something else\n")
    assert (error.exception, error.message) == ("ValueError", "something else")
