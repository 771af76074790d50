"""One step of transformers' Trainer under nn.DataParallel, as plain `python train.py` on a machine with several GPUs.

Shows, by release of transformers:
  "chunk expects at least a 1-dimensional tensor"   num_items_in_batch is a tensor without dimensions
  data-lost                                         it is a tensor of one element: only the first replica gets rows

Real: Trainer, its data loading, its training step, a Qwen2 model. Emulated: the GPUs, see dataparallel_on_cpu.py.
"""

from __future__ import annotations

import argparse

import dataparallel_on_cpu
import tiny
import torch
from datasets import Dataset
from outcome import report
from transformers import Trainer, TrainingArguments, default_data_collator


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--gpus", type=int, default=2)
    options.add_argument("--batch-size", type=int, default=2, help="rows for each GPU")
    given = options.parse_args()

    dataparallel_on_cpu.install(given.gpus)
    torch.manual_seed(0)
    rows = tiny.tokenizer()(tiny.texts(4 * given.gpus * given.batch_size))
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=given.batch_size,
        max_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )
    arguments._n_gpu = given.gpus  # what it counts on a machine with that many GPUs
    trainer = Trainer(
        model=tiny.qwen2(use_cache=False),
        args=arguments,
        train_dataset=Dataset.from_dict({**rows, "labels": rows["input_ids"]}),
        data_collator=default_data_collator,
    )
    try:
        trainer.train()
    except Exception as error:
        report("error", error, forwards=dataparallel_on_cpu.forwards)
    else:
        report("data-lost" if dataparallel_on_cpu.lost_rows() else "ok", forwards=dataparallel_on_cpu.forwards)


if __name__ == "__main__":
    main()
