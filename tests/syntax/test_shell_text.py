"""Shell scripts taken apart into simple commands, without running a shell."""

from __future__ import annotations

import pytest

from compat.syntax import shell_commands as shell_text
from compat.syntax.shell_commands import commands_of, slurm_directives
from tests.growth import assert_linear


def words(text: str, *arguments: str, **variables: str) -> list[list[str]]:
    return [command.words for command in commands_of(text, arguments, variables)]


@pytest.mark.parametrize(("text", "expected"), [
    ("a b; c && d || e | f &", [["a", "b"], ["c"], ["d"], ["e"], ["f"]]), ("a \\\n  b \\\n  c\n", [["a", "b", "c"]]), ("# no\na # don't\n", [["a"]]), ("a b#c '# d'", [["a", "b#c", "# d"]]),
    ("a 'b; c' \"d && e\"", [["a", "b; c", "d && e"]]), ("a > out.txt 2>&1 < in.txt b", [["a", "b"]]), ("if a; then\n  b\nfi\n", [["a"], ["b"]]),
    ("while true; do a; done", [["true"], ["a"]]), ("cat <<EOF\ntorchrun x.py\nEOF\na", [["cat"], ["a"]]), ("a 'b\n", []), ("", []), ("a \\", [["a"]]),
    ("for x in 1 2; do a $x; done", [["a", "1"], ["a", "2"]]), ("{ a; }", [["a"]]),
])  # fmt: skip
def test_simple_commands(text: str, expected: list[list[str]]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("N=4\na $N ${N} x${N}y", [["a", "4", "4", "x4y"]]), ("a $M", [["a", "$M"]]), ("a ${M:-7}", [["a", "7"]]), ("a x=$M/y", [["a", "x=$M/y"]]),
    ('OPTS="-b -c"\na $OPTS', [["a", "-b", "-c"]]), ("export N=4\na $N", [["a", "4"]]), ("a $HOME", [["a", "/h"]]), ("N=$HOME\na $N", [["a", "/h"]]),
    ("a $1 ${2:-z} $@", [["a", "x", "z", "x"]]), ("a $# $? $$", [["a", "$#", "$?", "$$"]]), ("a $(b) `c`", [["a", "$(b)", "`c`"]]),
    ("a ${N", []), ("a $", [["a", "$"]]), ("A=1 B=2 a", [["A=1", "B=2", "a"]]),
    ("A=$(b c)\na $A ${A:-d} ${A%x}", [["a", "${A}", "${A}", "${A%x}"]]), ("A=\"-b $(c d) -e\"\na $A", [["a", "-b", "${A}", "-e"]]),
    ("A=${A:-$(b)}\na $A", [["a", "${A}"]]), ("A=(b c)\na $A", [["a", "${A}"]]), ("A=`b`\na \"x $A\"", [["a", "x ${A}"]]),
])  # fmt: skip
def test_variables_are_filled_in_where_they_are_known(text: str, expected: list[list[str]]) -> None:
    assert words(text, "x", HOME="/h") == expected


def test_what_is_set_before_a_command() -> None:
    found = commands_of("A=1\nexport B=2 C=3\nexport A\ncd sub\na\ncd $X\nb\n")
    assert [(c.words, c.exported, c.directory) for c in found] == [
        (["a"], {"B": "2", "C": "3", "A": "1"}, "sub"), (["b"], {"B": "2", "C": "3", "A": "1"}, None),
    ]  # fmt: skip


def test_the_directory_of_a_subshell_ends_with_it() -> None:
    found = commands_of("cd a\n(cd b && c; (cd d; e); f)\ng\n")
    assert [(each.words, each.directory) for each in found] == [(["c"], "b"), (["e"], "d"), (["f"], "b"), (["g"], "a")]


def test_directives() -> None:
    assert slurm_directives("#!/bin/bash\n#SBATCH -N 2 --ntasks=4 # four\n# SBATCH --no\n#SBATCH --mem=0\n") == [
        "-N",
        "2",
        "--ntasks=4",
        "--mem=0",
    ]


@pytest.mark.parametrize(
    ("before", "piece"),
    [
        ("", "$A"),
        ("a ", "${A"),
        ("A=1\na ", "$A"),
        ("a ", "${A}"),
        ("", "A=$A$A;"),
        ("", "a;"),
        ("", "\\\n"),
        ("", "a "),
        ("", "A{}=1;a;"),
        ("'", "a"),
        ("", "for p in a b; do pip $p; done\n"),
        ("", "for p in a b; do "),
        ("P=(a b)\n", "P+=(${P[@]} c)\n"),
        ("", "echo a >> r\n"),
        ("", "cat <<E | xargs a\nb\nE\n"),
        ("echo a | xargs -I{} b ", "{} "),
        ("printf ", "%s a "),
        ("a ", "{b,c} "),
        ("a ", "$(install "),
    ],
)
def test_a_long_line_takes_linear_time(before: str, piece: str) -> None:
    assert_linear(
        lambda text: commands_of(text, ("x" * 1000,) * 1000),
        lambda length: (
            before + "".join(piece.format(number) if "{}" in piece else piece for number in range(length // len(piece)))
        ),
        100_000,
    )


def test_no_script_has_more_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_text, "_COMMANDS", 3)
    assert words("a\nB=1; b\nc\nd") == [["a"], ["b"]]


def test_arguments_do_not_multiply() -> None:
    (command,) = commands_of("a " + "$@ " * 100_000, ("x",) * 10_000)
    assert 10_000 < len(command.words) < 700_000


def test_commands_share_their_variables_until_one_is_set() -> None:
    first, second, third = commands_of("export A=1\na; b\nA=2\nc\n")
    assert first.variables is second.variables
    assert first.exported is second.exported
    assert (second.exported, third.exported) == ({"A": "1"}, {"A": "2"})


def test_too_many_variables_are_not_known_rather_than_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "A=1\na $A\nA=2\nb $A\nA=3\nc $A\nA=4\nd $A $H\n"
    assert words(text, H="/h")[-1] == ["d", "4", "/h"]
    monkeypatch.setattr(shell_text, "_MOST", 3)
    found = commands_of(text, (), {"H": "/h"})
    assert [each.variables for each in found] == [{"A": "1"}, {"A": "2"}, {}, {}]
    assert found[-1].words[2] == "$H"
