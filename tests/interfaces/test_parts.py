"""Parts of the surface's files: what the writer puts in comes out again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.interfaces import table as parts
from compat.interfaces.table import text_of, tuples, value_at, value_of
from scripts.surface.tables import compressed, lzma_of, written
from tests.examples import examples

_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(_VALUES)
def test_a_value_comes_back(value: Any) -> None:
    assert value_of(compressed(value)) == value


@settings(max_examples=examples(100))  # each compresses
@given(st.lists(st.dictionaries(st.text(), _VALUES), min_size=1, max_size=5))
def test_values_in_a_row_are_opened_by_their_places(values: list[Any]) -> None:
    texts = [written(value) for value in values]
    text = text_of(lzma_of("".join(texts)))
    starts = [sum(map(len, texts[:at])) for at in range(len(texts))]
    assert [value_at(text, start) for start in starts] == values


def test_it_is_the_same_without_the_quick_scanner(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise ImportError

    monkeypatch.setattr("compat.syntax.json.scanner", none)
    monkeypatch.setattr(parts, "_scanner", [])
    assert value_at('[1,{"a":null}][2]', 14) == [2]


def test_tuples_can_be_hashed() -> None:
    assert hash(tuples([1, ["a", [None, True]], "b"])) == hash((1, ("a", (None, True)), "b"))
    assert tuples("text") == "text"
