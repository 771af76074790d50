"""Projects that admit Pythons for which a requirement has no release."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks.choices import Requested
from compat.checks.python_range import judge
from compat.formats.registry import read_listings
from compat.model import Finding

PROJECT = '[project]\nname = "job"\nversion = "1"\nrequires-python = "{python}"\ndependencies = [{requires}]\n'
POETRY = '[tool.poetry]\nname = "job"\nversion = "1"\n\n[tool.poetry.dependencies]\npython = "^3.8"\ntorch = "2.6.0"\n'


def _found(folder: Path, text: str, pythons: dict[tuple[str, str], str] | None = None) -> tuple[Finding, ...]:
    path = folder / "pyproject.toml"
    path.write_text(text)
    (listing,) = read_listings(str(path))
    return judge(listing, Requested(), pythons or {})


def _project(python: str, *requires: str) -> str:
    return PROJECT.format(python=python, requires=", ".join(f'"{each}"' for each in requires))


def test_the_line_to_change_and_what_it_has_to_be(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, _project(">=3.8", "torch==2.6.0", "transformers>=5"))
    assert (found.verdict, found.severity) == ("hit", "warning")
    assert found.title.startswith("requires-python admits Python 3.8, for which there is no torch==2.6.0 (1 more")
    assert found.fixes[0].text.startswith('set requires-python = ">=3.10"')
    assert found.location is not None
    assert found.location.line == 4


def test_poetry_s_own_table(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, POETRY)
    assert found.fixes[0].text.startswith('set python = "^3.9"')
    assert found.location is not None
    assert found.location.line == 6


@pytest.mark.parametrize(
    ("python", "requires"),
    [
        (">=3.9", ["torch==2.6.0"]),
        (">=3.8", ["torch==2.6.0; python_version >= '3.9'"]),
        (">=3.8", ["torch>=2.0"]),  # 2.4 is for Python 3.8
        (">=3.8", ["torch"]),
        (">=3.8", ["some-package-of-ours==1.0"]),
        (">=3.8", ["torch @ git+https://git.example/torch"]),
    ],
)
def test_what_every_admitted_python_can_install_is_no_finding(tmp_path: Path, python: str, requires: list[str]) -> None:
    assert _found(tmp_path, _project(python, *requires)) == ()


def test_libraries_around_the_stack_have_recorded_pythons(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, _project(">=3.9", "torch==2.6.0", "numpy==2.2.0"))
    assert found.packages == {"numpy": "2.2.0"}


def test_what_an_index_says_about_a_pin_counts(tmp_path: Path) -> None:
    text = _project(">=3.9", "torch==2.6.0", "some-package-of-ours==2.2.0")
    assert _found(tmp_path, text) == ()
    (found,) = _found(tmp_path, text, {("some-package-of-ours", "2.2.0"): ">=3.10"})
    assert found.packages == {"some-package-of-ours": "2.2.0"}
    assert found.fixes[0].text.startswith('set requires-python = ">=3.10"')
