"""The groups of probes, in the order they run: on which devices, how long, and in which depth."""

from __future__ import annotations

from compat.records import record

QUICK, NORMAL, THOROUGH = "quick", "normal", "thorough"


@record(frozen=True)
class Group:
    """A group of probes in one module of the child. ``once``: for all devices together, not for each."""

    name: str
    summary: str
    once: bool = False
    quick: bool = True
    slow: float = 1.0


GROUPS = (
    Group("matmul", "matrix products"),
    Group("rotary", "rotary embeddings"),
    Group("attention", "attention"),
    Group("triton", "Triton's compiler"),
    Group("extensions", "compiled packages", once=True, quick=False, slow=2.0),
    Group("devices", "several devices together", once=True, quick=False),
    Group("trainer", "two steps of trl's trainer", once=True, quick=False, slow=2.0),
    Group("health", "clocks, errors and rates"),
)
"""``slow`` multiplies the time limit: importing vllm or trl alone may take half a minute on a cold disk."""

NAMES = tuple(group.name for group in GROUPS)
LIMITS = {QUICK: 60.0, NORMAL: 120.0, THOROUGH: 600.0}
"""Seconds that one child process may take, unless ``--timeout`` says otherwise."""
