"""YAML as a tree of values with lines, within limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from compat.errors import InputError
from compat.syntax.yaml import Document, Value, parse_yaml

TEXT = """\
a: 3.10
b:
  - x
  - {c: null, d: "~"}
"""


def test_scalars_stay_text_and_every_value_has_its_line() -> None:
    document = Document(TEXT, "f.yml")
    root = document.table(document.root, "the file")
    assert document.text(root["a"], "a") == "3.10"
    first, second = document.items(root["b"], "b")
    assert (first.line, second.line) == (3, 4)
    inner = document.table(second, "an item")
    assert (document.text(inner["c"], "c"), document.text(inner["d"], "d")) == (None, "~")


def test_the_python_parser_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(value: Value) -> object:
        content = value.content
        if isinstance(content, list):
            return value.kind, value.line, [tuple(map(plain, e)) if isinstance(e, tuple) else plain(e) for e in content]
        return value.kind, value.line, content

    with_c = Document(TEXT, "f.yml").root
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    without = Document(TEXT, "f.yml").root
    assert with_c is not None
    assert without is not None
    assert plain(with_c) == plain(without)


def test_merge_keys_are_inherited_and_own_keys_win() -> None:
    document = Document("x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz: {<<: [*x, *y], a: 0}\n", "f.yml")
    merged = document.table(document.table(document.root, "the file")["z"], "z")
    assert {key: document.text(value, key) for key, value in merged.items()} == {"a": "0", "b": "2", "c": "4"}


def test_an_empty_text_has_no_root_and_its_table_is_empty() -> None:
    document = Document("# nothing\n", "f.yml")
    assert document.root is None
    assert document.table(document.root, "the file") == {}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: [1\n", 2, "is not YAML"),
        ("a: *b\n", 1, "undefined alias 'b'"),
        ("a: &a [*a]\n", 1, "undefined alias 'a'"),
        ("a: 1\n---\nb: 2\n", 2, "expected a single document"),
        ("a: 1\n<<<<<<< HEAD\nb: 2\n=======\n", 2, "has an unresolved merge conflict"),
        ("a: 1\nb: \x00\n", 2, "is not YAML"),
        ("a: 1\nb: \udc80\n", 2, "unpaired surrogate"),
        ("[" * 1_000_000, 1, "nested too deeply"),
        ("{a", 1, "is not YAML"),
        ("a:\r\n  {b", 2, "is not YAML"),
        ("- " * 1_000_000, 1, "nested too deeply"),
        ("a: [" + "b," * 100_000 + "]", 1, "more than 50000 values in one list"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_its_place(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Document(text, "f.yml")
    assert (caught.value.file, caught.value.line) == ("f.yml", line)


def test_wrong_types_name_the_place_and_the_line() -> None:
    document = Document("a: [1]\nb: {c: 1}\nd: x\n[1]: 2\n", "f.yml")
    with pytest.raises(InputError, match="expected a key to be a string, not a list") as caught:
        document.table(document.root, "the file")
    assert caught.value.line == 4
    document = Document("a: [1]\nb: {c: 1}\nd: x\n", "f.yml")
    root = document.table(document.root, "the file")
    with pytest.raises(InputError, match=r"f\.yml:1: expected a to be a string, not a list"):
        document.text(root["a"], "a")
    with pytest.raises(InputError, match=r"f\.yml:2: expected b to be a list, not a table"):
        document.items(root["b"], "b")
    with pytest.raises(InputError, match=r"f\.yml:3: expected d to be a table, not a string"):
        document.table(root["d"], "d")
    with pytest.raises(InputError, match=r"f\.yml:3: expected d to be true or false, not 'x'"):
        document.flag(root["d"], "d")
    with pytest.raises(InputError, match=r"f\.yml:3: expected e \(a string\)"):
        document.needed_text(None, "e", root["d"])


def test_aliases_cannot_unfold_without_end() -> None:
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 60))]
    document = Document("\n".join(lines), "f.yml")
    root = document.table(document.root, "the file")
    with pytest.raises(InputError, match="too many values"):
        document.table(root["a59"], "a59")


def test_a_long_name_does_not_make_a_long_error() -> None:
    document = Document("a: 1\n", "f.yml")
    assert len(str(document.wrong("x" * 10_000))) < 400


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "a"),
        ("x:\n- {a: 1,\n   'a': 2}\n", 3, "a"),
        ("? a\n: 1\n? a\n: 2\n", 3, "a"),
        ("x: {null: 1, ~: 2}\n", 1, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("parse", [Document, parse_yaml])
def test_a_key_that_occurs_twice_hides_nothing(parse: Callable[[str, str], object], text: str, line: int, key: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "f.yml")
    assert str(caught.value) == f"f.yml:{line}: the key {key!r} occurs twice"


def test_a_key_may_occur_in_another_table_and_where_it_is_inherited() -> None:
    assert parse_yaml("x: &x {a: 1}\ny: {<<: *x, a: 2}\nz: {<<: *x, <<: {b: 3}}\n", "f.yml")[0] == {
        "x": {"a": 1}, "y": {"a": 2}, "z": {"a": 1, "b": 3},
    }  # fmt: skip
