"""Known problems that a text describes in its author's own words."""

from __future__ import annotations

import pytest

from compat.diagnosis.similar import LONGEST, described
from compat.rules.compiled import open_matrix
from compat.rules.rule import Rule


def names(text: str) -> list[str]:
    return [each.id if isinstance(each, Rule) else f"symptom-{each.name}" for each in described(text, open_matrix())]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("FSDP2: fully shard refuses ignored params", "accelerate-fsdp2-ignored-params"),
        ("fully_shard 在 accelerate 里报错 ignored params FSDP2", "accelerate-fsdp2-ignored-params"),
        ("sgl kernel cannot be loaded: undefined symbol parse schema or name", "sgl-kernel-old-abi"),
        ("bitsandbytes setup can't find libcuda, it warns", "symptom-bitsandbytes-binary"),
    ],
)
def test_the_problem_of_a_title(text: str, name: str) -> None:
    assert names(text) == [name]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "High memory usage after the update",
        "What is the difference between LoRA and QLoRA?",
        "How do I use several GPUs with the SFT trainer of trl?",
        "eval loss is higher than train loss with packing",
        "TypeError: __init__() got an unexpected keyword argument 'nonsense'",
        "No module named 'mine'",
        "Does bitsandbytes support Apple Silicon?",
    ],
)
def test_titles_about_no_known_problem(text: str) -> None:
    assert names(text) == []


def test_a_log_is_no_description() -> None:
    title = "FSDP2: fully shard refuses ignored params\n"
    assert names(title * (LONGEST // len(title) + 1)) == []
