"""Requirements read by hand and by ``packaging`` are the same; no text makes the readers fail in another way than they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from compat.formats.requirements.requirement import is_archive, parse_requirement
from compat.model import Distribution

_BLANKS = st.sampled_from(["", "", " ", "  ", "\t"])
_NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?", fullmatch=True).filter(
    lambda name: not is_archive(name)
)
_NUMBERS = st.integers(0, 2025).map(str)
_SUFFIXES = st.sampled_from(
    [
        "",
        "",
        "",
        ".*",
        "a1",
        "rc2",
        ".post1",
        ".dev0",
        ".post1.dev3",
        "+cu124",
        "+CU12.torch2",
        "-1",
        "_x",
        ".0a0",
        "+",
        ".",
        "c3",
        "\xb2",
    ]
)
_VERSIONS = st.builds(
    lambda start, numbers, end: start + ".".join(numbers) + end,
    st.sampled_from(["", "", "", "v", "1!"]), st.lists(_NUMBERS, min_size=0, max_size=4), _SUFFIXES,
)  # fmt: skip
_OPERATORS = st.sampled_from(["==", ">=", "<=", "<", ">", "!=", "~=", "=", "=>", ""])
_CLAUSES = st.builds(lambda *parts: "".join(parts), _BLANKS, _OPERATORS, _BLANKS, _VERSIONS, _BLANKS)
_EXTRAS = st.lists(st.sampled_from(["all", "Dev", "cuda_12", " a ", "", "x-", "é"]), max_size=3).map(
    lambda e: f"[{','.join(e)}]"
)
_MARKERS = st.sampled_from(
    ["python_version < '3.9'", 'sys_platform == "linux" and (extra == "A_b" or os_name=="nt")', "", "torch", "python_version"]
)
_TAILS = st.one_of(
    st.lists(_CLAUSES, max_size=3).map(",".join),
    st.lists(_CLAUSES, min_size=1, max_size=2).map(lambda clauses: f"({','.join(clauses)})"),
    st.sampled_from(["@ https://host.example/a.zip", "@git+https://github.com/o/n@main#egg=n", "@", "@ a b"]),
)
_REQUIREMENTS = st.builds(
    lambda name, blank, extras, tail, mark, marker: f"{name}{blank}{extras}{blank}{tail}{mark}{marker}",
    _NAMES, _BLANKS, st.one_of(st.just(""), _EXTRAS), _TAILS, st.sampled_from(["", " ; ", " ;"]), _MARKERS,
)  # fmt: skip


@given(_REQUIREMENTS)
def test_a_requirement_is_what_packaging_says_it_is(text: str) -> None:
    try:
        expected = Requirement(text.strip())
    except InvalidRequirement:
        with pytest.raises(ValueError, match=r"\S"):
            parse_requirement(text)
        return
    found = parse_requirement(text)
    assert found.name == canonicalize_name(expected.name)
    assert found.extra.get("extras", []) == sorted({canonicalize_name(extra) for extra in expected.extras})
    assert found.marker == (None if expected.marker is None else str(expected.marker))
    assert _asked(found) == (SpecifierSet() if expected.url else expected.specifier)
    assert (found.source is not None and found.source.kind in ("index", "nightly")) == (expected.url is None)
    assert found.version is None or found.specifier is None


def _asked(found: Distribution) -> SpecifierSet:
    pinned = (
        f"=={found.version}"
        if found.version is not None and "url" not in (found.source.details if found.source else {})
        else ""
    )
    return SpecifierSet(found.specifier or pinned)


@given(st.one_of(st.text(), _REQUIREMENTS, st.text(alphabet="ab1.-_=<>!~[](),;@ '\"/\\#&+:%\x00\ud800", max_size=40)))
def test_every_other_text_is_a_value_error(text: str) -> None:
    try:
        found = parse_requirement(text)
    except ValueError as problem:
        assert "\n" not in str(problem) or "\n" in text
    else:
        assert found.name
