"""cog.yaml: packages, a requirements file, commands, Python and CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.image_files import Cog
from tests.formats.listings import lines, pins

TEXT = """\
build:
  gpu: true
  cuda: "11.8"
  python_version: 3.10
  python_packages:
    - "torch==2.0.1"  # pinned
    - xformers==0.0.20 --extra-index-url https://download.pytorch.org/whl/cu118
    - transformers>=4.30,<4.40
  run:
    - pip install flash-attn==2.3.6
    - command: pip install -U "peft==0.5.0"
predict: predict.py:Predictor
"""


def test_packages_and_commands_are_entries() -> None:
    (listing,) = Cog().read("cog.yaml", TEXT)
    assert pins(listing) == {
        "torch": "2.0.1", "xformers": "0.0.20", "transformers": ">=4.30,<4.40", "flash-attn": "2.3.6", "peft": "0.5.0",
    }  # fmt: skip
    assert lines(listing) == {"torch": 6, "xformers": 7, "transformers": 8, "flash-attn": 10, "peft": 11}
    context = listing.context
    assert (listing.requires_python, context.os, context.cuda_toolkit) == ("==3.10.*", "linux", "11.8")


def test_the_requirements_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.0.1\n")
    text = "build:\n  python_requirements: requirements.txt\n"
    (listing,) = Cog().read(str(tmp_path / "cog.yaml"), text)
    assert [(each.distribution.name, each.file) for each in listing.entries] == [("torch", str(tmp_path / "requirements.txt"))]
    (missing,) = Cog().read(str(tmp_path / "cog.yaml"), "build:\n  python_requirements: other.txt\n")
    assert len(missing.elsewhere) == 1


def test_edits_keep_comments_quotes_and_options(tmp_path: Path) -> None:
    (tmp_path / "cog.yaml").write_text(TEXT)
    changes = (
        Change("torch", "2.0.1", "2.1.2"), Change("xformers", "0.0.20", "0.0.23.post1"), Change("peft", "0.5.0", "0.7.1"),
        Change("accelerate", None, "0.25.0", direct=True),
    )  # fmt: skip
    (edit,) = edits_for(str(tmp_path / "cog.yaml"), changes)
    assert edit.after.decode() == (
        TEXT.replace("torch==2.0.1", "torch==2.1.2").replace("0.0.20", "0.0.23.post1").replace("peft==0.5.0", "peft==0.7.1")
        .replace("    - transformers>=4.30,<4.40\n", "    - transformers>=4.30,<4.40\n    - accelerate==0.25.0\n")
    )  # fmt: skip


@pytest.mark.parametrize("text", ["build: [1]\n", "build:\n  python_packages: torch\n", "build:\n  run:\n    a: 1\n"])
def test_values_of_a_wrong_type_are_refused_with_their_line(text: str) -> None:
    with pytest.raises(InputError) as problem:
        Cog().read("cog.yaml", text)
    assert problem.value.line
