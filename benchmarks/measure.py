"""Time and peak memory of commands, interleaved so that a busy machine slows all of them alike."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """Median and fastest wall time in seconds, and peak resident memory in MiB, of a whole process."""

    median: float
    fastest: float
    memory: float


def interleaved(commands: Mapping[str, Sequence[str]], rounds: int, allowed: Sequence[int] = (0, 1)) -> dict[str, Measured]:
    """Runs every command once a round; ``RuntimeError`` where one ends with another exit code than ``allowed``."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    memory: dict[str, float] = dict.fromkeys(commands, 0.0)
    for turn in range(rounds + 2):
        for name, command in commands.items():
            seconds, peak = _once(name, command, allowed)
            if turn >= 2:  # the first rounds fill the caches
                times[name].append(seconds)
                memory[name] = max(memory[name], peak)
    return {name: Measured(statistics.median(found), min(found), memory[name]) for name, found in times.items()}


def _once(name: str, command: Sequence[str], allowed: Sequence[int]) -> tuple[float, float]:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code
    if code not in allowed:
        raise RuntimeError(f"{name}: exit code {code} of {' '.join(command)}")
    return seconds, usage.ru_maxrss / 1024
