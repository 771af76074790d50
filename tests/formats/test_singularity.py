"""Definition files of Singularity and Apptainer."""

from __future__ import annotations

from pathlib import Path

from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.image_files import Singularity
from compat.formats.registry import format_of
from tests.formats.listings import lines, pins

TEXT = """\
Bootstrap: docker
From: pytorch/pytorch:2.1.2-cuda12.1-cudnn8-devel

%files
    requirements.txt /opt/

%labels
    Author pip install nothing

%post
    apt-get update && apt-get install -y git
    pip install --no-cache-dir \\
        bitsandbytes==0.41.1 \\
        trl==0.8.6
    pip install -r /opt/requirements.txt

%environment
    export HF_HOME=/data

%runscript
    exec python train.py "$@"
"""


def test_the_image_and_what_post_installs(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("peft==0.7.1\n")
    path = str(tmp_path / "train.def")
    (listing,) = Singularity().read(path, TEXT)
    assert {"torch", "bitsandbytes", "trl", "peft"} <= pins(listing).keys()
    assert pins(listing)["torch"] == "2.1.2"
    assert {name: lines(listing)[name] for name in ("bitsandbytes", "trl", "peft")} == {
        "bitsandbytes": 13,
        "trl": 14,
        "peft": 1,
    }
    assert (listing.context.variables, listing.unread, listing.elsewhere) == ({"HF_HOME": "/data"}, (), ())


def test_stages_and_names() -> None:
    text = "Bootstrap: docker\nFrom: python:3.11\nStage: build\n%post\n  pip install torch==2.2.0\n" * 2
    first, second = Singularity().read("Singularity", text)
    assert (pins(first), lines(second)) == ({"torch": "2.2.0"}, {"torch": 10})
    assert first.label == "build"
    assert {format_of(name, b"").kind for name in ("a.def", "Singularity", "Singularity.gpu", "apptainer.def")} == {
        "singularity"
    }


def test_only_versions_change(tmp_path: Path) -> None:
    (tmp_path / "train.def").write_text(TEXT)
    (edit,) = edits_for(str(tmp_path / "train.def"), (Change("trl", "0.8.6", "0.9.6"),))
    assert edit.after.decode() == TEXT.replace("trl==0.8.6", "trl==0.9.6")
