"""What a seed stands for: a program, a Python, and old releases of one to three packages; everything else is the newest."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
PYTHONS = ("3.11", "3.11", "3.12", "3.12", "3.10", "3.13")
"""Repeated ones are chosen more often."""
CORE = ("transformers", "trl", "peft", "accelerate", "datasets")
BELOW = ("huggingface-hub", "tokenizers", "safetensors", "numpy", "pyarrow", "protobuf", "pydantic", "fsspec", "pillow")
"""What the others are built on, and seldom pin."""
NEWER_SHARE = 0.55
"""Old releases are chosen among this share of all of them, since hardly anybody installs the oldest."""
_HEADER = re.compile(r"^# (requires|command): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """A script: what it ``requires`` to be installed (the first is what it is about), and the ``command`` that runs it."""

    name: str
    requires: tuple[str, ...]
    command: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Choice:
    """One trial: ``pins`` are the old releases."""

    program: Program
    python: str
    pins: dict[str, str]

    @property
    def requirements(self) -> list[str]:
        others = [name for name in self.program.requires if name not in self.pins]
        return [*(f"{name}=={version}" for name, version in self.pins.items()), *others]


@cache
def programs() -> tuple[Program, ...]:
    """Return every program of the folder, by name."""
    return tuple(_read(path) for path in sorted(PROGRAMS.glob("*.py")))


def _read(path: Path) -> Program:
    text = path.read_text(encoding="utf-8")
    stated = dict(_HEADER.findall(text))
    return Program(path.stem, tuple(stated["requires"].split()), tuple(stated.get("command", "python prog.py").split()), text)


def chosen(seed: int, releases: Callable[[str], Sequence[str]], pythons: Sequence[str] = PYTHONS) -> Choice:
    """Return the trial of a seed; ``releases`` lists those of a package, oldest first."""
    rng = random.Random(seed)
    program = rng.choice(programs())
    python = rng.choice(pythons)
    subject = program.requires[0]
    core = [name for name in CORE if name != subject]
    old = {
        "subject": (subject,),
        "subject and a core package": (subject, rng.choice(core)),
        "a core package": (rng.choice(core),),
        "a package below": (rng.choice(BELOW),),
        "subject and a package below": (subject, rng.choice(BELOW)),
        "three": (subject, *rng.sample(core, 2)),
    }[rng.choices(("subject", "subject and a core package", "a core package", "a package below",
                   "subject and a package below", "three"), (30, 25, 15, 10, 10, 10))[0]]  # fmt: skip
    pins = {}
    for name in old:
        known = releases(name.partition("[")[0])  # without extras
        older = known[-max(8, int(len(known) * NEWER_SHARE)) : -1]
        if older:
            pins[name] = rng.choice(older)
    return Choice(program, python, pins)
