"""environment.yml: packages of conda, the pip section, the interpreter, the platforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.conda_environment import CondaEnvironment
from compat.formats.listing import ROOT, Listing
from compat.model import Environment

TEXT = """\
name: train
channels: [pytorch, conda-forge]
dependencies:
  - python=3.11.9
  - pytorch::pytorch>=2.0
  - pytorch-cuda=12.1  # [linux]
  - pytorch-cuda=12.4  # [win]
  - numpy  # see issue [4]
  - pip
  - pip:
      - transformers[torch]==4.51.3 ; sys_platform == 'linux'
      - trl>=0.17,<0.18
      - --extra-index-url https://download.pytorch.org/whl/cu121
      - -e .
platforms: [linux-64, osx-arm64]
variables:
  HF_HOME: /data
  WANDB_API_KEY: abc
prefix: /opt/conda/envs/train
"""


def read(text: str) -> Listing:
    (listing,) = CondaEnvironment().read("environment.yml", text)
    return listing


def test_packages_of_conda_and_of_pip_are_entries_with_their_lines() -> None:
    listing = read(TEXT)
    found = [(e.distribution.name, e.distribution.version, e.distribution.specifier, e.line) for e in listing.entries]
    assert found == [
        ("python", "3.11.9", None, 4),
        ("torch", None, ">=2.0", 5),
        ("pytorch-cuda", "12.1", "==12.1.*", 6),
        ("pytorch-cuda", "12.4", "==12.4.*", 7),
        ("numpy", None, None, 8),
        ("pip", None, None, 9),
        ("transformers", "4.51.3", None, 11),
        ("trl", None, ">=0.17,<0.18", 12),
    ]
    torch = listing.entries[1].distribution.source
    assert torch is not None
    assert torch.to_json() == {"kind": "conda", "name": "pytorch", "channel": "pytorch"}
    transformers = listing.entries[6].distribution
    assert (transformers.source and transformers.source.kind, transformers.extra) == ("index", {"extras": ["torch"]})
    assert not listing.complete
    assert listing.unread == ()
    assert any(note.startswith("environment.yml:13:") for note in listing.notes)


def test_selectors_and_markers_of_pip_are_on_the_edges() -> None:
    listing = read(TEXT)
    assert listing.edges is not None
    assert [edge[:2] for edge in listing.edges] == [(ROOT, number) for number in range(8)]
    markers = [marker for _, _, marker, _ in listing.edges]
    assert markers[2:4] == ["sys_platform == 'linux'", "sys_platform == 'win32'"]
    assert markers[4] is None
    assert markers[6] == listing.entries[6].distribution.marker
    assert markers[6] is not None


def test_without_selectors_every_package_is_installed_directly() -> None:
    assert read("dependencies: [numpy]\n").edges is None


def test_interpreter_platforms_and_variables_are_facts() -> None:
    listing = read(TEXT)
    assert listing.context == Environment(python="3.11.9", variables={"HF_HOME": "/data"})
    assert listing.requires_python is None
    assert [marker.partition(" and ")[0] for marker in listing.environments] == [
        "sys_platform == 'linux'",
        "sys_platform == 'darwin'",
    ]


@pytest.mark.parametrize(
    ("spec", "python", "requires"),
    [
        ("python=3.11", None, "==3.11.*"),
        ("python 3.11.*", None, "==3.11.*"),
        ("python==3.11", None, "==3.11.*"),
        ("python>=3.10,<3.13", None, ">=3.10,<3.13"),
        ("python=3.12.1=hab00c5b_1_cpython", "3.12.1", None),
        ("python", None, None),
        ("python=3.11.9  # [linux]", None, None),
        (f"python=3{'.1' * 600}", None, None),
    ],
)
def test_the_python_that_is_asked_for(spec: str, python: str | None, requires: str | None) -> None:
    listing = read(f"dependencies:\n- {spec}\n")
    assert (listing.context.python, listing.requires_python) == (python, requires)


def test_an_export_is_complete_and_its_builds_tell_the_cuda() -> None:
    text = "dependencies:\n- python=3.12.1=h1_0\n- pytorch=2.2.0=py3.12_cuda12.1_cudnn8.9.2_0\n- pip:\n  - trl==0.17.0\n"
    listing = read(text)
    assert listing.complete
    torch = listing.entries[1].distribution
    assert (torch.name, torch.version, torch.extra) == ("torch", "2.2.0", {"cuda": "12.1"})
    assert torch.source is not None
    assert torch.source.details["build"] == "py3.12_cuda12.1_cudnn8.9.2_0"
    assert not read(text.replace("trl==", "trl>=")).complete
    assert not read(text.replace("=h1_0", "")).complete
    assert not read(text.replace("h1_0", "h1*")).complete


def test_what_pip_includes_is_read_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "requirements.txt").write_text("vllm==0.7.1\n", encoding="utf-8")
    text = "dependencies:\n- pip\n- pip:\n  - -r requirements.txt\n  - -r missing.txt\n"
    (listing,) = CondaEnvironment().read(str(tmp_path / "environment.yml"), text)
    vllm = listing.entries[1]
    assert (vllm.distribution.name, vllm.line, vllm.file) == ("vllm", 1, str(tmp_path / "requirements.txt"))
    assert len(listing.unread) == 1
    assert "environment.yml:5: -r missing.txt was not read" in listing.unread[0]


def test_several_requirements_of_pip_on_one_line_have_that_line() -> None:
    listing = read('dependencies:\n- {pip: [a==1, b==2, "c==3\\nd==4"]}\n- e=5\n')
    assert [(entry.distribution.name, entry.line) for entry in listing.entries] == [
        ("e", 3), ("a", 2), ("b", 2), ("c", 2), ("d", 2),
    ]  # fmt: skip
    with pytest.raises(InputError, match="expected a requirement") as caught:
        read('{dependencies: [{pip: [a==1, b==2, "="]}]}')
    assert caught.value.line == 1


def test_an_alternative_is_kept_as_written() -> None:
    source = read("dependencies: ['numpy 2.1|2.2']\n").entries[0].distribution.source
    assert source is not None
    assert source.details["spec"] == "2.1|2.2"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "expected the 'dependencies'"),
        ("name: x\n", 1, "expected the 'dependencies'"),
        ("- numpy\n", 1, "expected the file to be a table"),
        ("dependencies: numpy\n", 1, "expected dependencies to be a list"),
        ("dependencies:\n- numpy\n- [a]\n", 3, "a conda package to be a string, not a list"),
        ("dependencies:\n- numpy\n-\n", 3, "expected a conda package"),
        ("dependencies:\n- npm: [a]\n", 2, "a conda package or 'pip:'"),
        ("dependencies:\n- pip: a\n", 2, "dependencies.pip to be a list"),
        ("dependencies:\n- numpy\n- 'a b c d'\n", 3, "more than a version and a build"),
        ("dependencies:\n- pip:\n  - numpy\n  - '=='\n", 4, "expected a requirement or an option"),
        ("dependencies: []\nplatforms: [x]\n", 2, "'x' is not a platform"),
        ("dependencies: []\nvariables: [x]\n", 2, "expected variables to be a table"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert (caught.value.file, caught.value.line) == ("environment.yml", line)
