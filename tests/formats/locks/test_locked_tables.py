"""Where the tables of a lock stand in its text."""

from __future__ import annotations

from compat.formats.locks.tables import Table, packages_of
from tests.growth import assert_linear


def test_packages_have_the_lines_of_their_headers() -> None:
    document = Table({"package": [{"name": "a"}, {"name": "b"}]}, "f")
    found = packages_of(document, "package", 'x = "[[package]]"\n[[package]]\nname = "a"\n  [[package]]\nname = "b"\n')
    assert [(each.name, each.line) for each in found] == [("package a", 2), ("package b", 4)]


def test_a_text_full_of_headers_takes_linear_time() -> None:
    def lines(text: str) -> list[int]:
        return [found.line for found in packages_of(Table({"package": [{}]}, "f"), "package", text)]

    def text(length: int) -> str:
        return f'x = "{"[[package]]" * (length // 11)}"\n[[package]]\n'

    assert lines(text(1000)) == [2]
    assert_linear(lines, text, 2_000_000)
