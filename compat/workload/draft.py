"""Facts of a workload under construction, each with where it was found; and how values of options are read."""

from __future__ import annotations

import os
from typing import Any

from compat.model import Workload


class _Unknown:
    """The type of a value that is set but only computed at run time."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()
SHARDING = ("zero-1", "zero-2", "zero-3", "fsdp", "fsdp2")
_TRUE, _FALSE = ("true", "yes", "y", "t", "1", "on"), ("false", "no", "n", "f", "0", "off")
_PRECISIONS = {
    "bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "half": "fp16", "fp32": "fp32",
    "float32": "fp32", "float": "fp32", "fp8": "fp8",
}  # fmt: skip
_LIKELY = ("task", "trainer")
"""Facts that count even inside a branch: whichever branch runs, something is trained."""


class Draft:
    """Facts from one source (a command, a file), added one by one; contradicting facts stay unknown.

    ``last_wins``: the last of several values applies, as on a command line. ``configs`` collects the DeepSpeed
    configuration files that are named, ``notes`` messages for the user.
    """

    def __init__(self, *, last_wins: bool = False) -> None:
        self._last_wins = last_wins
        self._stated: dict[str, list[tuple[object, str, bool]]] = {}
        self.configs: list[str] = []
        self.notes: list[str] = []

    def record(self, key: str, value: object, origin: str, *, tentative: bool = False) -> None:
        """Record a fact by its key in the workload ("batch_size"); ``tentative`` if it depends on a condition."""
        self._stated.setdefault(key, []).append((value, origin, tentative))

    def feature(self, name: str, on: object, origin: str, *, tentative: bool = False) -> None:
        """Record that a feature is on, off, or :data:`UNKNOWN`."""
        self.record(f"features.{name}", on, origin, tentative=tentative)

    def on(self, name: str, origin: str, *, tentative: bool = False) -> None:
        """Record that a feature is on."""
        self.record(f"features.{name}", value=True, origin=origin, tentative=tentative)

    def off(self, name: str, origin: str, *, tentative: bool = False) -> None:
        """Record that a feature is off."""
        self.record(f"features.{name}", value=False, origin=origin, tentative=tentative)

    def forget(self, key: str) -> None:
        """Drop all values of a key."""
        self._stated.pop(key, None)

    def get(self, key: str) -> Any:
        """Return the value of a key; ``None`` if unset, unknown, only tentative, or contradictory."""
        stated = self._stated.get(key)
        if not stated:
            return None
        if self._last_wins:
            stated = stated[-1:]
        first = stated[0][0]
        if first is UNKNOWN or any(value is UNKNOWN or value != first for value, _, _ in stated[1:]):
            return None
        if key not in _LIKELY and all(tentative for _, _, tentative in stated):
            return None
        return first

    def origin(self, key: str) -> str:
        """Return where a known fact was read, preferring an unconditional place over one in a branch."""
        stated = self._stated[key][-1:] if self._last_wins else self._stated[key]
        return next((origin for _, origin, tentative in stated if not tentative), stated[0][1])

    def contradictions(self) -> tuple[str, ...]:
        if self._last_wins:
            return ()
        found = []
        for key, stated in self._stated.items():
            places: dict[str, str] = {}
            for value, origin, _ in stated:
                if value is not UNKNOWN:
                    places.setdefault(str(value), origin)
            if len(places) > 1 and not (key == "task" and "trainer" in self._stated):
                values = " and ".join(f"{value} ({place})" for value, place in places.items())
                found.append(f"{key.removeprefix('features.')} stays unknown: {values}")
        return tuple(found)

    def workload(self) -> Workload:
        """Return the known facts with their origins."""
        model = self.get("model")
        if isinstance(model, str) and os.path.isdir(model):
            from compat.workload.model_files import merges_are_pairs, quantization_of, quantizes_activations, type_of

            pairs, method, activations = merges_are_pairs(model), quantization_of(model), quantizes_activations(model)
            config = os.path.join(model, "config.json")
            if (kind := type_of(model)) is not None:
                self.record("model_type", kind, config)
            if pairs is not None:
                self.feature("tokenizer-json-0.20", pairs, os.path.join(model, "tokenizer.json"))
            if method is not None:
                self.on("quantized-checkpoint", config)
                if "quantization" not in self._stated:
                    self.record("quantization", method, config)
            if activations is not None:
                self.feature("quantized-activations", activations, config)
        known = {key: value for key in self._stated if (value := self.get(key)) is not None}
        features = {key[9:]: known.pop(key) for key in [*known] if key.startswith("features.")}
        on = tuple(name for name, value in features.items() if value)
        off = tuple(name for name, value in features.items() if not value)
        origins = {key: self.origin(key) for key in (*known, *(f"features.{name}" for name in features))}
        return Workload(**known, features=on or None, features_absent=off or None, origins=origins)


def parse_switch(value: object) -> object:
    """Parse a switch like transformers' argument parser: ``True``, ``False`` or :data:`UNKNOWN`."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    return True if word in _TRUE else False if word in _FALSE else UNKNOWN


def parse_count(value: object) -> Any:
    """Parse a non-negative integer, or return :data:`UNKNOWN`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else UNKNOWN
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return UNKNOWN


def precision_word(value: object) -> str | None:
    """Return bf16, fp16, fp32 or fp8 for ``torch.bfloat16``, ``"half"`` and similar spellings; otherwise ``None``."""
    return _PRECISIONS.get(value.lower().removeprefix("torch.")) if isinstance(value, str) else None
