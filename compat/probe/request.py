"""The request for a probe run: the groups of probes, the options of the run, and its devices."""

from __future__ import annotations

import math
from collections.abc import Mapping

from compat.errors import InputError
from compat.model import Environment
from compat.records import record

QUICK, NORMAL, THOROUGH = "quick", "normal", "thorough"
TRAINERS = ("sft", "grpo", "dpo")
LAUNCHERS = ("python", "torchrun", "accelerate")
NO_ACCELERATOR = "no accelerator"


@record(frozen=True)
class Group:
    """A group of probes: one module in ``child/``. ``once``: runs for all devices together; ``quick``: part of a quick run.

    ``slow`` multiplies the time limit: importing vllm or trl alone may take half a minute on a cold disk.
    """

    name: str
    once: bool = False
    quick: bool = True
    slow: float = 1.0


GROUPS = (
    Group("matmul"),
    Group("rotary"),
    Group("attention"),
    Group("triton"),
    Group("extensions", once=True, quick=False, slow=2.0),
    Group("devices", once=True, quick=False),
    Group("trainer", once=True, quick=False, slow=2.0),
    Group("health"),
)
"""In the order in which they run."""
NAMES = tuple(group.name for group in GROUPS)
LIMITS = {QUICK: 60.0, NORMAL: 120.0, THOROUGH: 600.0}
"""Seconds that one child process may take, unless ``--timeout`` says otherwise."""


@record(frozen=True)
class Request:
    """The options of a probe run.

    ``device`` is ``all``, ``cpu``, ``cuda`` or ``cuda:N``. ``only`` names groups or single probes ("rotary/transformers");
    empty means all. ``limit`` is in seconds, for one child process.
    """

    python: str
    device: str = "all"
    only: tuple[str, ...] = ()
    depth: str = NORMAL
    trainer: str | None = None
    launcher: str | None = None
    limit: float = LIMITS[NORMAL]
    device_required: bool = False
    seed: int = 0

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groups in ``only``."""
        return tuple(dict.fromkeys(name.partition("/")[0] for name in self.only))

    def wants(self, group: Group) -> bool:
        """Return whether the run includes a group."""
        if self.only:
            return group.name in self.groups
        if group.name == "trainer" and self.trainer:
            return True
        return group.quick or self.depth != QUICK


@record(frozen=True)
class Devices:
    """The devices by torch's names, the CPU first; ``why_none`` is set if accelerators were requested but none exists."""

    names: tuple[str, ...]
    why_none: str | None = None

    @property
    def cuda(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name != "cpu")


def devices_of(request: Request, environment: Environment, seen: Environment) -> Devices:
    """Return the devices to probe: those of the request that are visible to the process (``seen``).

    A machine without accelerators is not an error, so that the same command works in CI without a GPU. Raises
    :class:`InputError` for a missing device while others are present.
    """
    count = _accelerators(seen)
    every = tuple(f"cuda:{index}" for index in range(count))
    hidden = _accelerators(environment)
    why = NO_ACCELERATOR
    if hidden:
        why += f": {hidden} there, and CUDA_VISIBLE_DEVICES hides all of them"
    elif environment.driver_state is not None:
        why += f": the NVIDIA driver is {environment.driver_state.replace('-', ' ')}"
    if request.device == "cpu":
        return Devices(("cpu",))
    if request.device == "all":
        return Devices(("cpu", *every), None if every else why)
    if not every:
        return Devices((), why)
    if request.device == "cuda":
        return Devices(every)
    if request.device not in every:
        there = "only cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise InputError(f"--device: unknown device {request.device}; this machine has {there}")
    return Devices((request.device,))


def _accelerators(environment: Environment) -> int:
    """Return the number of accelerators that torch can use."""
    return sum(each.vendor in (None, "nvidia", "amd") for each in environment.accelerators or ())


# --- Results of probes, as records and as JSON (``docs/schemas/probe-1.json``), and their exit code.


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
    measured: Mapping[str, object] = {}
    bound: Mapping[str, object] = {}
    seconds: float = 0.0
    last_words: tuple[str, ...] = ()
    fix: str | None = None

    @property
    def group(self) -> str:
        """The group of the probe, by its ``--only`` name."""
        return self.probe.partition("/")[0]

    def to_json(self) -> dict[str, object]:
        """Return the result in the published schema, without empty keys."""
        document: dict[str, object] = {"probe": self.probe, "device": self.device, "status": self.status}
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
    stacks: Mapping[str, Mapping[str, object]]
    seconds: float
    exit: int

    def to_json(self) -> dict[str, object]:
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


def _numbers(values: Mapping[str, object]) -> dict[str, object]:
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
