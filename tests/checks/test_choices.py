"""Sets of extras and groups: plain ones first, none with a conflict, every choice in at least one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.checks.choices import Requested, choice_sets
from compat.errors import InputError
from compat.formats.listing import Choice, Listing


def names(listing: Listing, asked: Requested | None = None) -> list[tuple[str, frozenset[str]]]:
    return [
        (each.label, frozenset(listing.choices[number].name for number in each.numbers))
        for each in choice_sets(listing, asked or Requested())
    ]


DEV, A, B, C = Choice("group", "dev", default=True), Choice("extra", "a"), Choice("extra", "b"), Choice("extra", "c")


def test_nothing_to_choose_is_one_set() -> None:
    assert names(Listing("x", "uv.lock")) == [("", frozenset())]


def test_defaults_bare_singles_and_everything() -> None:
    assert names(Listing("x", "uv.lock", choices=(DEV, A, B))) == [
        ("", {"dev"}), ("without default groups", frozenset()), ("extra a", {"dev", "a"}), ("extra b", {"dev", "b"}),
        ("every extra and group", {"dev", "a", "b"}),
    ]  # fmt: skip


def test_conflicts_leave_out_what_does_not_go_together() -> None:
    found = names(Listing("x", "uv.lock", choices=(A, B, C), conflicts=((0, 1),)))
    assert ("everything but extra b", {"a", "c"}) in found
    assert ("everything but extra a", {"b", "c"}) in found
    assert not any({"a", "b"} <= chosen for _, chosen in found)


def test_a_default_that_conflicts_gives_way() -> None:
    found = dict(names(Listing("x", "uv.lock", choices=(DEV, A), conflicts=((0, 1),))))
    assert found["extra a"] == {"a"}


def test_an_exclusive_file_has_one_set_for_each() -> None:
    listing = Listing(
        "pixi.lock", "pixi.lock", choices=(Choice("environment", "cpu"), Choice("environment", "gpu")), exclusive=True
    )
    assert names(listing) == [("environment cpu", {"cpu"}), ("environment gpu", {"gpu"})]
    assert names(listing, Requested(environment="gpu")) == [("environment gpu", {"gpu"})]
    with pytest.raises(InputError, match=r"unknown environment 'tpu'; it has cpu, gpu"):
        names(listing, Requested(environment="tpu"))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (Requested(("a",)), {"dev", "a"}),
        (Requested(("A",), ("none",)), {"a"}),
        (Requested(("all",), ("none",)), {"a", "b"}),
        (Requested(("none",)), {"dev"}),
        (Requested(None, ("none",)), frozenset()),
    ],
)
def test_what_is_asked_for_is_one_set(asked: Requested, expected: set[str]) -> None:
    assert names(Listing("x", "uv.lock", choices=(DEV, A, B)), asked) == [("", expected)]


def test_an_extra_called_all_is_that_extra() -> None:
    listing = Listing("x", "uv.lock", choices=(A, Choice("extra", "all")))
    assert names(listing, Requested(("all",))) == [("", {"all"})]


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(InputError, match=r"unknown extra 'z'; it has a, b") as caught:
        names(Listing("uv.lock", "uv.lock", choices=(DEV, A, B)), Requested(("z",)))
    assert caught.value.file == "uv.lock"


def test_members_of_a_workspace_come_with_their_extras() -> None:
    home, other = Choice("package", "home", default=True), Choice("package", "other")
    mine, theirs = Choice("extra", "x", "home"), Choice("extra", "x", "other")
    listing = Listing("x", "uv.lock", choices=(home, other, mine, theirs))
    found = {each.label: each.numbers for each in choice_sets(listing, Requested())}
    assert found["extra home[x]"] == {0, 2}
    assert found["extra other[x]"] == {0, 1, 3}
    assert [each.numbers for each in choice_sets(listing, Requested(("other[x]",)))] == [{0, 1, 3}]


@settings(deadline=None)
@given(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.sets(st.integers(0, n - 1), min_size=2 if n > 1 else 1, max_size=3), max_size=6)
        )
    )
)
def test_no_set_has_a_conflict_and_every_choice_is_tried(drawn: tuple[int, list[set[int]]]) -> None:
    count, groups = drawn
    conflicts = tuple(tuple(sorted(group)) for group in groups if len(group) > 1)
    listing = Listing("x", "uv.lock", choices=tuple(Choice("extra", f"e{n}") for n in range(count)), conflicts=conflicts)
    sets = [each.numbers for each in choice_sets(listing, Requested())]
    assert len(set(sets)) == len(sets)
    assert frozenset().union(*sets) == set(range(count))
    for numbers in sets:
        assert not any(len(numbers & set(conflict)) > 1 for conflict in conflicts)

    # nothing can be added to the largest ones
    def fits(numbers: frozenset[int]) -> bool:
        return not any(len(numbers & set(conflict)) > 1 for conflict in conflicts)

    largest = [numbers for numbers in sets if not any(fits(numbers | {n}) for n in range(count) if n not in numbers)]
    for pair in ({a, b} for a in range(count) for b in range(a)):
        if fits(frozenset(pair)):
            assert any(pair <= numbers for numbers in largest), pair
