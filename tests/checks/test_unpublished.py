"""Pins to releases that were never published."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks.choices import Requested
from compat.checks.unresolvable import unpublished
from compat.formats.registry import read_listings
from compat.model import Environment, Finding
from compat.tables.declared import open_declared


def found(folder: Path, name: str, text: str, known: Environment | None = None) -> list[Finding]:
    (folder / name).write_text(text, encoding="utf-8")
    (listing,) = read_listings(str(folder / name))
    return list(unpublished(listing, known or Environment(), Requested()))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "torch==2.6.1\n"),
        ("requirements.txt", "--extra-index-url https://download.pytorch.org/whl/cu124\ntorch==2.6.1+cu124\n"),
        ("Dockerfile", "FROM python:3.12\nRUN pip install torch==2.6.1 --index-url https://download.pytorch.org/whl/cu124\n"),
        ("pyproject.toml", '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch==2.6.1"]\n'),
        ("environment.yml", "dependencies:\n- python=3.12\n- pip:\n  - torch==2.6.1\n"),
        ("install.sh", "pip install torch==2.6.1\n"),
    ],
)
def test_the_pin_is_an_error_with_the_releases_beside_it(tmp_path: Path, name: str, text: str) -> None:
    (finding,) = found(tmp_path, name, text)
    assert (finding.rule, finding.verdict, finding.severity) == ("wheels-torch", "hit", "error")
    assert finding.title.endswith("was never released")
    assert {fix.command for fix in finding.fixes} == {'pip install "torch==2.6.0"', 'pip install "torch>=2.7.0"'}
    assert finding.location is not None
    assert finding.location.line == 1 + text[: text.index("torch==")].count("\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "torch==2.6.0\n"),
        ("requirements.txt", "torch==2.6\n"),
        ("requirements.txt", "torch>=2.6.1\n"),
        ("requirements.txt", "torch==2.6.1.dev20250101\ntorchvision==0.21.0rc1\n"),
        ("requirements.txt", "torch==1.0.99\nunrecorded-package==1.2.3\n"),
        ("requirements.txt", "--extra-index-url https://index.example/simple\ntorch==2.6.1\n"),
        ("requirements.txt", "--find-links wheels\ntorch==2.6.1\n"),
        ("requirements.txt", "--index-url https://index.example/simple\ntorch==2.6.1\n"),
        ("requirements.txt", "torch @ https://index.example/torch-2.6.1-py3-none-any.whl\n"),
        ("Dockerfile", "FROM python:3.12\nRUN pip install -f /wheels torch==2.6.1\n"),
        (
            "Dockerfile",
            "FROM python:3.12\nENV PIP_EXTRA_INDEX_URL=https://index.example/simple\nRUN pip install torch==2.6.1\n",
        ),
        ("Dockerfile", "FROM python:3.12\nRUN uv pip install --index https://index.example/simple torch==2.6.1\n"),
        ("environment.yml", "dependencies:\n- pytorch=2.6.1\n"),
        (
            "pyproject.toml",
            (
                '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch==2.6.1"]\n'
                '[[tool.uv.index]]\nname = "own"\nurl = "https://index.example/simple"\n'
            ),
        ),
    ],
)
def test_the_release_exists_or_may_exist(tmp_path: Path, name: str, text: str) -> None:
    assert found(tmp_path, name, text) == []


def test_a_file_of_requirements_that_a_dockerfile_installs_names_the_other_index(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("--extra-index-url https://index.example/simple\ntorch==2.6.1\n")
    assert found(tmp_path, "Dockerfile", "FROM python:3.12\nCOPY r.txt .\nRUN pip install -r r.txt trl==0.9.99\n") == []


def test_a_series_may_be_continued_for_a_year(tmp_path: Path) -> None:
    package = open_declared().package("transformers")
    assert package is not None
    *_, last = package.versions
    day = package.day(last)
    recent = [each for each in package.versions if day - package.day(each) < 300]
    major, minor = recent[0].split(".")[:2]
    assert found(tmp_path, "requirements.txt", f"transformers=={major}.{minor}.99\n") == []
