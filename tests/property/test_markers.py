"""Our markers against packaging's: the same trees are understood, and mean the same in every context."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import InvalidMarker, Marker

from compat.checks.choices import Requested
from compat.checks.contexts import Contexts, Platform
from compat.formats.listing import Listing
from compat.index.metadata import Requirement
from compat.markers import combined, comparisons, parse, version_holds, written
from compat.model import Environment
from compat.repair.target import Target

versions = st.sampled_from(["3", "3.8", "3.9", "3.10", "3.10.0", "3.11", "3.11.4", "3.12", "3.13.1", "3.14.0rc1", "4.0"])
numbered = st.builds(
    lambda name, operator, version: f"{name} {operator} '{version}'",
    st.sampled_from(["python_version", "python_full_version", "implementation_version"]),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    versions,
)
wild = st.builds(
    lambda operator, version: f"python_full_version {operator} '{version}.*'",
    st.sampled_from(["==", "!="]),
    st.sampled_from(["3", "3.10", "3.11"]),
)
named = st.builds(
    lambda name, operator, value: f'{name} {operator} "{value}"',
    st.sampled_from(["sys_platform", "os_name", "platform_machine", "platform_system", "implementation_name"]),
    st.sampled_from(["==", "!=", "in", "not in"]),
    st.sampled_from(["linux", "win32", "darwin", "Linux", "posix", "nt", "x86_64", "aarch64", "arm64", "AMD64", "cpython"]),
)
reversed_ones = st.builds(
    lambda value, name: f"'{value}' in {name}",
    st.sampled_from(["lin", "86", "arm"]),
    st.sampled_from(["sys_platform", "platform_machine"]),
)
atoms = st.one_of(numbered, wild, named, reversed_ones)


@st.composite
def markers(draw: st.DrawFn) -> str:
    """Comparisons in a row, some of them in parentheses."""
    parts = [draw(atoms)]
    for _ in range(draw(st.integers(0, 5))):
        parts.append(draw(st.sampled_from(["and", "or"])))
        inner = draw(atoms)
        if draw(st.booleans()):
            inner = f"({inner} {draw(st.sampled_from(['and', 'or']))} {draw(atoms)})"
        parts.append(inner)
    return " ".join(parts)


SYSTEMS = {"linux": ("linux", "Linux", "posix"), "darwin": ("darwin", "Darwin", "posix"), "windows": ("win32", "Windows", "nt")}


def environment_of(place: Platform) -> dict[str, str]:
    full = ".".join(map(str, place.python))
    platform, system, os_name = SYSTEMS[place.os]
    return {
        "python_version": ".".join(map(str, place.python[:2])), "python_full_version": full, "implementation_version": full,
        "implementation_name": "cpython", "platform_python_implementation": "CPython", "sys_platform": platform,
        "platform_system": system, "os_name": os_name, "platform_machine": place.machine, "platform_release": "",
        "platform_version": "", "extra": "",
    }  # fmt: skip


CONTEXTS = Contexts(Listing("x", "test"), Environment(), Requested())


@given(markers())
def test_a_marker_holds_in_the_same_worlds(text: str) -> None:
    theirs = Marker(text)
    mask = CONTEXTS.where(text)
    for at, place in enumerate(CONTEXTS.platforms):
        assert bool(mask >> at & 1) == theirs.evaluate(environment_of(place)), place


with_extras = st.sampled_from(["extra == 'cuda'", "extra != 'cuda'", "'cuda' == extra", "extra == 'cpu'", "extra == 'CPU'"])
TARGET = Target(Environment(python="3.11", os="linux", machine="x86_64"))


@given(markers(), with_extras, st.sampled_from(["and", "or"]))
def test_a_requirement_applies_with_the_same_extras(text: str, extra: str, joined: str) -> None:
    marker = f"({text}) {joined} {extra}"
    theirs = Marker(marker)
    place = environment_of(Platform((3, 11, 0), "linux", "x86_64"))
    named = [each for each in ("cuda", "cpu") if each in marker.lower() and theirs.evaluate({**place, "extra": each})]
    expected = [""] if theirs.evaluate(place) else named
    assert list(TARGET.needs_by_extra((Requirement("torch", marker=str(theirs)),))) == expected


@given(markers())
def test_what_is_written_reads_the_same(text: str) -> None:
    tree = parse(text)
    assert parse(written(tree)) == tree
    assert CONTEXTS.where(str(Marker(written(tree)))) == CONTEXTS.where(text)


@given(st.text(alphabet="()'\"andornt_ pyhselfxi.=<>!~3", max_size=40))
def test_any_text_is_a_marker_or_a_value_error(text: str) -> None:
    try:
        parse(text)
    except ValueError:
        with pytest.raises(InvalidMarker):
            Marker(text)
    else:
        Marker(text)


@given(
    st.tuples(st.integers(3, 4), st.integers(0, 14), st.integers(0, 5)),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "~=", "==="]),
    versions,
)
def test_versions_compare_as_in_pep_440(release: tuple[int, ...], operator: str, text: str) -> None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        wanted = SpecifierSet(operator + text)
    except InvalidSpecifier:
        assert version_holds(release, operator, text) is None
        return
    if operator != "===":  # compares texts, and 3.10 is not 3.10.0
        assert version_holds(release, operator, text) == wanted.contains(".".join(map(str, release)), prereleases=True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends too early"),
        ("python_version", "ends too early"),
        ("python_version >= '3", "quote"),
        ("colour == 'red'", "variable"),
        ("'a' == 'b'", "needs a variable"),
        ("os_name == 'nt' xor os_name == 'posix'", "expected 'and' or 'or'"),
        ("(os_name == 'nt'", "ends too early"),
        ("os_name not 'nt'", "after 'not'"),
        ("(" * 5000 + "os_name == 'nt'" + ")" * 5000, "nested too deeply"),
    ],
)
def test_what_is_no_marker_is_said(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(text)


def test_extras_and_groups_of_pep_751() -> None:
    tree = parse("'dev' in extras or \"default\" in dependency_groups")
    assert comparisons(tree) == [
        ((False, "dev"), "in", (True, "extras")),
        ((False, "default"), "in", (True, "dependency_groups")),
    ]
    assert combined(tree, lambda each: 0b01 if each[2][1] == "extras" else 0b10) == 0b11
