"""One rank of the test of collectives: whole numbers have to come out exactly, on every rank, in every form."""

from __future__ import annotations

import datetime
import os
import time
from typing import Any

import torch
import torch.distributed

from .job import Job

Number = Any


def rank_main(job: Job) -> int:
    """Joins the group, runs each collective, and says what came out wrong and how fast it was."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    backend: str = job.values["backend"]
    local = int(os.environ["LOCAL_RANK"])
    device = f"cuda:{local}" if backend == "nccl" else "cpu"
    if backend == "nccl":
        torch.cuda.set_device(local)
    distributed: Any = torch.distributed
    distributed.init_process_group(backend, timeout=datetime.timedelta(seconds=job.values["limit"]))
    wrong: list[str] = []
    for length in (1, 7, 4096, 100_003):
        for name, collective in (("all-reduce", _all_reduce), ("all-gather", _all_gather), ("broadcast", _broadcast)):
            job.say("step", rank=rank, name=name)
            wrong += collective(distributed, rank, world, length, device)
    speed = _bandwidth(distributed, world, device, job.values["megabytes"])
    distributed.barrier()
    distributed.destroy_process_group()
    job.say("rank", rank=rank, wrong=wrong[:3], gb_s=speed, bytes=job.values["megabytes"] * 2**20)
    return 0


def _numbers(rank: int, length: int, device: str) -> torch.Tensor:
    """Large whole numbers that differ on every rank and in every place."""
    return (torch.arange(length, dtype=torch.int64) * 2_654_435_761 + rank * 97_003_201 + 1).to(device)


def _all_reduce(distributed: Number, rank: int, world: int, length: int, device: str) -> list[str]:
    ours = _numbers(rank, length, device)
    distributed.all_reduce(ours)
    expected = sum((_numbers(other, length, "cpu") for other in range(world)), torch.zeros(length, dtype=torch.int64))
    found = _difference(f"all-reduce of {length} numbers on rank {rank}", ours, expected)
    # floats too: whatever the order of the sum was, it is the same bits everywhere
    floats = torch.sin(_numbers(rank, length, "cpu").double()).float().to(device)
    distributed.all_reduce(floats)
    everyone = [torch.empty_like(floats) for _ in range(world)]
    distributed.all_gather(everyone, floats)
    if any(not torch.equal(everyone[0].view(torch.int32), other.view(torch.int32)) for other in everyone):
        found.append(f"all-reduce of {length} floats gave different bits on different ranks")
    return found


def _all_gather(distributed: Number, rank: int, world: int, length: int, device: str) -> list[str]:
    parts = [torch.zeros(length, dtype=torch.int64, device=device) for _ in range(world)]
    distributed.all_gather(parts, _numbers(rank, length, device))
    found = []
    for other, part in enumerate(parts):
        found += _difference(
            f"all-gather of {length} numbers on rank {rank}, part {other}", part, _numbers(other, length, "cpu")
        )
    return found


def _broadcast(distributed: Number, rank: int, world: int, length: int, device: str) -> list[str]:
    found = []
    for source in range(world):
        numbers = _numbers(rank, length, device)
        distributed.broadcast(numbers, source)
        expected = _numbers(source, length, "cpu")
        found += _difference(f"broadcast of {length} numbers from rank {source} to {rank}", numbers, expected)
    return found


def _difference(what: str, got: torch.Tensor, expected: torch.Tensor) -> list[str]:
    got = got.cpu()
    if torch.equal(got, expected):
        return []
    at = int((got != expected).nonzero()[0])
    return [f"{what}: element {at} is {int(got[at])}, not {int(expected[at])}"]


def _bandwidth(distributed: Number, world: int, device: str, megabytes: int) -> float:
    """Bus bandwidth of an all-reduce in GB/s: bytes·2(n−1)/n by time, the figure of NCCL's own tests."""
    numbers = torch.ones(megabytes * 2**18, device=device)
    times = []
    for _ in range(4):
        if device != "cpu":
            torch.cuda.synchronize()
        distributed.barrier()
        began = time.perf_counter()
        distributed.all_reduce(numbers)
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return numbers.numel() * 4 * 2 * (world - 1) / world / min(times[1:]) / 1e9
