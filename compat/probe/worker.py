"""One child process after the other until its probes are done; what crashes one is a failed probe, and the next goes on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compat.probe.process import Ended, run
from compat.probe.results import FAILED, ProbeResult
from compat.records import record

START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "start.py")
RESTARTS = 8
"""How many crashes of one group are followed by another process for what is left."""
_NO_TORCH, _BROKEN_TORCH, _NO_DEVICE, _POISONED = 93, 94, 95, 97
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "disabled"}


@record(frozen=True)
class Work:
    """What one child process (and those that take its place) is to do; ``limit`` is for all of them together.

    ``torch`` is the requirement that would install the torch that is there again.
    """

    python: str
    device: str
    groups: tuple[str, ...]
    folder: str
    limit: float
    depth: str
    seed: int
    more: Mapping[str, Any]
    torch: str = "torch"


@record(frozen=True)
class Outcome:
    """``no_torch`` says that there is none; ``unusable`` that further groups on this device have no chance."""

    results: tuple[ProbeResult, ...]
    stack: Mapping[str, Any] | None = None
    no_torch: str | None = None
    unusable: bool = False


def work_off(work: Work, stop: Callable[[], bool] = lambda: False) -> Outcome:
    """Runs the probes of a child until it ends by itself or the time is over."""
    results: list[ProbeResult] = []
    stack: Mapping[str, Any] | None = None
    left = work.limit
    for attempt in range(RESTARTS + 1):
        folder = os.path.join(work.folder, str(attempt))
        os.makedirs(folder)
        said = os.path.join(folder, "results")
        job = _job_file(work, folder, said, left, [result.probe for result in results])
        began = time.monotonic()
        try:
            ended = run([work.python, START, job], left, variables_of_child(), folder)
        except OSError as problem:
            return Outcome((), no_torch=f"{work.python} cannot be started: {problem.strerror or problem}")
        left -= time.monotonic() - began
        events = list(events_of(said))
        results += [_result(event, work.device) for event in events if event["event"] == "result"]
        stack = stack or next((event for event in events if event["event"] == "hello"), None)
        torch = next((event for event in events if event["event"] == "torch"), None)
        if torch is not None and torch["status"] == "missing":
            return Outcome((), no_torch=f"no torch in {work.python}: run {work.python} -m pip install torch")
        if torch is not None:
            results.append(_broken_torch(torch, work, ended))
            return Outcome(tuple(results), stack, unusable=True)
        if ended.code == _NO_DEVICE:
            return Outcome(tuple(results), stack, unusable=True)
        if any(event["event"] == "end" for event in events):
            break
        results += _crashed(events, work, ended)
        if left <= 1 or stop() or not any(event["event"] == "hello" for event in events):
            break
    return Outcome(tuple(results), stack, unusable=stack is None)


def _job_file(work: Work, folder: str, results: str, left: float, over: list[str]) -> str:
    """What the child is to do, written down; probes that are ``over`` it skips."""
    path = os.path.join(folder, "job.json")
    job = {
        "device": work.device, "groups": work.groups, "depth": work.depth, "seed": work.seed, "results": results,
        "limit": left, "skip": over, **work.more,
    }  # fmt: skip
    with open(path, "w", encoding="utf-8") as file:
        json.dump(job, file)
    return path


def variables_of_child() -> dict[str, str]:
    """The user's variables; relative parts of PYTHONPATH stay what they are, though the child has a folder of its own."""
    variables = {**os.environ, **_OFFLINE, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    variables.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin while they wait cost seconds on a busy machine
    path = variables.get("PYTHONPATH")
    if path:
        variables["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in path.split(os.pathsep) if part)
    return variables


def events_of(path: str) -> Iterator[dict[str, Any]]:
    """The lines a child has written; one that it did not finish is not there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except OSError:
        return
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            yield event


def _result(event: Mapping[str, Any], device: str) -> ProbeResult:
    return ProbeResult(
        probe=event["probe"], device=event.get("device", device), status=event["status"], why=event.get("why", ""),
        measured=event.get("measured") or {}, bound=event.get("bound") or {}, seconds=event.get("seconds", 0.0),
        last_words=tuple(event.get("last_words", ())),
        fix="cpu-only" if event.get("cpu_only") else event.get("fix"),
    )  # fmt: skip


def _crashed(events: list[dict[str, Any]], work: Work, ended: Ended) -> list[ProbeResult]:
    """The probe that was under way when the process ended, as a failed one; none where every probe had its verdict."""
    begun = [event["probe"] for event in events if event["event"] == "begin"]
    over = {event["probe"] for event in events if event["event"] == "result"}
    open_ones = [probe for probe in begun if probe not in over]
    if ended.code == _POISONED and not open_ones:
        return []
    if open_ones:
        name = open_ones[-1]
    elif not any(event["event"] == "hello" for event in events):
        name = "torch/import"
    else:
        name = f"{work.groups[0] if len(work.groups) == 1 else 'probe'}/process"
    why = f"its process {ended.how}"
    why += _saying(ended)
    fix = _reinstall(work) if name == "torch/import" and not ended.timed_out else None
    return [ProbeResult(name, work.device, FAILED, why, seconds=round(ended.seconds, 3), last_words=ended.last_words, fix=fix)]


def _reinstall(work: Work) -> str:
    return f'{work.python} -m pip install --force-reinstall --no-deps "{work.torch}"'


def _saying(ended: Ended) -> str:
    """Its last words; of one that was ended, where it was."""
    words = ended.last_words
    fatal = bool(words) and words[0].startswith("Fatal Python error")
    if ended.timed_out and fatal:
        return f"; it was at {words[1]}" if len(words) > 1 else ""
    return f"; its last words: {words[0] if fatal else words[-1]}" if words else ""


def _broken_torch(event: Mapping[str, Any], work: Work, ended: Ended) -> ProbeResult:
    why = f"torch cannot be imported by {work.python}: {event['why']}"
    fix = _reinstall(work)
    if event.get("library"):
        fix = f"{work.python} -m pip install {event['library']}"
    return ProbeResult("torch/import", work.device, FAILED, why, seconds=round(ended.seconds, 3), fix=fix,
                       last_words=ended.last_words)  # fmt: skip
