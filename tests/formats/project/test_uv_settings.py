"""What ``[tool.uv]`` makes of a project's dependencies."""

from __future__ import annotations

import pytest

from compat.checks.choices import EVERY_CHOICE, Requested, choice_sets, unconflicted_pairs
from compat.errors import InputError
from compat.formats.listing import Listing
from compat.formats.project.pyproject import Pyproject
from compat.model import Distribution, Source

WHEEL = "https://h.example/flash_attn-2.8.3+cu128-cp312-cp312-linux_x86_64.whl"
SHA = "0b62b4378b4ce9367932c73540349da9a41bdea8"
INDEXES = '[[tool.uv.index]]\nname = "cu128"\nurl = "https://download.pytorch.org/whl/cu128"\n'


def read(dependencies: str, settings: str) -> Listing:
    (listing,) = Pyproject().read("pyproject.toml", f'[project]\nname = "Own"\ndependencies = [{dependencies}]\n{settings}')
    return listing


def found(dependency: str, settings: str) -> Distribution:
    return read(f"'{dependency}'", settings).entries[0].distribution


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ('{index = "cu128"}', Source("index", {"url": "https://download.pytorch.org/whl/cu128"})),
        ('{index = "unknown"}', Source("index")),
        (f'{{git = "https://github.com/o/n", rev = "{SHA}"}}', Source("vcs", {"url": "https://github.com/o/n", "commit": SHA})),
        (
            '{git = "https://github.com/o/n", tag = "v1", subdirectory = "p"}',
            Source("vcs", {"url": "https://github.com/o/n", "requested_revision": "v1", "subdirectory": "p"}),
        ),
        ('{path = "../n", editable = true}', Source("directory", {"path": "../n", "editable": True})),
        ("{workspace = true}", Source("directory", {"editable": True})),
        ('{index = "cu128", marker = "os_name == \'nt\'"}', Source("index")),
        ('{path = "../n", marker = "os_name == \'nt\'"}', None),
        ('[{index = "cu128", marker = "os_name == \'nt\'"}, {index = "x", marker = "os_name != \'nt\'"}]', Source("index")),
        ('{index = "cu128", extra = "gpu"}', Source("index")),
    ],
)
def test_sources(given: str, source: Source | None) -> None:
    assert found("some_name>=2", f"[tool.uv.sources]\nSome-Name = {given}\n{INDEXES}") == Distribution(
        "some-name", None, source, None, ">=2"
    )


def test_a_wheel_tells_its_version() -> None:
    assert found("flash-attn>=2.8", f'[tool.uv.sources]\nflash-attn = {{url = "{WHEEL}"}}\n') == Distribution(
        "flash-attn", "2.8.3+cu128", Source("url", {"url": WHEEL}))  # fmt: skip


def test_a_source_of_one_group_is_not_that_of_another() -> None:
    settings = f'[dependency-groups]\ncu_12 = ["torch"]\ncpu = ["torch"]\n[tool.uv.sources]\ntorch = {{index = "cu128", group = "cu-12"}}\n{INDEXES}'
    assert [entry.distribution.source for entry in read("'torch'", settings).entries] == [
        Source("index"), Source("index", {"url": "https://download.pytorch.org/whl/cu128"}), Source("index")]  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "version", "specifier", "marker", "source"),
    [
        ("'torch==2.6.0'", "2.6.0", None, None, Source("index")),
        ("'torch>=2.5'", None, ">=2.5", None, Source("index")),
        ("'torch>=2.5 ; os_name == \"nt\"'", None, ">=2.5", 'os_name == "nt"', Source("index")),
        (
            "'torch @ git+https://github.com/o/torch@v1'",
            None,
            None,
            None,
            Source("vcs", {"url": "https://github.com/o/torch", "requested_revision": "v1"}),
        ),
        ("'torch==1 ; os_name == \"nt\"', 'torch==2 ; os_name != \"nt\"'", None, None, None, None),
        ("'trl==1'", "2.4", None, None, Source("index")),
    ],
)
def test_an_override_replaces_what_is_asked(
    overrides: str, version: str | None, specifier: str | None, marker: str | None, source: Source | None
) -> None:
    distribution = found("torch==2.4", f"[tool.uv]\noverride-dependencies = [{overrides}]\n")
    assert (distribution.version, distribution.specifier, distribution.marker, distribution.source) == (
        version,
        specifier,
        marker,
        source,
    )
    assert ("override" in distribution.extra) == (version != "2.4" and source is not None)


def test_the_marker_of_an_override_holds_for_the_edge_too() -> None:
    nt = 'os_name == "nt"'
    listing = read("'torch'", f"[tool.uv]\noverride-dependencies = ['torch>=2.5 ; {nt}']\n")
    assert listing.edges == ((-1, 0, nt, None),)
    asked = "'torch ; python_version < \"3.12\"'"
    assert read(asked, f"[tool.uv]\noverride-dependencies = ['torch>=2.5 ; {nt}']\n").edges == ((-1, 0, nt, None),)
    assert read(asked, "[tool.uv]\noverride-dependencies = ['torch>=2.5']\n").edges == ((-1, 0, None, None),)


def test_a_constraint_narrows_and_says_where_it_stands() -> None:
    distribution = found("torch>=2.4", "[tool.uv]\nconstraint-dependencies = [\n 'a',\n 'torch<2.7',\n]\n")
    assert (distribution.specifier, dict(distribution.extra)) == (">=2.4,<2.7", {"constraint": "pyproject.toml:7"})


@pytest.mark.parametrize(
    ("settings", "defaults"),
    [
        ("", ["dev"]),
        ('default-groups = "all"', ["a-b", "dev"]),
        ('default-groups = ["A_B"]', ["a-b"]),
        ("default-groups = []", []),
    ],
)
def test_default_groups(settings: str, defaults: list[str]) -> None:
    listing = read("", f"[dependency-groups]\na-b = []\ndev = []\n[tool.uv]\n{settings}\n")
    assert [choice.name for choice in listing.choices if choice.default] == defaults


def test_conflicts_name_choices_of_this_project() -> None:
    conflicts = '[[{extra = "a"}, {group = "G"}], [{package = "own", extra = "a"}, {extra = "b"}], [{package = "other", extra = "a"}, {extra = "b"}], [{extra = "a"}]]'
    listing = read(
        "",
        f"[project.optional-dependencies]\na = []\nb = []\n[dependency-groups]\ng = []\n[tool.uv]\nconflicts = {conflicts}\n",
    )
    assert [[listing.choices[number].label for number in each] for each in listing.conflicts] == [
        ["extra a", "group g"],
        ["extra a", "extra b"],
    ]


def test_what_conflicts_with_the_project_itself_is_only_checked_if_requested() -> None:
    listing = read(
        "",
        "[project.optional-dependencies]\na = []\nb = []\nc = []\n[dependency-groups]\ng = []\n[tool.uv]\n"
        'conflicts = [[{package = "own"}, {extra = "a"}], [{package = "own"}, {group = "g"}]]\n',
    )
    assert listing.conflicts == ()
    assert [choice.label for choice in listing.choices if choice.apart] == ["extra a", "group g"]
    assert listing.notes == ("in conflict with the project itself, and only checked if requested: extra a, group g",)
    sets = {
        each.label: {listing.choices[number].label for number in each.numbers} for each in choice_sets(listing, Requested())
    }
    assert sets == {"": set(), "extra b": {"extra b"}, "extra c": {"extra c"}, EVERY_CHOICE: {"extra b", "extra c"}}
    assert unconflicted_pairs(listing, Requested()) == [(1, 2)]
    (asked,) = choice_sets(listing, Requested(extras=("a",)))
    assert asked.numbers == {0}


@pytest.mark.parametrize(("given", "expected"), [("\"os_name == 'nt'\"", ("os_name == 'nt'",)), ('["a", "b"]', ("a", "b"))])
def test_environments(given: str, expected: tuple[str, ...]) -> None:
    assert read("", f"[tool.uv]\nenvironments = {given}\n").environments == expected


@pytest.mark.parametrize(
    "settings",
    [
        "sources = 1", "sources = {a = 1}", "sources = {a = [1]}", "sources = {torch = {git = 1}}", "sources = {torch = {marker = 1, index = 'a'}}",
        "sources = {torch = {group = 1}}", "override-dependencies = 1", "override-dependencies = ['a b']", "constraint-dependencies = [1]",
        "conflicts = 1", "conflicts = [1]", "conflicts = [[1]]", "conflicts = [[{extra = 1}]]", "index = 1", "index = [1]",
        "sources = {torch = {path = 'a', editable = 1}}", "sources = {torch = [" + "{index = 'a'}," * 101 + "]}",
    ],
)  # fmt: skip
def test_what_is_wrong_is_an_input_error(settings: str) -> None:
    with pytest.raises(InputError):
        read("'torch'", f"[tool.uv]\n{settings}\n")


def test_wrong_default_groups() -> None:
    with pytest.raises(InputError, match="default-groups"):
        read("", "[dependency-groups]\na = []\n[tool.uv]\ndefault-groups = [1]\n")
