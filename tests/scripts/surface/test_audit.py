"""Which missing names a rule's errors spell out."""

from __future__ import annotations

import pytest

from scripts.surface.audit import causes_in, spelled


@pytest.mark.parametrize(
    ("pattern", "causes"),
    [
        (r"^cannot import name 'HfFolder' from 'huggingface_hub'", {("huggingface_hub", "HfFolder")}),
        (r"cannot import name '(a|b)' from 'x\.(y|z)'", {("x.y", "a"), ("x.y", "b"), ("x.z", "a"), ("x.z", "b")}),
        (r"^module 'torch' has no attribute 'compiler'", {("torch", "compiler")}),
        (r"^No module named 'vllm\.worker'", {("vllm.worker", "")}),
        (r"__init__\(\) got an unexpected keyword argument 'tokenizer'", {("", "tokenizer")}),
        (r"CUDA out of memory", set()),
    ],
)
def test_names_in_a_message(pattern: str, causes: set[tuple[str, str]]) -> None:
    assert {cause for text in spelled(pattern) for cause in causes_in(text)} == causes
