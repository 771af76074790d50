"""The table of lines that releases had: which releases have a line, and what any other line gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compat.interfaces.lines import Lines, decoded, encoded, key_of_line
from compat.interfaces.lines import lines as shipped
from scripts.surface.lines import packed

KNOWN = ["1.0", "1.1", "1.2", "1.3"]


def table(**packages: dict[tuple[str, str], int]) -> Lines:
    made = {
        name: (KNOWN, {key_of_line(function, line): mask for (function, line), mask in having.items()})
        for name, having in packages.items()
    }
    return Lines(packed(made))


@given(st.lists(st.integers(0, 2**40)))
def test_numbers_are_read_as_they_were_written(numbers: list[int]) -> None:
    assert decoded(encoded(numbers)) == numbers


def test_the_releases_with_a_line() -> None:
    found = table(a={("step", "x = 1"): 0b0011, ("step", "y = f(x)"): 0b0101}, b={("step", "x = 1"): 0b0010})
    assert found.packages == ("a", "b")
    assert found.having("a", "step", "x = 1") == ("1.0", "1.1")
    assert found.having("a", "step", "y = f(x)") == ("1.0", "1.2")
    assert found.having("b", "step", "x = 1") == ("1.1",)


def test_other_lines_functions_and_packages_give_nothing() -> None:
    found = table(a={("step", "x = 1"): 0b0011})
    assert found.having("a", "step", "x = 2") == ()
    assert found.having("a", "train", "x = 1") == ()
    assert found.having("c", "step", "x = 1") == ()
    assert found.known("c") == ()


@given(st.dictionaries(st.tuples(st.text(max_size=5), st.text(max_size=9)), st.integers(1, 7), max_size=200))
def test_every_line_is_found(having: dict[tuple[str, str], int]) -> None:
    found = table(a=having)
    assert sorted(found.lines("a")) == sorted({key_of_line(*place) for place in having})
    for place, mask in having.items():
        assert found.having("a", *place) == tuple(version for at, version in enumerate(KNOWN) if mask >> at & 1)


def test_the_shipped_table_has_no_line_of_a_newest_release() -> None:
    table = shipped()
    assert {"accelerate", "peft", "transformers", "trl", "vllm"} <= {*table.packages}
    for package in table.packages:
        newest = len(table.known(package)) - 1
        assert all(spans and spans[-1] < newest for spans in table.sets(package)), package
