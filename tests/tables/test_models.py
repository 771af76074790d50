"""Families of published models, by their names."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from compat.tables.models import family, of_type, stem_of
from scripts.pack_facts import MODELS

FACTS = Path(__file__).resolve().parents[2] / "matrix" / "facts"


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Qwen3-8B", "qwen3"),
        ("Qwen3-8B-FP8", "qwen3"),
        ("Qwen3-0.6B-Base", "qwen3"),
        ("Qwen3-4B-Thinking-2507", "qwen3"),
        ("Qwen3-30B-A3B-Instruct-2507", "qwen3+experts"),
        ("Qwen2.5-VL-7B-Instruct-quantized.w8a8", "qwen2.5-vl"),
        ("gemma-3-4b-it-unsloth-bnb-4bit", "gemma-3"),
        ("gemma-3n-E4B-it", "gemma-3n"),
        ("DeepSeek-V3-0324", "deepseek-v3"),
        ("DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1-distill-qwen"),
        ("Mistral-Small-3.1-24B-Instruct-2503", "mistral-small-3.1"),
        ("gpt2", "gpt2"),
    ],
)
def test_what_size_training_and_format_add_to_a_name(name: str, stem: str) -> None:
    assert stem_of(name) == stem


@pytest.mark.parametrize(
    ("model", "types"),
    [
        ("Qwen/Qwen3-8B", ("qwen3",)),
        ("unsloth/Qwen3-8B-bnb-4bit", ("qwen3",)),
        ("qwen/qwen3-coder-30b-a3b-instruct", ("qwen3_moe",)),
        ("zai-org/GLM-4.5-Air", ("glm4_moe",)),
        ("google/gemma-3-4b-it", ("gemma3", "gemma3_text")),
        ("openai/gpt-oss-20b", ("gpt_oss",)),
    ],
)
def test_families(model: str, types: tuple[str, ...]) -> None:
    found = family(model)
    assert found is not None
    assert (found.types, found.own_code) == (types, False)


@pytest.mark.parametrize(
    "model",
    ["somebody/Qwen3-8B", "Qwen3-8B", "./Qwen/Qwen3-8B", "/models/Qwen3-8B", "Qwen/Qwen3-8B/snapshot", "$MODEL/x", "",
     "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"],
)  # fmt: skip
def test_what_is_no_published_model_of_a_known_family(model: str) -> None:
    assert family(model) is None


def test_models_that_brought_their_own_code_are_marked() -> None:
    for model in ("deepseek-ai/DeepSeek-V3", "microsoft/Phi-3-mini-4k-instruct", "THUDM/glm-4-9b-chat", "THUDM/chatglm3-6b"):
        found = family(model)
        assert found is not None, model
        assert found.own_code, model


def test_every_row_is_found_by_the_name_it_was_made_from() -> None:
    with (FACTS / MODELS).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert stem_of(row["stem"].removesuffix("+experts")) in (row["stem"], row["stem"].removesuffix("+experts")), row["stem"]
        assert row["architectures"] or row["types"], row["stem"]


def test_a_type_has_the_architectures_of_its_models() -> None:
    found = of_type("qwen2.5-vl")
    assert found is not None
    assert found.types == ("qwen2_5_vl",)
    assert "Qwen2_5_VLForConditionalGeneration" in found.architectures
    assert of_type("no_such_type") is None
