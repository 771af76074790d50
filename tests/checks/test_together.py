"""Missing requirements as one finding, and one command that carries out fixes of all findings."""

from __future__ import annotations

import pytest

import compat
from compat.api.commands import Options
from compat.api.report import machine_report
from compat.checks import check_environment
from compat.checks.advice import following
from compat.checks.requirements import judge
from compat.checks.together import commands_for_all, contradict, contradiction, fold_missing
from compat.model import Distribution, Environment, Finding, Fix
from compat.records import replace
from compat.rules.compiled import open_matrix
from compat.rules.facts import Facts
from compat.tables.declared import Declared


def missing(**requires: tuple[str, ...]) -> list[Finding]:
    copies = tuple(Distribution(name, "1.0", requires=lines) for name, lines in requires.items())
    return list(judge(Facts(Environment(distributions=copies, distributions_complete=True)), Declared()))


def test_missing_requirements_are_one_finding_with_one_command() -> None:
    found = missing(alpha=("filelock", "numpy>=1.17,<3"), beta=("numpy>=1.21", "tqdm"))
    assert len(found) == 4
    (one,) = fold_missing(found)
    assert one.title == "3 required packages are missing"
    assert [fix.command for fix in one.fixes] == ['pip install "filelock" "numpy<3,>=1.21" "tqdm"']
    assert one.packages == {"alpha": "1.0", "beta": "1.0", "filelock": None, "numpy": None, "tqdm": None}


def test_one_missing_requirement_stays_as_it_is_and_contradictory_ones_are_not_joined() -> None:
    alone = missing(alpha=("filelock",))
    assert fold_missing(alone) == tuple(alone)
    found = fold_missing(missing(alpha=("numpy<2", "tqdm"), beta=("numpy>=2",)))
    assert [each.title for each in found] == [
        "2 required packages are missing",
        "beta 1.0 requires numpy>=2, which is not installed",
    ]


OLD = {
    "transformers": "4.45.2", "trl": "0.24.0", "accelerate": "0.30.0", "peft": "0.18.0", "torch": "2.6.0",
    "huggingface-hub": "0.36.0", "tokenizers": "0.20.0",
}  # fmt: skip


def environment(versions: dict[str, str]) -> Environment:
    copies = tuple(Distribution(name, version) for name, version in versions.items())
    return Environment(python="3.11", os="linux", distributions=copies, distributions_complete=True)


def test_no_combination_is_tried_for_warnings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial is a whole check: doctor took three times as long on an environment with two warnings."""
    from compat import checks

    monkeypatch.setattr(checks, "check_environment", lambda *_: pytest.fail("a combination was tried"))
    two = [replace(finding(f'pip install "{name}<1"'), severity="warning", rule=name) for name in ("peft", "trl")]
    assert commands_for_all(two, environment(OLD), open_matrix()) == ()


def test_one_command_fixes_what_fixes_of_single_findings_would_undo() -> None:
    report = machine_report(environment(OLD), Options("doctor", {}, (), None), open_matrix(), ignores=())
    first = [each.fixes[0].command for each in report.findings if each.verdict == "hit"]
    assert any('"peft>=0.13.2,<0.15.0"' in (command or "") for command in first), "a downgrade that the command does without"
    assert report.together == ('pip install "accelerate>=1.3.0" "tokenizers<=0.23.0,>=0.22.0" "transformers>=4.52.3,<5"',)
    after = environment({**OLD, "accelerate": "1.12.0", "tokenizers": "0.22.2", "transformers": "4.57.6"})
    left = machine_report(after, Options("doctor", {}, (), None), open_matrix(), ignores=())
    assert [each.rule for each in left.findings if each.verdict == "hit" and each.severity == "error"] == []
    assert left.together == ()
    assert report.to_json()["together"] == list(report.together)
    assert "together" not in left.to_json()


def finding(*commands: str, severity: str = "error") -> Finding:
    fixes = tuple(Fix("upgrade", "numpy", "", "", command) for command in commands)
    return Finding(
        rule=commands[0], origin="rule", verdict="hit", severity=severity, effect="crash", title="", why="", packages={},
        confidence="confirmed", fixes=fixes,
    )  # fmt: skip


@pytest.mark.parametrize(("other", "expected"), [('pip install "numpy>=2"', True), ('pip install "numpy<1.27"', False)])
def test_first_fixes_that_contradict_are_noted(other: str, expected: bool) -> None:
    findings = [finding('pip install "numpy<2"'), finding(other)]
    assert contradict(findings) is expected
    assert len(contradiction(findings)) == expected


def test_a_single_finding_needs_no_command_for_all() -> None:
    assert commands_for_all([], environment(OLD), open_matrix()) == ()
    assert commands_for_all([finding('pip install "peft<0.1"')], environment(OLD), open_matrix()) == ()


def test_where_no_combination_is_left_that_is_said() -> None:
    """These errors are of no rule, so that nothing shows that they are fixed."""
    impossible = [finding('pip install "peft<0.0.1"'), finding('pip install "trl<0.0.1"')]
    assert commands_for_all(impossible, environment(OLD), open_matrix()) is None


def _about(rule: str, *specs: str) -> Finding:
    fixes = tuple(Fix("pin", "alpha", spec, "", f'pip install "alpha{spec}"') for spec in specs)
    return Finding(
        rule=rule, origin="rule", verdict="hit", severity="error", effect="crash", title=rule, why="", fixes=fixes,
        confidence="confirmed", packages={"alpha": "1"},
    )  # fmt: skip


def test_findings_begin_with_the_fixes_of_the_command_for_all() -> None:
    found = [_about("old", ">=3"), _about("new", "<2", ">=2.5", ">=4"), _about("alone", "==1.5")]
    assert contradict(found)
    first = [each.fixes[0].spec for each in following(found, ('pip install "alpha>=3"',))]
    assert first == [">=3", ">=2.5", ">=3"]  # no fix of the last one goes along, but the command ends it as well
    assert [len(each.fixes) for each in following(found, ('pip install "alpha>=3"',))] == [1, 3, 2]
    assert following(found, ('pip install "beta>=3"',)) == tuple(found)


def test_a_check_of_one_environment_does_not_advise_in_two_directions() -> None:
    versions = {"transformers": "4.45.2", "tokenizers": "0.21.0", "trl": "0.11.4", "accelerate": "0.34.2", "peft": "0.12.0"}
    listed = [{"name": name, "version": version, "source": "index"} for name, version in versions.items()]
    report = compat.check({"schema": "compat/environment/1", "distributions": listed, "python": "3.11.9", "os": "linux"})
    assert not contradict(report.findings)


def test_warnings_that_advise_in_two_directions_begin_with_what_fixes_both() -> None:
    listed = [{"name": "xgrammar", "version": "0.2.3"}, {"name": "apache-tvm-ffi", "version": "0.1.13"}]
    report = compat.check({"distributions": listed, "python": "3.12", "os": "darwin", "workload": {"task": "import"}})
    first = {each.rule: each.fixes[0].spec for each in report.findings}
    assert first == {"xgrammar-tvm-ffi-0-1-13": "==0.1.12", "yanked-apache-tvm-ffi": "==0.1.12"}
    assert not any("contradict" in note for note in report.notes)


@pytest.mark.parametrize(
    ("first", "second", "contradicts"),
    [
        (("torch", "==2.10.0+cu129"), ("torchaudio", "==2.10.0+cu129"), False),
        (("torch", "==2.10.0+cu129"), ("torch", ">=2.9"), False),
        (("torch", "==2.10.0+cu129"), ("torch", "==2.10.0"), False),
        (("torch", "==2.10.0+cu129"), ("torch", "<2.9"), True),
        (("torch", "==2.10.0+cu129"), ("torch", "==2.10.0+cu128"), True),
    ],
)
def test_labels_tell_builds_of_a_release_apart(first: tuple[str, str], second: tuple[str, str], *, contradicts: bool) -> None:
    found = [
        Finding(
            rule=f"of-{name}", origin="build", verdict="hit", severity="error", effect="crash", title="", why="",
            confidence="confirmed", packages={name: "1"}, fixes=(Fix("pin", name, spec, "", f'pip install "{name}{spec}"'),),
        )
        for name, spec in (first, second)
    ]  # fmt: skip
    assert contradict(found) is contradicts


def test_builds_that_belong_to_one_torch_are_one_command_with_their_index() -> None:
    copies = (
        Distribution("torch", "2.10.0+cu130"), Distribution("torchaudio", "2.10.0+cu126"),
        Distribution("torchvision", "0.25.0+cu126"), Distribution("torchcodec", "0.10.0"),
    )  # fmt: skip
    environment, findings, _ = check_environment(
        Environment(os="linux", python="3.11", distributions=copies, distributions_complete=True), open_matrix(())
    )
    assert {"build-torchaudio-flavour", "build-torchvision-flavour"} <= {each.rule for each in findings}
    (command,) = commands_for_all(findings, environment, open_matrix(())) or ()
    assert command.startswith('pip install "torchaudio==2.10.0+cu130" "torchvision==0.25.0+cu130" --extra-index-url ')
    assert command.endswith("/cu130")
