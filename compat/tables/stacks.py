"""Combinations that resolved and passed the check (``matrix/stacks.csv``), compiled."""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table
from compat.records import record

FILE = os.path.join(DATA, "stacks.bin")


@record(frozen=True)
class Stack:
    """The newest releases of a stack for a task and a GPU, as of the date ``checked`` (``2026-11-22``).

    ``stack`` is comma-separated and ``pins`` space-separated, as in the table; ``packages`` counts all installed packages.
    """

    task: str
    stack: str
    gpu: str
    driver: str
    python: str
    pins: str
    packages: str
    checked: str

    def to_json(self) -> dict[str, object]:
        shown = {name: getattr(self, name) for name in ("task", "gpu", "driver", "python", "checked")}
        return {**shown, "stack": self.stack.split(","), "pins": self.pins.split(), "packages": int(self.packages)}


def open_stacks() -> tuple[Stack, ...]:
    """Return every recorded combination, by task, stack and GPU."""
    return tuple(Stack(*row) for row in marshal.loads(read_table(FILE)))
