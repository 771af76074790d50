"""Any text, put into a workflow command, XML or SARIF, comes back as it was, and changes nothing around it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

from hypothesis import assume, given
from hypothesis import strategies as st

from compat.checks.baseline import fingerprint
from compat.model import Finding, Fix, Location, Outcome
from compat.output.github import escaped_data, escaped_property, workflow_commands
from compat.output.junit import escaped, junit
from compat.output.sarif import _percent_encoded, doubled_braces, markdown_code, plain, sarif
from compat.output.stream import to_json
from tests.output.outcomes import failed, finding, outcome

UNICODE = st.text(st.characters(exclude_categories=("Cs",)) | st.sampled_from("%:,\r\n{}[]()<>&\"'`\\\x00 "))
ANY = st.text(st.characters(exclude_categories=()) | st.sampled_from("%:,\r\n{}[]()<>&\"'`\\\x00\ud800\udcff\ufffe"))


def hostile(text: str) -> list[Outcome]:
    found: Finding = finding(
        rule=text or "r", title=text, why=text, here=text, target=text, selections=(text,), packages={text: text},
        evidence=(text,), fixes=(Fix("pin", text, text, text, text),), location=Location(text, 1),
    )  # fmt: skip
    return [outcome(found, file=text, notes=(text,)), failed(text, text)]


def replaced(text: str, pairs: list[tuple[str, str]]) -> str:
    for token, sign in pairs:
        text = text.replace(token, sign)
    return text


@given(UNICODE)
def test_workflow_commands_give_back_any_text(text: str) -> None:
    data = [("%0D", "\r"), ("%0A", "\n")]
    in_property = [*data, ("%3A", ":"), ("%2C", ",")]
    assert replaced(escaped_data(text), [*data, ("%25", "%")]) == text
    assert replaced(escaped_property(text), [*in_property, ("%25", "%")]) == text
    assert not set(escaped_data(text)) & set("\r\n")
    assert not set(escaped_property(text)) & set("\r\n:,")


@given(ANY)
def test_no_text_starts_a_workflow_command_of_its_own(text: str) -> None:
    lines = workflow_commands(hostile(text)).encode("utf-8").decode().replace("\r", "\n").split("\n")
    assert len(lines) == 2
    for line in lines:
        head = line[2 : line.index("::", 2)]
        names = [part.partition("=")[0] for part in head.partition(" ")[2].split(",") if part]
        assert line.startswith("::error ")
        assert set(names) <= {"file", "line", "title"}
        assert len(set(names)) == len(names)


@given(ANY)
def test_xml_gives_back_every_character_it_can_hold(text: str) -> None:
    # production [2] of XML 1.0
    legal = "".join(
        c for c in text if c in "\t\n\r" or 0x20 <= ord(c) <= 0xD7FF or 0xE000 <= ord(c) <= 0xFFFD or ord(c) >= 0x10000
    )
    element = ElementTree.fromstring(f'<a b="{escaped(text)}">{escaped(text)}</a>')
    assert (element.text or "", element.get("b")) == (legal, legal)


@given(ANY)
def test_no_text_changes_the_shape_of_a_junit_report(text: str) -> None:
    root = ElementTree.fromstring(junit(hostile(text)))
    assert [element.tag for element in root.iter()] == [
        "testsuites", "testsuite", "testcase", "failure", "system-out", "testsuite", "testcase", "error",
    ]  # fmt: skip


@given(ANY)
def test_no_text_spoils_a_sarif_log(text: str) -> None:
    log: dict[str, Any] = json.loads(to_json(sarif(hostile(text), "1")).encode("utf-8"))
    (run,) = log["runs"]
    assert len(run["results"]) == 1
    assert len(run["tool"]["driver"]["rules"]) == 1
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2


@given(UNICODE)
def test_sarif_paths_give_back_any_path(text: str) -> None:
    encoded = _percent_encoded(text)
    assert unquote_to_bytes(encoded) == text.encode()
    assert encoded.isascii()
    assert ":" not in encoded


@given(UNICODE)
def test_sarif_messages_have_no_placeholders_and_no_links(text: str) -> None:
    assert replaced(doubled_braces(text), [("{{", "{"), ("}}", "}")]) == text
    assert "](" not in plain(text)
    assert "\n" not in plain(text)


@given(UNICODE)
def test_markdown_code_ends_where_it_ends(text: str) -> None:
    assume(text.strip())
    code = markdown_code(text)
    fence = code[: len(code) - len(code.lstrip("`"))]
    assert fence
    assert code.endswith(fence)
    assert fence not in code[len(fence) : -len(fence)]


@given(st.tuples(ANY, ANY, ANY), st.tuples(ANY, ANY, ANY))
def test_fingerprints_are_equal_only_for_equal_identities(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    def of(parts: tuple[str, str, str]) -> str:
        return fingerprint(finding(origin="metadata", rule=parts[0], target=parts[1], packages={parts[2]: None}), None)

    assert (of(one) == of(other)) == (one == other)
