"""One step of transformers' Trainer under ``nn.DataParallel``: which replica gets how many rows."""

from __future__ import annotations

import torch

from . import tiny_model
from .dataparallel import noting


def one_step(gpus: int, rows_each: int, *, emulated: bool, folder: str) -> tuple[int, list[int]]:
    """Rows of the batch, and rows that each replica received."""
    import transformers

    model, tokens = tiny_model.model(), tiny_model.tokenizer()
    encoded = [tokens(tiny_model.text(row))["input_ids"] for row in range(gpus * rows_each)]
    arguments = transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=rows_each, max_steps=1, report_to=[], save_strategy="no",
        disable_tqdm=True, **({"use_cpu": True} if emulated else {}),
    )  # fmt: skip
    arguments._n_gpu = gpus  # what it counts on a machine with that many
    seen: list[tuple[int, list[int]]] = []
    before = torch.nn.DataParallel
    torch.nn.DataParallel = noting(gpus, seen, emulated=emulated)
    try:
        trainer = transformers.Trainer(
            model=model, args=arguments, train_dataset=[{"input_ids": row, "labels": row} for row in encoded],
            data_collator=transformers.default_data_collator,
        )  # fmt: skip
        trainer.train()
    finally:
        torch.nn.DataParallel = before
    return seen[0]
