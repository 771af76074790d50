"""Rules that hold for jobs that do not use the package they are about."""

from __future__ import annotations

from typing import Any

from compat.rules.loader import rule_of
from compat.rules.rule import Rule
from scripts.audit.jobs import generates_otherwise, unused


def about(package: str, example: dict[str, Any], **conditions: Any) -> Rule:
    return rule_of({
        "id": "r", "title": "t", "severity": "error", "effect": "crash", "confidence": "reported", "why": "w",
        "packages": {package: "*"}, "fix": [{"config": "c"}], "evidence": ["https://example.org"],
        "example": [{"hit": {"packages": {package: "1.0"}, **example}}, {"clear": {"packages": {"other": "1.0"}}}], **conditions,
    })  # fmt: skip


def test_a_rule_that_asks_for_the_package_only_is_listed() -> None:
    found = list(unused(about("unsloth", {"task": "sft"})))
    assert ("unsloth", "sft") in found
    assert ("unsloth", "serve") in found


def test_a_rule_that_asks_for_the_use_is_not() -> None:
    assert list(unused(about("unsloth", {"features": ["unsloth"]}, when={"features": ["unsloth"]}))) == []
    assert list(unused(about("deepspeed", {"features": ["zero-3"]}, when={"features": ["zero-3"]}))) == []


def test_a_server_uses_vllm() -> None:
    exempt = [{"task": ["sft", "dpo", "grpo", "ppo", "train", "inference"], "features_absent": ["vllm"]}]
    assert list(unused(about("vllm", {"task": "serve"}, unless=exempt))) == []
    assert ("vllm", "inference") in list(unused(about("vllm", {"task": "serve"})))


def test_a_script_that_generates_with_vllm_is_exempt_where_its_server_is() -> None:
    assert generates_otherwise(about("transformers", {"task": "sft"}, when={"task": ["training", "inference"]}))
    assert not generates_otherwise(about("transformers", {"task": "sft"}, unless=[{"task": ["serve"]}]))
    assert not generates_otherwise(about("transformers", {"task": "sft"}))
