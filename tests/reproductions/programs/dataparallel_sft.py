"""One step of trl's SFTTrainer under nn.DataParallel, as plain `python train.py` on a machine with several GPUs.

Shows what becomes of the rows that transformers 4.51.0 to 4.56.2 drops (see dataparallel_trainer.py) in SFTTrainer: since
trl 0.15.0 it compares the predictions of one replica with the labels of the whole batch, to count right tokens, and
stops with "The size of tensor a (2) must match the size of tensor b (4)". Before, nothing is said.

Real: SFTTrainer and the Trainer below it, its data preparation and loading, a Qwen2 model.
Emulated: the GPUs, see dataparallel_on_cpu.py.
"""

from __future__ import annotations

import argparse

import dataparallel_on_cpu
import tiny
import torch
from datasets import Dataset
from outcome import report
from trl import SFTConfig, SFTTrainer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--gpus", type=int, default=2)
    options.add_argument("--batch-size", type=int, default=2, help="rows for each GPU")
    options.add_argument("--loss-type", help="trl's own default where not given; older releases know no other")
    given = options.parse_args()

    dataparallel_on_cpu.install(given.gpus)
    torch.manual_seed(0)
    arguments = SFTConfig(
        output_dir="out",
        per_device_train_batch_size=given.batch_size,
        max_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        **({"loss_type": given.loss_type} if given.loss_type else {}),
    )
    arguments._n_gpu = given.gpus  # what it counts on a machine with that many GPUs
    try:
        trainer = SFTTrainer(
            model=tiny.qwen2(use_cache=False),
            args=arguments,
            train_dataset=Dataset.from_dict({"text": tiny.texts(4 * given.gpus * given.batch_size)}),
            processing_class=tiny.tokenizer(),
        )
        trainer.train()
    except Exception as error:
        report("error", error, forwards=dataparallel_on_cpu.forwards)
    else:
        report("data-lost" if dataparallel_on_cpu.lost_rows() else "ok", forwards=dataparallel_on_cpu.forwards)


if __name__ == "__main__":
    main()
