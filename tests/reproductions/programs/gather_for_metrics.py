"""One step of trl's SFTTrainer, plain or under torchrun, with the token count of SFTTrainer as it was, or as it is.

Shows "'int' object is not iterable": accelerate's gather_for_metrics gathers a Python number as an object and then
iterates over it. trl counted tokens that way only between two commits of its main branch, never in a release. So
--undo-fix takes the installed release and turns its one line for the count back into what stood there in the meantime.

Real: SFTTrainer, Trainer, accelerate, torch.distributed over gloo, a Qwen2 model. Emulated: nothing but the undone line.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

import tiny
import torch
from accelerate import PartialState
from datasets import Dataset
from outcome import report_and_leave

FIXED = 'self.accelerator.gather_for_metrics(inputs["attention_mask"].sum()).sum().item()'
BROKEN = 'self.accelerator.gather_for_metrics(inputs["attention_mask"].sum().item())'


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--undo-fix", action="store_true")
    if options.parse_args().undo_fix:
        undo_fix()
    from trl import SFTConfig, SFTTrainer

    torch.manual_seed(0)
    arguments = SFTConfig(
        output_dir="out",
        per_device_train_batch_size=2,
        max_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        ddp_backend="gloo" if "RANK" in os.environ else None,
    )
    trainer = SFTTrainer(
        model=tiny.qwen2(use_cache=False),
        args=arguments,
        train_dataset=Dataset.from_dict({"text": tiny.texts(8)}),
        processing_class=tiny.tokenizer(),
    )
    failure = None
    try:
        trainer.train()
    except Exception as error:
        failure = error
    state = PartialState()
    if state.is_main_process:
        tokens = getattr(trainer, "_total_train_tokens", None)
        seen = {"distributed_type": state.distributed_type.value, "processes": state.num_processes, "tokens": tokens}
        report_and_leave("error" if failure else "ok", failure, **seen)


def undo_fix() -> None:
    """Put a copy of the installed trl, with the one line turned back, in front of it. To be called before its import."""
    installed = importlib.util.find_spec("trl")
    if installed is None or installed.origin is None:
        raise SystemExit("trl is not installed")
    copy = Path(tempfile.mkdtemp(dir=".")).absolute() / "trl"
    shutil.copytree(Path(installed.origin).parent, copy)
    module = copy / "trainer" / "sft_trainer.py"
    source = module.read_text()
    if source.count(FIXED) != 1:
        raise SystemExit("this release of trl does not count tokens with the expression that was fixed")
    module.write_text(source.replace(FIXED, BROKEN))
    sys.path.insert(0, str(copy.parent))


if __name__ == "__main__":
    main()
