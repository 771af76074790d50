"""The order in which the fixes of a finding are offered."""

from __future__ import annotations

from compat.checks import check_environment
from compat.checks.advice import Shared, with_ranked_fixes
from compat.formats.described import environment_of
from compat.model import Finding, Fix
from compat.rules.compiled import in_memory, open_matrix
from compat.rules.loader import rule_of


def rule(name: str, packages: dict[str, str], fixes: list[dict[str, object]]) -> dict[str, object]:
    return {
        "id": name, "title": "t", "severity": "error", "effect": "crash", "confidence": "confirmed", "why": "w.",
        "packages": packages, "evidence": ["https://index.example/1"], "fix": fixes,
        "example": [{"hit": {"packages": {}}}, {"clear": {"packages": {}}}],
    }  # fmt: skip


MATRIX = in_memory(
    (
        rule_of(rule("a", {"trl": "==0.22.0", "peft": "*"}, [{"upgrade": {"peft": "==0.17.1"}}, {"downgrade": {"trl": "==0.21.0"}}]), "f"),
        rule_of(rule("b", {"trl": "==0.22.0"}, [{"launch": "accelerate launch SCRIPT"}, {"downgrade": {"trl": "==0.21.0"}}]), "f"),
        rule_of(rule("c", {"trl": "==0.22.0", "peft": "==0.17.1"}, [{"downgrade": {"peft": "==0.16.0"}}]), "f"),
    )
)  # fmt: skip
INSTALLED = environment_of({"distributions": [{"name": "trl", "version": "0.22.0"}, {"name": "peft", "version": "0.16.0"}]})[0]


def commands(finding: Finding) -> list[str | None]:
    return [fix.command for fix in finding.fixes]


def test_a_fix_that_leaves_fewer_errors_comes_first() -> None:
    _, findings, _ = check_environment(INSTALLED, MATRIX)
    before = {each.rule: commands(each) for each in findings}
    after = {each.rule: commands(each) for each in with_ranked_fixes(findings, INSTALLED, MATRIX)}
    assert before["a"] == ['pip install "peft==0.17.1"', 'pip install "trl==0.21.0"']  # the first leads to rule c
    assert after["a"] == before["a"][::-1]


def test_a_fix_that_changes_no_release_keeps_its_place() -> None:
    _, findings, _ = check_environment(INSTALLED, MATRIX)
    ranked = {each.rule: commands(each) for each in with_ranked_fixes(findings, INSTALLED, MATRIX)}
    assert ranked["b"] == ["accelerate launch train.py", 'pip install "trl==0.21.0"']


def test_releases_are_only_tried_where_there_is_a_choice_between_them() -> None:
    """Of the fixes of a and b, only those of a are two that change a known release."""
    _, findings, _ = check_environment(INSTALLED, MATRIX)
    tried = {}
    for finding in findings:
        shared = Shared()
        allowed = shared.trials
        with_ranked_fixes([finding], INSTALLED, MATRIX, shared)
        tried[finding.rule] = allowed - shared.trials
    assert tried["b"] == 0 < tried["a"]


def test_what_an_installer_moves_along_is_not_held_against_a_fix() -> None:
    """vllm 0.9.2 pins a newer torch, which has code for the GPU; vllm 0.6.2 would leave a torch without it."""
    environment = environment_of(
        {
            "os": "linux",
            "python": "3.11",
            "accelerators": [{"name": "NVIDIA GeForce RTX 5090"}],
            "distributions": [{"name": "torch", "version": "2.6.0+cu124"}, {"name": "vllm", "version": "0.8.4"}],
        }
    )[0]
    matrix = open_matrix(())
    environment, findings, _ = check_environment(environment, matrix)
    finding = next(each for each in with_ranked_fixes(findings, environment, matrix) if each.rule == "build-vllm-gpu")
    assert [fix.kind for fix in finding.fixes] == ["upgrade", "source-install"]


def test_a_question_and_a_finding_without_a_choice_stay_as_they_are() -> None:
    fixes = (
        Fix("upgrade", "trl", ">=0.23", "t", 'pip install "trl>=0.23"'),
        Fix("pin", "peft", "==0.1", "t", 'pip install "peft==0.1"'),
    )
    possible = Finding("r", "rule", "t", "w", "possible", fixes=fixes)
    assert with_ranked_fixes((possible,), INSTALLED, MATRIX) == (possible,)
