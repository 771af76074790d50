"""Which devices are probed: those that are asked for and that the environment shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.model import Environment
from compat.records import record

if TYPE_CHECKING:
    from compat.probe.request import Request

NO_ACCELERATOR = "no accelerator"


@record(frozen=True)
class Devices:
    """``names`` as torch calls them, the CPU first; ``why_none`` where accelerators were asked for and there is none."""

    names: tuple[str, ...]
    why_none: str | None = None

    @property
    def cuda(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name != "cpu")


def devices_of(request: Request, environment: Environment, seen: Environment) -> Devices:
    """The devices to probe; :class:`InputError` for one that is not there beside others that are.

    Where there is no accelerator at all, asking for one is no mistake: the same line has to pass a build without a GPU.
    """
    count, why = _accelerators(environment, seen)
    every = tuple(f"cuda:{index}" for index in range(count))
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
        raise InputError(f"--device: there is no {request.device}; this machine shows {there}")
    return Devices((request.device,))


def _accelerators(environment: Environment, seen: Environment) -> tuple[int, str]:
    """How many accelerators torch is to find, and what to say where it is none."""
    shown = seen.accelerators
    found = tuple(each for each in shown or () if each.vendor in (None, "nvidia", "amd"))
    if found:
        return len(found), ""
    everywhere = environment.accelerators or ()
    hidden = sum(1 for each in everywhere if each.vendor in (None, "nvidia", "amd"))
    if hidden:
        return 0, f"{NO_ACCELERATOR}: {hidden} there, and CUDA_VISIBLE_DEVICES hides all of them"
    if environment.driver_state is not None:
        return 0, f"{NO_ACCELERATOR}: the NVIDIA driver is {environment.driver_state.replace('-', ' ')}"
    return 0, NO_ACCELERATOR
