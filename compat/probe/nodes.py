"""The probe between nodes: this node's part in collectives over all of them, through torchrun's rendezvous."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import time

from compat.errors import InputError
from compat.probe.request import COULD_NOT_RUN, FAILED, PASSED, ProbeResult
from compat.probe.worker import START, Ended, events_of, run, variables_of_child
from compat.records import record

NAMES, COLLECTIVES = "nodes/names", "nodes/collectives"
_FIX = "open the port, or name an address that all nodes reach (--rendezvous HOST:PORT)"


@record(frozen=True)
class Meeting:
    """The rendezvous of ``nodes`` nodes; ``limit`` is how long they wait for one another, in seconds."""

    host: str
    port: int
    nodes: int
    limit: float


def meeting_at(text: str, nodes: str | None, limit: float) -> Meeting:
    """Parse ``HOST:PORT`` and a number of nodes from the command line; raises :class:`InputError` if invalid."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"--rendezvous: expected HOST:PORT, not {text!r}")
    if nodes is None or not nodes.isascii() or not nodes.isdigit() or not 1 < int(nodes) < 100_000:
        raise InputError("--rendezvous needs --nodes N: how many nodes meet there (2 or more)")
    return Meeting(host.strip("[]"), int(port), int(nodes), limit)


def probe_nodes(python: str, meeting: Meeting, devices: int) -> tuple[ProbeResult, ...]:
    """Run this node's part: one process per device in ``devices`` (one without devices) joins those of the other nodes."""
    place = f"{meeting.host}:{meeting.port}"
    device = "cuda" if devices else "cpu"
    try:
        hosting = _is_here(meeting.host)
    except OSError:
        why = f"{meeting.host}, where the nodes meet, does not resolve on {socket.gethostname()} (DNS, /etc/hosts)"
        fix = "make the name resolve on all nodes, or name an address (--rendezvous HOST:PORT)"
        return (ProbeResult(COLLECTIVES, device, FAILED, why, fix=fix),)
    began = time.monotonic()
    # of several nodes on one machine only the first can host: the others retry as clients, as torch does
    for host in (True, False) if hosting else (False,):
        with tempfile.TemporaryDirectory(prefix="compat-nodes-") as folder:
            results = os.path.join(folder, "results")
            job = os.path.join(folder, "job.json")
            with open(job, "w", encoding="utf-8") as file:
                json.dump({"device": device, "rank": "collectives", "results": results, "limit": meeting.limit,
                           "megabytes": 64 if devices else 8}, file)  # fmt: skip
            conf = f"is_host={int(host)},join_timeout={meeting.limit:.0f},read_timeout={meeting.limit:.0f},last_call_timeout=1"
            command = [
                python, "-m", "torch.distributed.run", f"--nnodes={meeting.nodes}", f"--nproc-per-node={max(devices, 1)}",
                "--rdzv-backend=c10d", f"--rdzv-endpoint={place}", "--rdzv-id=compat", f"--rdzv-conf={conf}",
                "--max-restarts=0", START, job,
            ]  # fmt: skip
            try:
                ended = run(command, meeting.limit * 2, variables_of_child(), folder)
            except OSError as problem:
                why = f"{python} cannot be started: {problem.strerror or problem}"
                return (ProbeResult(COLLECTIVES, device, COULD_NOT_RUN, why),)
            events = list(events_of(results))
        if events or "RendezvousConnectionError" not in " ".join(ended.last_words):
            break
    seconds = round(time.monotonic() - began, 3)
    return tuple(_judged(events, ended, meeting, max(devices, 1), device, seconds))


def _is_here(host: str) -> bool:
    """Return whether the name resolves to an address of this machine: only those can be bound."""
    for family, _, _, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind(address)
            return True
    return False


def _judged(
    events: list[dict[str, object]], ended: Ended, meeting: Meeting, processes: int, device: str, seconds: float
) -> list[ProbeResult]:
    """Return the output of this node's processes as the results of two probes."""
    found = []
    wrong = [text for event in events if event["event"] == "names" for text in _texts(event["wrong"])]
    if any(event["event"] == "names" for event in events):
        fix = "make the host names of all nodes resolve to addresses that the others reach" if wrong else None
        found.append(ProbeResult(NAMES, "cpu", FAILED if wrong else PASSED, "; ".join(wrong), fix=fix))

    def collectives(status: str, why: str, fix: str | None = None, **measured: object) -> list[ProbeResult]:
        last_words = ended.last_words if status == FAILED else ()
        return [*found, ProbeResult(COLLECTIVES, device, status, why, measured, {}, seconds, last_words, fix)]

    ranks = [event for event in events if event["event"] == "rank"]
    group = next((event for event in events if event["event"] == "group"), {})
    failures = [str(event["error"]) for event in ranks if "error" in event]
    numbers = [text for event in ranks for text in _texts(event["wrong"])]
    if len(ranks) == processes and not failures and not numbers:
        why = f"{group['backend']}, {meeting.nodes} nodes, {group['world']} processes"
        speed = round(min(float(str(event["gb_s"])) for event in ranks), 2)
        return collectives(PASSED, why, None, all_reduce_gb_s=speed)
    if numbers:
        return collectives(FAILED, numbers[0], wrong=len(numbers))
    if failures:
        return collectives(FAILED, failures[0])
    last = " ".join(ended.last_words)
    if "No module named 'torch" in last or "No module named torch" in last:
        return collectives(COULD_NOT_RUN, "no torch to join the other nodes with")
    if not events:
        why = f"the {meeting.nodes} nodes did not meet at {meeting.host}:{meeting.port} within {meeting.limit:.0f} s"
        return collectives(FAILED, f"{why}{_error_in(ended)}", _FIX)
    reached = {event["rank"]: event["name"] for event in events if event["event"] == "step"}
    stuck = sorted({str(name) for rank, name in reached.items() if all(each["rank"] != rank for each in ranks)})
    crash = f": {ended.last_words[0]}" if not ended.timed_out and "Fatal Python error" in "".join(ended.last_words[:1]) else ""
    return collectives(FAILED, f"a process of this node did not come out of {', '.join(stuck) or 'joining the others'}{crash}")


def _error_in(ended: Ended) -> str:
    """Return the error that torchrun ended with."""
    said = next((word for word in reversed(ended.last_words) if "Error" in word), "")
    return f": {said.strip()[:300]}" if said else ""


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []
