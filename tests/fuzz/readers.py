"""Every reader as one function of one input: it comes back, or raises what must not be raised."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat.api.diagnosis import unexplained
from compat.checks.baseline import read_baseline
from compat.checks.selections import judged_listing, to_environment
from compat.diagnosis.diagnose import diagnose
from compat.errors import InputError
from compat.formats.described import parse_described, read_described
from compat.formats.listing import Listing
from compat.formats.project.config import find_config, read_config
from compat.formats.registry import format_of
from compat.model import Distribution, Environment
from compat.reports.lines import cut_lines
from compat.reports.log.traceback import decisive, parse_log, versions_in
from compat.reports.pasted import read_pasted
from compat.rules.compiled import Matrix
from compat.syntax.json import read_text


class Wrong(Exception):
    """A reader came back with something that breaks its contract."""


@dataclass(frozen=True)
class Reader:
    """``names`` are what its files are called, ``form`` is what their text is (``toml``, ``json``, ``yaml`` or plain)."""

    names: tuple[str, ...]
    form: str
    read: Callable[[str, bytes, Matrix], None]
    on_disk: bool = False
    """Whether the reader opens its file itself."""


def examine(reader: Reader, name: str, content: bytes, matrix: Matrix) -> bool:
    """Reads one input; whether it was taken (and not refused with a proper :class:`InputError`)."""
    try:
        reader.read(name, content, matrix)
    except InputError as problem:
        text = str(problem)
        if "\n" in text or not text.isprintable() or not problem.message:
            raise Wrong(f"an error that is not one printable line: {text!r:.200}") from None
        if problem.line is not None and problem.file == name and not 1 <= problem.line <= _lines(content):
            raise Wrong(f"line {problem.line} of {_lines(content)}: {text!r:.200}") from None
        return False
    return True


def _lines(content: bytes) -> int:
    """The most lines that anyone may count: everything that ends a line somewhere does, in UTF-8 and in UTF-16."""
    ends = (
        b"\n",
        b"\r",
        b"\x0b",
        b"\x0c",
        b"\x1c",
        b"\x1d",
        b"\x1e",
        b"\x85",
        b"\xe2\x80\xa8",
        b"\xe2\x80\xa9",
        b"(\x20",
        b")\x20",
    )
    return sum(map(content.count, ends)) + 1


def _listings(name: str, content: bytes, matrix: Matrix) -> None:
    found = format_of(name, content)
    if found.kind != "described":
        for listing in found.listings(name, content):
            _judged(listing, matrix)


def _judged(listing: Listing, matrix: Matrix) -> None:
    judged_listing(listing, Environment(), matrix)
    if listing.context != Environment():
        judged_listing(listing, listing.context, matrix)
    _read_again(to_environment(listing), listing.file)


def _read_again(environment: Environment, name: str) -> None:
    """What was read can be printed as JSON, and that says the same."""
    document = environment.to_json()
    printed = json.loads(json.dumps(document, allow_nan=False))
    again = parse_described(printed, name)[0].to_json()
    if again != printed:
        wrong = [key for key in {*again, *printed} if again.get(key) != printed.get(key)]
        raise Wrong(f"read again, {wrong} differ: {[(printed.get(key), again.get(key)) for key in wrong]!r:.400}")


def _described(name: str, content: bytes, matrix: Matrix) -> None:
    from compat.rules import evaluate as rules

    environment, _ = read_described(name)
    environment.to_json()
    rules.judge(environment, matrix)


def _pasted(name: str, content: bytes, matrix: Matrix) -> None:
    environment, _ = read_pasted(read_text(name), name)
    _read_again(environment, name)


def _log(name: str, content: bytes, matrix: Matrix) -> None:
    text = cut_lines(content[:500_000].decode("utf-8", "replace"))  # short lines take some 6 µs each, of the 2 s there are
    errors = parse_log(text)
    order = decisive(errors)
    versions = versions_in(text)
    here = Environment(distributions=tuple(Distribution(name=name, version=version) for name, version in versions.items()))
    for finding in diagnose(text, errors, order, here, matrix):
        finding.to_json()
    unexplained(errors)


def _config(name: str, content: bytes, matrix: Matrix) -> None:
    find_config(".")
    read_config(name)


def _baseline(name: str, content: bytes, matrix: Matrix) -> None:
    read_baseline(name)


_TOML = {
    "uv": ("uv.lock", "script.py.lock"), "poetry": ("poetry.lock",), "pdm": ("pdm.lock",), "pylock": ("pylock.toml", "pylock.a.toml"),
    "pyproject": ("pyproject.toml",), "pipfile_source": ("Pipfile",),
}  # fmt: skip
_YAML = {
    "conda": ("environment.yml",), "conda-lock": ("conda-lock.yml",), "pixi": ("pixi.lock",),
    "compose": ("compose.yml", "sub/compose.yaml"), "kubernetes": ("job.yaml",), "workflow": ("ci.yml", "sub/ci.yml"),
    "cloud": ("task.yaml",), "training": ("config.yml",), "cog": ("cog.yaml",), "gitlab": (".gitlab-ci.yml",),
}  # fmt: skip
_JSON = {"pipfile": ("Pipfile.lock",), "devcontainer": ("devcontainer.json",)}
_PLAIN = {
    "requirements": ("given.txt", "sub/given.txt"), "dockerfile": ("Dockerfile", "sub/Dockerfile", "a.dockerfile"),
    "shell": ("run.sh", "sub/run.slurm"), "setup_cfg": ("setup.cfg",), "tox": ("tox.ini",), "makefile": ("Makefile",),
    "singularity": ("train.def",), "nox": ("noxfile.py",),
}  # fmt: skip
_NAMES = ("a.yml", "a.yaml", "a.json", "a.lock", "a", "requirements", "a.toml", "a.yml.txt", "\0", "", "a/../b.yml", "ſ.YML")

READERS: dict[str, Reader] = {
    **{
        kind: Reader(names, form, _listings)
        for form, kinds in (("toml", _TOML), ("yaml", _YAML), ("json", _JSON), ("plain", _PLAIN))
        for kind, names in kinds.items()
    },
    "script": Reader(("script.py",), "plain", _listings, on_disk=True),
    "setup_py": Reader(("setup.py",), "plain", _listings, on_disk=True),
    "notebook": Reader(("a.ipynb", "sub/a.ipynb"), "json", _listings, on_disk=True),
    "kind_of": Reader(_NAMES, "any", _listings),
    "described": Reader(("given.json",), "json", _described, on_disk=True),
    "pasted": Reader(("given.log",), "plain", _pasted, on_disk=True),
    "log": Reader(("train.log",), "plain", _log),
    "project_config": Reader(("pyproject.toml",), "toml", _config, on_disk=True),
    "baseline": Reader(("given.json",), "json", _baseline, on_disk=True),
}


def put(reader: Reader, folder: Path, name: str, content: bytes) -> None:
    """Writes the input where the reader will look for it."""
    if reader.on_disk:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


def default_name(reader: Reader, chance: Any, folder: Path) -> str:
    """One of the reader's names, now and then as an absolute path."""
    name = chance.choice(reader.names)
    return name if chance.random() < 0.95 or not name else os.path.join(folder, name)  # a folder is no file to read
