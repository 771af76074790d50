"""Several devices together: copies between them, collectives over all of them, and the share of each replica."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from . import dataparallel
from .job import Job, NotHere, Probe, Verdict, failed, passed
from .processes import RankFailed, run_ranks, write_job


def probes(job: Job) -> Iterator[Probe]:
    yield "copies", partial(copies, job)
    yield "collectives", partial(collectives, job)
    if job.on_cuda:
        yield "collectives-without-p2p", partial(collectives, job, p2p=False)
    yield "dataparallel", partial(dataparallel.shares, job)
    yield "trainer-dataparallel", partial(dataparallel.trainer_shares, job)


def _count(job: Job) -> int:
    count: int = job.values.get("devices") or 0
    return min(count, torch.cuda.device_count()) if job.on_cuda else count


def copies(job: Job) -> Verdict:
    """Test that copies between every ordered pair of devices, directly and through the host, are bit-exact."""
    count = _count(job)
    if count < 2:
        job.needs_accelerator()
        raise NotHere("there is only one accelerator")
    generator = torch.Generator().manual_seed(job.seed)
    numbers = torch.randint(-(2**62), 2**62, (job.values.get("copy_elements", 2**22),), generator=generator)
    speeds: dict[str, float] = {}
    peers = 0
    for source in range(count):
        there = numbers.to(f"cuda:{source}")
        for target in range(count):
            if source == target:
                continue
            peers += torch.cuda.can_device_access_peer(source, target)
            for way, copy in (("directly", torch.Tensor.to), ("through the host", _through_host)):
                torch.cuda.synchronize(source)
                began = time.perf_counter()
                arrived = copy(there, f"cuda:{target}")
                torch.cuda.synchronize(target)
                seconds = time.perf_counter() - began
                wrong = (arrived.cpu() != numbers).nonzero()
                if len(wrong):
                    at = int(wrong[0])
                    why = (f"of {len(numbers)} numbers copied {way} from cuda:{source} to cuda:{target}, {len(wrong)} arrived "
                           f"changed: number {at} is {int(arrived[at])}, not {int(numbers[at])}")  # fmt: skip
                    fix = "disable IOMMU translation, or set NCCL_P2P_DISABLE=1" if way == "directly" else None
                    return failed(why, {"wrong": len(wrong)}, {"wrong": 0}, fix=fix)
                speeds[f"{source}-{target} {way}"] = round(numbers.numel() * 8 / seconds / 1e9, 1)
    return passed({"pairs": count * (count - 1), "peer_to_peer": peers, "wrong": 0, "gb_s": speeds}, {"wrong": 0})


def _through_host(there: torch.Tensor, target: str) -> torch.Tensor:
    return there.to("cpu").pin_memory().to(target)


def collectives(job: Job, *, p2p: bool = True) -> Verdict:
    """Test all-reduce, all-gather and broadcast in separate processes: NCCL over all devices, gloo on the CPU."""
    distributed: Any = torch.distributed
    if not distributed.is_available():
        raise NotHere("this torch was built without torch.distributed")
    backend = "nccl" if job.on_cuda else "gloo"
    world = _count(job) if job.on_cuda else 2
    if job.on_cuda and world < 2:
        raise NotHere("there is only one accelerator")
    if job.on_cuda and not distributed.is_nccl_available():
        raise NotHere("this torch was built without NCCL")
    limit = job.values["limit"] * 0.4
    path = write_job(job, "collectives", {"backend": backend, "limit": limit, "megabytes": 64 if job.on_cuda else 8})
    try:
        events = run_ranks(path, world, limit, {} if p2p else {"NCCL_P2P_DISABLE": "1"})
    except RankFailed as problem:
        return failed(f"{backend}, {world} processes: {problem}")
    said = [event for event in events if event["event"] == "rank"]
    ranks = sorted(event["rank"] for event in said)
    wrong = [text for event in said for text in event["wrong"]]
    if ranks != list(range(world)):
        why = f"{backend}, {world} processes: only ranks {ranks} finished"
        return failed(why, {"ranks": len(ranks)}, {"ranks": world})
    if wrong:
        return failed(f"{backend}, {world} processes: {wrong[0]}", {"wrong": len(wrong)}, {"wrong": 0})
    speed = round(min(event["gb_s"] for event in said), 2)
    return passed({"processes": world, "backend": backend, "wrong": 0, "all_reduce_gb_s": speed}, {"wrong": 0})
