"""One trial: what a program does in its environment, what doctor says of it before, and what diagnose says of its output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scripts.trial.choice import Choice
from scripts.trial.environments import NotMade, base, make

OK, CRASH, TIMEOUT = "ok", "crash", "timeout"
_LIMIT = 200
_SURROUNDINGS = {
    "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": "",
    "RAY_DISABLE_IMPORT_WARNING": "1", "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true",
}  # fmt: skip
"""No network, no GPU, and little of this machine."""


@dataclass
class Seen:
    """A finding, as far as the table of results needs it."""

    rule: str
    title: str


@dataclass
class Result:
    """What became of a seed. ``end``: ok, crash, timeout, unresolvable, install failed."""

    seed: int
    program: str
    python: str
    requirements: list[str]
    end: str
    error: str = ""
    errors: list[Seen] = field(default_factory=list)
    """Of doctor, with verdict *hit*."""
    others: list[Seen] = field(default_factory=list)
    named: list[Seen] = field(default_factory=list)
    """By diagnose, if the program crashed."""

    @property
    def predicted(self) -> bool:
        return bool(self.errors)

    @property
    def wrong(self) -> bool:
        """Whether somebody should look at it: a crash that doctor or diagnose missed, or an error about a program that runs."""
        return (self.end == CRASH and not (self.errors and self.named)) or (self.end == OK and self.predicted)

    @classmethod
    def read(cls, path: Path) -> Result:
        values = json.loads(path.read_text(encoding="utf-8"))
        for key in ("errors", "others", "named"):
            values[key] = [Seen(**each) for each in values[key]]
        return cls(**values)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def tried(seed: int, choice: Choice, store: Path) -> Result:
    """Install, run and judge; the environment stays in the store if compat was wrong about it."""
    folder = store / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "prog.py").write_text(choice.program.text, encoding="utf-8")
    result = Result(seed, choice.program.name, choice.python, choice.requirements, OK)
    try:
        environment = make(folder, base(store, choice.python), choice.requirements)
    except NotMade as problem:
        result.end, result.error = problem.end, str(problem)
        return result
    result.end, result.error = _run(folder, environment, choice.program.command)
    judged(result, folder, choice.program.command)
    if not result.wrong:
        shutil.rmtree(environment)
    return result


def judged(result: Result, folder: Path, command: Sequence[str]) -> None:
    """Ask doctor about the environment of a trial, and diagnose about its output."""
    found = _compat(folder, "doctor", "--python", "env", "--gpu", "none", "--format", "json", "--", *command)
    hits = [each for each in found if each["severity"] == "error" and each["verdict"] == "hit"]
    result.errors = [Seen(each["rule"], each["title"]) for each in hits]
    result.others = [Seen(each["rule"], each["title"]) for each in found if each not in hits]
    if result.end == CRASH:
        named = _compat(folder, "diagnose", "output.txt", "--format", "json")
        result.named = [Seen(each["rule"], each["title"]) for each in named]


def _run(folder: Path, environment: Path, command: Sequence[str]) -> tuple[str, str]:
    binaries = str((environment / "bin").absolute())
    surroundings = {**os.environ, **_SURROUNDINGS, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    output = folder / "output.txt"
    with output.open("w") as file:
        try:
            ran = subprocess.run(
                [f"{binaries}/{command[0]}", *command[1:]], cwd=folder, env=surroundings, stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, timeout=_LIMIT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return TIMEOUT, ""
    return (CRASH, output.read_text(errors="replace")[-3000:]) if ran.returncode else (OK, "")


def _compat(folder: Path, *words: str) -> list[dict[str, str]]:
    """Return the findings of a command; raises :class:`RuntimeError` if it has no report."""
    ran = subprocess.run(
        [sys.executable, "-m", "compat", *words], cwd=folder, capture_output=True, text=True, timeout=_LIMIT, check=False
    )
    if not ran.stdout.startswith("{"):
        raise RuntimeError(f"compat {words[0]}: {ran.stderr[-500:] or ran.stdout[-500:]}")
    found: list[dict[str, str]] = json.loads(ran.stdout)["findings"]
    return found
