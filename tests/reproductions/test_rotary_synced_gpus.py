"""generate() kept in step over two processes, without a usable key-value cache: masks outgrow tokens by one."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from environments import Result, reproduce
from packaging.version import Version

pytestmark = pytest.mark.reproduction

CHECKPOINTING, NO_CACHE = "transformers-rotary-length-synced-generation", "transformers-rotary-length-without-cache"
PADDED = "transformers-rotary-length-padded-prompts"

needs_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="that release needs Python 3.11")

# Where the two lengths meet, and along which dimension.
ROTARY = ("apply_rotary_pos_emb", 2)
MASK = ("_prepare_4d_causal_attention_mask_with_cache_position", 0)
ATTENTION = ("sdpa_attention_forward", 3)

# transformers, where it fails (None: it does not)
WITH_CHECKPOINTING = [
    ("4.45.2", None),
    ("4.46.0", ROTARY),
    ("4.48.3", ROTARY),
    ("4.49.0", None),
    ("4.57.6", None),
    ("5.19.0", None),
]
WITHOUT_CACHE = [
    ("4.45.2", None),
    ("4.46.0", ROTARY),
    ("4.48.3", ROTARY),
    ("4.49.0", ROTARY),
    ("4.50.3", ROTARY),
    ("4.57.6", ROTARY),
    ("5.2.0", ROTARY),
    ("5.3.0", ATTENTION),
    ("5.15.1", ATTENTION),
    ("5.16.1", ATTENTION),
    ("5.17.0", ATTENTION),
    ("5.18.0", None),  # drops a mask without padding, so that there is none to outgrow the tokens
    ("5.19.0", None),
]
WITHOUT_CACHE_PADDED = [
    ("4.45.2", None),
    ("4.46.0", MASK),
    ("4.50.3", MASK),
    ("4.57.6", ROTARY),
    ("5.17.0", ATTENTION),
    ("5.18.0", ATTENTION),
    ("5.19.0", ATTENTION),
    pytest.param("5.23.0", ATTENTION, marks=needs_3_11),
    pytest.param("5.24.0", ATTENTION, marks=needs_3_11),
]
WITHOUT_CACHE_IN_CONFIG = [("4.48.3", ROTARY), ("4.49.0", None), ("4.50.3", ROTARY), ("4.57.6", ROTARY)]

Where = tuple[str, int] | None
Check = Callable[[str], set[str]]
Diagnose = Callable[[Result, str], set[str]]
Describe = Callable[..., str]


def generate(transformers: str, *arguments: str) -> Result:
    return reproduce("rotary_synced_gpus.py", {"transformers": transformers}, *arguments, processes=2)


def failed_at(result: Result) -> Where:
    """Where the lengths met, or None; any other failure than that of one length and the next fails the test."""
    if result.outcome == "ok":
        assert result.detail["shape"] == [2, 13]  # the prompt of ten, two words, the end
        return None
    assert (result.outcome, result.exception) == ("error", "RuntimeError")
    start, _, dimension = str(result.message).rpartition(" ")
    assert start == "The size of tensor a (13) must match the size of tensor b (14) at non-singleton dimension"
    assert "transformers/generation/utils.py::generate" in result.frames
    return result.frames[-1].partition("::")[2], int(dimension)


@pytest.mark.parametrize(("transformers", "where"), WITH_CHECKPOINTING)
def test_with_gradient_checkpointing(transformers: str, where: Where) -> None:
    assert failed_at(generate(transformers, "--gradient-checkpointing")) == where


@pytest.mark.parametrize(("transformers", "where"), WITHOUT_CACHE)
def test_without_cache(transformers: str, where: Where) -> None:
    assert failed_at(generate(transformers, "--cache", "off")) == where


@pytest.mark.parametrize(("transformers", "where"), WITHOUT_CACHE_PADDED)
def test_without_cache_on_prompts_of_different_length(transformers: str, where: Where) -> None:
    assert failed_at(generate(transformers, "--cache", "off", "--padding")) == where


@pytest.mark.parametrize(("transformers", "where"), WITHOUT_CACHE_IN_CONFIG)
def test_without_cache_in_the_config(transformers: str, where: Where) -> None:
    assert failed_at(generate(transformers, "--cache", "off-in-config", "--gradient-checkpointing")) == where


@pytest.mark.parametrize(
    ("transformers", "arguments"),
    [
        ("4.48.3", ()),  # the cache is there
        ("4.48.3", ("--gradient-checkpointing", "--out-of-step")),
        ("4.57.6", ("--cache", "off", "--padding", "--out-of-step")),
    ],
)
def test_controls(transformers: str, arguments: tuple[str, ...]) -> None:
    assert failed_at(generate(transformers, *arguments)) is None


@pytest.mark.parametrize(("transformers", "where"), WITH_CHECKPOINTING)
def test_with_gradient_checkpointing_as_the_matrix_has_it(
    check: Check, diagnose: Diagnose, described: Describe, transformers: str, where: Where
) -> None:
    environment = under_zero_3(described, transformers, "gradient-checkpointing")
    assert_agreement(check, diagnose, environment, generate(transformers, "--gradient-checkpointing"), CHECKPOINTING)


@pytest.mark.parametrize(("transformers", "where"), WITHOUT_CACHE_PADDED)
def test_without_cache_as_the_matrix_has_it(
    check: Check, diagnose: Diagnose, described: Describe, transformers: str, where: Where
) -> None:
    """From 5.18.0 on it is the padding of the prompts that decides, and another rule that says so."""
    environment = under_zero_3(described, transformers, "no-cache", "padded-prompts")
    rule = PADDED if Version(transformers) >= Version("5.18.0") else NO_CACHE
    assert_agreement(check, diagnose, environment, generate(transformers, "--cache", "off", "--padding"), rule)


@pytest.mark.parametrize(("transformers", "where"), [row for row in WITHOUT_CACHE if row[1] is not None])
def test_the_error_without_cache_is_recognised(
    diagnose: Diagnose, described: Describe, transformers: str, where: Where
) -> None:
    environment = under_zero_3(described, transformers, "no-cache")
    assert diagnose(generate(transformers, "--cache", "off"), environment) == {NO_CACHE}


def under_zero_3(describe: Describe, transformers: str, *features: str) -> str:
    return describe(
        {"transformers": transformers},
        workload={"task": "grpo", "processes": 2, "features": ["zero-3", *features], "features_complete": True},
    )


def assert_agreement(check: Check, diagnose: Diagnose, environment: str, result: Result, rule: str) -> None:
    assert check(environment) == ({rule} if result.outcome == "error" else set())
    if result.outcome == "error":
        assert diagnose(result, environment) == {rule}
