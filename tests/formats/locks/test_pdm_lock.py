"""pdm.lock → listing: entries, sources, and what PDM would install."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.listing import Choice, Listing
from compat.formats.locks.pdm import PdmLock
from compat.model import Source
from tests.formats.listings import selected

METADATA = '[metadata]\ngroups = ["default", "dev", "gpu"]\nlock_version = "4.5.0"\n'


def read(text: str) -> Listing:
    (listing,) = PdmLock().read("pdm.lock", text)
    return listing


def package(name: str, version: str = "1.0", keys: str = "") -> str:
    return f'\n[[package]]\nname = "{name}"\nversion = "{version}"\n{keys}\n'


def test_an_entry_has_name_version_line_and_source() -> None:
    sources = {
        'marker = "os_name == \\"posix\\""': Source("index"),
        'git = "https://github.com/a/b.git"\nref = "main"\nrevision = "c0ffee"\nsubdirectory = "x"': Source(
            "vcs",
            {"url": "https://github.com/a/b.git", "commit": "c0ffee", "requested_revision": "main", "subdirectory": "x"},
        ),
        'editable = true\npath = "./b"': Source("directory", {"path": "./b", "editable": True}),
        'path = "./dist/b-1.0.tar.gz"': Source("url", {"path": "./dist/b-1.0.tar.gz"}),
        'url = "https://u:p@host.example/b-1.0-py3-none-any.whl"': Source(
            "url", {"url": "https://host.example/b-1.0-py3-none-any.whl"}
        ),
    }
    listing = read(METADATA + "".join(package("Some_Thing", keys=keys) for keys in sources))
    assert [entry.distribution.source for entry in listing.entries] == list(sources.values())
    assert {(entry.distribution.name, entry.distribution.version) for entry in listing.entries} == {("some-thing", "1.0")}
    assert listing.entries[0].distribution.marker == 'os_name == "posix"'
    assert [entry.line for entry in listing.entries[:2]] == [5, 10]
    assert (listing.kind, listing.complete) == ("pdm.lock", True)


def test_a_version_may_be_missing() -> None:
    listing = read(METADATA + '[[package]]\nname = "a"\npath = "."\neditable = true\n')
    assert listing.entries[0].distribution.version is None


def test_groups_and_markers() -> None:
    listing = read(
        METADATA
        + package("torch", keys='groups = ["default", "dev"]')
        + package("pytest", keys='groups = ["dev"]\nmarker = "python_version < \\"3.12\\""')
        + package("vllm", keys='groups = ["gpu"]\nmarker = "sys_platform == \\"linux\\""')
        + package("docs", keys='groups = ["docs"]')
        + package("always"),
    )
    assert listing.choices == (
        Choice("group", "dev", default=True),
        Choice("group", "gpu", default=True),
        Choice("group", "docs"),
    )
    assert selected(listing) == {"torch 1.0", "pytest 1.0", "vllm 1.0", "always 1.0"}
    assert selected(listing, groups=("none",)) == {"torch 1.0", "always 1.0"}
    assert selected(listing, groups=("gpu", "docs")) == {"torch 1.0", "vllm 1.0", "docs 1.0", "always 1.0"}
    assert selected(listing, python="3.12.0", os="darwin", machine="arm64") == {"torch 1.0", "always 1.0"}
    assert listing.entries[0].distribution.extra == {"groups": ["default", "dev"]}


def test_without_groups_dependencies_decide() -> None:
    listing = read(
        METADATA
        + package(
            "app", keys='dependencies = ["torch<2.7,>=2.5; python_version < \\"3.12\\"", "Fsspec[HTTP]>=1", "lone @ ./lone"]'
        )
        + package("torch", "2.6.0")
        + package("torch", "2.7.1", keys='requires_python = ">=3.10"')
        + package("fsspec")
        + package("fsspec", keys='extras = ["http"]\ndependencies = ["fsspec==1.0", "aiohttp"]')
        + package("aiohttp")
        + package("lone")
        + package(
            "parent", keys='dependencies = ["child; sys_platform == \\"win32\\"", "child[x]; sys_platform == \\"darwin\\""]'
        )
        + package("child"),
    )
    everywhere = {"app 1.0", "torch 2.7.1", "fsspec 1.0", "aiohttp 1.0", "lone 1.0", "parent 1.0"}
    assert selected(listing) == everywhere | {"torch 2.6.0"}
    assert selected(listing, python="3.12.1", os="darwin", machine="arm64") == everywhere | {"child 1.0"}
    assert selected(listing, python="3.9.1", os="windows", machine="AMD64") == (everywhere - {"torch 2.7.1"}) | {
        "torch 2.6.0",
        "child 1.0",
    }
    assert listing.entries[4].distribution.extra == {"extras": ["http"]}
    assert listing.choices == ()


@pytest.mark.parametrize(
    ("targets", "requires", "environments"),
    [
        ([], None, ()),
        (['requires_python = "==3.10.*"'], "==3.10.*", ()),
        (
            ['requires_python = ">=3.10"\nplatform = "manylinux_2_40_x86_64"', 'platform = "windows"', 'platform = "macos"'],
            None,
            (
                '(python_full_version >= "3.10") and (sys_platform == "linux" and platform_machine == "x86_64")',
                'sys_platform == "win32" and platform_machine == "AMD64"',
                'sys_platform == "darwin" and platform_machine == "arm64"',
            ),
        ),
        (
            ['platform = "musllinux_1_1_aarch64"\nimplementation = "cpython"', 'platform = "macos_14_0_x86_64"'],
            None,
            (
                '(implementation_name == "cpython") and (sys_platform == "linux" and platform_machine == "aarch64")',
                'sys_platform == "darwin" and platform_machine == "x86_64"',
            ),
        ),
        (['platform = "windows_arm64"'], None, ('sys_platform == "win32" and platform_machine == "arm64"',)),
        (['platform = "haiku_x86_64"', 'platform = "linux"'], None, ()),
    ],
)
def test_targets(targets: list[str], requires: str | None, environments: tuple[str, ...]) -> None:
    text = METADATA + "".join(f"[[metadata.targets]]\n{target}\n" for target in targets)
    listing = read(text)
    assert (listing.requires_python, listing.environments) == (requires, environments)


GOOD = METADATA + package("torch", keys='groups = ["default"]')


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("[metadata]", "[metas]", None, "expected metadata"),
        ('lock_version = "4.5.0"', "", 1, "metadata: expected lock_version"),
        ('lock_version = "4.5.0"', 'lock_version = "9.1"', 3, "expected 3.x or 4.x, not '9.1'"),
        ('groups = ["default", "dev", "gpu"]', 'groups = "default"', 2, "metadata: groups: expected a list of strings"),
        ('groups = ["default"]', "groups = [1]", 5, "package torch: groups: expected a list of strings, not a list"),
        ('groups = ["default"]', "marker = 1", 5, "package torch: marker: expected a string, not a number"),
        ('groups = ["default"]', "extras = {}", 5, "package torch: extras: expected a list of strings, not a table"),
        ('groups = ["default"]', 'dependencies = "a"', 5, "package torch: dependencies: expected a list of strings"),
        ('groups = ["default"]', 'path = "."\neditable = 1', 5, "package torch: editable: expected true or false"),
        ('name = "torch"', "name = []", 5, r"package\[0\]: name: expected a string, not a list"),
        ('version = "1.0"', "version = 1979-05-27", 5, "version: expected a string, not a date"),
        ('version = "1.0"', 'version = "one"', 5, "'one' is not a version"),
        ("[[package]]", "[package]", None, "package: expected a list of tables, not a table"),
        ("[[package]]", '[[metadata.targets]]\nplatform = "a\\"b"\n[[package]]', None, "metadata.targets: expected a platform"),
        ("[[package]]", "<<<<<<< HEAD\n[[package]]", 5, "merge conflict"),
        ("[[package]]", "=======", 5, "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(old: str, new: str, line: int | None, words: str) -> None:
    assert old in GOOD
    with pytest.raises(InputError, match=words) as caught:
        read(GOOD.replace(old, new, 1))
    assert (caught.value.file, caught.value.line) == ("pdm.lock", line)
