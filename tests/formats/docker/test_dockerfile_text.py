"""How the text of a Dockerfile falls into instructions."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.docker.text import Dockerfile, parse_dockerfile, without_documents


def parse(text: str) -> Dockerfile:
    return parse_dockerfile("Dockerfile", text)


def instructions(text: str) -> list[tuple[str, str, int]]:
    return [(each.name, each.text, each.line) for each in parse(text).instructions]


def test_continuations_with_comments_and_empty_lines() -> None:
    text = "FROM a\n\nrun pip install \\\n  # the one that works\n\n  torch==2.6.0 \\  \n  trl\nCMD x\n"
    assert instructions(text) == [("FROM", "a", 1), ("RUN", "pip install   torch==2.6.0   trl", 3), ("CMD", "x", 8)]


def test_physical_lines_keep_their_numbers() -> None:
    run = parse("FROM a\nRUN pip install \\\n# why\n torch \\\n trl\n").instructions[1]
    assert [(piece.number, piece.text.strip()) for piece in run.lines] == [(2, "RUN pip install"), (4, "torch"), (5, "trl")]


def test_a_doubled_backslash_ends_the_line() -> None:
    assert [name for name, _, _ in instructions("FROM a\nRUN echo \\\\\nRUN b\n")] == ["FROM", "RUN", "RUN"]


def test_the_escape_directive_counts_at_the_top_only() -> None:
    text = "# syntax=docker/dockerfile:1\n# escape=`\nFROM a\nRUN b `\n c\n"
    assert instructions(text)[1] == ("RUN", "b  c", 4)
    assert parse(text).syntax == "docker/dockerfile:1"
    assert instructions("FROM a\n# escape=`\nRUN b `\nRUN c\n")[1][1] == "b `"


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    assert instructions("\ufeffFROM a\r\nRUN b \\\r\n c\r\n") == [("FROM", "a", 1), ("RUN", "b  c", 2)]


def test_here_documents() -> None:
    text = "FROM a\nRUN <<EOF cat > x && cat <<-'END'\npip install a\n# kept\nEOF\n\tb\n\tEND\nCMD c\n"
    run = parse(text).instructions[1]
    assert [(d.name, d.text, d.line) for d in run.documents] == [
        ("EOF", "pip install a\n# kept", 3),
        ("END", "b", 6),
    ]
    assert without_documents(run.text) == "cat > x && cat"
    assert instructions(text)[2] == ("CMD", "c", 8)


@pytest.mark.parametrize("text", ["RUN echo $((1<<2))", "RUN cat <<<word", "RUN a<<EOF", "LABEL a=<<EOF", 'CMD ["<<EOF"]'])
def test_what_looks_like_a_here_document(text: str) -> None:
    assert parse(f"FROM a\n{text}\nCMD b\n").instructions[-1].text == "b"


def test_flags_and_the_json_form() -> None:
    _, copy, cmd, shell = parse('FROM a\nCOPY --from="b" --link x y\nCMD ["python", "a b.py"]\nCMD [python]\n').instructions
    assert (copy.flag("from"), copy.flag("link"), copy.flag("chown"), copy.text) == ("b", "", None, "x y")
    assert cmd.words == ("python", "a b.py")
    assert shell.words is None


def test_templates_are_read_without_their_statements() -> None:
    found = parse("{% if gpu %}\nFROM {{ base }}\n{% endif %}\nRUN a\n")
    assert [each.name for each in found.instructions] == ["FROM", "RUN"]
    assert found.template
    assert not parse("FROM a\nRUN b\n").template


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("FROM a\nRUN <<EOF\nb\n", 2, "here-document"),
        ("FROM a\n<<<<<<< HEAD\nRUN b\n", 2, "merge conflict"),
        ("# escape=x\nFROM a\n", 1, "escape="),
        ("FROM a\n" + "#" * 300_000, None, "at most 256 KiB"),
    ],
)
def test_what_docker_does_not_take(text: str, line: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(text)
    assert (caught.value.file, caught.value.line) == ("Dockerfile", line)
