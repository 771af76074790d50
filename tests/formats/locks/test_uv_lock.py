"""uv.lock: releases, sources, the graph with its extras and groups, and what is wrong in a broken one."""

from __future__ import annotations

import pytest

from compat.checks.choices import Requested
from compat.checks.contexts import Contexts
from compat.errors import InputError
from compat.formats.listing import Entry, Listing
from compat.formats.locks.uv import UvLock, git_details
from compat.model import Environment
from compat.records import replace
from tests.conftest import ROOT

CORPUS = ROOT / ".." / "shared" / "corpus"
LOCKS = sorted((CORPUS / "files" / "uv.lock").glob("*"))

FORKED = """version = 1
requires-python = ">=3.10"
conflicts = [[
    { package = "mine", extra = "old" },
    { package = "mine", extra = "new" },
]]

[[package]]
name = "mine"
source = { virtual = "." }
dependencies = [
    { name = "colorama", marker = "sys_platform == 'win32'" },
]

[package.optional-dependencies]
new = [
    { name = "transformers", version = "4.57.1", source = { registry = "https://index.example/simple" } },
]
old = [
    { name = "transformers", version = "4.51.3", source = { registry = "https://index.example/simple" }, extra = ["torch"] },
]

[package.dev-dependencies]
dev = [
    { name = "pytest" },
]

[[package]]
name = "transformers"
version = "4.51.3"
source = { registry = "https://index.example/simple" }

[package.optional-dependencies]
torch = [
    { name = "torch", marker = "extra == 'extra-4-mine-old'" },
]

[[package]]
name = "transformers"
version = "4.57.1"
source = { registry = "https://index.example/simple" }

[[package]]
name = "torch"
version = "2.6.0+cu124"
source = { registry = "https://download.pytorch.org/whl/cu124" }

[[package]]
name = "colorama"
version = "0.4.6"
source = { registry = "https://index.example/simple" }

[[package]]
name = "pytest"
version = "8.3.4"
source = { registry = "https://index.example/simple" }
"""


def read(text: str) -> Listing:
    (listing,) = UvLock().read("uv.lock", text)
    return listing


def installed(listing: Listing, asked: Requested | None = None, os: str = "linux") -> set[str]:
    contexts = Contexts(
        listing,
        Environment(os=os, machine="x86_64" if os == "linux" else "AMD64", python="3.11"),
        asked or Requested(("none",)),
    )
    assert len(contexts.sets) == 1
    pairs = zip(listing.entries, contexts.installed())
    return {f"{entry.distribution.name} {entry.distribution.version}" for entry, mask in pairs if mask} - {"mine None"}


def test_an_entry_is_a_whole_record() -> None:
    """Records of a lock are created without validation: a field that is missing fails later, in ``repr`` or ``==``."""
    for entry in read(FORKED).entries:
        found = entry.distribution
        assert found == replace(found)
        assert repr(entry) == repr(Entry(replace(found), entry.line))


def test_releases_lines_and_sources() -> None:
    listing = read(FORKED)
    lines = FORKED.split("\n")
    assert listing.complete
    assert listing.requires_python == ">=3.10"
    assert [entry.distribution.version for entry in listing.entries] == [
        None,
        "4.51.3",
        "4.57.1",
        "2.6.0+cu124",
        "0.4.6",
        "8.3.4",
    ]
    for entry in listing.entries:
        assert entry.line is not None
        assert lines[entry.line - 1] == f'name = "{entry.distribution.name}"'
    sources = [entry.distribution.source.to_json() for entry in listing.entries if entry.distribution.source]
    assert sources[0] == {"kind": "directory", "path": ".", "virtual": True}
    assert sources[3] == {"kind": "index", "url": "https://download.pytorch.org/whl/cu124"}


@pytest.mark.parametrize(
    ("asked", "os", "expected"),
    [
        (Requested(("none",)), "linux", {"pytest 8.3.4"}),
        (Requested(("none",), ("none",)), "windows", {"colorama 0.4.6"}),
        (Requested(("old",), ("none",)), "linux", {"transformers 4.51.3", "torch 2.6.0+cu124"}),
        (Requested(("new",)), "linux", {"transformers 4.57.1", "pytest 8.3.4"}),
    ],
)
def test_extras_groups_and_markers_select(asked: Requested, os: str, expected: set[str]) -> None:
    assert installed(read(FORKED), asked, os) == expected


def test_conflicting_extras_are_never_chosen_together() -> None:
    listing = read(FORKED)
    contexts = Contexts(listing, Environment(), Requested())
    old, new = (next(at for at, each in enumerate(listing.choices) if each.name == name) for name in ("old", "new"))
    assert not any({old, new} <= chosen.numbers for chosen in contexts.sets)
    assert any(old in chosen.numbers for chosen in contexts.sets)
    assert any(new in chosen.numbers for chosen in contexts.sets)


def test_git_addresses() -> None:
    address = "https://github.com/huggingface/trl?subdirectory=py%2Fsrc&rev=main#0123456789abcdef0123456789abcdef01234567"
    assert git_details(address) == {
        "url": "https://github.com/huggingface/trl", "subdirectory": "py/src", "requested_revision": "main",
        "commit": "0123456789abcdef0123456789abcdef01234567",
    }  # fmt: skip


def test_what_conflicts_with_the_project_itself_is_set_apart() -> None:
    text = FORKED.replace('{ package = "mine", extra = "new" }', '{ package = "mine" }')
    listing = read(text)
    assert listing.conflicts == ()
    assert [choice.label for choice in listing.choices if choice.apart] == ["extra old"]
    assert listing.notes == ("in conflict with the project itself, and only checked if requested: extra old",)


def test_members_of_a_workspace_are_choices() -> None:
    text = FORKED.replace(
        'requires-python = ">=3.10"', 'requires-python = ">=3.10"\n\n[manifest]\nmembers = ["mine", "torch"]', 1
    )
    text = text.replace("conflicts = [[\n", "x = [[\n")
    labels = [choice.label for choice in read(text).choices]
    assert "package mine" in labels
    assert "package torch" in labels
    assert "extra mine[old]" in labels


@pytest.mark.parametrize(
    ("change", "line", "expected"),
    [
        (("version = 1\n", "version = 2\n"), 1, "version 1"),
        (("version = 1\n", ""), 1, "version 1"),
        (('name = "torch"\nversion = "2.6.0+cu124"', 'name = "torch"\nversion = "two"'), 44, "'two' is not a version of torch"),
        (('name = "torch"\nversion', 'name = 5\nversion'), None, "name"),
        (('    { name = "pytest" },', '    { name = "pytests" },'), 9, "the lock has no entry for pytests, a dependency of mine"),
        (('    { name = "pytest" },', "    5,"), 9, "expected dependencies with names of mine"),
        (('source = { virtual = "." }', 'source = "here"'), 9, "source"),
        (('source = { virtual = "." }', 'source = { virtual = "." }\n<<<<<<< HEAD'), 11, "merge conflict"),
        (("version = 1\n", "\ufeffversion = 1\n"), 1, "byte order mark"),
    ],
)  # fmt: skip
def test_a_broken_lock_is_one_line(change: tuple[str, str], line: int | None, expected: str) -> None:
    assert change[0] in FORKED
    with pytest.raises(InputError, match=expected) as caught:
        read(FORKED.replace(*change, 1))
    assert caught.value.file == "uv.lock"
    if line is not None:
        assert caught.value.line == line


def test_requirements_that_the_project_replaces() -> None:
    manifest = """[manifest]
overrides = [
    { name = "outlines", specifier = ">=0.2.0" },
    { name = "Deep_EP", marker = "sys_platform == 'never'" },
]

[[manifest.dependency-metadata]]
name = "causal-conv1d"
requires-dist = ["torch"]

"""
    listing = read(FORKED.replace("[[package]]", f"{manifest}[[package]]", 1))
    assert listing.overridden == ("outlines", "deep-ep", "causal-conv1d")
    assert read(FORKED).overridden == ()
    with pytest.raises(InputError, match=r"manifest\.overrides"):
        read(FORKED.replace("[[package]]", "[manifest]\noverrides = 1\n\n[[package]]", 1))
