"""One rank of the collectives test: integer results must be exact on every rank, for every collective.

Between nodes, torchrun starts one rank per device on each, and host name resolution is checked first.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
import threading
import time

import torch
import torch.distributed

from .job import Job, described

distributed = torch.distributed


def rank_main(job: Job) -> int:
    """Run one rank of the job; without a backend in it, the ranks are on several nodes and choose it together."""
    return _joined(job) if "backend" in job.values else _between_nodes(job)


def _joined(job: Job) -> int:
    """Join the group, run each collective, and report wrong results and the bandwidth."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    backend: str = job.values["backend"]
    local = int(os.environ["LOCAL_RANK"])
    device = f"cuda:{local}" if backend == "nccl" else "cpu"
    if backend == "nccl":
        torch.cuda.set_device(local)
    distributed.init_process_group(backend, timeout=datetime.timedelta(seconds=job.values["limit"]))
    wrong: list[str] = []
    for length in (1, 7, 4096, 100_003):
        for name, collective in (("all-reduce", _all_reduce), ("all-gather", _all_gather), ("broadcast", _broadcast)):
            job.record("step", rank=rank, name=name)
            wrong += collective(rank, world, length, device)
    speed = _bandwidth(world, device, job.values["megabytes"])
    distributed.barrier()
    distributed.destroy_process_group()
    job.record("rank", rank=rank, wrong=wrong[:3], gb_s=speed, bytes=job.values["megabytes"] * 2**20)
    return 0


def _numbers(rank: int, length: int, device: str) -> torch.Tensor:
    """Return large integers that differ between ranks and between positions."""
    return (torch.arange(length, dtype=torch.int64) * 2_654_435_761 + rank * 97_003_201 + 1).to(device)


def _all_reduce(rank: int, world: int, length: int, device: str) -> list[str]:
    ours = _numbers(rank, length, device)
    distributed.all_reduce(ours)
    expected = sum((_numbers(other, length, "cpu") for other in range(world)), torch.zeros(length, dtype=torch.int64))
    found = _difference(f"all-reduce of {length} numbers on rank {rank}", ours, expected)
    # for floats too: whatever the order of summation, all ranks must have the same bits
    floats = torch.sin(_numbers(rank, length, "cpu").double()).float().to(device)
    distributed.all_reduce(floats)
    everyone = [torch.empty_like(floats) for _ in range(world)]
    distributed.all_gather(everyone, floats)
    if any(not torch.equal(everyone[0].view(torch.int32), other.view(torch.int32)) for other in everyone):
        found.append(f"all-reduce of {length} floats gave different bits on different ranks")
    return found


def _all_gather(rank: int, world: int, length: int, device: str) -> list[str]:
    parts = [torch.zeros(length, dtype=torch.int64, device=device) for _ in range(world)]
    distributed.all_gather(parts, _numbers(rank, length, device))
    found = []
    for other, part in enumerate(parts):
        found += _difference(
            f"all-gather of {length} numbers on rank {rank}, part {other}", part, _numbers(other, length, "cpu")
        )
    return found


def _broadcast(rank: int, world: int, length: int, device: str) -> list[str]:
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


def _bandwidth(world: int, device: str, megabytes: int) -> float:
    """Return the bus bandwidth of an all-reduce in GB/s: bytes·2(n−1)/n per time, as NCCL's tests define it."""
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


# --- Between nodes


_CONNECT = 5.0
"""Seconds for one connection between two nodes."""


def _between_nodes(job: Job) -> int:
    """Report the problems that this rank sees; returns 1 if the collectives did not complete."""
    rank, first = int(os.environ["RANK"]), os.environ["LOCAL_RANK"] == "0"
    limit = datetime.timedelta(seconds=job.values["limit"])
    try:
        store, _, world = next(distributed.rendezvous("env://", timeout=limit))
        if first:
            job.record("names", wrong=_names(store, limit))
        store.set(f"compat/backend/{rank}", "nccl" if torch.cuda.is_available() and distributed.is_nccl_available() else "gloo")
        backends = {store.get(f"compat/backend/{other}").decode() for other in range(world)}
        # a single node without a device rules out NCCL for all
        job.values["backend"] = "nccl" if backends == {"nccl"} else "gloo"
        job.record("group", rank=rank, world=world, backend=job.values["backend"])
        return _joined(job)
    except Exception as problem:
        job.record("rank", rank=rank, wrong=[], error=described(problem))
        return 1


def _names(store: torch.distributed.Store, limit: datetime.timedelta) -> list[str]:
    """Check every node by host name: whether it resolves here, answers, and is the expected machine."""
    here, own = int(os.environ["GROUP_RANK"]), socket.gethostname()
    token = os.urandom(8).hex()
    with socket.create_server(("", 0)) as listener:
        threading.Thread(target=_answer, args=(listener, token), daemon=True).start()
        store.set(f"compat/node/{here}", json.dumps([own, listener.getsockname()[1], token]))
        wrong = []
        for other in range(int(os.environ["GROUP_WORLD_SIZE"])):
            name, port, expected = json.loads(store.get(f"compat/node/{other}"))
            problem = None if other == here else _unreached(name, port, expected)
            if problem:
                wrong.append(f"{own} does not reach {name}: {problem}")
        store.set(f"compat/over/{here}", "1")
        keys = [f"compat/over/{other}" for other in range(int(os.environ["GROUP_WORLD_SIZE"]))]
        store.wait(keys, limit)  # other nodes may still be connecting
    return wrong


def _answer(listener: socket.socket, token: str) -> None:
    with contextlib.suppress(OSError):  # closed: all nodes have connected
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(token.encode())


def _unreached(name: str, port: int, expected: str) -> str | None:
    """Return why a connection to a host name does not reach the node that listens there."""
    try:
        address = str(socket.getaddrinfo(name, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return "the name does not resolve (DNS, /etc/hosts)"
    try:
        with socket.create_connection((address, port), _CONNECT) as connection:
            connection.settimeout(_CONNECT)
            got = connection.recv(64).decode("ascii", "replace")
    except OSError as problem:
        return f"{address}: {problem.strerror or problem}"
    return None if got == expected else f"{address} is another machine"
