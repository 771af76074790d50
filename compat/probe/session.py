"""A whole run of probes: a child process per device and group, restarted behind what crashed, results in a fixed order."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any, TypeAlias

from compat.errors import InputError
from compat.model import Environment
from compat.probe.devices import Devices, devices_of
from compat.probe.groups import GROUPS, QUICK, Group
from compat.probe.process import end_all
from compat.probe.results import COULD_NOT_RUN, ProbeReport, ProbeResult, exit_code
from compat.probe.worker import Work, work_off
from compat.records import record

if TYPE_CHECKING:
    from compat.probe.request import Request


Peaks: TypeAlias = Callable[[], list[dict[str, Any]]]


class NoTorch(InputError):
    """The interpreter has no torch to probe with."""


@record(frozen=True)
class _Done:
    results: tuple[ProbeResult, ...]
    stack: Mapping[str, Any] | None


def probe(request: Request, environment: Environment, seen: Environment | None = None, peaks: Peaks = list) -> ProbeReport:
    """Runs what was asked for on the devices that are ``seen`` (the environment's, less those that variables hide).

    ``peaks`` gives the makers' figures of cards where the health of one is judged.
    Raises :class:`InputError` for a device that is not there and :class:`NoTorch` where the interpreter has no torch.
    A torch that is there and cannot be imported is a failed probe.
    """
    began = time.monotonic()
    devices = devices_of(request, environment, seen or environment)
    with tempfile.TemporaryDirectory(prefix="compat-probe-") as folder:
        done = _run(request, environment, devices, folder, peaks)
    _refuse_unknown(request, done)
    stacks = {name: each.stack for name, each in done.items() if each.stack is not None}
    results = _without_device(request, devices) + _ordered(done)
    code = exit_code(results, device_required=request.device_required)
    return ProbeReport(results, request.python, stacks, time.monotonic() - began, code)


def _run(request: Request, environment: Environment, devices: Devices, folder: str, peaks: Peaks) -> dict[str, _Done]:
    """First every device by itself, all at the same time; then what needs them together."""
    wanted = [group for group in GROUPS if _is_wanted(group, request)]
    single, together = [g for g in wanted if not g.once], [g for g in wanted if g.once]
    done: dict[str, _Done] = {}
    if single and devices.names:
        with ThreadPoolExecutor(len(devices.names)) as pool:
            interrupted = Event()
            tasks = {
                name: pool.submit(_on_one, request, name, single, environment, folder, peaks, interrupted=interrupted)
                for name in devices.names
            }
            try:
                done = {name: task.result() for name, task in tasks.items()}
            except BaseException:  # an interrupt above all: the pool waits for its threads, and those for their children
                interrupted.set()
                end_all()
                raise
    if together and devices.names and not any(_is_torch(each) for each in done.values()):
        last = devices.names[-1] if devices.cuda else "cpu"
        more = _on_one(request, last, together, environment, folder, peaks, len(devices.cuda))
        before = done.get(last)
        done[last] = _Done((before.results if before else ()) + more.results, (before and before.stack) or more.stack)
    return done


def _refuse_unknown(request: Request, done: Mapping[str, _Done]) -> None:
    """A probe that was asked for by name has to have been there, or else a failed one stands for its group."""
    results = [result for each in done.values() for result in each.results]
    for name in request.only:
        group = name.partition("/")[0]
        known = [result.probe for result in results if result.group in (group, "torch")]
        if done and "/" in name and not known:
            raise InputError(f"--only: no probe is called {name!r}; 'compat probe --only {group}' shows what {group} has")


def _is_wanted(group: Group, request: Request) -> bool:
    if request.only:
        return group.name in request.groups
    if group.name == "trainer" and request.trainer:
        return True
    return group.quick or request.depth != QUICK


def _on_one(
    request: Request, device: str, groups: list[Group], environment: Environment, folder: str, peaks: Peaks, processes: int = 0,
    interrupted: Event | None = None,
) -> _Done:  # fmt: skip
    """The groups on one device: in quick runs one process for all of them, else one for each."""
    parts = [groups] if request.depth == QUICK else [[group] for group in groups]
    results: tuple[ProbeResult, ...] = ()
    stack: Mapping[str, Any] | None = None
    for number, part in enumerate(parts):
        place = os.path.join(folder, f"{device.replace(':', '')}-{part[0].name}-{number}")
        os.makedirs(place)
        work = Work(
            python=request.python, device=device, groups=tuple(group.name for group in part), folder=place,
            limit=request.limit * max(group.slow for group in part), depth=request.depth, seed=request.seed,
            more={"trainer": request.trainer or "sft", "launcher": request.launcher or _launcher(environment, processes),
                  "devices": processes, "only": request.only, **_of_health(part, peaks)},
            torch=_torch_there(environment),
        )  # fmt: skip
        outcome = work_off(work, interrupted.is_set) if interrupted is not None else work_off(work)
        if outcome.no_torch:
            raise NoTorch(outcome.no_torch)
        results += outcome.results
        stack = stack or outcome.stack
        if outcome.unusable or (
            interrupted is not None and interrupted.is_set()
        ):  # torch, or the device, is no better for the next group
            break
    return _Done(results, stack)


def _of_health(groups: list[Group], peaks: Peaks) -> dict[str, Any]:
    """What a child that judges health cannot know: the makers' figures, and where our own bindings of NVML are."""
    if all(group.name != "health" for group in groups):
        return {}
    from importlib.util import find_spec

    spec = find_spec("pynvml")
    return {"peaks": peaks(), "pynvml": spec.origin if spec else None}


def _torch_there(environment: Environment) -> str:
    """torch with the release its metadata names, so that fixing it changes no other package."""
    versions = {each.version for each in environment.distributions or () if each.name == "torch" and each.version}
    return f"torch=={versions.pop().partition('+')[0]}" if len(versions) == 1 else "torch"


def _is_torch(done: _Done) -> bool:
    return any(result.group == "torch" for result in done.results)


def _launcher(environment: Environment, processes: int) -> str:
    """The launcher the workload names, where we have it; several devices are else started as torchrun does."""
    named = environment.workload.launcher if environment.workload else None
    return named if named in ("python", "torchrun", "accelerate") else ("python" if processes < 2 else "torchrun")


def _without_device(request: Request, devices: Devices) -> tuple[ProbeResult, ...]:
    """What would have run on an accelerator, where there is none or none that can be seen."""
    if devices.why_none is None:
        return ()
    return tuple(
        ProbeResult(group.name, "cuda", COULD_NOT_RUN, devices.why_none)
        for group in GROUPS
        if not group.once and _is_wanted(group, request)
    )


def _ordered(done: Mapping[str, _Done]) -> tuple[ProbeResult, ...]:
    """By device, CPU first, then by group; within a group as they ran."""
    ranks = {group.name: number for number, group in enumerate(GROUPS)}
    place: Callable[[ProbeResult], int] = lambda result: ranks.get(result.group, -1)  # noqa: E731
    return tuple(result for each in done.values() for result in sorted(each.results, key=place))
