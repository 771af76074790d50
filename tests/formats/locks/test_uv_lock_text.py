"""The line reader gives what a TOML parser gives, or nothing at all."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.formats.locks.uv_text import tables_of
from compat.syntax.toml import parse_text
from tests.conftest import ROOT

LOCKS = sorted((ROOT / ".." / "shared" / "corpus" / "files" / "uv.lock").glob("*"))
LOCK = """version = 1
revision = 3
requires-python = ">=3.10"
resolution-markers = [
    "sys_platform == 'linux'",
    "sys_platform != 'linux'",
]
conflicts = [[
    { package = "mine", extra = "a" },
    { package = "mine", extra = "b" },
], [
    { package = "mine", group = "c" },
    { package = "mine", extra = "b" },
]]

[options]
exclude-newer = "0001-01-01T00:00:00Z" # This is explained.
prerelease-mode = "allow"

[manifest]
members = ["mine"]
constraints = [{ name = "numpy", specifier = "<2" }]

[[manifest.dependency-metadata]]
name = "flash-attn"
requires-dist = ["torch"]

[[package]]
name = "mine"
source = { editable = "." }
dependencies = [
    { name = "torch", version = "2.6.0", source = { registry = "https://index.example/simple" }, marker = "sys_platform == 'linux'" },
    { name = "ray", extra = ["default", "tune"] },
]

[package.optional-dependencies]
a = [
    { name = "torch" },
]

[package.metadata]
requires-dist = [
    { name = "torch", specifier = ">=2" },
]
provides-extras = ["a", "b"]

[[package]]
name = "torch"
version = "2.6.0"
source = { registry = "https://index.example/simple" }
sdist = { url = "https://files.example/torch.tar.gz", hash = "sha256:00", size = 10 }
wheels = [
    { url = "https://files.example/torch.whl", hash = "sha256:00", size = 10 },
]
"""


def without_files(value: Any) -> Any:
    """The document without what is passed over, wherever it stands."""
    if isinstance(value, list):
        return [without_files(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: without_files(each) for key, each in value.items() if key not in ("wheels", "sdist", "requires-dist")}


def test_everything_uv_writes() -> None:
    found = tables_of(LOCK)
    assert found is not None
    document, places = found
    assert without_files(document) == without_files(parse_text(LOCK, "uv.lock"))
    lines = LOCK.split("\n")
    assert [lines[place - 1] for place in places] == ["[[package]]"] * 2


@pytest.mark.skipif(not LOCKS or sys.version_info < (3, 11), reason="needs the corpus and a fast TOML parser")
@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_real_locks_are_read_alike(path: Any) -> None:
    text = path.read_text(encoding="utf-8")
    found = tables_of(text)
    assert found is not None, "every real lock is in the form uv writes"
    document, places = found
    assert without_files(document) == without_files(parse_text(text, "uv.lock"))
    assert len(places) == len(document["package"])


@pytest.mark.parametrize(
    "change",
    [
        ('name = "mine"', 'name = "mi\\u006ee"'),
        ('name = "mine"', "name = 'mine'"),
        ('name = "mine"', 'name="mine"'),
        ('name = "mine"\n', 'name = "mine"\n<<<<<<< HEAD\n'),
        ('    { url = "https://files.example/torch.whl"', '>>>>>>> theirs\n    { url = "https://files.example/torch.whl"'),
        ('    { name = "ray"', '  { name = "ray"'),
        ("\n", "\r\n"),
        ("revision = 3", "revision = 3\nrevision = 4"),
        ('version = "2.6.0"\nsource', "version = '''2.6.0'''\nsource"),
        ("[[package]]\nname = \"torch\"", "[package]\nname = \"torch\""),
        ("]]\n\n[options]", "]\n\n[options]"),
    ],
)  # fmt: skip
def test_any_other_form_is_left_to_the_toml_parser(change: tuple[str, str]) -> None:
    assert LOCK.replace(*change) != LOCK
    assert tables_of(LOCK.replace(*change)) is None


@pytest.mark.parametrize("value", ["1", '"a"', '[""]', "[1]", "true", "[[]]"])
@pytest.mark.parametrize("header", ["[package.d]", "[package.d.e]", "[[package.d]]"])
def test_a_header_below_a_value_is_left_to_the_toml_parser(header: str, value: str) -> None:
    assert tables_of(f"package = {value}\n{header}\nversion = 1\n") is None


@given(st.integers(0, len(LOCK) - 1), st.integers(0, 12), st.text(alphabet='[]{}"=, \n#\\abc', max_size=4))
def test_whatever_it_reads_a_toml_parser_reads_alike(at: int, length: int, put: str) -> None:
    """Damage anywhere: either the line reader gives up, or both agree (files it passes over are not compared)."""
    text = LOCK[:at] + put + LOCK[at + length :]
    found = tables_of(text)
    if found is None:
        return
    passed_over = [text.find(start) for start in ("requires-dist = [\n", "sdist = ", "wheels = [\n")]
    spans = [(start, text.find("\n]" if "[" in text[start : start + 18] else "\n", start) + 2) for start in passed_over]
    if any(start <= at <= end for start, end in spans):
        return
    try:
        theirs = parse_text(text, "uv.lock")
    except Exception as problem:
        raise AssertionError(f"read what is no TOML: {text[max(0, at - 60) : at + 60]!r}") from problem
    assert without_files(found[0]) == without_files(theirs)
