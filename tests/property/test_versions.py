"""Our comparison of versions against packaging's, on generated versions and specifiers."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from compat.repair.target import satisfies
from compat.versions import complement, contains, intersect, key_of, overlap, ranges_of, recorded, written
from tests.growth import assert_linear

small = st.integers(0, 3)
releases = st.lists(small, min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@st.composite
def versions(draw: st.DrawFn, local: bool = True) -> str:
    text = draw(st.sampled_from(["", "", "", "1!"])) + draw(releases)
    text += draw(st.sampled_from(["", "", "a1", "b2", "rc1", "rc2"]))
    text += draw(st.sampled_from(["", "", ".post0", ".post1"]))
    text += draw(st.sampled_from(["", "", ".dev0", ".dev1"]))
    if local:
        text += draw(st.sampled_from(["", "", "+cu124", "+cpu", "+g1a2b3c.d20250101"]))
    return text


@st.composite
def specifier_sets(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        operator = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "~=", "==*", "!=*"]))
        if operator.endswith("*"):
            parts.append(operator[:-1] + draw(releases) + ".*")
        else:
            parts.append(operator + draw(versions(local=False)))
    text = ",".join(parts)
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        assume(False)
    return text


@given(versions(), versions())
def test_order_is_that_of_pep_440_without_local_labels(left: str, right: str) -> None:
    a, b = Version(Version(left).public), Version(Version(right).public)
    assert (key_of(left) < key_of(right)) == (a < b)
    assert (key_of(left) == key_of(right)) == (a == b)


@given(specifier_sets(), versions())
def test_ranges_hold_what_packaging_admits(specifier: str, version: str) -> None:
    public = Version(version).public
    assert contains(ranges_of(specifier), key_of(version)) == SpecifierSet(specifier).contains(public, prereleases=True)


@given(specifier_sets(), versions())
def test_plans_satisfy_specifiers_as_packaging_does(specifier: str, version: str) -> None:
    assert satisfies(version, specifier) == SpecifierSet(specifier).contains(version, prereleases=True)


@given(st.text("=!<>~ 01.,*a+v", max_size=12))
def test_what_is_no_specifier_set_is_refused(text: str) -> None:
    try:
        unfit = any(each.operator == "===" or "+" in each.version for each in SpecifierSet(text))
    except InvalidSpecifier:
        unfit = True
    if unfit:
        with pytest.raises(ValueError, match=r"specifier|range|version"):
            ranges_of(text)
    else:
        ranges_of(text)


@given(specifier_sets(), specifier_sets(), versions())
def test_set_algebra(left: str, right: str, version: str) -> None:
    a, b, key = ranges_of(left), ranges_of(right), key_of(version)
    assert contains(intersect(a, b), key) == (contains(a, key) and contains(b, key))
    assert contains(complement(a), key) == (not contains(a, key))
    if contains(a, key) and contains(b, key):
        assert overlap(a, b)


@pytest.mark.parametrize(
    ("specifier", "text"),
    [
        (">=4.51.0,<=4.56.2", ">=4.51,<=4.56.2"),
        ("<0.7.0", "<0.7.dev0"),
        ("==0.16.0.dev0", "==0.16.dev0"),
        (">=1,!=1.2.*", ">=1,<1.2.dev0 or >=1.3.dev0"),
        (">0.6.6.post1", ">0.6.6.post1"),
        ("==1!2.0rc1", "==1!2rc1"),
        ("", "in any version"),
        (">2,<1", "no version"),
    ],
)
def test_ranges_are_written_for_people(specifier: str, text: str) -> None:
    assert written(ranges_of(specifier)) == text


@given(st.text(alphabet="0123456789.abcdevpostr!+-_vV nu", max_size=20))
def test_what_is_no_version_is_refused_and_nothing_else(text: str) -> None:
    try:
        expected = Version(text)
    except InvalidVersion:
        with pytest.raises(ValueError, match="not a version"):
            key_of(text)
    else:
        assert key_of(text) == key_of(str(expected))


@pytest.mark.parametrize(
    ("build", "release"),
    [
        ("2.4.0a0+f70bd71a48.nv24.06", "2.4.0"),
        ("2.6.0+cu124", "2.6.0"),
        ("2.5.1+cpu", "2.5.1"),
        ("2.7.0a0+79aa17489c.nv25.04", "2.7"),
    ],
)
def test_builds_compare_as_their_release(build: str, release: str) -> None:
    assert key_of(build) == key_of(release)


def test_an_alpha_that_is_no_container_build_stays_one() -> None:
    assert key_of("2.4.0a0+git1234") < key_of("2.4.0")


@pytest.mark.parametrize("specifier", ["===1.0", "==1.0+cu124", ">>1", "1.0", "=1.0", "<1.x"])
def test_what_no_range_can_hold_is_refused(specifier: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (each message is checked by the loader's tests)
        ranges_of(specifier)


def test_a_set_of_thousands_of_clauses_takes_linear_time() -> None:
    def clauses(count: int) -> str:
        return ",".join(f"!=2.{number}.{number % 7}" for number in range(count))

    assert_linear(ranges_of, clauses, 4000)
    many = ranges_of(clauses(500))
    assert len(many) == 501
    assert intersect(many, many) == many
    assert complement(complement(many)) == many


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("2.2", "2.2.0"),
        ("2", "2.0.0"),
        ("2.2.0+cu121", "2.2.0"),
        ("1.0.0", "1.0"),
        ("2.2.1", "2.2.1"),
        ("2.3.post1", "2.3.post1"),
    ],
)
def test_a_release_is_found_by_every_spelling_of_its_version(version: str, release: str) -> None:
    assert recorded(version, ("2.0.0", "2.2.0", "2.2.1", "1.0")) == release
