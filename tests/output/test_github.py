"""Workflow commands, read back the way the runner of GitHub Actions reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.model import Location
from compat.output.github import workflow_commands
from tests.output.outcomes import failed, finding, outcome, possible


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    """Command, properties and message; the order of the replacements is the runner's."""
    assert line.startswith("::")
    end = line.index("::", 2)
    name, _, said = line[2:end].partition(" ")
    properties = {}
    for part in filter(None, said.strip().split(",")):
        key, sign, value = part.partition("=")
        assert sign
        for token, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            value = value.replace(token, sign)
        properties[key] = value
    message = line[end + 2 :]
    for token, sign in (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        message = message.replace(token, sign)
    return name, properties, message


@pytest.fixture(autouse=True)
def _in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def test_nothing_found_is_nothing_said() -> None:
    assert workflow_commands([]) == ""
    assert workflow_commands([outcome(notes=("a note",))]) == ""


def test_a_finding_says_why_where_and_what_to_do() -> None:
    name, properties, message = parsed(workflow_commands([outcome(finding(location=Location("uv.lock", 12)))]))
    assert name == "error"
    assert properties == {"file": "uv.lock", "line": "12", "title": "Every second widget gets no data"}
    assert message.split("\n") == [
        "The first takes it all.",
        "applies because: widget 1.0, 2 GPUs",
        'fix: pip install "widget>=1.1" (the first release that shares)',
        "see: https://github.com/example/widget/pull/7",
        "rule: widget-drops-data (reproduced)",
    ]


@pytest.mark.parametrize(("severity", "command"), [("error", "error"), ("warning", "warning"), ("info", "notice")])
def test_the_severity_is_the_command(severity: str, command: str) -> None:
    assert parsed(workflow_commands([outcome(finding(severity=severity))]))[0] == command


def test_an_open_question_is_a_notice_that_says_what_settles_it() -> None:
    name, _, message = parsed(workflow_commands([outcome(possible())]))
    assert name == "notice"
    assert "settle: --launcher NAME" in message


def test_targets_and_selections_are_told() -> None:
    message = parsed(workflow_commands([outcome(finding(target="train", selections=("extra vllm", "group dev")))]))[2]
    assert "in: train, extra vllm, group dev" in message.split("\n")


def test_a_file_that_cannot_be_read_is_an_error_at_its_line() -> None:
    name, properties, message = parsed(workflow_commands([failed("a/broken.lock", "is not\nTOML", 3)]))
    assert (name, properties["file"], properties["line"], message) == ("error", "a/broken.lock", "3", "is not TOML")


def test_a_machine_has_no_file() -> None:
    assert parsed(workflow_commands([outcome(finding(), file=None)]))[1].keys() == {"title"}
    assert "file" not in parsed(workflow_commands([failed("-")]))[1]


def test_without_a_line_only_the_file_is_named() -> None:
    assert parsed(workflow_commands([outcome(finding())]))[1].keys() == {"file", "title"}


def test_one_command_a_line_in_the_order_given() -> None:
    lines = workflow_commands([outcome(finding(), possible()), failed(), outcome(finding(severity="info"))]).split("\n")
    assert [parsed(line)[0] for line in lines] == ["error", "notice", "error", "notice"]


def test_paths_are_relative_to_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert parsed(workflow_commands([outcome(finding())]))[1]["file"] == "sub/uv.lock"
    assert parsed(workflow_commands([outcome(finding(), file="../uv.lock")]))[1]["file"] == "uv.lock"
    assert parsed(workflow_commands([outcome(finding(), file=str(tmp_path / "sub" / "x"))]))[1]["file"] == "sub/x"
    assert parsed(workflow_commands([outcome(finding(), file="/elsewhere/x")]))[1]["file"] == "/elsewhere/x"


def test_hostile_text_stays_where_it_is() -> None:
    evil = "x\n::set-env name=A::1\r\n::error::,line=9:%0A\x1b[2J"
    text = workflow_commands([outcome(finding(title=evil, why=evil, here=evil, location=Location(evil, 1)))])
    assert len(text.splitlines()) == 1
    name, properties, message = parsed(text)
    assert (name, properties["file"], properties["line"]) == ("error", evil, "1")
    assert properties["title"] == "x ::set-env name=A::1 ::error::,line=9:%0A\\x1b[2J"
    assert "\x1b" not in message
    assert message.split("\n")[0] == properties["title"]


def test_bytes_of_a_path_that_are_no_text_can_be_printed() -> None:
    assert "\\udcff" in workflow_commands([outcome(finding(), file="a\udcff.lock")]).encode("utf-8").decode()


@pytest.mark.parametrize("command", ["##[error]", "##vso[task.setvariable variable=a]", "##teamcity[message]"])
def test_commands_of_the_old_form_are_no_part_of_a_file_name(command: str) -> None:
    assert command[:3] not in workflow_commands([outcome(finding(location=Location(f"{command}.txt", 3)))])
    assert command[:3] not in workflow_commands([failed(f"{command}.txt")])


def test_a_step_that_fails_because_of_what_was_not_read_says_so() -> None:
    (line,) = workflow_commands([outcome(exit=3, notes=("r.txt:2: -r missing.txt was not read", "another note"))]).splitlines()
    assert parsed(line)[0] == "warning"
    assert "-r missing.txt was not read" in line
    assert workflow_commands([outcome(exit=0, notes=("a note",))]) == ""
