"""poetry.lock → listing: releases, sources, and what Poetry would install."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.listing import Choice, Listing
from compat.formats.locks.poetry import PoetryLock
from compat.model import Source
from tests.formats.listings import selected


def read(text: str) -> Listing:
    (listing,) = PoetryLock().read("poetry.lock", text)
    return listing


def package(name: str, version: str = "1.0", keys: str = "", dependencies: str = "", optional: bool = False) -> str:
    table = f"\n[package.dependencies]\n{dependencies}\n" if dependencies else ""
    flag = "true" if optional else "false"
    return f'[[package]]\nname = "{name}"\nversion = "{version}"\noptional = {flag}\npython-versions = "*"\n{keys}\n{table}\n'


def lock(*packages: str, version: str = "2.0", python: str = ">=3.9", extras: str = "") -> str:
    table = f"[extras]\n{extras}\n" if extras else ""
    return "".join(packages) + f'{table}[metadata]\nlock-version = "{version}"\npython-versions = "{python}"\n'


def test_a_release_has_name_version_line_and_source() -> None:
    torch = 'type = "legacy"\nurl = "https://me:secret@download.pytorch.org/whl/cu118"\nreference = "torch"'
    trl = 'type = "git"\nurl = "https://github.com/a/trl.git"\nreference = "main"\nresolved_reference = "c0ffee"\nsubdirectory = "x"'
    commit = {
        "url": "https://github.com/a/trl.git",
        "commit": "c0ffee",
        "requested_revision": "main",
        "subdirectory": "x",
    }
    wheel = "https://github.com/a/w-1.0-py3-none-any.whl"
    table = "[package.source]\n"
    sources = {
        "plain": ("", Source("index")),
        "torch": (table + torch, Source("index", {"url": "https://download.pytorch.org/whl/cu118"})),
        "trl": (table + trl, Source("vcs", commit)),
        "wheel": (table + f'type = "url"\nurl = "{wheel}"', Source("url", {"url": wheel})),
        "folder": (
            f'develop = true\n{table}type = "directory"\nurl = "../folder"',
            Source("directory", {"path": "../folder", "editable": True}),
        ),
        "file": (table + 'type = "file"\nurl = "dist/f-1.0.zip"', Source("url", {"path": "dist/f-1.0.zip"})),
    }
    listing = read(lock(*(package(name, "4.41.0.dev0", keys) for name, (keys, _) in sources.items())))
    assert [entry.distribution.name for entry in listing.entries] == list(sources)
    assert {entry.distribution.version for entry in listing.entries} == {"4.41.0.dev0"}
    for entry, (_, source) in zip(listing.entries, sources.values()):
        assert entry.distribution.source == source
    assert [entry.line for entry in listing.entries][:2] == [1, 8]
    assert (listing.kind, listing.complete) == ("poetry.lock", True)


def test_names_are_normalised() -> None:
    text = lock(package("Flash_Attn", dependencies='"Zope.Interface" = "*"'), package("zope-interface"))
    assert selected(read(text)) == {"flash-attn 1.0", "zope-interface 1.0"}


def test_markers_of_edges_decide() -> None:
    text = lock(
        package("torch", dependencies='triton = {version = "3.1", markers = "sys_platform == \\"linux\\""}'),
        package("triton", "3.1"),
    )
    assert selected(read(text)) == {"torch 1.0", "triton 3.1"}
    assert selected(read(text), os="darwin", machine="arm64") == {"torch 1.0"}


def test_an_edge_goes_to_the_releases_its_constraint_admits() -> None:
    text = lock(
        package(
            "app",
            dependencies='torch = [\n  {version = "2.5.1", markers = "python_version < \\"3.12\\""},\n'
            '  {version = "^2.7", markers = "python_version >= \\"3.12\\""},\n]',
        ),
        package("torch", "2.5.1+cu124"),
        package("torch", "2.7.1"),
    )
    assert selected(read(text), python="3.11.9") == {"app 1.0", "torch 2.5.1+cu124"}
    assert selected(read(text), python="3.12.1") == {"app 1.0", "torch 2.7.1"}


def test_a_constraint_that_admits_nothing_means_every_release() -> None:
    text = lock(package("app", dependencies='a = ">=9"'), package("a", "1.0"), package("a", "2.0"))
    assert selected(read(text)) == {"app 1.0", "a 1.0", "a 2.0"}


def test_of_several_releases_those_for_another_python_are_left_out() -> None:
    text = lock(package("app", dependencies='numpy = "*"'), package("numpy", "1.26.4"), package("numpy", "2.4.0"))
    text = text.replace(
        'version = "2.4.0"\noptional = false\npython-versions = "*"', 'version = "2.4.0"\npython-versions = ">=3.11"'
    )
    assert selected(read(text), python="3.10.4") == {"app 1.0", "numpy 1.26.4"}
    assert selected(read(text), python="3.11.4") == {"app 1.0", "numpy 1.26.4", "numpy 2.4.0"}


def test_a_url_is_told_apart_by_its_address() -> None:
    def kernel(python: str) -> str:
        return package("kernels", keys=f'[package.source]\ntype = "url"\nurl = "https://github.com/k-{python}.whl"')

    text = lock(
        package(
            "app",
            dependencies='kernels = [\n  {url = "https://github.com/k-310.whl", markers = "python_version == \\"3.10\\""},\n'
            '  {url = "https://github.com/k-311.whl", markers = "python_version == \\"3.11\\""},\n]',
        ),
        kernel("310"),
        kernel("311"),
    )
    listing = read(text)
    reached = {child for parent, child, _, _ in listing.edges or () if parent > 2}
    assert reached == {1, 2}
    assert sum(parent == 0 for parent, _, _, _ in listing.edges or ()) == 2


def test_what_nothing_leads_to_is_installed_and_so_are_circles() -> None:
    text = lock(
        package("b", dependencies='c = "*"'),
        package("c", dependencies='b = "*"\nd = {version = "*", markers = "sys_platform == \\"win32\\""}'),
        package("d"),
        package("alone"),
    )
    listing = read(text)
    assert selected(listing) == {"b 1.0", "c 1.0", "alone 1.0"}
    assert [(child, marker) for parent, child, marker, _ in listing.edges or () if parent == -1] == [(3, None), (0, None)]


def test_optional_packages_come_with_the_extras_of_the_project_only() -> None:
    text = lock(
        package("base"),
        package("peft", optional=True, dependencies='accelerate = "*"'),
        package("accelerate", optional=True, dependencies='base = "*"'),
        package("never", optional=True),
        extras='train = ["peft"]\nFast_One = ["accelerate (>=1.0)"]',
    )
    listing = read(text)
    assert listing.choices == (Choice("extra", "train"), Choice("extra", "fast-one"))
    assert selected(listing) == {"base 1.0"}
    assert selected(listing, ("train",)) == {"base 1.0", "peft 1.0", "accelerate 1.0"}
    assert selected(listing, ("fast-one",)) == {"base 1.0", "accelerate 1.0"}
    assert listing.entries[1].distribution.extra == {"optional": True}


def test_a_package_that_is_not_optional_is_installed_though_only_optional_ones_need_it() -> None:
    text = lock(package("pandas", optional=True, dependencies='numpy = "*"'), package("numpy"), extras='data = ["pandas"]')
    assert selected(read(text)) == {"numpy 1.0"}


UVICORN = package(
    "uvicorn",
    dependencies='h11 = "*"\nuvloop = {version = "*", optional = true, '
    'markers = "sys_platform != \\"win32\\" and extra == \\"standard\\""}',
)


def test_an_extra_is_installed_where_somebody_asks_for_it() -> None:
    text = lock(
        package(
            "api", dependencies='uvicorn = {version = "*", extras = ["standard"], markers = "python_version >= \\"3.11\\""}'
        ),
        package("plain", dependencies='uvicorn = "*"'),
        UVICORN,
        package("h11"),
        package("uvloop", optional=True),
    )
    with_uvloop = {"api 1.0", "plain 1.0", "uvicorn 1.0", "h11 1.0", "uvloop 1.0"}
    assert selected(read(text)) == with_uvloop
    assert selected(read(text), python="3.10.4") == with_uvloop - {"uvloop 1.0"}
    assert selected(read(text), os="windows", machine="AMD64") == with_uvloop - {"uvloop 1.0"}


def test_an_extra_nobody_asks_for_is_the_projects() -> None:
    listing = read(lock(UVICORN, package("h11"), package("uvloop")))
    assert selected(listing) == {"uvicorn 1.0", "h11 1.0", "uvloop 1.0"}
    assert selected(listing, os="windows", machine="AMD64") == {"uvicorn 1.0", "h11 1.0"}


def test_an_extra_of_the_project_brings_the_extras_below_it() -> None:
    """Poetry 1.8 and 2.5 do so: ``-E torch`` installs aiohttp, which only datasets asks for."""
    text = lock(
        package("hub", dependencies='fsspec = "*"'),
        package("torch", dependencies='fsspec = "*"', optional=True),
        package("datasets", dependencies='fsspec = {version = "*", extras = ["http"]}', optional=True),
        package("fsspec", dependencies='aiohttp = {version = "*", optional = true, markers = "extra == \\"http\\""}'),
        package("aiohttp", optional=True),
        extras='torch = ["torch"]\ndata = ["datasets"]',
    )
    listing = read(text)
    assert selected(listing) == {"hub 1.0", "fsspec 1.0"}
    assert selected(listing, ("torch",)) == {"hub 1.0", "fsspec 1.0", "torch 1.0", "aiohttp 1.0"}
    assert selected(listing, ("data",)) == {"hub 1.0", "fsspec 1.0", "datasets 1.0", "aiohttp 1.0"}


def test_the_group_dev_of_version_1_can_be_left_out() -> None:
    text = lock(
        package("app", keys='category = "main"'),
        package("pytest", keys='category = "dev"', dependencies='pluggy = "*"\ntomli = "*"'),
        package("pluggy", keys='category = "dev"'),
        package("tomli", keys='category = "main"'),
        version="1.1",
    )
    listing = read(text)
    assert listing.choices == (Choice("group", "dev", default=True),)
    assert selected(listing) == {"app 1.0", "pytest 1.0", "pluggy 1.0", "tomli 1.0"}
    assert selected(listing, groups=("none",)) == {"app 1.0", "tomli 1.0"}


def test_groups_and_markers_of_version_2_1() -> None:
    text = lock(
        package("app", keys='groups = ["main"]'),
        package("pytest", keys='groups = ["dev"]\nmarkers = "sys_platform == \\"linux\\""'),
        package(
            "rich", keys='groups = ["main"]\nmarkers = "extra == \\"pretty\\" and python_version < \\"3.12\\""', optional=True
        ),
        package(
            "six", keys='groups = ["main", "dev"]\nmarkers = {main = "extra == \\"pretty\\"", dev = "os_name == \\"nt\\""}'
        ),
        package("attrs", keys='groups = ["main", "docs"]\nmarkers = {main = "extra == \\"pretty\\""}'),
        version="2.1",
        extras='pretty = ["rich"]',
    )
    listing = read(text)
    assert listing.choices == (
        Choice("extra", "pretty"),
        Choice("group", "dev", default=True),
        Choice("group", "docs", default=True),
    )
    assert selected(listing) == {"app 1.0", "pytest 1.0", "attrs 1.0"}
    assert selected(listing, groups=("none",)) == {"app 1.0"}
    assert selected(listing, ("pretty",), ("none",)) == {"app 1.0", "rich 1.0", "six 1.0", "attrs 1.0"}
    assert selected(listing, ("pretty",), ("none",), python="3.12.1") == {"app 1.0", "six 1.0", "attrs 1.0"}
    assert selected(listing, os="windows", machine="AMD64") == {"app 1.0", "six 1.0", "attrs 1.0"}
    markers = [entry.distribution.marker for entry in listing.entries]
    assert markers[1] == 'sys_platform == "linux"'
    assert markers[3] == '(extra == "pretty") or (os_name == "nt")'
    assert markers[4] is None
    assert listing.entries[3].distribution.extra == {"groups": ["main", "dev"]}


@pytest.mark.parametrize(
    ("python", "requires", "environments"),
    [
        ("^3.9", ">=3.9,<4", ()),
        (">=3.9,<3.13", ">=3.9,<3.13", ()),
        ("*", None, ()),
        (
            "~3.10 || ~3.12",
            None,
            (
                'python_full_version >= "3.10" and python_full_version < "3.11"',
                'python_full_version >= "3.12" and python_full_version < "3.13"',
            ),
        ),
    ],
)
def test_the_pythons_it_is_made_for(python: str, requires: str | None, environments: tuple[str, ...]) -> None:
    listing = read(lock(python=python).replace("[metadata]", "package = []\n[metadata]"))
    assert (listing.requires_python, listing.environments, listing.entries) == (requires, environments, ())


GOOD = lock(package("torch", dependencies='numpy = "*"'), package("numpy"))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("[metadata]", "[metas]", None, "expected metadata"),
        ('lock-version = "2.0"', "", 18, "metadata: expected lock-version"),
        ('lock-version = "2.0"', 'lock-version = "3.0"', 19, "lock-version: expected 1.x or 2.x, not '3.0'"),
        ('lock-version = "2.0"', "lock-version = 2.0", 19, "lock-version: expected a string, not a number"),
        ('lock-version = "2.0"', 'lock-version = "2.1"', 1, "package torch: expected groups"),
        ('python-versions = ">=3.9"', 'python-versions = "banana"', 20, "python-versions: 'banana' is not a version"),
        ('name = "torch"', "", 1, r"package\[0\]: expected name"),
        ('name = "torch"', 'name = "to rch"', 1, "'to rch' is not the name of a package"),
        ('name = "torch"\nversion = "1.0"', 'name = "torch"\nversion = "latest"', 1, "'latest' is not a version"),
        ('name = "numpy"\nversion = "1.0"', 'name = "numpy"\nversion = 1.0', 11, "package numpy: version: expected a string"),
        ("optional = false", 'optional = "no"', 1, "package torch: optional: expected true or false"),
        ('numpy = "*"', "numpy = 1", 1, "package torch dependencies: numpy: expected a version or a table"),
        ('numpy = "*"', "numpy = {version = 1}", 1, "package torch: numpy: version: expected a string"),
        ('numpy = "*"', 'numpy = {markers = "extra = 1"}', 1, "package torch: numpy: markers: "),
        ("optional = false", 'optional = false\nsource = "x"', 1, "package torch: source: expected a table"),
        ("optional = false", 'optional = false\nsource = {type = "git"}', 1, "package torch source: expected url"),
        ("[[package]]", "extras = 1\n[[package]]", 1, "extras: expected a table, not a number"),
        ("[metadata]", "[extras]\na = 1\n[metadata]", 19, "extras: a: expected a list of strings"),
        ("[metadata]", "<<<<<<< HEAD\n[metadata]", 18, "merge conflict"),
        ("[metadata]", "[metadata", 18, "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(old: str, new: str, line: int | None, words: str) -> None:
    assert old in GOOD
    with pytest.raises(InputError, match=words) as caught:
        read(GOOD.replace(old, new, 1))
    assert (caught.value.file, caught.value.line) == ("poetry.lock", line)


def test_carriage_returns_do_not_matter() -> None:
    assert read(GOOD.replace("\n", "\r\n")) == read(GOOD)


def test_lines_are_left_out_where_they_cannot_be_told() -> None:
    text = 'package = [{name = "torch", version = "2.6.0"}]\n' + lock()
    assert read(text).entries[0].line is None
    text = GOOD.replace("[metadata]", '[x]\ny = """\n[[package]]\n"""\n[metadata]')
    assert [entry.line for entry in read(text).entries] == [None, None]
