"""Words of shell text with their places: the answers of shlex, without its quadratic time."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.syntax.shell import shell_words, simple_commands, written_words
from tests.growth import assert_linear


def answer(line: str) -> list[str] | None:
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return None


@given(st.text(alphabet="ab$'\"\\;&|<> \t\r\n#é=\x0b", max_size=20))
def test_the_same_words_as_shlex(line: str) -> None:
    try:
        found: list[str] | None = shell_words(line)
    except ValueError:
        found = None
    assert found == answer(line)


@pytest.mark.parametrize(("line", "expected"), [
    ("a 'b c'\"d\\\"e\\f\" ''", ["a", "b cd\"e\\f", ""]), ("a\\ b", ["a b"]), ("", []),
])  # fmt: skip
def test_words(line: str, expected: list[str]) -> None:
    assert shell_words(line) == expected


@pytest.mark.parametrize("line", ["'a", '"a', '"a\\"', "a\\"])
def test_what_is_not_closed(line: str) -> None:
    with pytest.raises(ValueError, match="no "):
        shell_words(line)


@pytest.mark.parametrize("piece", ["a", "$A", "a ", '"\\a"', "'a' ", ";", '"" ', '\\"', "'"])
def test_a_long_line_takes_linear_time(piece: str) -> None:
    assert_linear(lambda line: shell_words(line), lambda length: piece * (length // len(piece) // 2 * 2), 100_000)


TEXT = st.text(alphabet="ab$(){}`'\"\\;&|<> \t\r\n#é=", max_size=30)


@given(TEXT)
def test_spans_lead_back_to_the_text(text: str) -> None:
    words = [word for command in simple_commands(text) for word in command.words]
    for word in words:
        assert word.value == "".join(text[start:end] for start, end in word.spans)
        assert word.value == "".join(text[at] for at in word.places)
        assert all(word.start <= start <= end <= word.end <= len(text) for start, end in word.spans)
    assert all(before.end <= after.start for before, after in pairwise(words))


@given(TEXT)
def test_written_words_and_the_blanks_between_them_are_the_whole_text(text: str) -> None:
    words = list(written_words(text))
    assert all(word.value == text[word.start : word.end] for word in words)
    ends = [0, *(word.end for word in words)]
    starts = [*(word.start for word in words), len(text)]
    assert not "".join(text[end:start] for end, start in zip(ends, starts)).strip()


@given(st.lists(st.text(alphabet="abc=/.-'\" é", max_size=6), min_size=1, max_size=4))
def test_quoted_words_of_a_script_are_those_of_shlex(words: list[str]) -> None:
    text = shlex.join(["run", *words])
    assert [[word.value for word in command.words] for command in simple_commands(text)] == [shlex.split(text)]


@pytest.mark.parametrize("piece", [
    "a", "$A", "a ", '"a', "$(", "${a}", "`a", '"$(a)" ', "\\\n", "'", "<<E\n", "<<N\n", "# ", "a;", "(", "((", "((a(a)", "a=(", "<(", '"$(',
    "$(\n", '"\n', "'a\n", '${a:-"b"}', "a() {", "if a\n", "case a in b) ", "&& ", "> ",
])  # fmt: skip
@pytest.mark.parametrize("read", [simple_commands, written_words])
def test_long_text_takes_linear_time(read: Callable[[str], Iterable[object]], piece: str) -> None:
    def text(length: int) -> str:
        return "".join(piece.replace("N", str(number)) for number in range(length // len(piece)))

    assert_linear(lambda text: sum(1 for _ in read(text)), text, 50_000)


@pytest.mark.parametrize(("text", "expected"), [
    ("a && b || c; d | e & f\ng", ["a", "&& b", "|| c", "; d", "| e", "& f", "\n g"]),
    ("a &&\n b |&\n c", ["a", "&& b", "| c"]),
    ("if ! a; then b; elif c; then { d; } fi", ["[if !] a", "; [then] b", "; [elif] c", "; [then {] d", "; [} fi]"]),
    ("(cd a && b) || c", ["[(] cd a", "&& b", "[)]", "|| c"]),
    ("f() { a; }\nfunction g { b; }\nfunction h () {\nc\n}", ["[{] a", "; [}]", "\n [{] b", "; [}]", "\n [{]", "\n c", "\n [}]"]),
    ("case $1 in\n a|b) c ;;\n *) d ;; esac", ["case $1 in", "\n a", "| b", "[)] c", ";; *", "[)] d", ";; [esac]"]),
    ("for x in 1 2; do a; done", ["for x in 1 2", "; [do] a", "; [done]"]),
    ("a=(b 'c d' # e )\n f) g", ["a=(b 'c d' # e )\n f) g"]),
    ("((a > 1)) && for ((i=0; i<2; i++)); do b; done", ["((a > 1))", "&& for ((i=0; i<2; i++))", "; [do] b", "; [done]"]),
    ("a 2>/dev/null >> b 2>&1 <<< c &> d >| e 3", ["a 3"]),
    ("a <(b | c) >(d)", ["a <(b | c) >(d)"]),
    ("a <<E <<-'F' b\nit's\nE\n\tc\n\tF\nd", ["a b", "\n d"]),
    ("a <<E\nb", ["a", "\n b"]),
    ("a $(b ')' \"c)\" # d)\n) e", ["a $(b ')' \"c)\" # d)\n) e"]),
    ("a ${b:-\"c d\"}e \"${f:-\"g\"}\" ${h:-'i'}", ["a ${b:-c d}e ${f:-g} ${h:-i}"]),
    ("# a \\\nb # c\n#'\nd", ["\n b", "\n d"]),
    ("a; b 'c\nd", ["\n d"]),
    ("a \"$(b\nc `d\ne ${f\ng", ["\n g"]),
    ("a \\\n# b\nc", ["a", "\n c"]),
    ("a \\", ["a"]),
])  # fmt: skip
def test_the_commands_of_a_script(text: str, expected: list[str]) -> None:
    found = []
    for command in simple_commands(text):
        keywords = [f"[{' '.join(command.keywords)}]"] if command.keywords else []
        found.append(" ".join([*filter(None, [command.operator]), *keywords, *(word.value for word in command.words)]))
    assert found == expected
