"""Version clauses are changed as little as it takes."""

from __future__ import annotations

import pytest

from compat.formats.specifiers import (
    ADMIT,
    EXACT,
    RANGE,
    admits,
    changed,
    changed_poetry,
    is_pinned,
    limited,
    limited_poetry,
    raised,
)


@pytest.mark.parametrize(
    ("clauses", "after", "expected"),
    [
        ("==2.5.1", "2.6.0", "==2.6.0"), (" == 2.5.1", "2.6.0", " == 2.6.0"), ("===2.5.1", "2.6.0", "===2.6.0"),
        (">=2.4,<2.6", "2.6.0", "==2.6.0"), ("", "2.6.0", "==2.6.0"), ("(>=1.0)", "2.0", "(==2.0)"), ("==2.5.*", "2.6", "==2.6"),
        ("==2.5.1+cu121", "2.6.0+cu128", "==2.6.0+cu128"), (">=2.4 ", "3", "==3 "),
    ],
)  # fmt: skip
def test_a_pin(clauses: str, after: str, expected: str) -> None:
    assert changed(clauses, "2.5.1", after, EXACT) == expected


@pytest.mark.parametrize(
    ("clauses", "before", "after", "expected"),
    [
        (">=4.40", "4.51.3", "4.57.6", ">=4.57.6"), (">=4.40,!=4.52", "4.51.3", "4.57.6", ">=4.57.6,!=4.52"),
        (">=4.40, <5", "4.51.3", "4.57.6", ">=4.57.6, <5"), ("", "1", "2", ">=2"), ("", "2", "1", "<=1"),
        (">=4.40,<4.50", "4.45", "4.57.6", "==4.57.6"), ("<4.50", "4.45", "4.57.6", "==4.57.6"), (">=4.55", "4.56", "4.50", "==4.50"),
        (">=4.40", "4.56", "4.50", ">=4.40,<=4.50"), ("~=4.40", "4.45", "4.57.6", ">=4.57.6,~=4.40"),
        ("!=2.0", "1", "2.0", ">=2.0"), (">=2.5", "2.5.1+cu121", "2.5.1+cu128", "==2.5.1+cu128"), (">=1", None, "3", ">=1"),
        ("==2.5.1", "2.5.1", "2.6.0+cu128", "==2.6.0+cu128"), (">=2.0", "2.5.1", "2.6.0+cu128", ">=2.6.0"),
    ],
)  # fmt: skip
def test_a_range_holds_the_new_release_and_not_the_old_one(clauses: str, before: str | None, after: str, expected: str) -> None:
    new = changed(clauses, before, after, RANGE)
    assert new == expected
    assert admits(new, after)
    assert before is None or not admits(new, before) or before.partition("+")[0] == after.partition("+")[0]


@pytest.mark.parametrize(
    ("clauses", "after", "expected"),
    [
        (">=1", "3", ">=1"),
        ("<2", "3", "<=3"),
        ("<2,!=3", "3", "<=3"),
        ("~=1.2", "3.4", "~=3.4"),
        ("~=1.2", "3", "==3"),
        (">4", "3", ">=3"),
    ],
)
def test_a_range_beside_a_pin_only_lets_the_release_in(clauses: str, after: str, expected: str) -> None:
    assert changed(clauses, "1.5", after, ADMIT) == expected


@pytest.mark.parametrize(
    ("constraint", "before", "after", "how", "expected"),
    [
        ("^2.4", "2.5.1", "2.6.0", EXACT, "2.6.0"), ("2.5.1", "2.5.1", "2.6.0", EXACT, "2.6.0"), ("==2.5.1", "2.5.1", "2.6.0", EXACT, "==2.6.0"),
        ("*", "2.5.1", "2.6.0", EXACT, "2.6.0"), ("^2.4 || ^3", "2.5.1", "2.6.0", EXACT, "2.6.0"), ("^2.4", "2.5.1", "2.6.0", RANGE, "^2.6.0"),
        ("~2.5", "2.5.1", "2.6.0", RANGE, "~2.6.0"), (">=2,<3", "2.5", "3.1", RANGE, "==3.1"), ("^2.6", "2.5", "2.6.1", RANGE, "^2.6"),
        ("^2.4", "2.6", "2.5", RANGE, "2.5"), ("^2.4", "2.6", "2.5", ADMIT, "^2.4"),
    ],
)  # fmt: skip
def test_poetry_constraints(constraint: str, before: str, after: str, how: str, expected: str) -> None:
    assert changed_poetry(constraint, before, after, how) == expected


@pytest.mark.parametrize(
    ("clauses", "after"),
    [
        ("", "<26"), (">=2.6", ">=2.6,<26"), (" >=2,<30", " >=2,<26"), ("(>=2)", "(>=2,<26)"), ("<=30,!=25.0", "<26,!=25.0"),
    ],
)  # fmt: skip
def test_an_upper_bound_takes_the_place_of_another_one(clauses: str, after: str) -> None:
    assert limited(clauses, "<26") == after
    assert not is_pinned(clauses)
    assert is_pinned("==25.0")
    assert is_pinned(" === 25.0")
    assert not is_pinned("!=25.0")


@pytest.mark.parametrize(
    ("constraint", "after"),
    [
        (None, "<2"), ("*", "<2"), ("^1.24", "^1.24,<2"), (">=1.24,<3", ">=1.24,<2"), ("1.26.4", None), ("==1.26.4", None),
        ("= 1.26.4", None), ("^1.24 || ^2.0", None), ("^2.0", None),
    ],
)  # fmt: skip
def test_a_bound_in_the_notation_of_poetry(constraint: str | None, after: str | None) -> None:
    assert limited_poetry(constraint, "<2", "1.26.4") == after


@pytest.mark.parametrize(
    ("clauses", "after", "bounds"),
    [
        ("", "2.14.7", ">=2.14.7"), (">=2.14", "2.14.7", ">=2.14.7"), ("<4.48", "4.55.2", "<4.56"), ("<=0.6.3", "0.11.0", "<=0.11.0"),
        ("<=0.6.3", "0.6.3", ""), ("<=0.6.3", "0.6.2", ">=0.6.2"),
        ("<4.48.0", "4.55.2", "<4.56"), ("<4.48.1", "4.55.2", "<4.55.3"), ("<5", "5.1.0", "<6"), ("(<5)", "5.1.0", "<6"),
        (">=0.17, <0.18", "0.18.0", ">=0.18.0,<0.19"), ("<4.48", "4.55.0.post1", "<4.56"), ("<2.7.1", "2.8", "<2.9"),
        ("==4.47.*", "4.55.2", "==4.55.*"), ("==2.*", "3.1", "==3.*"), ("==4.47.*", "4.55.2rc1", ""), (">=2.2,<=3.0", "3.4.0", "<=3.4.0"), ("~=4.47.1", "4.55.2", "~=4.55.2"), ("~=4.47", "5.0", "~=5.0"), ("~=4.47.1", "4.56", "~=4.56.0"), ("<4,!=4.55.2", "4.55.2", ""), ("<4", "4.0.0+cu128", "<5"),
    ],
)  # fmt: skip
def test_a_range_moves_to_a_newer_release_in_its_own_form(clauses: str, after: str, bounds: str) -> None:
    assert raised(clauses, after) == bounds
    if bounds:
        assert admits(limited(clauses, bounds), after.partition("+")[0])
