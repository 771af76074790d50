"""Rules ask for no feature that nothing reads: each is named in the code of the readers or follows from another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from compat.formats.described import parse_described
from compat.formats.jobs import DEFAULT_MEMORY
from compat.rules.compiled import Matrix
from compat.rules.evaluate import verdict_of
from compat.rules.facts import IMPLIED, LOCAL_MODEL, OWN_TRAINER, QUANTIZED_CHECKPOINT, WITHOUT_TRAINER, WITHOUT_TRL, Facts
from compat.rules.loader import rule_of
from compat.rules.rule import AnyOf, Condition, HasFeature
from compat.workload.script_calls import _PROMPTS
from compat.workload.training_tools import _CHOSEN, _CHOSEN_OF_SGLANG
from compat.workload.vocabulary import recognised
from tests.conftest import ROOT

_EMITTING = ("on", "off", "feature", "_feature", "_word", "_on", "append")


def emitted() -> set[str]:
    """Constants that the readers hand to what records a feature."""
    found = {name for implied in IMPLIED.values() for name in implied} | set(_PROMPTS.values()) | {*_CHOSEN, *_CHOSEN_OF_SGLANG}
    for path in (path for room in ("workload", "machine", "reports") for path in (ROOT / "compat" / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in _EMITTING:
                found |= {text for each in node.args for text in _texts(each)}
    # the stages are put together, whether the model is a folder follows from its name, the memory is a container's, and tools
    # bring trainers
    return (
        found
        | {f"zero-{stage}" for stage in (1, 2, 3)}
        | {LOCAL_MODEL, DEFAULT_MEMORY, OWN_TRAINER, WITHOUT_TRL, WITHOUT_TRAINER}
    )


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _texts(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def asked(condition: Condition) -> Iterator[str]:
    if isinstance(condition, HasFeature):
        yield condition.name
    for each in condition.conditions if isinstance(condition, AnyOf) else ():
        yield from asked(each)


def test_every_feature_of_a_rule_is_read_somewhere(matrix: Matrix) -> None:
    known = emitted()
    for rule in matrix.rules():
        for condition in (*rule.when, *(each for group in rule.unless for each in group)):
            for feature in asked(condition):
                assert feature in known, f"{rule.id}: no reader says {feature!r}"


def test_every_feature_of_a_rule_can_be_described_in_any_spelling(matrix: Matrix) -> None:
    for rule in matrix.rules():
        for condition in (*rule.when, *(each for group in rule.unless for each in group)):
            for feature in asked(condition):
                assert recognised("features", feature.replace("-", "_").upper()) == (feature, None), rule.id


def test_a_feature_that_nothing_reads_is_found() -> None:
    assert "made-up" not in emitted()
    assert {"vllm", "fsdp2", "ram-efficient-loading", "tokenizer-json-0.20"} <= emitted()


@pytest.mark.parametrize(
    ("workload", "verdict"),
    [
        ({"task": "grpo", "features": ["vllm"]}, "hit"),
        ({"task": "grpo", "features_absent": ["vllm"]}, "clear"),
        ({"task": "grpo", "features": [], "features_complete": True}, "clear"),
        ({"task": "grpo"}, "possible"),
        ({"task": "serve"}, "hit"),
    ],
)
def test_an_exemption_asks_for_a_feature_to_be_off(workload: dict[str, object], verdict: str) -> None:
    rule = rule_of({
        "id": "r", "title": "t", "severity": "error", "effect": "crash", "confidence": "reported", "why": "w",
        "packages": {"vllm": "*"}, "unless": [{"task": ["grpo"], "features_absent": ["vllm"]}], "fix": [{"config": "c"}],
        "evidence": ["https://example.org"], "example": [{"hit": {"task": "serve"}}, {"clear": {"task": "grpo"}}],
    })  # fmt: skip
    document = {"distributions": [{"name": "vllm", "version": "0.9.0"}], "workload": workload}
    assert verdict_of(rule, Facts(parse_described(document, "x")[0])).word == verdict


@pytest.mark.parametrize(
    ("sglang", "workload", "verdict"),
    [
        ("0.5.9", {"task": "serve", "features_absent": ["vllm"]}, "clear"),
        ("0.5.9", {"task": "serve"}, "hit"),
        # imports parts of vLLM
        ("0.4.4", {"task": "serve", "features_absent": ["vllm"]}, "hit"),
        ("0.5.9", {"task": "serve", "features": ["vllm"]}, "hit"),
    ],
)
def test_the_server_of_another_engine_is_exempt_where_scripts_without_vllm_are(
    sglang: str, workload: dict[str, object], verdict: str
) -> None:
    rule = rule_of({
        "id": "r", "title": "t", "severity": "error", "effect": "crash", "confidence": "reported", "why": "w",
        "packages": {"vllm": "*"}, "unless": [{"task": ["inference"], "features_absent": ["vllm"]}], "fix": [{"config": "c"}],
        "evidence": ["https://example.org"], "example": [{"hit": {"task": "serve"}}, {"clear": {"task": "inference"}}],
    })  # fmt: skip
    installed = [{"name": "vllm", "version": "0.9.0"}, {"name": "sglang", "version": sglang}]
    document = {"distributions": installed, "workload": workload}
    assert verdict_of(rule, Facts(parse_described(document, "x")[0])).word == verdict


@pytest.mark.parametrize(
    ("model", "expected"),
    [("/models/Qwen3-8B", True), ("./out/checkpoint-10", True), ("~/models/x", True), ("Qwen/Qwen3-8B", False), (None, None)],
)
def test_a_model_that_is_a_folder(model: str | None, expected: bool | None) -> None:
    workload = {} if model is None else {"model": model}
    environment, _ = parse_described({"version": 1, "workload": workload}, "test")
    assert Facts(environment).feature("local-model") is expected


@pytest.mark.parametrize(
    ("workload", "quantization", "expected"),
    [
        ({"model": "unsloth/Qwen3-8B-unsloth-bnb-4bit"}, "4bit", True),
        ({"model": "unsloth/Qwen3-8B-bnb-4bit", "quantization": "8bit"}, "8bit", True),
        ({"model": "unsloth/Qwen3-8B-GGUF:Q4_K_M"}, "gguf", True),
        ({"model": "models/qwen3-8b-q4_k_m.gguf"}, "gguf", True),
        ({"model": "Qwen/Qwen3-8B"}, None, None),
        ({}, None, None),
    ],
)
def test_a_model_whose_name_says_that_it_is_quantized(
    workload: dict[str, object], quantization: str | None, expected: bool | None
) -> None:
    facts = Facts(parse_described({"version": 1, "workload": workload}, "test")[0])
    assert (facts.value("workload.quantization"), facts.feature(QUANTIZED_CHECKPOINT)) == (quantization, expected)


@pytest.mark.parametrize(
    ("tool", "workload", "expected"),
    [
        ("axolotl", {"task": "sft"}, True),
        ("axolotl", {"task": "dpo"}, False),
        ("llamafactory", {"task": "dpo"}, True),
        ("ms-swift", {"task": "orpo"}, False),
        ("verl", {"task": "grpo"}, True),
        ("verl", {"trainer": "GRPOTrainer"}, False),
        ("transformers", {"task": "sft"}, False),
    ],
)
def test_tools_train_with_their_own_trainers(tool: str, workload: dict[str, object], expected: bool) -> None:
    document = {"distributions": [{"name": "trl", "version": "0.19.0"}, {"name": tool, "version": "1.0"}], "workload": workload}
    assert Facts(parse_described(document, "x")[0]).feature("own-trainer") is expected


@pytest.mark.parametrize(
    ("tool", "expected"), [("verl", True), ("openrlhf", True), ("ms-swift", False), ("transformers", False)]
)
def test_tools_without_trl(tool: str, expected: bool) -> None:
    document = {
        "distributions": [{"name": "trl", "version": "0.19.0"}, {"name": tool, "version": "1.0"}],
        "workload": {"task": "grpo"},
    }
    facts = Facts(parse_described(document, "x")[0])
    assert facts.feature("without-trl") is facts.feature("without-trainer") is expected


@pytest.mark.parametrize(
    ("names", "workload", "expected"),
    [
        (["trl"], {}, False),
        (["trl", "unsloth"], {}, None),
        (["unsloth-zoo"], {}, None),
        ([], {}, None),
        (["trl"], {"features": ["unsloth"]}, True),
    ],
)
def test_unsloth_that_is_not_listed_is_not_used(names: list[str], workload: dict[str, object], expected: bool | None) -> None:
    document = {"distributions": [{"name": name, "version": "1.0"} for name in names], "workload": {"task": "sft", **workload}}
    assert Facts(parse_described(document, "x")[0]).feature("unsloth") is expected
