"""Releases that go with none that is left of another package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.interfaces.code.explained import Apart, drop_incompatible_releases
from compat.interfaces.code.releases import Range
from compat.versions import ranges_of

_VERSIONS = ("1.0", "2.0", "3.0")


def _range(package: str, *allowed: str) -> Range:
    return Range(package, _VERSIONS, frozenset(allowed or _VERSIONS), frozenset(allowed or _VERSIONS), {}, {})


class Rows:
    """As much of the rows as is asked for: (consumer, its releases, package, releases that fail, what must be there)."""

    def __init__(self, *rows: tuple[str, Iterable[str], str, Iterable[str], tuple[str, ...]]) -> None:
        self._rows = rows

    def all_of(self, consumer: str, *, tier: str) -> list[Any]:
        assert tier == "E1"
        return [
            (tuple(when), Row(package, tuple(bad), asks)) for name, when, package, bad, asks in self._rows if name == consumer
        ]


class Row:
    path, line, what = "a/b.py", 7, "other.name"

    def __init__(self, package: str, bad: tuple[str, ...], asks: tuple[str, ...]) -> None:
        self.package, self.bad, self.asks = package, bad, asks


class Declared:
    """What each release of ``a`` asks of ``b``."""

    def __init__(self, **asked: tuple[str, Any]) -> None:
        self._asked = {name.lstrip("v").replace("_", "."): each for name, each in asked.items()}
        self.asks = ("b",) if asked else ()

    def package(self, name: str) -> Any:
        return self if name == "a" else None

    def place(self, version: str) -> str | None:
        return version

    def requirements(self, place: str, name: str) -> tuple[Any, ...]:
        if place not in self._asked:
            return ()
        specifier, extra = self._asked[place]
        return ((specifier, ranges_of(specifier), None, extra),)


def _narrowed(rows: Rows, declared: Declared, *ranges: Range, certain: str = "ab") -> dict[str, tuple[str, ...]]:
    found = drop_incompatible_releases(ranges, frozenset(certain), rows, declared)  # type: ignore[arg-type]
    return {each.package: tuple(sorted(each.allowed)) for each in found}


def test_a_release_whose_import_fails_beside_all_that_is_left_is_out() -> None:
    rows = Rows(("a", ("1.0",), "b", ("3.0",), ()))
    assert _narrowed(rows, Declared(), _range("a"), _range("b", "3.0")) == {"a": ("2.0", "3.0"), "b": ("3.0",)}
    assert _narrowed(rows, Declared(), _range("a"), _range("b", "2.0", "3.0"))["a"] == _VERSIONS


def test_what_all_that_is_left_refuses_is_out_on_the_other_side_with_the_reason() -> None:
    rows = Rows(("a", ("2.0", "3.0"), "b", ("1.0",), ()))
    found = drop_incompatible_releases((_range("a", "2.0", "3.0"), _range("b")), frozenset("ab"), rows, Declared())  # type: ignore[arg-type]
    assert found[1].allowed == {"2.0", "3.0"}
    (why,) = found[1].why["1.0"]
    assert isinstance(why, Apart)
    assert (why.by, why.place, why.what) == ("a", "a a/b.py:7", "other.name")
    assert why.text == "imported there, as by every remaining a"


def test_each_release_is_told_its_own_reason() -> None:
    rows, declared = Rows(("a", ("3.0",), "b", ("1.0",), ())), Declared(v3_0=("!=2.0", None))
    (_, other) = drop_incompatible_releases((_range("a", "3.0"), _range("b")), frozenset("ab"), rows, declared)  # type: ignore[arg-type]
    assert {version: each.what for version, (each,) in other.why.items() if isinstance(each, Apart)} == {
        "1.0": "other.name", "2.0": "b!=2.0",
    }  # fmt: skip


def test_what_is_declared_counts_without_an_extra() -> None:
    declared = Declared(v3_0=(">=2", None))
    assert _narrowed(Rows(), declared, _range("a", "3.0"), _range("b"))["b"] == ("2.0", "3.0")
    assert _narrowed(Rows(), Declared(v3_0=(">=2", "all")), _range("a", "3.0"), _range("b"))["b"] == _VERSIONS


def test_it_goes_on_until_nothing_changes() -> None:
    rows = Rows(("a", ("1.0",), "b", ("3.0",), ()), ("b", ("1.0", "2.0"), "c", ("3.0",), ()))
    found = _narrowed(rows, Declared(), _range("a"), _range("b"), _range("c", "3.0"), certain="abc")
    assert found == {"a": ("2.0", "3.0"), "b": ("3.0",), "c": ("3.0",)}


@pytest.mark.parametrize("certain", ["a", "b", ""])
def test_a_package_that_may_not_be_there_rules_nothing_out(certain: str) -> None:
    rows = Rows(("a", ("1.0",), "b", ("3.0",), ()))
    assert _narrowed(rows, Declared(), _range("a"), _range("b", "3.0"), certain=certain)["a"] == _VERSIONS


def test_a_row_that_asks_for_a_third_package_counts_where_that_is_there() -> None:
    rows = Rows(("a", ("1.0",), "b", ("3.0",), ("c",)))
    assert _narrowed(rows, Declared(), _range("a"), _range("b", "3.0"))["a"] == _VERSIONS
    assert _narrowed(rows, Declared(), _range("a"), _range("b", "3.0"), _range("c"), certain="abc")["a"] == ("2.0", "3.0")


def test_where_nothing_would_be_left_the_ranges_stay() -> None:
    rows = Rows(("a", _VERSIONS, "b", ("3.0",), ()))
    assert _narrowed(rows, Declared(), _range("a"), _range("b", "3.0")) == {"a": _VERSIONS, "b": ("3.0",)}


_SOME = st.frozensets(st.sampled_from(_VERSIONS), min_size=1)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), _SOME, st.sampled_from("abc"), _SOME, st.just(())), max_size=6),
    st.tuples(_SOME, _SOME, _SOME),
)
def test_nothing_that_goes_with_all_others_is_ever_left_out(rows: list[Any], left: tuple[frozenset[str], ...]) -> None:
    """Every choice of one release each that no row forbids is still there, unless there is none."""
    from itertools import product

    ranges = tuple(_range(name, *sorted(some)) for name, some in zip("abc", left))
    found = drop_incompatible_releases(ranges, frozenset("abc"), Rows(*rows), Declared())  # type: ignore[arg-type]
    for choice in product(*(each.allowed for each in ranges)):
        here = dict(zip("abc", choice))
        if not any(name != other and here[name] in when and here[other] in bad for name, when, other, bad, _ in rows):
            assert all(here[each.package] in each.allowed for each in found)
