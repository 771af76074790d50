"""What one file may list at most: a file made to be too much is refused at once."""

from __future__ import annotations

import contextlib
import json

import pytest

from compat.checks.selections import judged_listing
from compat.errors import InputError
from compat.formats import listing as limits
from compat.formats.listing import CHOICES, CONFLICTING, EDGES, ENTRIES, ROOT, Choice, Entry, Listing, within_limits
from compat.formats.registry import format_of
from compat.formats.requirements.requirement import parse_requirement
from compat.rules.compiled import Matrix
from tests.growth import assert_linear

NAMES = {
    "requirements": "requirements.txt", "pyproject": "pyproject.toml", "poetry": "poetry.lock", "pdm": "pdm.lock", "pylock": "pylock.toml",
    "uv": "uv.lock", "pipfile": "Pipfile.lock", "conda": "environment.yml", "conda-lock": "conda-lock.yml",
}  # fmt: skip


def listings_of(path: str, content: bytes) -> tuple[Listing, ...]:
    return format_of(path, content).listings(path, content)


def project(requirements: int, **tables: str) -> str:
    listed = ",\n".join(f'"a{number}==1.{number}"' for number in range(requirements))
    more = "".join(f"{name} = [{text}]\n" for name, text in tables.items())
    return f'[project]\nname = "x"\nversion = "1"\ndependencies = [{listed}]\n[tool.uv]\n{more}'


def packages(count: int, table: str, body: str) -> str:
    return "".join(f'[[{table}]]\nname = "a{number}"\nversion = "1.{number}"\n{body}\n' for number in range(count))


def conda_lock(count: int) -> str:
    url = "https://files.example/linux-64/a-1-0.conda"
    item = "- {{name: a{}, version: '1', manager: conda, platform: linux-64, url: '{}'}}\n"
    return "version: 1\nmetadata: {platforms: []}\npackage:\n" + "".join(item.format(number, url) for number in range(count))


def text_of(kind: str, count: int) -> str:
    if kind == "requirements":
        return "".join(f"a{number}==1.{number}\n" for number in range(count))
    if kind == "pyproject":
        return project(count)
    if kind == "poetry":
        return (
            packages(count, "package", 'optional = false\ngroups = ["main"]')
            + '[metadata]\nlock-version = "2.1"\npython-versions = ">=3.9"\n'
        )
    if kind == "pdm":
        return '[metadata]\nlock_version = "4.5.0"\n' + packages(count, "package", 'groups = ["default"]')
    if kind == "pylock":
        return 'lock-version = "1.0"\ncreated-by = "x"\n' + packages(count, "packages", "")
    if kind == "uv":
        return "version = 1\n" + packages(count, "package", 'source = { registry = "https://index.example/simple" }')
    if kind == "pipfile":
        listed = {f"a{number}": {"version": f"==1.{number}"} for number in range(count)}
        return json.dumps({"_meta": {"pipfile-spec": 6, "requires": {}, "sources": []}, "default": listed, "develop": {}})
    if kind == "conda":
        return "dependencies:\n" + "".join(f"- a{number}=1.{number}\n" for number in range(count))
    return conda_lock(count)


@pytest.mark.parametrize("kind", NAMES)
def test_a_file_with_too_many_entries_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES", 300)
    (listing,) = listings_of(NAMES[kind], text_of(kind, 300).encode())
    assert len(listing.entries) == 300
    with pytest.raises(InputError, match="has more than 300 entries") as caught:
        listings_of(NAMES[kind], text_of(kind, 301).encode())
    assert caught.value.file == NAMES[kind]


def test_reading_ends_at_the_first_entry_that_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES", 300)
    with pytest.raises(InputError, match="has more than 300 entries") as caught:
        listings_of("r.txt", text_of("requirements", 600).encode())
    assert caught.value.line == 301
    with pytest.raises(InputError, match="has more than 300 entries") as caught:
        listings_of("pyproject.toml", project(600).encode())
    assert caught.value.line == 304


def test_constraints_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES", 300)
    constraints = ", ".join(f'"a{number}<2"' for number in range(300))
    with pytest.raises(InputError, match="more than 300 entries"):
        listings_of("pyproject.toml", project(1, **{"constraint-dependencies": constraints}).encode())
    assert listings_of("pyproject.toml", project(0, **{"constraint-dependencies": constraints}).encode())


def test_what_a_listing_may_have() -> None:
    entry = Entry(parse_requirement("a==1"))
    choices = tuple(Choice("extra", f"e{number}") for number in range(CHOICES))
    full = Listing(
        "f", "uv.lock", (entry,) * ENTRIES, ((ROOT, 0, None, None),) * EDGES, choices,
        conflicts=(tuple(range(CONFLICTING)),),
    )  # fmt: skip
    assert within_limits(full) is full
    for changed, what in (
        (Listing("f", "k", (*full.entries, entry)), "entries"),
        (Listing("f", "k", edges=((*(full.edges or ()), (ROOT, 0, None, None)))), "dependencies"),
        (Listing("f", "k", choices=(*choices, choices[0])), "extras, groups or environments"),
        (Listing("f", "k", conflicts=((0, 1),) * (CONFLICTING // 2 + 1)), "extras and groups in its conflicts"),
    ):
        with pytest.raises(InputError, match=rf"^f: has more than \d+ {what}$"):
            within_limits(changed)


@pytest.mark.parametrize(
    ("name", "head", "line", "end"),
    [
        ("setup.cfg", "[options]\ninstall_requires =\n", "  a{}\n", ""), ("setup.cfg", "[options]\ninstall_requires =\n", "  a {}\n", ""),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=[\n", "'a{}',\n", "])\n"),
        ("setup.py", "from setuptools import setup\nif x():\n  setup(install_requires=[", "'a{}',", "])\n"),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=[\n", "f({}),\n", "])\n"),
    ],
)  # fmt: skip
def test_thousands_of_requirements_of_a_project(name: str, head: str, line: str, end: str) -> None:
    def text(length: int) -> bytes:
        return (head + "".join(line.format(number) for number in range(length // 8)) + end).encode()

    assert_linear(lambda content: listings_of(name, content), text, 40_000)


# --- What stands where a version belongs and is none: an error or nothing, in every format.

_NO_VERSIONS = ("..", "1.x", "a", "3..11", "3.99999999999999999999999", "-", "3.11;x")
_WITH_VERSIONS = {
    "ci.yml": "on: push\njobs:\n  a:\n    steps:\n      - uses: actions/setup-python@v5\n        with: {python-version: '@'}\n      - run: pip install torch==@\n",
    "task.yaml": "type: task\npython: '@'\nresources: {gpu: '@'}\ncommands: [pip install torch==2.6.0]\n",
    "devcontainer.json": '{"image": "python:@", "features": {"ghcr.io/devcontainers/features/python:1": {"version": "@"}}, "postCreateCommand": "pip install torch"}',
    "Dockerfile": "FROM python:@\nRUN uv venv --python @ && pip install torch==2.6.0\nRUN conda install python=@ cudatoolkit=@\n",
    "a.dockerfile": "FROM nvidia/cuda:@-devel-ubuntu@\nRUN pip install torch==2.6.0\n",
    "a.ipynb": '{"cells": [{"cell_type": "code", "source": "!pip install torch", "metadata": {}, "outputs": []}],'
    ' "metadata": {"language_info": {"name": "python", "version": "@"}}, "nbformat": 4, "nbformat_minor": 5}',
    "environment.yml": "dependencies:\n  - python=@\n  - cuda-toolkit=@\n  - torch=2.6\n",
    "requirements.txt": "# platform: linux-64\nnumpy=1.26\npython=@\ncudatoolkit=@=h_0\n",
    "job.slurm": "#!/bin/bash\n#SBATCH --gres=gpu:@:@\nmodule load cuda/@ python/@\nuv venv -p @\npip install torch==2.6.0\n",
    "pod.yaml": "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: 'pytorch/pytorch:@-cuda@-cudnn9-devel', command: [sh, -c, pip install torch]}]}\n",
    "app.py": "import modal\nimage = modal.Image.from_registry('nvidia/cuda:@-devel-ubuntu22.04', add_python='@').pip_install('torch')\n",
    "uv.lock": 'version = 1\nrequires-python = ">=@"\n[[package]]\nname = "torch"\nversion = "@"\nsource = {registry = "x"}\n',
}  # fmt: skip


@pytest.mark.parametrize("name", _WITH_VERSIONS)
@pytest.mark.parametrize("text", _NO_VERSIONS)
def test_what_is_no_version_is_an_error_or_unknown(name: str, text: str, matrix: Matrix) -> None:
    try:
        listings = listings_of(name, _WITH_VERSIONS[name].replace("@", text).encode())
    except InputError:
        return
    for listing in listings:
        judged_listing(listing, listing.context, matrix)


@pytest.mark.parametrize("end", ["\r", "\x85", "\u2028"])
def test_lines_that_only_yaml_ends_are_no_error(end: str) -> None:
    for text in (
        "~setup:~run: |",
        "~resources:~run: |~  pip install torch",
        "type::~commands:~",
        "type: task~commands:~  - pip install torch~",
    ):
        with contextlib.suppress(InputError):
            listings_of("task.yaml", text.replace("~", end).encode())
