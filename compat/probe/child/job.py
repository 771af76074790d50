"""The job of a probe's process, and its results file, to which JSON lines are appended."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

Verdict = dict[str, Any]
Probe = tuple[str, Callable[[], Verdict]]
"""The name of a probe within its group, and the function that runs it."""
POISONED = 97
"""Exit code of a process whose CUDA context is unusable; another process runs the remaining probes."""


class NotHere(Exception):
    """The probe cannot run on this device or with this stack; the message says why."""


class Job:
    """A job file. ``depth`` is ``quick``, ``normal`` or ``thorough``; ``skip`` names probes that already ran."""

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

    def needs_accelerator(self, why: str = "") -> None:
        """Raise :class:`NotHere` on the CPU; ``why`` names the feature that requires an accelerator."""
        if not self.on_cuda:
            raise NotHere(f"no accelerator: {why}" if why else "no accelerator")

    def record(self, event: str, **values: object) -> None:
        """Append one line to the results; earlier lines survive a crash."""
        line = json.dumps({"event": event, **values}, allow_nan=True, default=str) + "\n"
        with open(self.results, "a", encoding="utf-8") as file:
            file.write(line)

    def run(self, group: str, probes: Iterator[Probe]) -> None:
        """Run probes in sequence. An exception becomes the probe's verdict; a broken CUDA context ends the process."""
        for name, probe in probes:
            full = f"{group}/{name}"
            # --only gives a probe, its group, or a prefix of its name
            wanted = not self.only or any(f"{full}/".startswith((f"{each}/", f"{each}-")) for each in self.only)
            if full in self.skip or not wanted:
                continue
            self.record("begin", probe=full)
            began = time.perf_counter()
            verdict = self.verdict(probe)
            broken = self._broken_context()
            if broken and verdict["status"] != "failed":
                verdict = failed(f"the CUDA context is unusable after it: {broken}")
            self.record("result", probe=full, seconds=round(time.perf_counter() - began, 3), **verdict)
            if broken:
                os._exit(POISONED)

    @staticmethod
    def verdict(probe: Callable[[], Verdict]) -> Verdict:
        """Run a probe and return its verdict, also for an exception."""
        try:
            return probe()
        except NotHere as reason:
            return could_not_run(str(reason))
        except Exception as problem:
            import traceback

            lines = traceback.format_exc().strip().split("\n")
            return failed(described(problem), last_words=lines[-6:])

    def _broken_context(self) -> str | None:
        if not self.on_cuda:
            return None
        import torch

        try:
            torch.cuda.synchronize(self.device)
        except Exception as problem:
            return described(problem)
        return None


def described(problem: BaseException) -> str:
    """Format an exception on one line: its class and the first 400 characters of its message."""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text[:400]}" if text else type(problem).__name__


def passed(measured: Mapping[str, object] | None = None, bound: Mapping[str, object] | None = None, why: str = "") -> Verdict:
    return {"status": "passed", "why": why, "measured": measured or {}, "bound": bound or {}}


def failed(
    why: str, measured: Mapping[str, object] | None = None, bound: Mapping[str, object] | None = None, **more: object
) -> Verdict:  # fmt: skip
    return {"status": "failed", "why": why, "measured": measured or {}, "bound": bound or {}, **more}


def could_not_run(why: str, **more: object) -> Verdict:
    return {"status": "could-not-run", "why": why, "measured": {}, "bound": {}, **more}


def missing(package: str) -> Verdict:
    """Return the verdict of a probe whose package is not installed."""
    return could_not_run(f"{package} is not installed")


def is_installed(module: str) -> bool:
    """Return whether a top-level module can be found, without importing it."""
    return importlib.util.find_spec(module) is not None


def needed(module: str, package: str) -> ModuleType:
    """Import a module of a package; raises :class:`NotHere` if the package is not installed or lacks the module."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as absent:
        if absent.name == module.partition(".")[0]:
            raise NotHere(f"{package} is not installed") from None
        if absent.name is not None and module.startswith(absent.name):
            raise NotHere(f"this {package} has no {module}") from None
        raise


def read_job(path: str) -> Job:
    with open(path, encoding="utf-8") as file:
        return Job(json.load(file))
