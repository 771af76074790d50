"""Locks of Poetry, PDM, Pipenv and PEP 751: any text is read or refused, and nothing that is installed gets lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.errors import InputError
from compat.formats.listing import ROOT, Listing
from compat.formats.locks.pdm import PdmLock
from compat.formats.locks.poetry import PoetryLock
from compat.formats.locks.pylock import Pylock
from compat.formats.project.pipfile import PipfileLock
from tests.examples import examples

Reader = Callable[[str, str], tuple[Listing, ...]]
POETRY = (
    '[[package]]\nname = "uvicorn"\nversion = "1.0"\noptional = false\npython-versions = ">=3.8"\ncategory = "main"\n'
    'groups = ["main", "dev"]\nmarkers = "extra == \\"x\\""\n[package.dependencies]\n'
    'h11 = {version = "^1.0", optional = true, markers = "extra == \\"x\\"", extras = ["y"]}\n'
    '[package.source]\ntype = "git"\nurl = "https://github.com/a/b"\nresolved_reference = "c0ffee"\n'
    '[[package]]\nname = "h11"\nversion = "1.0"\noptional = true\npython-versions = "*"\n'
    '[[package]]\nname = "h11"\nversion = "2.0"\noptional = true\npython-versions = "*"\n'
    '[extras]\nx = ["h11"]\n[metadata]\nlock-version = "2.0"\npython-versions = "^3.9 || ^2.7"\n'
)
PDM = (
    '[metadata]\nlock_version = "4.5.0"\ngroups = ["default", "dev"]\n'
    '[[metadata.targets]]\nrequires_python = ">=3.9"\nplatform = "linux"\n'
    '[[package]]\nname = "a"\nversion = "1.0"\ngroups = ["dev"]\nmarker = "os_name == \\"nt\\""\n'
    '[[package]]\nname = "b"\nversion = "1.0"\nextras = ["x"]\ndependencies = ["a>=1; os_name == \\"nt\\""]\npath = "."\n'
)
PYLOCK = (
    'lock-version = "1.0"\ncreated-by = "me"\nextras = ["x"]\ndefault-groups = ["y"]\nrequires-python = ">=3.9"\n'
    '[[packages]]\nname = "a"\nversion = "1.0"\nmarker = "os_name == \\"nt\\""\nwheels = [{name = "a-1.0-py3-none-any.whl"}]\n'
    '[[packages]]\nname = "b"\ndirectory = {path = "."}\n'
)
PIPFILE = json.dumps(
    {
        "_meta": {"pipfile-spec": 6, "requires": {"python_version": "3.10"}, "sources": [{"name": "i", "url": "u"}]},
        "default": {"a": {"version": "==1.0", "index": "i"}, "b": {"git": "u", "ref": "r"}},
        "develop": {"c": {"path": ".", "markers": "os_name == 'nt'", "extras": ["x"]}},
    },
    indent=1,
)
KINDS: tuple[tuple[Reader, str], ...] = (
    (PoetryLock().read, POETRY),
    (
        PoetryLock().read,
        POETRY.replace('lock-version = "2.0"', 'lock-version = "2.1"').replace("optional = true\n", 'groups = ["main"]\n'),
    ),
    (PdmLock().read, PDM),
    (PdmLock().read, PDM.replace('groups = ["dev"]\n', "")),
    (PipfileLock().read, PIPFILE),
    (Pylock().read, PYLOCK),
)
VALUES = ("1", "true", '"x"', "[]", "{}", '["a"]', "[{}]", "1979-05-27", "null", '"\\ud800"', '"\\u0000"', '""', '"^1"', "nan")


def read(reader: Reader, text: str) -> Listing | None:
    try:
        (listing,) = reader("lock", text)
    except InputError as problem:
        assert "\n" not in str(problem)
        return None
    for entry in listing.entries:
        assert json.dumps(entry.distribution.to_json(), ensure_ascii=False).encode()
    return listing


@given(st.sampled_from(KINDS), st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_is_read_or_refused(kind: tuple[Reader, str], text: str) -> None:
    read(kind[0], text)


@st.composite
def changed(draw: st.DrawFn) -> tuple[Reader, str]:
    """A lock with lines deleted, doubled, swapped, cut off, or with a value or a character that does not belong there."""
    reader, text = draw(st.sampled_from(KINDS))
    lines = text.split("\n")
    place = st.integers(0, len(lines) - 1)
    for _ in range(draw(st.integers(1, 3))):
        at, other = draw(place) % len(lines), draw(place) % len(lines)
        how = draw(st.sampled_from(("delete", "double", "swap", "cut", "value", "character")))
        if how == "delete" and len(lines) > 1:
            del lines[at]
        elif how == "double":
            lines.insert(at, lines[other])
        elif how == "swap":
            lines[at], lines[other] = lines[other], lines[at]
        elif how == "cut":
            lines[at:] = [lines[at][: draw(st.integers(0, 40))]]
        elif how == "value":
            mark = " = " if " = " in lines[at] else ": "
            lines[at] = lines[at].partition(mark)[0] + mark + draw(st.sampled_from(VALUES))
        else:
            where = draw(st.integers(0, 40))
            lines[at] = lines[at][:where] + draw(st.characters()) + lines[at][where + 1 :]
    return reader, "\n".join(lines)


@settings(max_examples=examples(400))
@given(changed())
def test_a_damaged_lock_is_read_or_refused(case: tuple[Reader, str]) -> None:
    read(*case)


@st.composite
def graphs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Packages a0, a1, … that depend on each other in any way."""
    size = draw(st.integers(1, 8))
    names = [f"a{number}" for number in range(size)]
    marker = st.sampled_from((None, "os_name == 'nt'", "extra == 'x'", "extra == 'x' and os_name == 'nt' or extra == 'y'"))
    edge = st.tuples(st.sampled_from(names), marker, st.sampled_from(((), ("x",), ("y", "z"))))
    package = st.fixed_dictionaries(
        {"optional": st.booleans(), "category": st.sampled_from(("main", "dev")), "edges": st.lists(edge, max_size=4)}
    )
    return draw(st.lists(package, min_size=size, max_size=size))


def written(packages: list[dict[str, Any]]) -> str:
    text = ""
    for number, package in enumerate(packages):
        text += f'[[package]]\nname = "a{number}"\nversion = "1.0"\noptional = {str(package["optional"]).lower()}\n'
        text += f'category = "{package["category"]}"\n[package.dependencies]\n'
        needed = {name: (marker, extras) for name, marker, extras in package["edges"]}
        for name, (marker, extras) in needed.items():
            condition = f', markers = "{marker}"' if marker else ""
            text += f'{name} = {{version = "*"{condition}, extras = {json.dumps(extras)}}}\n'
    return text + '[metadata]\nlock-version = "1.1"\n'


def reached(listing: Listing, choices: set[int]) -> set[int]:
    below: dict[int, list[int]] = {}
    for parent, child, _, choice in listing.edges or ():
        if choice is None or choice in choices:
            below.setdefault(parent, []).append(child)
    found, todo = {ROOT}, [ROOT]
    while todo:
        for child in below.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return {node for node in found if 0 <= node < len(listing.entries)}


@given(graphs())
def test_what_is_not_optional_can_always_be_installed(packages: list[dict[str, Any]]) -> None:
    (listing,) = PoetryLock().read("poetry.lock", written(packages))
    main = {n for n, package in enumerate(packages) if not package["optional"] and package["category"] == "main"}
    every = {n for n, package in enumerate(packages) if not package["optional"]}
    assert main <= reached(listing, set())
    assert every <= reached(listing, set(range(len(listing.choices))))


@given(graphs())
def test_no_root_is_there_for_nothing(packages: list[dict[str, Any]]) -> None:
    packages = [{**package, "optional": False, "category": "main"} for package in packages]
    (listing,) = PoetryLock().read("poetry.lock", written(packages))
    edges = listing.edges or ()
    for root in (edge for edge in edges if edge[0] == ROOT):
        without = tuple(edge for edge in edges if edge != root)
        assert root[1] not in reached(Listing("poetry.lock", "poetry.lock", listing.entries, without), set())


@pytest.mark.parametrize(("reader", "text"), KINDS)
def test_the_locks_above_are_sound(reader: Reader, text: str) -> None:
    assert read(reader, text) is not None
