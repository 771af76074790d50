"""Where the tables of a lock stand in its text."""

from __future__ import annotations

import time

from compat.formats.locks.tables import Table, packages_of


def test_packages_have_the_lines_of_their_headers() -> None:
    document = Table({"package": [{"name": "a"}, {"name": "b"}]}, "f")
    found = packages_of(document, "package", 'x = "[[package]]"\n[[package]]\nname = "a"\n  [[package]]\nname = "b"\n')
    assert [(each.name, each.line) for each in found] == [("package a", 2), ("package b", 4)]


def test_a_text_full_of_headers_takes_no_long_time() -> None:
    text = f'x = "{"[[package]]" * 180_000}"\n[[package]]\n'
    began = time.process_time()
    (found,) = packages_of(Table({"package": [{}]}, "f"), "package", text)
    assert found.line == 2
    assert time.process_time() - began < 2
