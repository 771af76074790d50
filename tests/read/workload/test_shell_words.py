"""Words of a shell line: the answers of shlex, without its quadratic time."""

from __future__ import annotations

import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.read.workload.shell_words import OPERATORS, shell_words


def answer(line: str, operators: str) -> list[str] | None:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=operators or False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return None


@given(st.text(alphabet="ab$'\"\\;&|<> \t\r\n#é=\x0b", max_size=20), st.sampled_from(("", OPERATORS)))
def test_the_same_words_as_shlex(line: str, operators: str) -> None:
    try:
        found: list[str] | None = shell_words(line, operators)
    except ValueError:
        found = None
    assert found == answer(line, operators)


@pytest.mark.parametrize(("line", "expected"), [
    ("a 'b c'\"d\\\"e\\f\" ''", ["a", "b cd\"e\\f", ""]), ("a;b>&1", ["a", ";", "b", ">&", "1"]), ("a\\ b", ["a b"]), ("", []),
])  # fmt: skip
def test_words(line: str, expected: list[str]) -> None:
    assert shell_words(line, OPERATORS) == expected


@pytest.mark.parametrize("line", ["'a", '"a', '"a\\"', "a\\"])
def test_what_is_not_closed(line: str) -> None:
    with pytest.raises(ValueError, match="no "):
        shell_words(line)


@pytest.mark.parametrize("piece", ["a", "$A", "a ", '"\\a"', "'a' ", ";", '"" ', '\\"', "'"])
def test_a_long_line_takes_no_long_time(piece: str) -> None:
    line = piece * (2_000_000 // len(piece) // 2 * 2)
    began = time.process_time()
    shell_words(line, OPERATORS)
    assert time.process_time() - began < 2
