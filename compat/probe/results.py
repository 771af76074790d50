"""Probe results as records and as JSON (``docs/schemas/probe-1.json``), and their exit code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from compat.records import record

PASSED, FAILED, COULD_NOT_RUN = "passed", "failed", "could-not-run"


@record(frozen=True)
class ProbeResult:
    """The result of a probe on a device. ``why`` has the wrong value, the expected one and the bound, or why it could not run.

    ``last_words`` are the last lines of a crashed process; ``fix`` is a suggested command.
    """

    probe: str
    device: str
    status: str
    why: str = ""
    measured: Mapping[str, Any] = {}
    bound: Mapping[str, Any] = {}
    seconds: float = 0.0
    last_words: tuple[str, ...] = ()
    fix: str | None = None

    @property
    def group(self) -> str:
        """The group of the probe, by its ``--only`` name."""
        return self.probe.partition("/")[0]

    def to_json(self) -> dict[str, Any]:
        """Return the result in the published schema, without empty keys."""
        document: dict[str, Any] = {"probe": self.probe, "device": self.device, "status": self.status}
        if self.why:
            document["why"] = self.why
        document.update(measured=_numbers(self.measured), bound=_numbers(self.bound), seconds=self.seconds)
        if self.last_words:
            document["last_words"] = list(self.last_words)
        if self.fix:
            document["fix"] = self.fix
        return document


@record(frozen=True)
class ProbeReport:
    """All results of a run; ``stacks`` has the Python, torch and devices found by each device's process."""

    results: tuple[ProbeResult, ...]
    python: str
    stacks: Mapping[str, Mapping[str, Any]]
    seconds: float
    exit: int

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``compat probe --format json``."""
        stack = next(iter(self.stacks.values()), {})
        return {
            "schema": "compat/probe/1",
            "python": {"executable": self.python, **({"version": stack["python"]} if "python" in stack else {})},
            "torch": {name: stack.get(key) for name, key in (("version", "torch"), ("cuda", "cuda"), ("hip", "hip"))},
            "probes": [result.to_json() for result in self.results],
            "seconds": round(self.seconds, 3),
            "exit": self.exit,
        }


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace NaN and infinities with text, since JSON cannot represent them."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def exit_code(results: tuple[ProbeResult, ...], *, device_required: bool) -> int:
    """Return 1 if a probe failed, 3 if a device was required and none could be probed, else 0."""
    if any(result.status == FAILED for result in results):
        return 1
    probed = {result.device for result in results if result.status == PASSED}
    return 3 if device_required and not probed - {"cpu"} else 0
