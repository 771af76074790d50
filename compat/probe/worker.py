"""Child processes with a time limit: a probe that crashes its process fails, and a new process runs the remaining ones."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from compat.probe.request import FAILED, ProbeResult
from compat.records import record

START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "start.py")
RESTARTS = 8
"""How many times the remaining probes of a group get another process after a crash."""
_NO_DEVICE, _POISONED = 95, 97
"""Exit codes of a child, as ``child/work.py`` and ``child/job.py`` define them."""
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "disabled"}


@record(frozen=True)
class Work:
    """The work of a child process and its replacements; ``limit`` is their total time in seconds.

    ``torch`` is the requirement that would reinstall the current torch.
    """

    python: str
    device: str
    groups: tuple[str, ...]
    folder: str
    limit: float
    depth: str
    seed: int
    more: Mapping[str, object]
    torch: str = "torch"


@record(frozen=True)
class Outcome:
    """``no_torch``: why torch is missing; ``unusable``: further groups on this device cannot run either."""

    results: tuple[ProbeResult, ...]
    stack: Mapping[str, object] | None = None
    no_torch: str | None = None
    unusable: bool = False


def work_off(work: Work, stop: Callable[[], bool] = lambda: False) -> Outcome:
    """Run child processes until all probes have a verdict, the time limit is reached, or ``stop()`` is true."""
    results: list[ProbeResult] = []
    stack: Mapping[str, object] | None = None
    left = work.limit
    for attempt in range(RESTARTS + 1):
        folder = os.path.join(work.folder, str(attempt))
        os.makedirs(folder)
        results_file = os.path.join(folder, "results")
        job = os.path.join(folder, "job.json")
        with open(job, "w", encoding="utf-8") as file:
            json.dump({
                "device": work.device, "groups": work.groups, "depth": work.depth, "seed": work.seed, "results": results_file,
                "limit": left, "skip": [result.probe for result in results], **work.more,
            }, file)  # fmt: skip
        began = time.monotonic()
        try:
            ended = run([work.python, START, job], left, variables_of_child(), folder)
        except OSError as problem:
            return Outcome((), no_torch=f"{work.python} cannot be started: {problem.strerror or problem}")
        left -= time.monotonic() - began
        events = list(events_of(results_file))
        results += [_result(event, work.device) for event in events if event["event"] == "result"]
        stack = stack or next((event for event in events if event["event"] == "hello"), None)
        torch = next((event for event in events if event["event"] == "torch"), None)
        if torch is not None and torch["status"] == "missing":
            return Outcome((), no_torch=f"no torch in {work.python}: run {work.python} -m pip install torch")
        if torch is not None:
            fix = f"{work.python} -m pip install {torch['library']}" if torch.get("library") else _reinstall(work)
            why = f"torch cannot be imported by {work.python}: {torch['why']}"
            results.append(ProbeResult("torch/import", work.device, FAILED, why, seconds=round(ended.seconds, 3), fix=fix,
                                       last_words=ended.last_words))  # fmt: skip
            return Outcome(tuple(results), stack, unusable=True)
        if ended.code == _NO_DEVICE:
            return Outcome(tuple(results), stack, unusable=True)
        if any(event["event"] == "end" for event in events):
            break
        results += _crashed(events, work, ended)
        if left <= 1 or stop() or not any(event["event"] == "hello" for event in events):
            break
    return Outcome(tuple(results), stack, unusable=stack is None)


def variables_of_child() -> dict[str, str]:
    """Return the child's environment variables, with PYTHONPATH made absolute since the child runs in another folder."""
    variables = {**os.environ, **_OFFLINE, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    variables.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin while they wait cost seconds on a busy machine
    path = variables.get("PYTHONPATH")
    if path:
        variables["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in path.split(os.pathsep) if part)
    return variables


def events_of(path: str) -> Iterator[dict[str, object]]:
    """Return the events in the complete lines that a child has written."""
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
    """Return the probe that was running when the process ended as failed; none if every probe had its verdict."""
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
    words = ended.last_words
    fatal = bool(words) and words[0].startswith("Fatal Python error")
    if ended.timed_out and fatal:
        why += f"; it was at {words[1]}" if len(words) > 1 else ""
    elif words:
        why += f"; its last words: {words[0] if fatal else words[-1]}"
    fix = _reinstall(work) if name == "torch/import" and not ended.timed_out else None
    return [ProbeResult(name, work.device, FAILED, why, seconds=round(ended.seconds, 3), last_words=words, fix=fix)]


def _reinstall(work: Work) -> str:
    return f'{work.python} -m pip install --force-reinstall --no-deps "{work.torch}"'


# --- One process


_KEPT = 16_384  # bytes of stderr searched for the last lines
_WORDS = 8
_FRAME = re.compile(r'File "(?P<path>[^"]+)", line')
_NOISE = ("warnings.warn(", "Extension modules: ", "Current thread's C stack trace", "  Binary file ", "<truncated rest")


@record(frozen=True)
class Ended:
    """How a process ended; ``code`` is negative for a signal, ``last_words`` are its last lines on stderr."""

    code: int
    timed_out: bool
    seconds: float
    last_words: tuple[str, ...]

    @property
    def how(self) -> str:
        """Describe the exit, as a continuation of "its process": a signal by name, an exit code by number."""
        if self.timed_out:
            return f"did not finish within {self.seconds:.0f} s"
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        try:
            name = signal.Signals(-self.code).name
        except ValueError:
            name = f"signal {-self.code}"
        return f"was ended by {name}{_MEANINGS.get(-self.code, '')}"


_MEANINGS: dict[int, str] = {
    signal.SIGKILL: ", which the kernel sends when memory runs out",
    signal.SIGSEGV: ", a segmentation fault",
    signal.SIGABRT: ", an abort",
    signal.SIGBUS: ", a bus error: a truncated file, or /dev/shm is full",
    signal.SIGILL: ", an illegal instruction: code for another CPU",
    signal.SIGFPE: ", an arithmetic error",
}


def run(command: Sequence[str], limit: float, variables: Mapping[str, str], folder: str) -> Ended:
    """Run a command in ``folder``; after ``limit`` seconds, kill it and the processes it started.

    Raises :class:`OSError` if the command cannot be started.
    """
    began = time.monotonic()
    stderr_file = os.path.join(folder, "stderr")
    with open(stderr_file, "wb") as stderr:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, cwd=folder, env=dict(variables),
            start_new_session=True,
        )  # fmt: skip
    timed_out = False
    _running.add(child)
    try:
        child.wait(limit)
    except subprocess.TimeoutExpired:
        timed_out = True
        child.send_signal(signal.SIGABRT)  # Python's fault handler then writes a traceback
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(2)
    finally:
        _kill(child)
        _running.discard(child)
    seconds = limit if timed_out else time.monotonic() - began
    return Ended(child.returncode, timed_out, seconds, last_words(stderr_file))


_running: set[subprocess.Popen[bytes]] = set()


def end_all() -> None:
    """Kill every running child after the user has interrupted the run."""
    for child in tuple(_running):
        _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child's whole session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def last_words(path: str) -> tuple[str, ...]:
    """Return the last relevant lines of a file, or a fatal Python error with its innermost frames."""
    try:
        with open(path, "rb") as file:
            file.seek(max(os.path.getsize(path) - _KEPT, 0))
            text = file.read(_KEPT).decode("utf-8", "replace")
    except OSError:
        return ()
    lines = [line.rstrip() for line in text.split("\n")]
    lines = [line for line in lines if line.strip() and not any(noise in line for noise in _NOISE)]
    fatal = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if fatal is None:
        return tuple(line[:300] for line in lines[-_WORDS:])
    # the fault handler lists the innermost call first; the last two parts of a path are enough
    frames = [
        _FRAME.sub(lambda match: f'File "{"/".join(match["path"].split("/")[-2:])}", line', line.strip())
        for line in lines[fatal + 1 :]
        if _FRAME.search(line) and "<frozen" not in line
    ]
    return (lines[fatal], *frames[:_WORDS])
