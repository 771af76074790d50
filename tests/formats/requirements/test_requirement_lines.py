"""Encodings, comments, continuations and options of requirements files."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.requirements.lines import decode, header, logical_lines, options_of


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks(encoding: str) -> None:
    assert decode("törch\r\n".encode(encoding), "r.txt") == "törch\r\n"


def test_big_endian_mark() -> None:
    assert decode(b"\xfe\xff" + "torch".encode("utf-16-be"), "r.txt") == "torch"


def test_a_declared_encoding() -> None:
    assert decode("# -*- coding: latin-1 -*-\n# é\n".encode("latin-1"), "r.txt").endswith("# é\n")
    assert decode("#!/x\n# vim: set fileencoding=cp1252 :\n# é".encode("cp1252"), "r.txt").endswith("é")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a\nb\xff\n", 2),
        (b"\xff\xfea", 1),
        ("a\n".encode("utf-16") + b"\x00\xd8", 2),
        (b"# coding: rot13\n", 1),
        (b"# coding:\n", 1),
    ],
)
def test_other_bytes_are_an_error_with_a_line(content: bytes, line: int) -> None:
    with pytest.raises(InputError) as caught:
        decode(content, "r.txt")
    assert (caught.value.file, caught.value.line) == ("r.txt", line)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a", "", "  b  # why", "# c"], [(1, "a"), (3, "b")]),
        (["a==1 \\", "    --hash=x \\", "    --hash=y", "b"], [(1, "a==1     --hash=x     --hash=y"), (4, "b")]),
        (["a \\", "# via c", "b"], [(1, "a"), (3, "b")]),
        (["# a \\", "b"], [(2, "b")]),
        (["a @ git+https://h/o#egg=a # note"], [(1, "a @ git+https://h/o#egg=a")]),
        (["a \\"], [(1, "a")]),
        (["\\", "a"], [(1, "a")]),
    ],
)
def test_lines_are_joined_and_cut_as_pip_does(lines: list[str], expected: list[tuple[int, str]]) -> None:
    assert [(line.number, line.text) for line in logical_lines("\n".join(lines))] == expected


def test_header() -> None:
    assert header(["#", "# made by", "#    x", "", "a", "# b"]) == ["", "made by", "x"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-r a.txt", [("--requirement", "a.txt")]),
        ("-ra.txt", [("--requirement", "a.txt")]),
        ("--requirement=a.txt", [("--requirement", "a.txt")]),
        ("-c 'a b.txt'", [("--constraint", "a b.txt")]),
        (
            "-i https://i.example --extra-index-url=https://e.example --pre",
            [("--index-url", "https://i.example"), ("--extra-index-url", "https://e.example"), ("--pre", "")],
        ),
        ("-e .[a] ; os_name == 'nt'", [("--editable", ".[a] ; os_name == 'nt'")]),
    ],
)
def test_options(line: str, expected: list[tuple[str, str]]) -> None:
    assert options_of(line, "r.txt", 1) == expected


@pytest.mark.parametrize("line", ["-x", "--nonsense", "-r", "--index-url", "--pre=1", "-f 'open", "---", "--hash=a word"])
def test_what_is_no_option_is_an_error(line: str) -> None:
    with pytest.raises(InputError) as caught:
        options_of(line, "r.txt", 7)
    assert str(caught.value).startswith("r.txt:7: ")
