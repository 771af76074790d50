"""Tasks of SkyPilot and dstack: GPUs, packages and the job, against what PyYAML finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.listing import Listing
from compat.formats.registry import read_listings

SKY = """\
name: sft
num_nodes: 2
resources:
  accelerators: {A100-80GB: 8}
  image_id: docker:nvcr.io/nvidia/pytorch:24.10-py3
envs:
  HF_TOKEN:
  NCCL_DEBUG: INFO
setup: |
  pip install trl==0.12.1 \\
    "transformers==4.46.3"
run: |
  MASTER=$(echo "$SKYPILOT_NODE_IPS" | head -n1)
  torchrun --nnodes=$SKYPILOT_NUM_NODES --nproc_per_node=$SKYPILOT_NUM_GPUS_PER_NODE train.py --bf16 True
"""
DSTACK = """\
type: task
name: train
python: "3.11"
nodes: 2
env:
  - HF_TOKEN
  - WANDB_MODE=offline
commands:
  - pip install torch==2.6.0 trl==0.15.2
  - torchrun --nnodes $DSTACK_NODES_NUM --nproc-per-node $DSTACK_GPUS_PER_NODE train.py
resources:
  gpu: H100:80GB:8
"""


def read(tmp_path: Path, text: str) -> Listing:
    path = tmp_path / "task.yaml"
    path.write_text(text, encoding="utf-8")
    (listing,) = read_listings(str(path))
    return listing


def gpus(listing: Listing) -> list[str | None] | None:
    found = listing.context.accelerators
    return None if found is None else [each.name for each in found]


def test_a_task_of_skypilot(tmp_path: Path) -> None:
    listing = read(tmp_path, SKY)
    assert (listing.kind, listing.label) == ("skypilot", "sft")
    assert gpus(listing) == ["A100-80GB"] * 8
    assert [(e.distribution.name, e.distribution.version, e.line) for e in listing.entries[1:]] == [
        ("trl", "0.12.1", 10),
        ("transformers", "4.46.3", 11),
    ]
    assert listing.entries[0].distribution.version == "2.5.0a0+e000cf0ad9.nv24.10"
    assert listing.context.variables == {"NCCL_DEBUG": "INFO"}
    workload = listing.context.workload
    assert workload is not None
    assert (workload.launcher, workload.processes, workload.precision) == ("torchrun", 16, "bf16")


def test_a_task_of_dstack(tmp_path: Path) -> None:
    listing = read(tmp_path, DSTACK)
    assert (listing.kind, listing.label, listing.requires_python) == ("dstack", "train", "==3.11.*")
    assert gpus(listing) == ["H100"] * 8
    assert listing.context.variables == {"WANDB_MODE": "offline"}
    assert listing.context.workload is not None
    assert listing.context.workload.processes == 16


@pytest.mark.parametrize("text", [SKY, DSTACK])
def test_the_pins_are_those_that_pyyaml_finds(tmp_path: Path, text: str) -> None:
    document = yaml.safe_load(text)
    shell = "\n".join([document.get("setup", ""), document.get("run", ""), *document.get("commands", ())])
    own = [
        e.distribution for e in read(tmp_path, text).entries if e.distribution.source and e.distribution.source.kind == "index"
    ]
    assert {(each.name, each.version) for each in own} == set(re.findall(r"([a-z]+)==([\d.]+)", shell))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{A100-80GB:8}", ["A100-80GB"] * 8),
        ("A100:8", ["A100"] * 8),
        ("L4", ["L4"]),
        ("{T4: 1, L4: 1}", None),
        ("[A100:8, H100:8]", None),
        ("tpu-v5litepod-8", None),
    ],
)
def test_accelerators_of_skypilot(tmp_path: Path, written: str, expected: list[str] | None) -> None:
    assert gpus(read(tmp_path, f"resources:\n  accelerators: {written}\nrun: echo\n")) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("A100:80GB:2", ["A100"] * 2),
        ("24GB", [None]),
        ("A100:2..4", None),
        ("{name: A10G, count: 2}", ["A10G"] * 2),
        ("{name: [A10G, L4]}", [None]),
        ("{count: {min: 1}}", None),
    ],
)
def test_gpus_of_dstack(tmp_path: Path, written: str, expected: list[str | None] | None) -> None:
    assert gpus(read(tmp_path, f"type: task\ncommands: [echo]\nresources:\n  gpu: {written}\n")) == expected


def test_a_pipeline_of_skypilot_has_a_listing_for_each_task(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    tasks = (
        "name: pipeline\n---\nname: a\nresources: {accelerators: T4}\nrun: pip install trl==0.12.1\n---\nname: b\nrun: echo\n"
    )
    path.write_text(tasks, encoding="utf-8")
    found = read_listings(str(path))
    assert [each.label for each in found] == ["a", "b"]
    assert found[0].entries[0].line == 5


@pytest.mark.parametrize(
    ("text", "old", "added"), [(SKY, "trl==0.12.1", ' \\\n    "peft==0.14.0"'), (DSTACK, "trl==0.15.2", ' "peft==0.14.0"')]
)
def test_an_edit_changes_one_pin_and_another_adds_one(tmp_path: Path, text: str, old: str, added: str) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(text, encoding="utf-8")
    (edit,) = edits_for(str(path), [Change("trl", old.partition("==")[2], "0.16.0")])
    assert edit.after.decode() == text.replace(old, "trl==0.16.0")
    (edit,) = edits_for(str(path), [Change("peft", None, "0.14.0", direct=True)])
    assert added in edit.after.decode()
    assert edit.after.decode().replace(added, "") == text
