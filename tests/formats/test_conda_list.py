"""Text files of conda packages, which are named like requirements."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.conda_environment import CondaList
from compat.formats.registry import format_of
from tests.formats.listings import lines, pins

EXPORT = """\
# This file may be used to create an environment using:
# $ conda create --name <env> --file <this file>
# platform: linux-64
ca-certificates=2023.7.22=hbcca054_0
python=3.10.12=h955ad1f_0
pytorch=2.0.1=py3.10_cuda11.7_cudnn8.5.0_0
transformers=4.30.2=pypi_0
"""


def test_an_export_lists_packages_of_conda_and_pip() -> None:
    form = format_of("requirements.txt", EXPORT.encode())
    (listing,) = form.listings("requirements.txt", EXPORT.encode())
    assert (listing.kind, listing.complete, listing.context.python) == ("conda list", True, "3.10.12")
    assert (listing.context.os, listing.context.machine) == ("linux", "x86_64")
    assert pins(listing) == {"ca-certificates": "2023.7.22", "python": "3.10.12", "torch": "2.0.1", "transformers": "4.30.2"}
    assert lines(listing)["torch"] == 6
    torch, transformers = (each.distribution for each in listing.entries[2:])
    assert torch.source is not None
    assert transformers.source is not None
    assert (torch.source.kind, torch.extra, transformers.source.kind) == ("conda", {"cuda": "11.7"}, "index")


def test_an_explicit_list_and_one_of_specifications() -> None:
    explicit = "# $ conda create --name <env> --file <this file>\n@EXPLICIT\nhttps://conda.example/linux-64/numpy-1.26.4-py310_0.conda#ab\n"
    (listing,) = format_of("env.txt", explicit.encode()).listings("env.txt", explicit.encode())
    assert (pins(listing), listing.complete) == ({"numpy": "1.26.4"}, True)
    (listing,) = format_of("a.txt", b"python=3.8\npytorch=1.11.0\ntorchdata\n").listings(
        "a.txt", b"python=3.8\npytorch=1.11.0\ntorchdata\n"
    )
    assert (listing.requires_python, listing.complete) == ("==3.8.*", False)
    assert [each.distribution.name for each in listing.entries] == ["python", "torch", "torchdata"]


def test_requirements_of_pip_stay_requirements_and_wrong_lines_are_refused() -> None:
    assert format_of("requirements.txt", b"torch==2.0.1\npython==3.10\n").kind == "requirements"
    assert format_of("requirements.txt", b"torch=2.0.1\n").kind == "requirements"
    with pytest.raises(InputError) as problem:
        CondaList().read("a.txt", "python=3.8\n***\n")
    assert problem.value.line == 2
