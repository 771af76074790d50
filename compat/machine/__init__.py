"""Inspect this machine. Hardware is read into one record, whichever source answers: NVML, ``nvidia-smi`` or the kernel."""

from __future__ import annotations

from compat.model import Accelerator
from compat.records import record

NOT_LOADED = "not-loaded"


MISMATCHED = "mismatched"


@record(frozen=True)
class Hardware:
    """The hardware of a machine. ``accelerators`` is ``None`` if unknown and ``()`` if there are certainly none.

    ``driver_cuda`` is the highest CUDA the driver supports ("12.4"); ``driver_state`` is ``"not-loaded"`` or
    ``"mismatched"`` if a driver is installed but cannot be used; ``notes`` are sentences for the user.
    """

    accelerators: tuple[Accelerator, ...] | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    driver_state: str | None = None
    cuda_toolkit: str | None = None
    notes: tuple[str, ...] = ()


def filled(first: Hardware, second: Hardware) -> Hardware:
    """Return the first reading with unknown fields filled from the second, and the notes of both."""
    return Hardware(
        accelerators=second.accelerators if first.accelerators is None else first.accelerators,
        driver=first.driver or second.driver,
        driver_cuda=first.driver_cuda or second.driver_cuda,
        driver_state=first.driver_state or second.driver_state,
        cuda_toolkit=first.cuda_toolkit or second.cuda_toolkit,
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
    )
