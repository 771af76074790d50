"""The request for a probe run: the groups of probes, the options of the run, and its devices."""

from __future__ import annotations

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
