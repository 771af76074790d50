"""What the command prints against the published JSON Schemas, and the schemas against what the reader accepts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from compat.errors import InputError
from compat.formats.described import parse_described
from compat.rules.compiled import Matrix
from compat.rules.loader import rule_of
from compat.syntax.toml import parse_toml
from tests.examples import THOROUGH

SCHEMAS = Path(__file__).resolve().parent.parent / "docs" / "schemas"
ENVIRONMENT = Draft202012Validator(json.loads((SCHEMAS / "environment-1.json").read_text()))
REPORT = Draft202012Validator(json.loads((SCHEMAS / "report-1.json").read_text()))

WRONG: list[dict[str, Any]] = [
    {"schema": "compat/environment/2"},
    {"python": 3.11},
    {"distributions": [{"version": "1"}]},
    {"distributions": [{"name": "a", "source": {"url": "u"}}]},
    {"distributions_complete": "yes"},
    {"accelerators": [{"compute_capability": "sm_90"}]},
    {"accelerators": [{"memory_mib": -1}]},
    {"accelerators": [{"more": "yes"}]},
    {"variables": {"A": 1}},
    {"workload": {"features": "vllm"}},
    {"workload": {"processes": 1.5}},
]


def test_the_schemas_are_schemas() -> None:
    for validator in (ENVIRONMENT, REPORT):
        Draft202012Validator.check_schema(validator.schema)


@pytest.mark.parametrize("document", WRONG)
def test_reader_and_schema_refuse_the_same(document: dict[str, Any]) -> None:
    assert not ENVIRONMENT.is_valid(document)
    with pytest.raises(InputError):
        parse_described(document, "x")


def test_every_example_of_the_matrix_is_a_valid_description(matrix: Matrix) -> None:
    examples = [example for rule in matrix.rules() for example in rule.examples]
    assert len(examples) > 50
    for example in examples:
        ENVIRONMENT.validate(example.environment)
        environment, notes = parse_described(example.environment, "x")
        assert notes == ()
        ENVIRONMENT.validate(environment.to_json())


@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--gpu", "A100:2,T4", "--launcher", "python", "--task", "sft")])
def test_reports_follow_the_schema(compat: Callable[..., subprocess.CompletedProcess[str]], words: tuple[str, ...]) -> None:
    report = json.loads(compat(*words, "--format", "json").stdout)
    REPORT.validate(report)
    ENVIRONMENT.validate(report["environment"])


def test_findings_of_every_rule_follow_the_schema(compat: Callable[..., Any], matrix: Matrix, tmp_path: Path) -> None:
    files, rules = [], []
    for rule in matrix.rules():
        found = [each for each in rule.examples if each.verdict != "clear"]
        one_of_each = {each.verdict: each for each in reversed(found)}.values()  # the linter tries every example
        for number, example in enumerate(found if THOROUGH else one_of_each):
            path = tmp_path / f"{rule.id}-{number}.json"
            path.write_text(json.dumps(example.environment))
            files.append(str(path))
            rules.append((rule.id, example.verdict))
    reports = json.loads(compat("check", "--all", "--environment", *files, "--format", "json").stdout)
    assert len(reports) == len(files)
    for report, (rule_id, verdict) in zip(reports, rules, strict=True):
        REPORT.validate(report)
        assert (rule_id, verdict) in {(finding["rule"], finding["verdict"]) for finding in report["findings"]}


def test_facts_follow_the_schema(compat: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = compat("facts", "--task", "grpo", "--features", "vllm", "--without", "packing", "--gpu", "H100:8")
    document = json.loads(done.stdout)
    ENVIRONMENT.validate(document)
    assert parse_described(document, "x")[1] == ()
    assert document["workload"] == {"task": "grpo", "features": ["vllm"], "features_absent": ["packing"]}
    assert [device["compute_capability"] for device in document["accelerators"]] == ["9.0"] * 8


RULES_SCHEMA = Draft202012Validator(json.loads((SCHEMAS / "rules-1.json").read_text()))
RULE_FILES = sorted((SCHEMAS.parent.parent / "matrix" / "rules").glob("*.toml"))
ONE_RULE: dict[str, Any] = {
    "id": "a-rule", "title": "It fails", "severity": "error", "effect": "crash", "confidence": "reported", "why": "It does.",
    "packages": {"trl": "<1"}, "evidence": ["https://example.org/1"], "fix": [{"upgrade": {"trl": ">=1"}}],
    "example": [{"hit": {"packages": {"trl": "0.9"}}}, {"clear": {"packages": {"trl": "1.0"}}}],
}  # fmt: skip


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.stem)
def test_rule_files_follow_the_schema_that_editors_complete_from(path: Path) -> None:
    assert [error.message for error in RULES_SCHEMA.iter_errors(parse_toml(str(path))[1])] == []


@pytest.mark.parametrize("change", [
    {"id": "Not A Word"}, {"severity": "bad"}, {"evidence": []}, {"evidence": ["http://example.org"]}, {"surprise": 1},
    {"fix": [{"upgrade": {"trl": ">=1"}, "launch": "x"}]}, {"when": {"gpu": ["A100"]}}, {"presume": {"processes": "two"}},
    {"errors": [{"exception": "E"}]}, {"example": [{"hit": {"packages": {}}, "clear": {"packages": {}}}]},
])  # fmt: skip
def test_what_the_loader_refuses_the_rule_schema_refuses(change: dict[str, Any]) -> None:
    assert RULES_SCHEMA.is_valid({"rule": [ONE_RULE]})
    rule_of(ONE_RULE)
    assert not RULES_SCHEMA.is_valid({"rule": [{**ONE_RULE, **change}]})
    with pytest.raises(ValueError, match=r"\w"):
        rule_of({**ONE_RULE, **change})
