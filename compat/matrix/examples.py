"""Examples of a rule: a short table in the rule file → a described environment.

``{ packages = { trl = "0.17.0" }, gpus = "A100:2", launcher = "python" }`` lists every distribution there is unless
``complete = false``, and everything else is unknown, as in a described environment.
"""

from __future__ import annotations

from compat.environment import SCHEMA
from compat.matrix.conditions import known_keys, table_of
from compat.matrix.rule import Example

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MACHINE = (
    "python",
    "os",
    "machine",
    "platform",
    "glibc",
    "driver",
    "driver_state",
    "cuda_toolkit",
    "variables",
    "accelerators",
)
_WORKLOAD = ("task", "trainer", "model", "launcher", "processes", "batch_size", "precision", "quantization",
             "features", "features_absent", "features_complete")  # fmt: skip
VERDICTS = ("hit", "clear", "possible")


def example_of(table: Mapping[str, Any]) -> Example:
    """One ``[[rule.example]]`` table; ``ValueError`` says what is wrong with it."""
    known_keys("example", table, VERDICTS)
    if len(table) != 1:
        raise ValueError("example: expected exactly one of hit, clear, possible")
    (verdict, described), *_ = table.items()
    return Example(verdict=verdict, environment=_environment(table_of("example", described)))


def _environment(table: Mapping[str, Any]) -> dict[str, Any]:
    known_keys("example", table, ("packages", "sources", "gpus", "complete", *_MACHINE, *_WORKLOAD))
    found: dict[str, Any] = {"schema": SCHEMA}
    sources = table.get("sources", {})
    found["distributions"] = [
        {"name": name, "version": version, **({"source": sources[name]} if name in sources else {})}
        for name, version in table.get("packages", {}).items()
    ]
    found["distributions_complete"] = bool(table.get("complete", True))
    if "gpus" in table:
        found["accelerators"] = accelerators_of(table["gpus"])
    found.update({key: table[key] for key in _MACHINE if key in table})
    workload = {key: table[key] for key in _WORKLOAD if key in table}
    if workload:
        found["workload"] = workload
    return found


def accelerators_of(text: str) -> list[dict[str, Any]]:
    """``"A100:2"`` or ``"A100:2,T4"`` as a list of accelerators by name; ``"none"`` as none."""
    if text == "none":
        return []
    found: list[dict[str, Any]] = []
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        if not name.strip() or (count and not count.isdecimal()):
            raise ValueError(f"gpus: expected NAME or NAME:COUNT, not {part.strip()!r}")
        found += [{"name": name.strip()}] * int(count or 1)
    return found
