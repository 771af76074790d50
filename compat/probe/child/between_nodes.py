"""One rank of the test between nodes, started by torchrun on each: checks host name resolution and collectives."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
import threading
from typing import Any

import torch
import torch.distributed

from . import collectives
from .job import Job, said

_CONNECT = 5.0
"""Seconds for one connection between two nodes."""


def rank_main(job: Job) -> int:
    """Report the problems that this rank sees; returns 1 if the collectives did not complete."""
    rank, first = int(os.environ["RANK"]), os.environ["LOCAL_RANK"] == "0"
    distributed: Any = torch.distributed
    limit = datetime.timedelta(seconds=job.values["limit"])
    try:
        store, _, world = next(distributed.rendezvous("env://", timeout=limit))
        if first:
            job.say("names", wrong=_names(store, limit))
        store.set(f"compat/backend/{rank}", "nccl" if torch.cuda.is_available() and distributed.is_nccl_available() else "gloo")
        backends = {store.get(f"compat/backend/{other}").decode() for other in range(world)}
        # a single node without a device rules out NCCL for all
        job.values["backend"] = "nccl" if backends == {"nccl"} else "gloo"
        job.say("group", rank=rank, world=world, backend=job.values["backend"])
        return collectives.rank_main(job)
    except Exception as problem:
        job.say("rank", rank=rank, wrong=[], error=said(problem))
        return 1


def _names(store: Any, limit: datetime.timedelta) -> list[str]:
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
