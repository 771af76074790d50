"""pylock.toml → listing: packages, sources, markers, and what is tolerated."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.listing import Choice, Listing
from compat.formats.locks.pylock import Pylock
from compat.model import Source
from tests.formats.listings import selected

HEAD = 'lock-version = "1.0"\ncreated-by = "me"\n'
HASHES = 'hashes = {sha256 = "aa"}'


def read(text: str) -> Listing:
    (listing,) = Pylock().read("pylock.toml", text)
    return listing


def wheel(name: str, version: str = "1.0", keys: str = "", hashes: str = HASHES) -> str:
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    return (
        f'\n[[packages]]\nname = "{name}"\nversion = "{version}"\n{keys}\n'
        f'wheels = [{{url = "https://files.example/{file}", {hashes}}}]\n'
    )


def test_a_package_has_name_version_line_and_source() -> None:
    listing = read(
        HEAD
        + wheel("torch", "2.9.1+cpu", 'index = "https://download.pytorch.org/whl/cpu"\nmarker = "sys_platform != \'darwin\'"')
        + wheel("plain")
        + '[[packages]]\nname = "me"\ndirectory = {path = ".", editable = true}\n'
        + f'[[packages]]\nname = "w"\nversion = "1.0"\narchive = {{url = "https://host.example/w-1.0.zip", {HASHES}}}\n'
        + f'[[packages]]\nname = "f"\narchive = {{path = "dist/f.zip", {HASHES}}}\n'
        + '[[packages]]\nname = "trl"\nvcs = {type = "git", url = "https://github.com/h/trl", requested-revision = "main",'
        + ' commit-id = "c0ffee", subdirectory = "x"}\n'
    )
    assert listing.notes == ()
    found = [entry.distribution for entry in listing.entries]
    assert [(d.name, d.version, d.marker) for d in found] == [
        ("torch", "2.9.1+cpu", "sys_platform != 'darwin'"),
        ("plain", "1.0", None),
        ("me", None, None),
        ("w", "1.0", None),
        ("f", None, None),
        ("trl", None, None),
    ]
    assert [d.source for d in found] == [
        Source("index", {"url": "https://download.pytorch.org/whl/cpu"}),
        Source("index"),
        Source("directory", {"path": ".", "editable": True}),
        Source("url", {"url": "https://host.example/w-1.0.zip"}),
        Source("url", {"path": "dist/f.zip"}),
        Source(
            "vcs", {"url": "https://github.com/h/trl", "commit": "c0ffee", "requested_revision": "main", "subdirectory": "x"}
        ),
    ]
    assert [entry.line for entry in listing.entries] == [4, 11, 16, 19, 23, 26]
    assert (listing.kind, listing.complete) == ("pylock.toml", True)


def test_extras_and_groups_are_chosen_by_markers() -> None:
    listing = read(
        'requires-python = ">=3.10"\nenvironments = ["sys_platform == \'linux\'", "sys_platform == \'win32\'"]\n'
        'extras = ["audio", "dev"]\ndependency-groups = ["lint", "default"]\ndefault-groups = ["default"]\n'
        + HEAD
        + wheel("base", keys='marker = \'"default" in dependency_groups or "dev" in extras\'')
        + wheel("sox", keys='marker = \'"audio" in extras and sys_platform == "linux"\'')
        + wheel("ruff", keys="marker = '\"lint\" in dependency_groups'")
    )
    assert listing.notes == ()
    assert listing.requires_python == ">=3.10"
    assert listing.environments == ("sys_platform == 'linux'", "sys_platform == 'win32'")
    assert listing.choices == (
        Choice("extra", "audio"),
        Choice("extra", "dev"),
        Choice("group", "lint"),
        Choice("group", "default", default=True),
    )
    assert selected(listing) == {"base 1.0"}
    assert selected(listing, groups=("none",)) == set()
    assert selected(listing, ("audio",), ("lint",)) == {"sox 1.0", "ruff 1.0"}
    assert selected(listing, ("audio", "dev"), ("none",), os="windows", machine="AMD64") == {"base 1.0"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + wheel("torch", hashes="hashes = {}"), "At least one hash"),
        (HEAD + wheel("torch", hashes="hashes = 1"), "Unexpected type int"),
        (HEAD + wheel("Torch"), "is not normalized"),
        (HEAD + wheel("torch").replace("torch-1.0-", "torch-2.0-"), "not consistent"),
        ('lock-version = "1.0"\n' + wheel("torch"), "created-by"),
        (HEAD + '[[packages]]\nname = "torch"\nversion = "1.0"\n', "must be set"),
        (HEAD + wheel("torch", hashes="hashes = {}", keys="marker = '" + "os_name == \"posix\" or " * 20000 + "os_name != \"x\"'"), "too long"),
    ],
)  # fmt: skip
def test_a_defect_that_hides_nothing_is_a_note(text: str, words: str) -> None:
    listing = read(text)
    assert [(entry.distribution.name, entry.distribution.version) for entry in listing.entries] == [("torch", "1.0")]
    (note,) = listing.notes
    assert note.startswith(("pylock.toml: not ", "pylock.toml: does not "))
    assert words in note


GOOD = HEAD + wheel("torch", keys="marker = \"os_name == 'posix'\"")
LENIENT = GOOD.replace(HASHES, "hashes = {}")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('lock-version = "1.0"', "", None, "expected lock-version"),
        ('lock-version = "1.0"', "lock-version = 1.0", 1, "lock-version: expected a string, not a number"),
        ('lock-version = "1.0"', 'lock-version = "2.0"', 1, "lock-version: expected 1.x, not '2.0'"),
        ('lock-version = "1.0"', 'lock-version = "1.x"', 1, "lock-version: expected 1.x, not '1.x'"),
        ('created-by = "me"', "created-by = 1", 2, "created-by: expected a string"),
        ("[[packages]]", "[[package]]", None, "expected packages"),
        ("[[packages]]", "[packages]", None, "packages: expected a list of tables, not a table"),
        ('name = "torch"', "", 4, r"packages\[0\]: expected name"),
        ('version = "1.0"\nmarker', 'version = "new"\nmarker', 4, "package torch: 'new' is not a version"),
        ("marker = \"os_name == 'posix'\"", "marker = []", 4, "package torch: marker: expected a string, not a list"),
        ("marker = \"os_name == 'posix'\"", "marker = 'os_name = 1'", 4, "package torch: the marker 'os_name = 1' has"),
        ("marker = \"os_name == 'posix'\"", "marker = ''", 4, "package torch: the marker ''"),
        ("marker = \"os_name == 'posix'\"", "index = 1", 4, "package torch: index: expected a string"),
        ("wheels = [{", "wheels = {", 4, "package torch: wheels: expected a list of tables"),
        ("wheels =", "vcs = 1\nwheels =", 4, "package torch: vcs: expected a table"),
        ("wheels =", "vcs = {}\nwheels =", 4, "package torch vcs: expected path"),
        ("wheels =", "directory = {}\nwheels =", 4, "package torch directory: expected path"),
        ("wheels =", "sdist = 1\nwheels =", 4, "package torch: sdist: expected a table"),
        (
            'created-by = "me"',
            'created-by = "me"\nextras = "dev"',
            3,
            "extras: expected a list of strings, not the string 'dev'",
        ),
        ('created-by = "me"', 'created-by = "me"\nrequires-python = 3', 3, "requires-python: expected a string"),
        ('created-by = "me"', 'created-by = "me"\nrequires-python = "3"', 3, "'3' is not a set of version specifiers"),
        ('created-by = "me"', 'created-by = "me"\nenvironments = ["linux"]', None, "the marker 'linux'"),
        ("wheels =", "<<<<<<< HEAD\nwheels =", 8, "merge conflict"),
        ("wheels =", "wheels", 8, "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(old: str, new: str, line: int | None, words: str) -> None:
    for text in (GOOD, LENIENT):
        assert old in text
        changed = text.replace(old, new, 1)
        if old.startswith("wheels = [{"):
            changed = changed.replace("}}]", "}}").replace("{}}]", "{}}")
        with pytest.raises(InputError, match=words) as caught:
            read(changed)
        assert (caught.value.file, caught.value.line) == ("pylock.toml", line)


def test_a_later_minor_version_is_read(caplog: pytest.LogCaptureFixture) -> None:
    assert selected(read(GOOD.replace('"1.0"', '"1.1"', 1))) == {"torch 1.0"}
    assert caplog.records == []
