"""One process that tries inputs on one reader, and what it tells of a failure."""

from __future__ import annotations

import gc
import hashlib
import os
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.fuzz.guard import SECONDS, Forbidden, Guard, TooSlow
from tests.fuzz.mutations import maker
from tests.fuzz.readers import READERS, Reader, default_name, examine, put
from tests.fuzz.scratch import make_scratch

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "tests" / "fuzz" / "rules"
"""Few, and not those of the matrix: what is read is judged, but it is the readers that are tried."""
MEMORY = 4 * 1024**3
"""Bytes of address space for a process that tries inputs."""
IDLE = 0.06
"""Seconds for the work in :func:`strain` on an idle machine."""
SHRINKING = 10.0
"""Seconds that go into making one failing input smaller."""


@dataclass(frozen=True)
class Failure:
    """``key`` is the same for failures of one cause, as far as can be told."""

    reader: str
    key: str
    name: str
    content: bytes
    trace: str
    number: int = -1


class Trials:
    """A reader in its scratch folder, under guard. It changes this process for good: limits, hooks, current folder."""

    def __init__(self, reader: str, folder: Path) -> None:
        from compat.rules.compiled import in_memory
        from compat.rules.loader import load_folder

        _judge_by_rules_alone()
        self.reader = reader
        self.function: Reader = READERS[reader]
        self.project = make_scratch(folder)
        os.chdir(self.project)
        os.environ["HOME"] = str(folder / "outside")
        sys.dont_write_bytecode = True
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        self.matrix = in_memory(load_folder(str(RULES)))
        self.matrix.rules()  # opened once; from here on it is in memory
        self._warm()
        gc.disable()  # as the command does
        self._tried = 0
        self.guard = Guard(str(self.project), str(ROOT / "compat"))

    def _warm(self) -> None:
        """Reads something of every kind, so that what Python imports late is there before the guard is armed."""
        from tests.fuzz.seeds import seeds_of

        for reader in (self.reader, "kind_of"):
            for content in seeds_of(reader):
                try:
                    put(READERS[reader], self.project, READERS[reader].names[0], content)
                    examine(READERS[reader], READERS[reader].names[0], content, self.matrix)
                except Exception:  # it will be found again, under guard
                    continue
        import linecache
        import tracemalloc  # noqa: F401 (the interpreter wants it for some warnings)

        linecache.checkcache()

    def tried(self, name: str, content: bytes) -> tuple[bool, Failure | None]:
        """Whether the input was taken, and the failure where there was one."""
        taken, failure = self._once(name, content, SECONDS)
        if failure is not None and failure.key.startswith("TooSlow"):
            # on a busy machine the same work takes several times as much time, of the processor too
            taken, failure = self._once(name, content, SECONDS * strain())
        return taken, failure

    def _once(self, name: str, content: bytes, seconds: float) -> tuple[bool, Failure | None]:
        put(self.function, self.project, name, content)
        self._tried += 1
        if len(content) > 100_000 or self._tried % 500 == 0:
            gc.collect()
        try:
            with self.guard.watching(seconds):
                return examine(self.function, name, content, self.matrix), None
        except KeyboardInterrupt:
            raise
        except BaseException as problem:
            return False, Failure(self.reader, _key(problem), name, content, _trace(problem))

    def shrunk(self, failure: Failure) -> Failure:
        """The same failure from a smaller input: lines, then bytes are left out as long as it stays the same."""
        if failure.key.startswith("TooSlow"):
            return failure
        until = time.monotonic() + SHRINKING
        best = self._without(failure, failure.content.split(b"\n"), b"\n", until)
        best = self._without(best, [best.content[at : at + 1] for at in range(len(best.content))], b"", until)
        return best

    def _without(self, best: Failure, parts: list[bytes], glue: bytes, until: float) -> Failure:
        size = max(1, len(parts) // 2)
        while size and time.monotonic() < until:
            at, progress = 0, False
            while at < len(parts) and time.monotonic() < until:
                fewer = parts[:at] + parts[at + size :]
                _, again = self.tried(best.name, glue.join(fewer))
                if again is not None and again.key == best.key:
                    best, parts, progress = again, fewer, True
                else:
                    at += size
            size = size // 2 if size > 1 or not progress else 1
        return best


def strain() -> float:
    """How many times as long as on an idle machine some fixed work takes here and now; at least 1."""
    began = time.process_time()
    sum(len(str(number)) for number in range(300_000))
    return max(1.0, (time.process_time() - began) / IDLE)


def _judge_by_rules_alone() -> None:
    """The tables of declared requirements and builds take a hundred times as long as the readers, which are tried here."""
    import compat.checks

    compat.checks.derived_findings = lambda environment, suspects=(): ()
    compat.checks.distributions_checked = lambda: frozenset()


def _key(problem: BaseException) -> str:
    """Kind of failure and the place in the code under test that it comes from."""
    if isinstance(problem, Forbidden):
        return f"{type(problem).__name__} {str(problem)[:60]}"
    if type(problem).__name__ == "Wrong":
        return f"Wrong {str(problem)[:24]}"
    frames = [each for each in traceback.extract_tb(problem.__traceback__) if f"{os.sep}compat{os.sep}" in each.filename]
    if not frames:
        return type(problem).__name__
    last = frames[-1]
    place = last.filename.rpartition(f"{os.sep}compat{os.sep}")[2]
    return f"{type(problem).__name__} {place}:{last.name if isinstance(problem, TooSlow) else last.lineno}"


def _trace(problem: BaseException) -> str:
    lines = traceback.format_exception(type(problem), problem, problem.__traceback__, limit=-12)
    return "".join(lines)[-4000:]


def saved(failure: Failure, folder: Path) -> Path:
    """Writes input and traceback; the name says which reader and file name they belong to (see ``replayed``)."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = hashlib.sha256(failure.content).hexdigest()[:8]
    name = quote(os.path.basename(failure.name) if os.path.isabs(failure.name) else failure.name, safe="")
    path = folder / f"{failure.reader}@{mark}@{name}"
    path.write_bytes(failure.content)
    path.with_name(f"{path.name}.why").write_text(
        f"{failure.key}\n{failure.trace}", encoding="utf-8", errors="backslashreplace"
    )
    return path


def worked(
    reader: str, folder: Path, seed: int, start: int, count: int, seconds: float, position: Any, report: Callable[[Any], None]
) -> None:
    """Tries inputs ``start`` … ``count``-1, at most for some seconds; failures are reported as they are found.

    ``position`` is shared: the number of the input that is being tried. Behind the inputs a summary is reported: inputs,
    how many were taken, seconds of processor time and the longest of one input (with its number).
    """
    trials = Trials(reader, folder)
    inputs = maker(trials.function, reader, seed)
    known: dict[str, int] = {}
    taken = done = 0
    longest = (0.0, -1)
    began = time.monotonic()
    for number in range(start, count):
        if time.monotonic() - began > seconds:
            break
        position.value = number
        content = inputs.made(number)
        name = default_name(trials.function, random.Random(number), trials.project)
        clock = time.process_time()
        good, failure = trials.tried(name, content)
        spent = time.process_time() - clock
        longest = max(longest, (spent, number))
        done, taken = done + 1, taken + good
        if failure is not None:
            known[failure.key] = known.get(failure.key, 0) + 1
            if known[failure.key] == 1:
                small = trials.shrunk(failure)
                report(("failure", Failure(reader, small.key, small.name, small.content, small.trace, number)))
    report(("summary", (done, taken, time.monotonic() - began, longest, known)))
