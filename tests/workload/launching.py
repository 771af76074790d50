"""Shared by the tests of launch commands: how one is read, and the facts of a workload that are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compat.model import Workload
from compat.workload.command import from_command
from compat.workload.launch import Launch
from compat.workload.wrappers import split_words

SCRIPT = """\
import os
from trl import SFTConfig, SFTTrainer

args = SFTConfig(output_dir="out", per_device_train_batch_size=2, bf16=True)
SFTTrainer(model="mistralai/Mistral-7B-v0.1", args=args).train()
"""


def read(line: str, job: Path, **variables: str) -> Launch:
    return from_command(split_words(line), str(job), {"HOME": str(job / "home"), **variables})


def known(workload: Workload, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(workload, name) for name in names)
