"""Former reports as a baseline: what counts as known, and what is no report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat.checks.baseline import fingerprint, new_only, read_baseline
from compat.errors import InputError
from compat.model import Finding, Location, Outcome
from compat.output.stream import to_json
from tests.output.outcomes import failed, finding, outcome, possible

Write = Callable[[Any], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def to_file(document: Any) -> str:
        Path("baseline.json").write_text(document if isinstance(document, str) else to_json(document), encoding="utf-8")
        return "baseline.json"

    return to_file


def left(outcome: Outcome) -> list[str]:
    assert outcome.report is not None
    return [found.rule for found in outcome.report.findings]


def test_what_the_baseline_has_is_not_shown_and_counted(write: Write) -> None:
    baseline = read_baseline(write(outcome(finding(), possible(rule="b")).report.to_json()))  # type: ignore[union-attr]
    now = new_only(outcome(finding(), possible(rule="b"), finding(rule="new"), notes=("other",)), baseline)
    assert left(now) == ["new"]
    assert now.report is not None
    assert now.report.notes == ("other", "2 findings of the baseline are not shown")
    one = new_only(outcome(finding()), baseline)
    assert left(one) == []
    assert one.report is not None
    assert one.report.notes == ("1 finding of the baseline is not shown",)


def test_an_outcome_with_nothing_known_stays_the_same(write: Write) -> None:
    baseline = read_baseline(write([outcome(finding()).to_json()]))
    for each in (outcome(finding(rule="new")), outcome(), failed("uv.lock")):
        assert new_only(each, baseline) is each


def test_versions_places_and_words_do_not_make_a_finding_new(write: Write) -> None:
    baseline = read_baseline(write([outcome(finding()).to_json()]))
    bumped = finding(packages={"widget": "1.0.9"}, here="otherwise", severity="warning", location=Location("uv.lock", 7),
                     selections=("extra a",))  # fmt: skip
    assert left(new_only(outcome(bumped), baseline)) == []


@pytest.mark.parametrize("changes", [{"target": "train"}, {"rule": "other"}])
def test_another_rule_or_target_is_new(write: Write, changes: dict[str, Any]) -> None:
    baseline = read_baseline(write([outcome(finding()).to_json()]))
    assert len(left(new_only(outcome(finding(**changes)), baseline))) == 1
    assert left(new_only(outcome(finding(**changes)), read_baseline(write([outcome(finding(**changes)).to_json()])))) == []


def test_a_finding_whose_file_moved_is_new(write: Write) -> None:
    baseline = read_baseline(write([outcome(finding(), file="a/uv.lock").to_json()]))
    assert left(new_only(outcome(finding(), file="b/uv.lock"), baseline)) == ["widget-drops-data"]


@pytest.mark.parametrize("path", ["a/uv.lock", "./a/uv.lock", "a//b/../uv.lock", "a\\uv.lock"])
def test_a_path_may_be_written_in_many_ways(write: Write, path: str) -> None:
    baseline = read_baseline(write([outcome(finding(), file=path).to_json()]))
    assert left(new_only(outcome(finding(), file="a/uv.lock"), baseline)) == []


def test_an_absolute_path_is_the_relative_one(write: Write, tmp_path: Path) -> None:
    baseline = read_baseline(write([outcome(finding(), file=str(tmp_path / "a" / "uv.lock")).to_json()]))
    assert left(new_only(outcome(finding(), file="a/uv.lock"), baseline)) == []


@pytest.mark.parametrize(("before", "now", "new"), [
    (finding, finding, 0), (finding, possible, 0), (possible, possible, 0), (possible, finding, 1),
])  # fmt: skip
def test_what_was_only_possible_does_not_cover_what_holds(
    write: Write, before: Callable[..., Finding], now: Callable[..., Finding], new: int
) -> None:
    baseline = read_baseline(write([outcome(before()).to_json()]))
    assert len(left(new_only(outcome(now()), baseline))) == new


def test_of_two_former_verdicts_the_certain_one_counts(write: Write) -> None:
    for pair in ((finding(), possible()), (possible(), finding())):
        assert left(new_only(outcome(finding()), read_baseline(write([outcome(*pair).to_json()])))) == []


def test_of_the_installation_every_distribution_is_told_apart(write: Write) -> None:
    def twice(name: str, versions: str = "1 and 2") -> Finding:
        return finding(rule="installed-twice", origin="metadata", packages={name: versions})

    baseline = read_baseline(write([outcome(twice("a")).to_json()]))
    assert left(new_only(outcome(twice("a", "2 and 3")), baseline)) == []
    assert left(new_only(outcome(twice("b")), baseline)) == ["installed-twice"]


def test_a_machine_has_no_file_in_a_report_and_a_name_in_a_list(write: Write) -> None:
    machine = outcome(finding(), file=None, name="env.json")
    assert machine.report is not None
    for document in (machine.report.to_json(), [machine.to_json()]):
        assert left(new_only(machine, read_baseline(write(document)))) == []
    assert left(new_only(outcome(finding(), file=None, name="other.json"), read_baseline(write([machine.to_json()])))) != []
    assert left(new_only(outcome(finding()), read_baseline(write(machine.report.to_json())))) != []


def test_files_that_could_not_be_read_then_have_no_findings(write: Write) -> None:
    baseline = read_baseline(write([failed("uv.lock").to_json(), outcome(finding(), file="b").to_json()]))
    assert left(new_only(outcome(finding()), baseline)) != []
    assert left(new_only(outcome(finding(), file="b"), baseline)) == []


def test_an_empty_list_knows_nothing(write: Write) -> None:
    assert left(new_only(outcome(finding()), read_baseline(write([])))) != []


def report(**changes: Any) -> dict[str, Any]:
    return {**outcome(finding()).to_json(), **changes}


def changed_finding(**changes: Any) -> dict[str, Any]:
    return report(findings=[finding().to_json(), {**finding().to_json(), **changes}])


@pytest.mark.parametrize("document", [
    None, 1, '"text"', {}, [[]], [1], {"schema": "compat/environment/1"}, {"version": "2.1.0", "runs": []},
    {"schema": "compat/report/1"}, report(findings=None), report(findings={}), report(findings=[1]), report(file=1),
    [report(file=None)], [{**outcome(finding(), file=None, name="x").report.to_json()}],  # type: ignore[union-attr]
    changed_finding(rule=None), changed_finding(rule=["a"]), changed_finding(origin=1), changed_finding(target=1),
    changed_finding(packages=[]), changed_finding(verdict="maybe"), changed_finding(verdict=[]),
])  # fmt: skip
def test_anything_else_is_refused_with_its_line(write: Write, document: Any) -> None:
    with pytest.raises(InputError) as caught:
        read_baseline(write(document))
    assert caught.value.file == "baseline.json"
    assert caught.value.line is not None
    assert "expected" in caught.value.message


def test_the_line_is_that_of_what_is_wrong(write: Write) -> None:
    text = json.dumps(changed_finding(verdict="maybe"), indent=1)
    with pytest.raises(InputError, match="'verdict'") as caught:
        read_baseline(write(text))
    assert '"maybe"' in text.split("\n")[(caught.value.line or 0) - 1]


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[" * 200_000, '{"a": NaN}', "\x00"])
def test_what_is_not_json_is_refused(write: Write, text: str) -> None:
    with pytest.raises(InputError, match=r"is not JSON|nested too deeply"):
        read_baseline(write(text))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError) as caught:
            read_baseline(str(path))
        assert caught.value.file == str(path)


def test_fingerprints_follow_the_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = fingerprint(finding(), "a/uv.lock")
    assert len(first) == 32
    assert int(first, 16) >= 0
    assert fingerprint(possible(packages={"widget": "2"}, here=""), str(tmp_path / "a" / "uv.lock")) == first
    others = [
        fingerprint(finding(), None), fingerprint(finding(), "b/uv.lock"), fingerprint(finding(rule="r"), "a/uv.lock"),
        fingerprint(finding(target=""), "a/uv.lock"), fingerprint(finding(target="train"), "a/uv.lock"),
        fingerprint(finding(origin="metadata"), "a/uv.lock"),
    ]  # fmt: skip
    assert len({first, *others}) == 7


def test_the_fingerprint_of_a_finding_never_changes() -> None:
    """Code scanning services remember them."""
    assert fingerprint(finding(target="train"), None) == "8f543f515458193a7df9483ee2c6aa7a"
