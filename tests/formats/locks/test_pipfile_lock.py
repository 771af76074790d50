"""Pipfile.lock → listing: packages, sources, sections."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compat.errors import InputError
from compat.formats.listing import Choice, Listing
from compat.formats.project.pipfile import PipfileLock
from compat.model import Source
from tests.formats.listings import selected

META = {
    "pipfile-spec": 6,
    "requires": {"python_version": "3.10"},
    "sources": [
        {"name": "main", "url": "https://me:token@index.example/simple", "verify_ssl": True},
        {"name": "pytorch", "url": "https://download.pytorch.org/whl/cu124"},
    ],
}


def written(meta: Any = META, **sections: Any) -> str:
    return json.dumps({"_meta": meta, **sections}, indent=4)


def read(text: str) -> Listing:
    (listing,) = PipfileLock().read("Pipfile.lock", text)
    return listing


def test_a_package_has_name_version_source_and_marker() -> None:
    commit = "3890665e6082bdc354d4c3a26f3bf42ecedaaa81"
    packages: dict[str, tuple[dict[str, Any], str | None, Source]] = {
        "Flash_Attn": ({"version": "==2.6.3"}, "2.6.3", Source("index")),
        "a": ({"version": "==1.0", "index": "main"}, "1.0", Source("index", {"url": "https://index.example/simple"})),
        "torch": (
            {"version": "==2.6.0+cu124", "index": "pytorch"},
            "2.6.0+cu124",
            Source("index", {"url": "https://download.pytorch.org/whl/cu124"}),
        ),
        "b": ({"version": "==1.0", "index": "unknown"}, "1.0", Source("index")),
        "peft": (
            {"git": "https://github.com/h/peft", "ref": commit},
            None,
            Source("vcs", {"url": "https://github.com/h/peft", "commit": commit}),
        ),
        "trl": (
            {"git": "https://github.com/h/trl", "ref": "main", "subdirectory": "x"},
            None,
            Source("vcs", {"url": "https://github.com/h/trl", "requested_revision": "main", "subdirectory": "x"}),
        ),
        "w": (
            {"file": "https://host.example/w-1.0-py3-none-any.whl"},
            None,
            Source("url", {"url": "https://host.example/w-1.0-py3-none-any.whl"}),
        ),
        "me": ({"path": ".", "editable": True}, None, Source("directory", {"path": ".", "editable": True})),
        "sdist": ({"path": "./x-1.0.tar.gz"}, None, Source("url", {"path": "./x-1.0.tar.gz"})),
    }
    listing = read(written(default={name: content for name, (content, _, _) in packages.items()}))
    found = [entry.distribution for entry in listing.entries]
    assert [d.name for d in found] == ["flash-attn", *list(packages)[1:]]
    assert [(d.version, d.source) for d in found] == [(version, source) for _, version, source in packages.values()]
    assert (listing.kind, listing.complete, listing.requires_python) == ("Pipfile.lock", True, "==3.10.*")


@pytest.mark.parametrize(
    ("version", "pinned", "specifier"),
    [
        ("==1.0", "1.0", None),
        ("== 1.0", "1.0", None),
        ("1.0", "1.0", None),
        ("*", None, None),
        (">=1.0,<2", None, ">=1.0,<2"),
        ("==1.*", None, "==1.*"),
        ("~=1.4", None, "~=1.4"),
    ],
)
def test_versions_and_ranges(version: str, pinned: str | None, specifier: str | None) -> None:
    (entry,) = read(written(default={"a": {"version": version}})).entries
    assert (entry.distribution.version, entry.distribution.specifier) == (pinned, specifier)


def test_sections_are_groups_that_are_chosen() -> None:
    linux = "sys_platform == 'linux'"
    listing = read(
        written(
            default={"torch": {"version": "==2.6.0"}, "triton": {"version": "==3.2", "markers": linux}},
            develop={"pytest": {"version": "==9.0"}, "torch": {"version": "==2.5.1"}},
            docs={"mkdocs": {"version": "==1.6", "markers": linux, "python_version": "< '3.11'"}},
        )
    )
    assert listing.choices == (Choice("group", "develop"), Choice("group", "docs"))
    assert selected(listing, python="3.10.1") == {"torch 2.6.0", "triton 3.2"}
    assert selected(listing, groups=("develop",)) == {"torch 2.6.0", "triton 3.2", "pytest 9.0", "torch 2.5.1"}
    assert selected(listing, groups=("docs",), python="3.10.1", os="darwin", machine="arm64") == {"torch 2.6.0"}
    assert [entry.distribution.marker for entry in listing.entries] == [None, linux, None, None, linux]
    assert (listing.edges or ())[4] == (-1, 4, f"({linux}) and (python_version < '3.11')", 1)


def test_extras_are_kept() -> None:
    (entry,) = read(written(default={"fsspec": {"version": "==1.0", "extras": ["http"]}})).entries
    assert entry.distribution.extra == {"extras": ["http"]}


def test_lines() -> None:
    text = written(
        default={"a": {"extras": ["b", "default"], "version": "==1"}, "b": {}, "develop": {"version": "==1"}}, develop={"b": {}}
    )
    lines = text.split("\n")
    found = [entry.line for entry in read(text).entries]
    assert [lines[line - 1].strip().rstrip(" {}:,") for line in found if line] == ['"a"', '"b"', '"develop"', '"b"']
    assert found == sorted(line for line in found if line)
    assert [entry.line for entry in read(text.replace('"b": {}', '"\\u0062": {}', 1)).entries] == [None] * 4


@pytest.mark.parametrize(
    ("requires", "specifier"),
    [({"python_full_version": "3.10.4", "python_version": "3.10"}, "==3.10.4"), ({"python_version": "3"}, "==3.*"), ({}, None)],
)
def test_python(requires: dict[str, str], specifier: str | None) -> None:
    assert read(written({"requires": requires})).requires_python == specifier


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[]", None, "expected a JSON object"),
        ("{}", None, "expected _meta"),
        ('{"_meta": [],\n"default": {}}', None, "_meta: expected a table, not a list"),
        ('{"_meta": {"pipfile-spec": 7}}', None, "_meta: pipfile-spec: expected 6, not a number"),
        ('{"_meta": {"sources": {}}}', None, "_meta: sources: expected a list of tables, not a table"),
        ('{"_meta": {"sources": [{"name": 1}]}}', None, "_meta sources: name: expected a string, not a number"),
        ('{"_meta": {"requires": {"python_version": "three"}}}', None, "_meta requires: 'three' is not a version"),
        ('{"_meta": {},\n"default": []}', None, "default: expected a table, not a list"),
        ('{"_meta": {},\n"default": {"a": 1}}', None, "default: a: expected an object, not a number"),
        ('{"_meta": {},\n"default": {\n"a": {"version": 1}}}', 3, "package a: version: expected a string, not a number"),
        ('{"_meta": {},\n"default": {\n"a": {"version": "==y"}}}', 3, "package a: version: '==y' is not a version"),
        ('{"_meta": {},\n"default": {\n"a": {"version": "==1x!"}}}', 3, "package a: '1x!' is not a version"),
        ('{"_meta": {},\n"default": {\n"a": {"markers": ["b"]}}}', 3, "package a: markers: expected a string, not a list"),
        ('{"_meta": {},\n"default": {\n"a": {"extras": "b"}}}', 3, "package a: extras: expected a list of strings"),
        ('{"_meta": {},\n"default": {\n"a": {"path": ".", "editable": 1}}}', 3, "package a: editable: expected true or false"),
        ('{"_meta": {},\n"default": {\n"a": {"file": "\\ud800"}}}', None, "package a: file: contains an unpaired surrogate"),
        (
            '{"_meta": {},\n"default": {\n"a": {"extras": ["\\udc00"]}}}',
            None,
            "package a: extras: contains an unpaired surrogate",
        ),
        ('{"_meta": {},\n"\\ud800": {}}', None, "the name of a section: contains an unpaired surrogate"),
        ('{"_meta": {},\n"default": {\n"a": {"os_name": 1}}}', 3, "package a: os_name: expected a string"),
        ('{"_meta": {},\n"default": {\n"ä": {}}}', 3, "is not the name of a package"),
        ('{"_meta": {},\n"default": {\n"": {}}}', 3, "package: name: expected a non-empty string"),
        ('{"_meta": {},\n<<<<<<< HEAD\n"a": {},\n=======\n>>>>>>> main\n}', 2, "unresolved merge conflict"),
        ('{"_meta": {},\n"default": }', 2, "is not JSON"),
        ("[" * 100000, None, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, line: int | None, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read(text)
    assert (caught.value.file, caught.value.line) == ("Pipfile.lock", line)


def test_a_byte_order_mark_does_not_matter() -> None:
    text = written(default={"a": {"version": "==1.0"}})
    assert read("\ufeff" + text) == read(text)
