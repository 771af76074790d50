"""Two real optimizer steps of the installed trl trainer, and the same in one process on the same batch.

Losses are finite; the ranks together saw each row of the batches that one process saw, none twice and none that belongs to
another; and both steps' losses agree with those of one process. Forward and backward in float32 differ by the order of
their sums only, so 1e-3 of the loss is far from rounding and near to any row that was lost; the second loss holds only if
the gradients of the first step were put together rightly. Generations are random, so a GRPO loss has nothing to agree with.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from .job import Job, NotHere, Probe, Verdict, failed, passed
from .processes import RankFailed, run_launcher, write_job
from .trainer_rank import EACH, STEPS

AGREE = 1e-3
_NEEDED = ("transformers", "trl", "accelerate", "datasets")


def probes(job: Job) -> Iterator[Probe]:
    yield job.values["trainer"], partial(steps, job)


def steps(job: Job) -> Verdict:
    """The verdict on the trainer under the launcher that was asked for, or as many processes as there are devices."""
    for name in _NEEDED:
        if importlib.util.find_spec(name) is None:
            raise NotHere(f"{name} is not installed")
    launcher: str = job.values["launcher"]
    world, gpus = _world(job), _gpus(job)
    shares = gpus if launcher == "python" else world  # under plain python one process has them all
    limit = job.values["limit"] * 0.45
    first = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]} if gpus else {}
    try:
        alone = run_launcher([sys.executable], _job_of_ranks(job, EACH * max(shares, 1)), limit, first)
        together = alone if launcher == "python" and shares < 2 else launched(job, launcher, world, limit)
    except RankFailed as problem:
        return failed(f"{job.values['trainer']} under {launcher}: {problem}")
    return judged(job.values["trainer"], launcher, world, alone, together)


def _gpus(job: Job) -> int:
    return max(min(job.values.get("devices") or 1, torch.cuda.device_count()), 1) if job.on_cuda else 0


def _world(job: Job) -> int:
    """Processes: one a device; on the CPU two, where the launcher starts more than one there (accelerate takes mpirun)."""
    if job.values["launcher"] == "python":
        return 1
    if not job.on_cuda:
        return 1 if job.values["launcher"] == "accelerate" else 2
    return _gpus(job)


def _job_of_ranks(job: Job, rows: int) -> str:
    """The job file of processes that take ``rows`` rows of a batch each (or for each of their devices)."""
    return write_job(job, "trainer_rank", {"rows": rows})


def launched(job: Job, launcher: str, world: int, limit: float) -> list[dict[str, Any]]:
    """What the ranks said that the launcher started."""
    path = _job_of_ranks(job, EACH)
    if launcher == "torchrun":
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(world), "--master-addr", "127.0.0.1",
                   "--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]  # fmt: skip
        return run_launcher(command, path, limit)
    if launcher == "accelerate":
        kind = ["--cpu"] if not job.on_cuda else ["--multi_gpu"] if world > 1 else []
        command = [sys.executable, "-m", "accelerate.commands.launch", *kind, "--num_processes", str(world),
                   "--num_machines", "1", "--num_cpu_threads_per_process", "1", "--mixed_precision", "no",
                   "--dynamo_backend", "no", "--main_process_port", "0"]  # fmt: skip
        return run_launcher(command, path, limit)
    return run_launcher([sys.executable], path, limit)


def judged(kind: str, launcher: str, world: int, alone: list[dict[str, Any]], together: list[dict[str, Any]]) -> Verdict:
    """The verdict on what the ranks said, beside what one process said."""
    ranks = sorted(said["rank"] for said in together)
    if ranks != list(range(world)):
        return failed(
            f"{kind} under {launcher}: of {world} ranks only {ranks} came to an end", {"ranks": len(ranks)}, {"ranks": world}
        )
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


def _wrong_rows(expected: list[list[int]], together: list[dict[str, Any]]) -> str:
    """What is wrong with the rows the ranks saw: each row of one process's batches belongs to exactly one rank."""
    wanted = sorted({row for batch in expected for row in batch})
    seen = [sorted({row for batch in said["rows"] for row in batch}) for said in together]
    for rank, rows in enumerate(seen):
        if not rows:
            return f"rank {rank} saw no data"
        strange = [row for row in rows if row not in wanted]
        if strange:
            return f"rank {rank} saw rows {strange}, which are not of these batches ({wanted})"
    twice = sorted({row for rows in seen for row in rows if sum(row in other for other in seen) > 1})
    if twice:
        return f"rows {twice} came to more than one rank"
    lost = [row for row in wanted if not any(row in rows for rows in seen)]
    return f"rows {lost} came to no rank" if lost else ""
