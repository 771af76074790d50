"""What a probe said, as records and as JSON (``docs/schemas/probe-1.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat.records import record

PASSED, FAILED, COULD_NOT_RUN = "passed", "failed", "could-not-run"


@record(frozen=True)
class ProbeResult:
    """One probe on one device. ``why`` names the wrong number, what it was compared with and the bound, or the reason.

    ``last_words`` are the last lines its process wrote where it did not end by itself; ``fix`` is what would help.
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
        """What ``--only`` calls it."""
        return self.probe.partition("/")[0]

    def to_json(self) -> dict[str, Any]:
        """The probe as the published schema has it; what there is nothing to say about is left out."""
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
    """All results of one call; ``stacks`` says which Python, torch and devices each device's process found."""

    results: tuple[ProbeResult, ...]
    python: str
    stacks: Mapping[str, Mapping[str, Any]]
    seconds: float
    exit: int

    def to_json(self) -> dict[str, Any]:
        """The document of ``compat probe --format json``."""
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
    """JSON has no word for what is not a number: it is written as text."""
    return {
        name: str(value) if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))) else value
        for name, value in values.items()
    }


def exit_code(results: tuple[ProbeResult, ...], *, device_required: bool) -> int:
    """1 a probe failed; 3 where a device was required and none could be probed; else 0."""
    if any(result.status == FAILED for result in results):
        return 1
    probed = {result.device for result in results if result.status == PASSED}
    return 3 if device_required and not probed - {"cpu"} else 0
