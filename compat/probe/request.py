"""What a run of probes is asked for."""

from __future__ import annotations

from compat.probe.groups import LIMITS, NORMAL
from compat.records import record

TRAINERS = ("sft", "grpo", "dpo")
LAUNCHERS = ("python", "torchrun", "accelerate")


@record(frozen=True)
class Request:
    """``device`` is ``all``, ``cpu``, ``cuda`` or ``cuda:N``; ``only`` names groups, or probes of them ("rotary/transformers"),
    and is empty for all of them; ``limit`` is a child's."""

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
        """The groups that ``only`` names, or names probes of."""
        return tuple(dict.fromkeys(name.partition("/")[0] for name in self.only))
