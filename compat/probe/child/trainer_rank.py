"""One process of the trainer probe: two optimizer steps of trl's trainer, and what this rank saw of the data."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import torch

from . import tiny_model
from .job import Job

STEPS, EACH = 2, 2
"""Optimizer steps, and rows of a batch that one process gets."""


def rank_main(job: Job) -> int:
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    said = take_steps(job)
    job.say("rank", rank=rank, world=world, **said)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return 0


def take_steps(job: Job) -> dict[str, Any]:
    """Losses and gradient norms of each step, and the rows of every batch that this process computed on."""
    kind: str = job.values["trainer"]
    trainer = _TRAINERS[kind](_arguments(job, job.values["rows"], kind))
    rows: list[list[int]] = []
    inner = trainer.model
    inner.register_forward_pre_hook(lambda _module, args, named: _note(rows, args, named), with_kwargs=True)
    trainer.train()
    history = trainer.state.log_history
    return {
        "losses": [float(entry["loss"]) for entry in history if "loss" in entry],
        "norms": [float(entry["grad_norm"]) for entry in history if "grad_norm" in entry],
        "rows": rows,
        "steps": trainer.state.global_step,
        "device": str(next(inner.parameters()).device),
        "parallel": type(trainer.model_wrapped).__name__,
    }


def _note(rows: list[list[int]], args: tuple[Any, ...], named: dict[str, Any]) -> None:
    ids = named.get("input_ids", args[0] if args else None)
    if ids is not None and torch.is_grad_enabled():  # what is generated is no batch
        rows.append(tiny_model.rows_in(ids))


def _arguments(job: Job, rows: int, kind: str) -> dict[str, Any]:
    return {
        "output_dir": job.results + ".out", "per_device_train_batch_size": rows, "max_steps": STEPS, "logging_steps": 1,
        "report_to": [], "save_strategy": "no", "disable_tqdm": True, "learning_rate": 0.05, "lr_scheduler_type": "constant",
        "gradient_checkpointing": False, "seed": 7, "bf16": False, "max_grad_norm": 1.0, "optim": "adamw_torch",
        "logging_nan_inf_filter": False,  # by default what is not a number is logged as the mean of the others

        **({} if job.on_cuda else {"use_cpu": True}), **({} if kind == "sft" else {"remove_unused_columns": False}),
    }  # fmt: skip


def _made(config: Any, values: dict[str, Any]) -> Any:
    """A configuration of the values that this release takes."""
    known = inspect.signature(config).parameters
    return config(**{name: value for name, value in values.items() if name in known})


def _trainer(trainer: Any, configuration: Any, data: list[dict[str, Any]], **more: Any) -> Any:
    import datasets

    names = inspect.signature(trainer).parameters
    tokens = "processing_class" if "processing_class" in names else "tokenizer"
    dataset = datasets.Dataset.from_list(data)
    return trainer(
        model=tiny_model.model(), args=configuration, train_dataset=dataset, **{tokens: tiny_model.tokenizer()}, **more
    )


def _sft(values: dict[str, Any]) -> Any:
    import trl

    values = {**values, "max_length": 64, "max_seq_length": 64, "packing": False, "dataset_text_field": "text"}
    return _trainer(trl.SFTTrainer, _made(trl.SFTConfig, values), [{"text": tiny_model.text(row)} for row in range(32)])


def _dpo(values: dict[str, Any]) -> Any:
    import trl

    values = {**values, "max_length": 64, "max_prompt_length": 32, "beta": 0.1}
    data = [
        {"prompt": tiny_model.text(row), "chosen": f" w{150 + row} w{160 + row}", "rejected": f" w{120 + row} w{130 + row}"}
        for row in range(32)
    ]
    return _trainer(trl.DPOTrainer, _made(trl.DPOConfig, values), data, ref_model=tiny_model.model())


def _grpo(values: dict[str, Any]) -> Any:
    import trl

    values = {**values, "num_generations": 2, "max_completion_length": 8, "max_prompt_length": 32, "use_vllm": False,
              "temperature": 1.0, "steps_per_generation": 1, "loss_type": "grpo"}  # fmt: skip

    def reward(prompts: list[Any], completions: list[Any], **_: Any) -> list[float]:
        return [float(len(set(str(completion).split()))) for completion in completions]

    configuration = _made(trl.GRPOConfig, values)
    data = [{"prompt": tiny_model.text(row)} for row in range(32)]
    return _trainer(trl.GRPOTrainer, configuration, data, reward_funcs=reward)


_TRAINERS: dict[str, Callable[[dict[str, Any]], Any]] = {"sft": _sft, "dpo": _dpo, "grpo": _grpo}
