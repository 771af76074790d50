"""What is printed is neither a command for a terminal nor one for a CI log, whatever a file holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.output.stream import emit, harmless, to_json

_PARTS = (*"a: \n\t\r#[]{}<\"'\\é", "::", "##[", "\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "\x7f", "\u202e", "\u2028", "\U000e0041")
_HOSTILE = st.lists(st.sampled_from(_PARTS), max_size=20).map("".join)


@given(_HOSTILE)
def test_no_control_reaches_a_terminal(text: str) -> None:
    shown = harmless(text)
    assert not any(each in shown for each in "\x1b\x07\x9b\x7f\u202e\u2028\U000e0041")
    assert "\r" not in shown.replace("\r\n", "")
    assert shown.count("\n") == text.count("\n")
    assert harmless(shown) == shown


@given(_HOSTILE, st.sampled_from(["", "  x ", "{", "<"]))
def test_no_line_is_a_workflow_command(text: str, start: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_ACTIONS", "true")
        shown = harmless(start + text)
        assert "##[" not in shown
        assert not any(line.strip().startswith("::") for line in shown.split("\n"))
        assert harmless("::error::x\n", commands=True) == "::error::x\n"


@given(st.dictionaries(_HOSTILE, _HOSTILE))
def test_json_says_the_same(value: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_ACTIONS", "true")
        assert json.loads(harmless(to_json(value))) == value


def test_our_own_colours_stay() -> None:
    text = "  \x1b[1;31m✗\x1b[0m \x1b[1mtitle\x1b[0m"
    assert harmless(text) == text


def test_a_diff_is_printed_without_credentials_and_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    emit(" --index-url https://bob:secret@pkgs.example/simple\n-a==1 # \x1b[2J\n+a==2\n")
    assert capsys.readouterr().out == " --index-url https://****@pkgs.example/simple\n-a==1 # \\u001b[2J\n+a==2\n\n"
