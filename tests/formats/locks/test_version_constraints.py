"""Poetry's constraints in terms of PEP 440."""

from __future__ import annotations

import pytest

from compat.formats.specifiers import alternatives, matcher, python_marker


@pytest.mark.parametrize(
    ("constraint", "sets"),
    [
        ("^3.9", [">=3.9,<4"]),
        ("^3.9.10", [">=3.9.10,<4"]),
        ("^0.2.3", [">=0.2.3,<0.3"]),
        ("^0.0.3", [">=0.0.3,<0.0.4"]),
        ("^0.0", [">=0.0,<0.1"]),
        ("^0", [">=0,<1"]),
        ("^1.0a1", [">=1.0a1,<2"]),
        ("^1!2.0", [">=1!2.0,<1!3"]),
        ("~3.11", [">=3.11,<3.12"]),
        ("~3.11.4", [">=3.11.4,<3.12"]),
        ("~3", [">=3,<4"]),
        ("~=3.11.4", ["~=3.11.4"]),
        (">=3.9,<3.13", [">=3.9,<3.13"]),
        (">= 3.9 < 3.13", [">=3.9,<3.13"]),
        ("3.10.*", ["==3.10.*"]),
        ("!=3.10.*", ["!=3.10.*"]),
        ("1.2.3", ["==1.2.3"]),
        ("=1.2.3", ["==1.2.3"]),
        ("2.6.0+cu124", ["==2.6.0+cu124"]),
        ("*", [""]),
        ("", [""]),
        ("^2.5.0+cu124", [">=2.5.0,<3"]),
        ("^2.7 || ^3.5", [">=2.7,<3", ">=3.5,<4"]),
        ("<4.0.0a0 || >4.0.0a0,<4.0.0a1", ["<4.0.0a0", ">4.0.0a0,<4.0.0a1"]),
        (">=1.0,", [">=1.0"]),
    ],
)
def test_a_constraint_is_a_list_of_specifier_sets(constraint: str, sets: list[str]) -> None:
    assert alternatives(constraint) == sets


@pytest.mark.parametrize("text", ["banana", ">=", "^", "^x.y", ">=1 <", "1.2.3-", "~=a", "1." * 2000 + "1"])
def test_what_is_no_constraint_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version constraint"):
        alternatives(text)


@pytest.mark.parametrize(
    ("constraint", "admitted", "refused"),
    [
        ("^2.5", ["2.5.0", "2.7.1+cu126"], ["2.4.9", "3.0"]),
        ("2.6.0", ["2.6.0", "2.6.0+cu124"], ["2.6.1"]),
        ("2.6.0+cu124", ["2.6.0+cu124", "2.6.0+CU124"], ["2.6.0", "2.6.0+cpu"]),
        ("!=2.6.0+cu124", ["2.6.0"], ["2.6.0+cu124"]),
        (">=2.6.0+cu124", ["2.6.0+cpu", "2.7"], ["2.5"]),
        ("<1.0 || >2", ["0.9", "3"], ["1.5"]),
        ("===2.6.0", ["2.6.0"], ["2.6"]),
        ("*", ["0.1.dev0"], []),
        ("not a constraint", ["1.0"], []),
        (",".join(["!=1.0"] * 500), ["1.0"], []),
    ],
)
def test_a_matcher_admits_what_the_constraint_does(constraint: str, admitted: list[str], refused: list[str]) -> None:
    fits = matcher(constraint)
    assert [version for version in admitted if not fits(version)] == []
    assert [version for version in refused if fits(version)] == []


def test_pythons_as_a_marker() -> None:
    assert python_marker(">=3.9,<4") == 'python_full_version >= "3.9" and python_full_version < "4"'
    assert python_marker("==3.10.*") == 'python_full_version == "3.10.*"'
    assert python_marker("") is None
