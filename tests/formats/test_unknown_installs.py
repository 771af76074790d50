"""Commands that install what is not read: named, and the report says that it is about what could be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.formats.registry import read_listings


def notes(tmp_path: Path, line: str) -> list[str]:
    path = tmp_path / "Dockerfile"
    path.write_text(f"FROM python:3.11\nARG cmd\nARG CMD\nRUN {line}\n")
    return [
        note.partition("Dockerfile:4: ")[2]
        for listing in read_listings(str(path))
        for note in (*listing.elsewhere, *listing.unread)
    ]


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("make install", "what make install installs was not read: there is no Makefile"),
        ("make -j4 test-deps lint", "what make test-deps installs was not read: there is no Makefile"),
        ("nox -s tests", "what nox installs into environments of its own was not read"),
        ("tox -e py311", "what tox installs into environments of its own was not read"),
        ('bash -c "$cmd"', "what the text in $cmd installs was not read: it is only known at run time"),
        ('sh -ec "${CMD}"', "what the text in ${CMD} installs was not read: it is only known at run time"),
        ('eval "$CMD"', "what the text in $CMD installs was not read: it is only known at run time"),
    ],
)
def test_what_is_not_read_is_named(line: str, note: str, tmp_path: Path) -> None:
    assert notes(tmp_path, line) == [note]


@pytest.mark.parametrize(
    "line",
    [
        "cd openmpi && ./configure && make install", "make -C lib install", "make test", "nox --version", 'exec "$@"', 'bash -c "$1"',
        'eval "$(ssh-agent)"', "bash -c 'echo $x'",
    ],
)  # fmt: skip
def test_other_commands_are_not(line: str, tmp_path: Path) -> None:
    assert notes(tmp_path, line) == []


def test_a_makefile_that_is_there_is_read(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("install:\n\tpip install torch==2.6.0\n")
    path = tmp_path / "run.sh"
    path.write_text("#!/bin/sh\nmake install\n")
    (listing,) = read_listings(str(path))
    assert [(each.distribution.name, each.distribution.version) for each in listing.entries] == [("torch", "2.6.0")]
    assert not listing.elsewhere
