"""What a project declares: PEP 621, PEP 735, Poetry, PDM and uv, also in real projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.listing import ROOT as TOP
from compat.formats.listing import Listing
from compat.formats.project.pyproject import Pyproject
from compat.model import Source
from tests.conftest import ROOT

CORPUS = ROOT / ".." / "shared" / "corpus"
PROJECT = """\
[project]
name = "My_Project"
requires-python = ">=3.10, <3.13"
dependencies = [
    # "torch==1.0",
    "torch>=2.4",
    'trl==0.17.0 ; sys_platform == "linux"',
]

[project.optional-dependencies]
vllm = ["vllm==0.8.5", "torch==2.6.0"]
"all-of-it" = ["my-project[vllm]", "peft"]

[dependency-groups]
test = ["pytest", {include-group = "lint"}]
lint = ["ruff"]
dev = ["my_project[all_of_it] ; os_name == 'nt'"]
"""


def read(text: str) -> Listing:
    (listing,) = Pyproject().read("pyproject.toml", text)
    return listing


def installed(listing: Listing, *chosen: str) -> list[tuple[str, str | None, str | None]]:
    """(name, version or range, joined markers) of what is installed with the choices made, along the edges."""
    found: list[tuple[str, str | None, str | None]] = []
    waiting: list[tuple[int, tuple[str, ...]]] = [(TOP, ())]
    seen = set()
    while waiting:
        node, markers = waiting.pop(0)
        if (node, markers) in seen:
            continue
        seen.add((node, markers))
        if 0 <= node < len(listing.entries):
            distribution = listing.entries[node].distribution
            found.append((distribution.name, distribution.version or distribution.specifier, " & ".join(markers) or None))
        for parent, child, marker, choice in listing.edges or ():
            if parent == node and (choice is None or listing.choices[choice].label in chosen):
                waiting.append((child, (*markers, marker) if marker else markers))
    return found


def test_what_is_installed_for_each_choice() -> None:
    listing = read(PROJECT)
    plain = [("torch", ">=2.4", None), ("trl", "0.17.0", 'sys_platform == "linux"')]
    assert installed(listing) == plain
    vllm = [("vllm", "0.8.5", None), ("torch", "2.6.0", None)]
    assert installed(listing, "extra vllm") == plain + vllm
    assert set(installed(listing, "extra all-of-it")) == {*plain, *vllm, ("my-project", None, None), ("peft", None, None)}
    assert installed(listing, "group test") == [*plain, ("pytest", None, None), ("ruff", None, None)]
    nt = 'os_name == "nt"'
    assert ("vllm", "0.8.5", nt) in installed(listing, "group dev")


def test_the_rest_of_the_listing() -> None:
    listing = read(PROJECT)
    assert (listing.kind, listing.complete, listing.requires_python) == ("pyproject", False, ">=3.10,<3.13")
    assert [(c.kind, c.name, c.default) for c in listing.choices] == [
        ("extra", "vllm", False), ("extra", "all-of-it", False), ("group", "test", False), ("group", "lint", False), ("group", "dev", False)]  # fmt: skip
    assert [(e.distribution.name, e.line) for e in listing.entries] == [
        ("torch", 6), ("trl", 7), ("vllm", 11), ("torch", 11), ("my-project", 12), ("peft", 12), ("pytest", 15), ("ruff", 16), ("my-project", 17)]  # fmt: skip
    assert listing.entries[4].distribution.source == Source("directory", {"path": "."})
    assert listing.entries[0].distribution.source == Source("index")


@pytest.mark.parametrize("text", ["", "[tool.ruff]\nline-length = 100\n", "[build-system]\nrequires = []\n"])
def test_tool_settings_list_nothing(text: str) -> None:
    assert Pyproject().read("pyproject.toml", text) == ()


def test_extras_may_name_each_other_in_a_circle() -> None:
    listing = read('[project]\nname = "x"\n[project.optional-dependencies]\na = ["x[b]", "one"]\nb = ["x[a]", "two"]\n')
    assert {name for name, _, _ in installed(listing, "extra a")} == {"x", "one", "two"}


def test_an_extra_that_does_not_exist_is_a_note() -> None:
    assert read('[project]\nname = "x"\ndependencies = ["x[nope]"]\n').notes == ("pyproject.toml: x[nope]: unknown extra",)


@pytest.mark.parametrize(
    "settings",
    [
        (
            '[tool.setuptools.dynamic]\ndependencies = {file = ["reqs/base.txt"]}\n'
            'optional-dependencies.serve = {file = "reqs/serve.txt"}\n'
        ),
        (
            '[tool.hatch.metadata.hooks.requirements_txt]\nfiles = ["reqs/base.txt"]\n'
            '[tool.hatch.metadata.hooks.requirements_txt.optional-dependencies]\nserve = ["reqs/serve.txt"]\n'
        ),
    ],
)
def test_requirements_files_that_the_build_backend_reads(settings: str, tmp_path: Path) -> None:
    (tmp_path / "reqs").mkdir()
    (tmp_path / "reqs/base.txt").write_text("# pins\ntorch==2.6.0\n")
    (tmp_path / "reqs/serve.txt").write_text("vllm==0.8.5\n")
    path = tmp_path / "pyproject.toml"
    text = f'[project]\nname = "x"\ndynamic = ["dependencies", "optional-dependencies"]\n{settings}'
    (listing,) = Pyproject().read(str(path), text)
    assert [(each.distribution.name, each.line, Path(each.file or "").name) for each in listing.entries] == [
        ("torch", 2, "base.txt"), ("vllm", 1, "serve.txt"),
    ]  # fmt: skip
    assert [each.label for each in listing.choices] == ["extra serve"]
    assert (listing.notes, listing.elsewhere) == ((), ())
    (tmp_path / "reqs/serve.txt").unlink()
    (listing,) = Pyproject().read(str(path), text)
    assert listing.elsewhere == (
        f"{path}:3: reqs/serve.txt (project.optional-dependencies) was not read: there is no such file",
    )  # fmt: skip


def test_dynamic_dependencies_are_not_read() -> None:
    listing = read('[project]\nname = "x"\ndynamic = ["version", "dependencies"]\n')
    assert listing.unread == ()
    assert listing.elsewhere == (
        "pyproject.toml:3: project.dependencies was not read: it is dynamic (computed by the build backend)",
    )


def test_development_dependencies_of_uv_and_pdm() -> None:
    text = '[tool.uv]\ndev-dependencies = ["a"]\n[tool.pdm.dev-dependencies]\nx = [\n "b>=1",\n "-e file:///${PROJECT_ROOT}/c#egg=c",\n "-e ./d",\n]\n'
    listing = read(text)
    assert installed(listing, "group dev", "group x") == [("a", None, None), ("b", ">=1", None), ("c", None, None)]
    assert all(choice.default for choice in listing.choices)
    assert [entry.line for entry in listing.entries] == [2, 5, 6]
    assert listing.entries[2].distribution.source == Source("directory", {"url": "file:///${PROJECT_ROOT}/c", "editable": True})
    assert listing.notes == ("pyproject.toml:7: ./d does not say which package it contains; skipped",)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[project\n", 1), ("project = 1", None), ("[project]\ndependencies = 'a'", 2), ("[project]\nname = 1", None), ("tool = []", None),
        ("[project]\ndependencies = [\n 'a',\n 'b c',\n]", 4), ("[project]\ndependencies = [1]", 2), ("[project]\noptional-dependencies = []", None),
        ("[project.optional-dependencies]\nx = 'a'", 2), ("[project]\nrequires-python = 3", 2), ("[project]\nrequires-python = 'x'", 2),
        ("[project]\nrequires-python = '>=3 ; os_name == \"nt\"'", 2), ("[project]\ndynamic = 1", None), ("[dependency-groups]\na = 1", 2),
        ("[dependency-groups]\na = [1]", 2), ("[dependency-groups]\na = [{include-group = 'b'}]", 2), ("[dependency-groups]\na = [{x = 'a'}]", 2),
        ("[dependency-groups]\na = [{include-group = 'b'}]\nb = [{include-group = 'a'}]", 1), ("[tool.uv]\ndev-dependencies = 1", 2),
        ("[tool.pdm]\ndev-dependencies = 1", None), ("[tool.pdm.dev-dependencies]\na = [1]", None), ("[tool.pdm.dev-dependencies]\na = ['b c']", 2),
        ("<<<<<<< HEAD\n[project]\n", 1), ("\ufeff[project]\n", 1), ("[project]\ndependencies = ['.']", 2), ("[tool.uv]\nenvironments = 1", None),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        Pyproject().read("pyproject.toml", text)
    assert caught.value.file == "pyproject.toml"
    if line is not None:
        assert caught.value.line == line
