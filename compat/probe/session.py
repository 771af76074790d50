"""A probe run: one child process per device and group, restarted after a crash, with results in a fixed order."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from threading import Event
from typing import Any, TypeAlias

from compat.errors import InputError
from compat.model import Environment
from compat.probe.request import (
    COULD_NOT_RUN,
    GROUPS,
    LAUNCHERS,
    QUICK,
    Devices,
    Group,
    ProbeReport,
    ProbeResult,
    Request,
    devices_of,
    exit_code,
)
from compat.probe.worker import Work, end_all, work_off
from compat.records import record

Peaks: TypeAlias = Callable[[], list[dict[str, Any]]]


class NoTorch(InputError):
    """Torch is not installed for the interpreter."""


@record(frozen=True)
class _Done:
    results: tuple[ProbeResult, ...]
    stack: Mapping[str, Any] | None


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
    stack: Mapping[str, Any] | None = None
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
