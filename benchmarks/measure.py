"""Time and peak memory of commands, interleaved so that load on the machine affects all of them equally."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """Median and minimum wall time and median CPU time (with children) in seconds; peak resident memory in MiB."""

    median: float
    fastest: float
    memory: float
    cpu: float = 0.0


def interleaved(commands: Mapping[str, Sequence[str]], rounds: int, allowed: Sequence[int] = (0, 1)) -> dict[str, Measured]:
    """Run every command once per round; raises ``RuntimeError`` for an exit code not in ``allowed``."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    used: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 2):
        for name, command in commands.items():
            before = _cpu_of_children()
            seconds = _once(name, command, allowed)
            if turn >= 2:  # the first rounds fill the caches
                times[name].append(seconds)
                used[name].append(_cpu_of_children() - before)
    return {
        name: Measured(statistics.median(found), min(found), peak_memory(commands[name]), statistics.median(used[name]))
        for name, found in times.items()
    }


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _once(name: str, command: Sequence[str], allowed: Sequence[int]) -> float:
    start = time.perf_counter()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
    seconds = time.perf_counter() - start
    if code not in allowed:
        raise RuntimeError(f"{name}: exit code {code} of {' '.join(command)}")
    return seconds


def peak_memory(command: Sequence[str]) -> float:
    """Return the peak resident memory in MiB of a process and its children.

    A process inherits its parent's peak, so it is started from a minimal Python process.
    """
    done = subprocess.run([sys.executable, "-I", "-S", "-c", _STARTER, *command], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


_STARTER = """
import os, resource, sys
out = os.open(os.devnull, os.O_WRONLY)
files = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=files), 0)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
