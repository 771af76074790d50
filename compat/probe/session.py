"""A probe run: one child process per device and group, restarted after a crash, with results in a fixed order.

Between nodes, this one takes part in collectives over all of them, through torchrun's rendezvous.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from threading import Event
from typing import TypeAlias

from compat.errors import InputError
from compat.model import Environment
from compat.probe.request import (
    COULD_NOT_RUN,
    FAILED,
    GROUPS,
    LAUNCHERS,
    PASSED,
    QUICK,
    Devices,
    Group,
    ProbeReport,
    ProbeResult,
    Request,
    devices_of,
    exit_code,
)
from compat.probe.worker import START, Ended, Work, end_all, events_of, run, variables_of_child, work_off
from compat.records import record

Peaks: TypeAlias = Callable[[], list[dict[str, object]]]


class NoTorch(InputError):
    """Torch is not installed for the interpreter."""


@record(frozen=True)
class _Done:
    results: tuple[ProbeResult, ...]
    stack: Mapping[str, object] | None


def probe(request: Request, environment: Environment, seen: Environment | None = None, peaks: Peaks = list) -> ProbeReport:
    """Run the requested probes on the ``seen`` devices (the environment's, without those hidden by variables).

    ``peaks`` returns the vendors' peak figures for cards, used by the health probe. Raises :class:`InputError` for a
    missing device or an unknown probe, and :class:`NoTorch` if torch is not installed. A torch that is
    installed but cannot be imported is a failed probe.
    """
    began = time.monotonic()
    devices = devices_of(request, environment, seen or environment)
    with tempfile.TemporaryDirectory(prefix="compat-probe-") as folder:
        done = _run(request, environment, devices, folder, peaks)
    results = [result for each in done.values() for result in each.results]
    for name in request.only:  # a probe requested by name must have run, unless a failed one represents its group
        group = name.partition("/")[0]
        if done and "/" in name and not any(result.group in (group, "torch") for result in results):
            raise InputError(f"--only: unknown probe {name!r}; 'compat probe --only {group}' lists those of {group}")
    ranks = {group.name: number for number, group in enumerate(GROUPS)}
    ordered = [
        *(
            ProbeResult(group.name, "cuda", COULD_NOT_RUN, devices.why_none)
            for group in GROUPS
            if devices.why_none is not None and not group.once and request.wants(group)
        ),
        *(result for each in done.values() for result in sorted(each.results, key=lambda one: ranks.get(one.group, -1))),
    ]
    stacks = {name: each.stack for name, each in done.items() if each.stack is not None}
    code = exit_code(tuple(ordered), device_required=request.device_required)
    return ProbeReport(tuple(ordered), request.python, stacks, time.monotonic() - began, code)


def _run(request: Request, environment: Environment, devices: Devices, folder: str, peaks: Peaks) -> dict[str, _Done]:
    """Run each device on its own, all in parallel, then the groups that need several devices together."""
    wanted = [group for group in GROUPS if request.wants(group)]
    single, together = [g for g in wanted if not g.once], [g for g in wanted if g.once]
    done: dict[str, _Done] = {}
    interrupted = Event()
    if single and devices.names:
        with ThreadPoolExecutor(len(devices.names)) as pool:
            tasks = {
                name: pool.submit(_on_one, request, name, single, environment, folder, peaks, 0, interrupted)
                for name in devices.names
            }
            try:
                done = {name: task.result() for name, task in tasks.items()}
            except BaseException:  # mainly on an interrupt: the pool waits for its threads, which wait for their children
                interrupted.set()
                end_all()
                raise
    broken = any(result.group == "torch" for each in done.values() for result in each.results)
    if together and devices.names and not broken:
        last = devices.names[-1] if devices.cuda else "cpu"
        more = _on_one(request, last, together, environment, folder, peaks, len(devices.cuda), interrupted)
        before = done.get(last)
        done[last] = _Done((before.results if before else ()) + more.results, (before and before.stack) or more.stack)
    return done


def _on_one(
    request: Request, device: str, groups: list[Group], environment: Environment, folder: str, peaks: Peaks, count: int,
    interrupted: Event,
) -> _Done:  # fmt: skip
    """Run the groups on one device, in one process if quick, else in one per group. ``count``: accelerators used together."""
    parts = [groups] if request.depth == QUICK else [[group] for group in groups]
    results: tuple[ProbeResult, ...] = ()
    stack: Mapping[str, object] | None = None
    named = environment.workload.launcher if environment.workload else None
    launcher = request.launcher or (named if named in LAUNCHERS else "python" if count < 2 else "torchrun")
    versions = {each.version for each in environment.distributions or () if each.name == "torch" and each.version}
    # the installed release, so that the fix changes no other package
    torch = f"torch=={versions.pop().partition('+')[0]}" if len(versions) == 1 else "torch"
    more = {"trainer": request.trainer or "sft", "launcher": launcher, "devices": count, "only": request.only}
    for number, part in enumerate(parts):
        place = os.path.join(folder, f"{device.replace(':', '')}-{part[0].name}-{number}")
        os.makedirs(place)
        if any(group.name == "health" for group in part):  # data that the child cannot determine
            bindings = find_spec("pynvml")
            more |= {"peaks": peaks(), "pynvml": bindings.origin if bindings else None}
        work = Work(
            python=request.python, device=device, groups=tuple(group.name for group in part), folder=place,
            limit=request.limit * max(group.slow for group in part), depth=request.depth, seed=request.seed, more=more,
            torch=torch,
        )  # fmt: skip
        outcome = work_off(work, interrupted.is_set)
        if outcome.no_torch:
            raise NoTorch(outcome.no_torch)
        results += outcome.results
        stack = stack or outcome.stack
        if outcome.unusable or interrupted.is_set():  # torch or the device would also fail for the next group
            break
    return _Done(results, stack)


NAMES, COLLECTIVES = "nodes/names", "nodes/collectives"
_KILLED = "look for the reason on this node: SIGKILL is often a lack of memory (dmesg), or the scheduler"
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
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"--rendezvous: expected HOST:PORT, not {text!r}")
    if nodes is None or not nodes.isascii() or not nodes.isdecimal() or not 1 < int(nodes) < 100_000:
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
    killed = _killed(ended)
    if killed and not ranks:
        return collectives(FAILED, f"a process of this node ended by {killed} while it joined the others", _KILLED)
    if not events:
        why = f"the {meeting.nodes} nodes did not meet at {meeting.host}:{meeting.port} within {meeting.limit:.0f} s"
        return collectives(FAILED, f"{why}{_error_in(ended)}", _FIX)
    reached = {event["rank"]: event["name"] for event in events if event["event"] == "step"}
    stuck = sorted({str(name) for rank, name in reached.items() if all(each["rank"] != rank for each in ranks)})
    crash = f": {ended.last_words[0]}" if not ended.timed_out and "Fatal Python error" in "".join(ended.last_words[:1]) else ""
    return collectives(FAILED, f"a process of this node did not come out of {', '.join(stuck) or 'joining the others'}{crash}")


def _killed(ended: Ended) -> str | None:
    """The signal that ended a process of this node, as torchrun reports it: ``exitcode  : -9 (pid: 25787)``."""
    for word in ended.last_words:
        name, _, value = word.partition(":")
        number = value.split()[0] if value.split() else ""
        if name.strip() == "exitcode" and number[:1] == "-" and number[1:].isdecimal():
            with contextlib.suppress(ValueError):
                return signal.Signals(int(number[1:])).name
    return None


def _error_in(ended: Ended) -> str:
    error = next((word for word in reversed(ended.last_words) if "Error" in word), "")
    return f": {error.strip()[:300]}" if error else ""


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []
