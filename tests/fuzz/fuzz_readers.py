"""Fuzzes the readers: ``python -m tests.fuzz.fuzz_readers --reader uv --count 1000000``.

Each input is made from a seed by number, so a run can be repeated. A reader may come back or raise ``InputError``; anything
else is a failure, as is opening a file that was not given, executing anything, a socket, more than two seconds or 4 GiB.
Failing inputs are made small and written to a folder; ``--replay FILE`` tries one again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
if __package__ in (None, ""):  # started by path
    sys.path[0] = str(ROOT)

from tests.fuzz.readers import READERS  # noqa: E402
from tests.fuzz.trials import Failure, Trials, saved, worked  # noqa: E402

STUCK, WAITED = 60.0, 1800.0
"""Seconds of processor time, or else of waiting, without progress after which a process is ended: no signal reached it."""
LOST = 20
"""Processes of one reader that may be lost before it is given up."""


@dataclass
class Tally:
    """What came out for one reader."""

    inputs: int = 0
    taken: int = 0
    seconds: float = 0.0
    longest: tuple[float, int] = (0.0, -1)
    failures: list[Failure] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def row(self, reader: str) -> str:
        rate = self.inputs / self.seconds if self.seconds else 0.0
        share = 100 * self.taken / self.inputs if self.inputs else 0.0
        times = sum(self.counts.values())
        return (
            f"{reader:<16}{self.inputs:>10}{rate:>9.0f}{share:>7.0f} %{self.longest[0]:>9.2f}{len(self.failures):>10}{times:>9}"
        )


HEADER = f"{'reader':<16}{'inputs':>10}{'per s':>9}{'read':>9}{'longest':>9}{'failures':>10}{'times':>9}"


class Running:
    """The process of one reader; it is started again behind an input that ended it."""

    def __init__(self, reader: str, words: argparse.Namespace) -> None:
        self.reader = reader
        self.tally = Tally()
        self._words = words
        self._context = multiprocessing.get_context("spawn")
        self._position = self._context.Value("q", -1, lock=False)
        self._began = time.monotonic()
        self._start(words.start)

    def _start(self, number: int) -> None:
        left = max(0.0, self._words.seconds - (time.monotonic() - self._began))
        self._folder = tempfile.TemporaryDirectory(prefix="compat-fuzz-")
        self._queue: Any = self._context.Queue()
        self._position.value = self._first = number
        self._seen = (number, time.monotonic())
        given = (self.reader, Path(self._folder.name), self._words.seed, number, self._words.start + self._words.count, left)
        self._process = self._context.Process(target=_process, args=(*given, self._position, self._queue), daemon=True)
        self._process.start()
        self._spent = 0.0

    def finished(self) -> bool:
        """Takes in what was reported; whether this reader is done."""
        alive = self._process.is_alive()
        summary = self._reports()
        if summary:
            self._process.join()
            self._folder.cleanup()
            return True
        number = int(self._position.value)
        spent = _processor_time(self._process.pid)
        if number != self._seen[0]:
            self._seen, self._spent = (number, time.monotonic()), spent
        if alive and spent - self._spent < STUCK and time.monotonic() - self._seen[1] < WAITED:
            return False
        how = "hangs, and no signal reaches it" if alive else f"ends the process (exit code {self._process.exitcode})"
        self._process.kill()
        self._process.join()
        self._lost(number, how)
        if sum(self.tally.counts.values()) > LOST:
            return True
        self._start(number + 1)
        return False

    def _reports(self) -> bool:
        while True:
            try:
                kind, what = self._queue.get(timeout=0.05)
            except queue.Empty:
                return False
            if kind == "broken":
                raise SystemExit(f"{self.reader}: the harness does not work:\n{what}")
            if kind == "failure":
                self._failed(what)
                continue
            done, taken, seconds, longest, counts = what
            self.tally.inputs += done
            self.tally.taken += taken
            self.tally.seconds += seconds
            self.tally.longest = max(self.tally.longest, longest)
            for key, times in counts.items():
                self.tally.counts[key] = self.tally.counts.get(key, 0) + times
            return True

    def _lost(self, number: int, how: str) -> None:
        from tests.fuzz.mutations import maker

        content = maker(READERS[self.reader], self.reader, self._words.seed).made(number)
        self._failed(Failure(self.reader, how, READERS[self.reader].names[0], content, "", number))
        self.tally.counts[how] = self.tally.counts.get(how, 0) + 1
        self.tally.inputs += number + 1 - self._first

    def _failed(self, failure: Failure) -> None:
        path = saved(failure, self._words.output)
        if all(failure.key != each.key for each in self.tally.failures):
            self.tally.failures.append(failure)
            last = failure.trace.strip().rpartition("\n")[2]
            print(
                f"{failure.reader} #{failure.number}: {failure.key}: {len(failure.content)} bytes\n    {last[:200]}\n    {path}",
                flush=True,
            )


def _processor_time(process: int | None) -> float:
    """Seconds a process has used so far; 0 where nothing tells."""
    try:
        used = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
        return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def _process(reader: str, folder: Path, seed: int, start: int, count: int, seconds: float, position: Any, reports: Any) -> None:
    try:
        worked(reader, folder, seed, start, count, seconds, position, reports.put)
    except Exception:  # the harness is broken, or what it needs (the rules, say): no reader's fault
        reports.put(("broken", traceback.format_exc()))
    reports.close()
    reports.join_thread()


def replayed(path: Path) -> int:
    """Tries one saved input again and prints what comes of it; the exit code of the command."""
    reader, _, name = path.name.split("@", 2)
    name = unquote(name)
    with tempfile.TemporaryDirectory(prefix="compat-fuzz-") as folder:
        content = path.read_bytes()
        trials = Trials(reader, Path(folder))
        began = time.process_time()
        taken, failure = trials.tried(name, content)
        spent = time.process_time() - began
    print(f"{len(content)} bytes, {spent:.2f} s: {'read' if taken else 'refused' if failure is None else failure.key}")
    if failure is not None:
        print(failure.trace)
    return 0 if failure is None else 1


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fuzz_readers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="only this one (may be given several times)")
    parser.add_argument("--count", type=int, default=1_000_000, help="inputs for each reader (default: a million)")
    parser.add_argument("--start", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most so long for each reader")
    parser.add_argument("--jobs", type=int, default=1, help="readers at a time")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "fuzz", help="folder for failing inputs")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="try one failing input again")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    words = parsed(arguments)
    if words.replay is not None:
        return replayed(words.replay.resolve())
    waiting = list(dict.fromkeys(words.reader or READERS))
    running: list[Running] = []
    done: dict[str, Tally] = {}
    while waiting or running:
        while waiting and len(running) < words.jobs:
            running.append(Running(waiting.pop(0), words))
        for each in list(running):
            if each.finished():
                running.remove(each)
                done[each.reader] = each.tally
                print(f"{HEADER}\n{each.tally.row(each.reader)}", flush=True)
        time.sleep(0.05)
    print(f"\n{HEADER}")
    for reader, tally in done.items():
        print(tally.row(reader))
    failed = [failure for tally in done.values() for failure in tally.failures]
    for failure in failed:
        print(f"{failure.reader}: {failure.key} (input {failure.number}, {len(failure.content)} bytes)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
