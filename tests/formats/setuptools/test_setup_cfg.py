"""setup.cfg: ``[options]`` and ``[options.extras_require]``."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.setuptools.setup_cfg import SetupCfg
from tests.formats.listings import placed_pins, selected

TEXT = """\
[metadata]
name = toy
version = attr: toy.__version__

[options]
packages = find:
python_requires = >=3.9
install_requires =
    # the trainer
    torch>=2.0
    transformers==4.40.1 ; python_version < "3.13"
    numpy<2  # until torch 2.3

[options.extras_require]
train = trl==0.8.6; peft
all =
  toy[train]
  deepspeed

[flake8]
max-line-length = 119
"""


def test_requirements_extras_and_python() -> None:
    (listing,) = SetupCfg().read("setup.cfg", TEXT)
    assert {name: place for name, place in placed_pins(listing).items() if name != "toy"} == {
        "torch": (None, 10), "transformers": ("4.40.1", 11), "numpy": (None, 12), "trl": ("0.8.6", 15), "peft": (None, 15),
        "deepspeed": (None, 18),
    }  # fmt: skip
    assert (listing.requires_python, listing.notes, listing.elsewhere) == (">=3.9", (), ())
    assert selected(listing, extras=("all",)) >= {"trl 0.8.6", "deepspeed None"}
    assert "trl 0.8.6" not in selected(listing)


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.2.0\n")
    text = "[options]\ninstall_requires = file: requirements.txt, missing.txt\n"
    (listing,) = SetupCfg().read(str(tmp_path / "setup.cfg"), text)
    assert [(each.distribution.name, each.file) for each in listing.entries] == [("torch", str(tmp_path / "requirements.txt"))]
    assert [each.partition("missing")[2] for each in listing.elsewhere] == [
        ".txt (install_requires) was not read: there is no such file"
    ]


def test_a_file_of_tool_settings_lists_nothing() -> None:
    assert SetupCfg().read("setup.cfg", "[flake8]\nignore = E501\n") == ()


@pytest.mark.parametrize(
    ("text", "line"), [("install_requires =\n    torch\n", 1), ("[options]\n<<<<<<< HEAD\nzip_safe = no\n", 2)]
)
def test_what_is_no_configuration_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(InputError) as problem:
        SetupCfg().read("setup.cfg", text)
    assert (problem.value.file, problem.value.line) == ("setup.cfg", line)
