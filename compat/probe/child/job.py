"""What a probe's process is asked to do, and the file its results go to, a line of JSON each."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

Verdict = dict[str, Any]
Probe = tuple[str, Callable[[], Verdict]]
"""The name of a probe behind its group's, and what is called to run it."""


class NotHere(Exception):
    """The probe cannot run on this device or with this stack; the message says why."""


class Job:
    """A job file as read. ``depth`` is ``quick``, ``normal`` or ``thorough``; ``skip`` names probes that had their turn."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.device: str = values["device"]
        self.depth: str = values.get("depth", "normal")
        self.seed: int = values.get("seed", 0)
        self.only = tuple(values.get("only", ()))
        self.skip = frozenset(values.get("skip", ()))
        self.results: str = values["results"]

    @property
    def quick(self) -> bool:
        return self.depth == "quick"

    @property
    def thorough(self) -> bool:
        return self.depth == "thorough"

    @property
    def on_cuda(self) -> bool:
        return self.device.startswith("cuda")

    def say(self, event: str, **values: Any) -> None:
        """Appends one line to the results; what was said before a crash stays said."""
        line = json.dumps({"event": event, **values}, allow_nan=True, default=str) + "\n"
        with open(self.results, "a", encoding="utf-8") as file:
            file.write(line)

    def run(self, group: str, probes: Iterator[Probe]) -> None:
        """Runs probes one after the other. What one raises is its verdict; a broken CUDA context ends the process."""
        for name, probe in probes:
            full = f"{group}/{name}"
            if full in self.skip or not self._is_wanted(full):
                continue
            self.say("begin", probe=full)
            began = time.perf_counter()
            verdict = self.verdict(probe)
            broken = self._broken_context()
            if broken and verdict["status"] != "failed":
                verdict = failed(f"the CUDA context is unusable after it: {broken}")
            self.say("result", probe=full, seconds=round(time.perf_counter() - began, 3), **verdict)
            if broken:
                os._exit(POISONED)

    def _is_wanted(self, name: str) -> bool:
        """Whether ``--only`` names the probe, its group, or how its name begins."""
        return not self.only or any(f"{name}/".startswith((f"{each}/", f"{each}-")) for each in self.only)

    @staticmethod
    def verdict(probe: Callable[[], Verdict]) -> Verdict:
        """What a probe says; an exception that it raises is said for it."""
        try:
            return probe()
        except NotHere as reason:
            return could_not_run(str(reason))
        except Exception as problem:
            import traceback

            lines = traceback.format_exc().strip().split("\n")
            return failed(said(problem), last_words=lines[-6:])

    def _broken_context(self) -> str | None:
        if not self.on_cuda:
            return None
        import torch

        try:
            torch.cuda.synchronize(self.device)
        except Exception as problem:
            return said(problem)
        return None


POISONED = 97
"""How a process ends whose CUDA context cannot be used any more: another one takes up the probes that are left."""


def said(problem: BaseException) -> str:
    """An exception on one line: its class and what it says, without the pages that some libraries add."""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text[:400]}" if text else type(problem).__name__


def passed(measured: dict[str, Any] | None = None, bound: dict[str, Any] | None = None, why: str = "") -> Verdict:
    return {"status": "passed", "why": why, "measured": measured or {}, "bound": bound or {}}


def failed(why: str, measured: dict[str, Any] | None = None, bound: dict[str, Any] | None = None, **more: Any) -> Verdict:
    return {"status": "failed", "why": why, "measured": measured or {}, "bound": bound or {}, **more}


def could_not_run(why: str, **more: Any) -> Verdict:
    return {"status": "could-not-run", "why": why, "measured": {}, "bound": {}, **more}


def missing(why: str) -> Verdict:
    """For what is known to be not here before it is tried."""
    raise NotHere(why)


def read_job(path: str) -> Job:
    with open(path, encoding="utf-8") as file:
        return Job(json.load(file))
