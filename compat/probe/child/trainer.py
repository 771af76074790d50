"""Two real optimizer steps of the installed trl trainer, and the same in one process on the same batch.

Losses are finite; the ranks together saw each row of the batches that one process saw, none twice and none that belongs to
another; and both steps' losses agree with those of one process. Forward and backward in float32 differ by the order of
their sums only, so 1e-3 of the loss is far from rounding and near to any row that was lost; the second loss holds only if
the gradients of the first step were merged correctly. Generations are random, so a GRPO loss has no reference value.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import torch

from . import training_job
from .job import Job, NotHere, Probe, Verdict, failed, is_installed, passed
from .training_job import Event, RankFailed, run_launcher, write_job

if TYPE_CHECKING:
    import transformers

Values = dict[str, object]
"""Options of a training."""
STEPS, EACH = 2, 2
"""Optimizer steps, and rows of a batch that one process gets."""
AGREE = 1e-3
_NEEDED = ("transformers", "trl", "accelerate", "datasets")


def probes(job: Job) -> Iterator[Probe]:
    yield job.values["trainer"], partial(steps, job)


def steps(job: Job) -> Verdict:
    """Test the trainer under the job's launcher: one process per device, compared with a single process."""
    for name in _NEEDED:
        if not is_installed(name):
            raise NotHere(f"{name} is not installed")
    launcher: str = job.values["launcher"]
    gpus = max(min(job.values.get("devices") or 1, torch.cuda.device_count()), 1) if job.on_cuda else 0
    # on the CPU two processes, except with accelerate, which would need mpirun
    world = 1 if launcher == "python" else gpus if job.on_cuda else 1 if launcher == "accelerate" else 2
    shares = gpus if launcher == "python" else world  # under plain python one process has all devices
    limit = job.values["limit"] * 0.45
    first = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]} if gpus else {}
    try:
        path = write_job(job, "trainer", {"rows": EACH * max(shares, 1)})
        alone = run_launcher([sys.executable], path, limit, first)
        together = alone
        if launcher != "python" or shares > 1:
            path = write_job(job, "trainer", {"rows": EACH})
            together = run_launcher(_launch_command(job, launcher, world), path, limit)
    except RankFailed as problem:
        return failed(f"{job.values['trainer']} under {launcher}: {problem}")
    return judged(job.values["trainer"], launcher, world, alone, together)


def _launch_command(job: Job, launcher: str, world: int) -> list[str]:
    if launcher == "torchrun":
        return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(world), "--master-addr", "127.0.0.1",
                "--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]  # fmt: skip
    if launcher == "accelerate":
        kind = ["--cpu"] if not job.on_cuda else ["--multi_gpu"] if world > 1 else []
        return [sys.executable, "-m", "accelerate.commands.launch", *kind, "--num_processes", str(world),
                "--num_machines", "1", "--num_cpu_threads_per_process", "1", "--mixed_precision", "no",
                "--dynamo_backend", "no", "--main_process_port", "0"]  # fmt: skip
    return [sys.executable]


def judged(kind: str, launcher: str, world: int, alone: list[Event], together: list[Event]) -> Verdict:
    """Return the verdict on the ranks' losses and rows, compared with those of one process."""
    ranks = sorted(event["rank"] for event in together)
    if ranks != list(range(world)):
        why = f"{kind} under {launcher}: of {world} ranks only {ranks} finished"
        return failed(why, {"ranks": len(ranks)}, {"ranks": world})
    losses: list[float] = together[0]["losses"]
    for step in range(STEPS):
        loss = losses[step] if step < len(losses) else None
        if loss is None or not math.isfinite(loss):
            why = f"{kind} under {launcher}: the loss of step {step + 1} is {'missing' if loss is None else loss}"
            return failed(why, {"losses": losses}, {"losses": "finite"})
    wrong = _wrong_rows(alone[0]["rows"], together)
    measured = {"processes": world, "losses": losses, "parallel": together[0]["parallel"], "device": together[0]["device"]}
    if wrong:
        return failed(f"{kind} under {launcher}: {wrong}", measured)
    if kind == "grpo" or together is alone:
        return passed(measured)
    for step, (ours, one) in enumerate(zip(losses, alone[0]["losses"]), 1):
        if not abs(ours - one) <= AGREE * max(abs(one), 1e-3):
            why = (f"{kind} under {launcher}: the loss of step {step} is {ours:.6g} in {world} processes and {one:.6g} in one "
                   f"process on the same rows")  # fmt: skip
            return failed(why, {**measured, "one_process": alone[0]["losses"]}, {"relative_difference": AGREE})
    return passed({**measured, "one_process": alone[0]["losses"]}, {"relative_difference": AGREE})


def _wrong_rows(expected: list[list[int]], together: list[Event]) -> str:
    """Return a description unless exactly one rank saw each row of the single process's batches; else ``""``."""
    wanted = sorted({row for batch in expected for row in batch})
    seen = [sorted({row for batch in event["rows"] for row in batch}) for event in together]
    for rank, rows in enumerate(seen):
        if not rows:
            return f"rank {rank} saw no data"
        strange = [row for row in rows if row not in wanted]
        if strange:
            return f"rank {rank} saw rows {strange}, which are not of these batches ({wanted})"
    twice = sorted({row for rows in seen for row in rows if sum(row in other for other in seen) > 1})
    if twice:
        return f"rows {twice} reached more than one rank"
    lost = [row for row in wanted if not any(row in rows for rows in seen)]
    return f"rows {lost} reached no rank" if lost else ""


# --- One process: two optimizer steps of trl's trainer, and the rows that this rank saw


def rank_main(job: Job) -> int:
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    steps = take_steps(job)
    job.record("rank", rank=rank, world=world, **steps)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return 0


def take_steps(job: Job) -> dict[str, object]:
    """Return the losses and gradient norms of each step, and the rows of every batch that this process computed on."""
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


def _note(rows: list[list[int]], args: tuple[torch.Tensor, ...], named: dict[str, torch.Tensor]) -> None:
    ids = named.get("input_ids", args[0] if args else None)
    if ids is not None and torch.is_grad_enabled():  # generated tokens are not a batch
        rows.append(training_job.rows_in(ids))


def _arguments(job: Job, rows: int, kind: str) -> Values:
    return {
        "output_dir": job.results + ".out", "per_device_train_batch_size": rows, "max_steps": STEPS, "logging_steps": 1,
        "report_to": [], "save_strategy": "no", "disable_tqdm": True, "learning_rate": 0.05, "lr_scheduler_type": "constant",
        "gradient_checkpointing": False, "seed": 7, "bf16": False, "max_grad_norm": 1.0, "optim": "adamw_torch",
        "logging_nan_inf_filter": False,  # by default NaN is logged as the mean of the other losses
        **({} if job.on_cuda else {"use_cpu": True}), **({} if kind == "sft" else {"remove_unused_columns": False}),
    }  # fmt: skip


def _made(config: type[transformers.TrainingArguments], values: Values) -> transformers.TrainingArguments:
    """Create a configuration with only the values that this release accepts."""
    known = inspect.signature(config).parameters
    return config(**{name: value for name, value in values.items() if name in known})


def _trainer(
    trainer: type[transformers.Trainer],
    configuration: transformers.TrainingArguments,
    data: list[dict[str, str]],
    **more: object,
) -> transformers.Trainer:
    import datasets

    names = inspect.signature(trainer).parameters
    tokens = "processing_class" if "processing_class" in names else "tokenizer"
    dataset = datasets.Dataset.from_list(data)
    return trainer(
        model=training_job.model(), args=configuration, train_dataset=dataset, **{tokens: training_job.tokenizer()}, **more
    )


def _sft(values: Values) -> transformers.Trainer:
    import trl

    values = {**values, "max_length": 64, "max_seq_length": 64, "packing": False, "dataset_text_field": "text"}
    return _trainer(trl.SFTTrainer, _made(trl.SFTConfig, values), [{"text": training_job.text(row)} for row in range(32)])


def _dpo(values: Values) -> transformers.Trainer:
    import trl

    values = {**values, "max_length": 64, "max_prompt_length": 32, "beta": 0.1}
    data = [
        {"prompt": training_job.text(row), "chosen": f" w{150 + row} w{160 + row}", "rejected": f" w{120 + row} w{130 + row}"}
        for row in range(32)
    ]
    return _trainer(trl.DPOTrainer, _made(trl.DPOConfig, values), data, ref_model=training_job.model())


def _grpo(values: Values) -> transformers.Trainer:
    import trl

    values = {**values, "num_generations": 2, "max_completion_length": 8, "max_prompt_length": 32, "use_vllm": False,
              "temperature": 1.0, "steps_per_generation": 1, "loss_type": "grpo"}  # fmt: skip

    def reward(prompts: list[object], completions: list[object], **_: object) -> list[float]:
        return [float(len(set(str(completion).split()))) for completion in completions]

    configuration = _made(trl.GRPOConfig, values)
    data = [{"prompt": training_job.text(row)} for row in range(32)]
    return _trainer(trl.GRPOTrainer, configuration, data, reward_funcs=reward)


_TRAINERS: dict[str, Callable[[Values], transformers.Trainer]] = {"sft": _sft, "dpo": _dpo, "grpo": _grpo}
