"""Pipfile: what pipenv may install."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.project.pipfile import Pipfile
from tests.formats.listings import pins, selected

TEXT = """\
[[source]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu118"

[packages]
torch = {version = "==2.0.1", index = "pytorch"}
transformers = ">=4.30"
datasets = {extras = ["audio"], version = "*"}
trl = {git = "https://example.org/trl.git", ref = "main"}

[dev-packages]
pytest = "*"

[requires]
python_version = "3.10"
"""


def test_packages_groups_and_python() -> None:
    (listing,) = Pipfile().read("Pipfile", TEXT)
    assert pins(listing) == {"torch": "2.0.1", "transformers": ">=4.30", "datasets": None, "trl": None, "pytest": None}
    assert [each.line for each in listing.entries] == [6, 7, 8, 9, 12]
    assert listing.requires_python == "==3.10.*"
    assert "pytest None" not in selected(listing, python="3.10.2")
    assert "pytest None" in selected(listing, groups=("dev",), python="3.10.2")
    torch, *_, trl, _ = [each.distribution for each in listing.entries]
    assert torch.source is not None
    assert trl.source is not None
    assert (torch.source.details["url"], trl.source.kind) == ("https://download.pytorch.org/whl/cu118", "vcs")


def test_an_invalid_constraint_is_refused_with_its_line() -> None:
    with pytest.raises(InputError) as problem:
        Pipfile().read("Pipfile", '[packages]\ntorch = "one"\n')
    assert (problem.value.file, problem.value.line) == ("Pipfile", 2)
