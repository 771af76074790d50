"""Interrupts commands at random times and looks at what they leave: ``python -m tests.interruptions --count 200``.

Each round starts ``fix --write``, ``suggest`` or ``probe``, sends SIGINT, SIGTERM or SIGKILL after a random part of the time that
the command takes, and demands: it ends at once, without a traceback; the file is the old or the new one; none of the processes
that it started is left; and the next run does its work and clears away what a killed one left beside the file.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __package__ in (None, ""):  # started by path
    sys.path[0] = str(ROOT)

from tests.index.server import IndexServer  # noqa: E402

BEFORE = "transformers==4.40.0\ntokenizers==0.13.0\n"
PACKAGES = {
    "transformers": {"4.40.0": {"requires": ["tokenizers>=0.19,<0.20"], "requires_python": ">=3.8"}},
    "tokenizers": {version: {"requires_python": ">=3.7"} for version in ("0.13.0", "0.19.0", "0.19.1")},
}
JOB = ("--python-version", "3.11", "--os", "linux", "--machine", "x86_64")
PATIENCE = 120.0
"""Seconds in which an interrupted command must have ended, with all it started; a busy machine needs some."""
_CODES = {signal.SIGINT: (130, -2), signal.SIGTERM: (143, -15), signal.SIGKILL: (-9,)}


@dataclass(frozen=True)
class Command:
    """``words`` of the command line, and how long it takes undisturbed, in seconds."""

    words: tuple[str, ...]
    seconds: float


def commands(url: str) -> dict[str, tuple[str, ...]]:
    index = ("--index-url", url)
    found = {
        "fix": ("fix", "requirements.txt", "--write", *JOB, *index),
        "suggest": ("suggest", "--with", "transformers", *JOB, *index),
    }
    if importlib.util.find_spec("torch") is not None:
        found["probe"] = ("probe", "--device", "cpu", "--only", "matmul")
    return found


class Rounds:
    """Rounds in one folder with one cache, as a user's are."""

    def __init__(self, folder: Path, url: str, seed: int) -> None:
        self.project = folder / "project"
        for each in (self.project, folder / "tmp"):
            each.mkdir()
        self.file = self.project / "requirements.txt"
        self._mark = f"compat-interruptions-{os.getpid()}-{seed}"
        self._variables = {
            "PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "TMPDIR": str(folder / "tmp"),
            "COMPAT_CACHE_DIR": str(folder / "cache"), "UV_CACHE_DIR": str(folder / "uv-cache"), "COMPAT_TEST_MARK": self._mark,
        }  # fmt: skip
        self._chance = random.Random(seed)
        self.after = BEFORE
        self._commands = {name: Command(words, self._undisturbed(words)) for name, words in commands(url).items()}
        self.after = self._fixed()

    def one(self) -> tuple[str, list[str]]:
        """What was interrupted how, and what was wrong afterwards."""
        name = self._chance.choice(list(self._commands))
        command = self._commands[name]
        ending = self._chance.choice(list(_CODES))
        delay = self._chance.uniform(0, command.seconds)
        self.file.write_text(BEFORE)
        running = self._started(command.words)
        time.sleep(delay)
        if ending is signal.SIGINT and self._chance.random() < 0.5:
            os.killpg(running.pid, ending)  # as a terminal does
        else:
            running.send_signal(ending)
        what = f"{name}, {ending.name} after {delay:.2f} s of {command.seconds:.2f}"
        try:
            _, err = running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
            return what, ["did not end"]
        wrong = [] if running.returncode in (0, 1, *_CODES[ending]) else [f"ended with {running.returncode}: {err[-300:]}"]
        wrong += ["a traceback: " + err[-300:]] if "Traceback" in err and "compat" in err else []
        wrong += [] if self.file.read_text() in (BEFORE, self.after) else [f"the file is {self.file.read_text()[:200]!r}"]
        wrong += self._left_processes()
        if ending is not signal.SIGKILL:
            wrong += [f"left {each}" for each in self._left_files()]
        self.file.write_text(BEFORE)
        self._fixed()
        wrong += [f"the next run left {each}" for each in self._left_files()]
        wrong += [] if self.file.read_text() == self.after else [f"the next run wrote {self.file.read_text()[:200]!r}"]
        return what, wrong

    def _started(self, words: tuple[str, ...]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "compat", *words], cwd=self.project, env=self._variables, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # it is ignored in the background
        )  # fmt: skip

    def _undisturbed(self, words: tuple[str, ...]) -> float:
        self.file.write_text(BEFORE)
        began = time.monotonic()
        self._started(words).communicate(timeout=PATIENCE)
        return time.monotonic() - began

    def _fixed(self) -> str:
        """The file as a whole run writes it."""
        self.file.write_text(BEFORE)
        running = self._started(self._commands["fix"].words)
        out, err = running.communicate(timeout=PATIENCE)
        if running.returncode != 0 or self.file.read_text() == BEFORE:
            raise AssertionError(f"an undisturbed run ends with {running.returncode}: {out}{err}")
        return self.file.read_text()

    def _left_files(self) -> list[str]:
        return [each.name for each in self.project.iterdir() if each.name != "requirements.txt"]

    def _left_processes(self) -> list[str]:
        """Processes with our mark in their environment that are there after :data:`PATIENCE`."""
        until = time.monotonic() + PATIENCE
        while (left := list(filter(self._is_ours, filter(str.isdecimal, os.listdir("/proc"))))) and time.monotonic() < until:
            time.sleep(0.05)
        return [f"process {each} is left" for each in left]

    def _is_ours(self, process: str) -> bool:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            return state != "Z" and self._mark.encode() in Path(f"/proc/{process}/environ").read_bytes()
        except OSError:
            return False


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="interruptions", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    seen: Counter[str] = Counter()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="compat-interruptions-") as folder, IndexServer(PACKAGES) as server:
        rounds = Rounds(Path(folder), server.url, given.seed)
        for number in range(given.count):
            what, wrong = rounds.one()
            seen[what.partition(" after")[0]] += 1
            bad += bool(wrong)
            for each in wrong:
                print(f"round {number}: {what}: {each}", flush=True)
    print(f"{given.count} interruptions, {bad} with something wrong: {dict(sorted(seen.items()))}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
