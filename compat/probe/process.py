"""One child process with a time limit: how it ended, and the last it wrote. Nothing it does ends this process."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from compat.records import record

_KEPT = 16_384
_WORDS = 8
_NOISE = ("warnings.warn(", "Extension modules: ", "Current thread's C stack trace", "  Binary file ", "<truncated rest")


@record(frozen=True)
class Ended:
    """``code`` is negative for a signal, as :mod:`subprocess` has it; ``last_words`` are its last lines on stderr."""

    code: int
    timed_out: bool
    seconds: float
    last_words: tuple[str, ...]

    @property
    def how(self) -> str:
        """In words: a signal by its name, an exit code by its number."""
        if self.timed_out:
            return f"did not end within {self.seconds:.0f} s"
        if self.code < 0:
            return f"was ended by {_signal_name(-self.code)}{_MEANINGS.get(-self.code, '')}"
        return f"ended with exit code {self.code}"


_MEANINGS: dict[int, str] = {
    signal.SIGKILL: ", which is what the kernel does where memory runs out",
    signal.SIGSEGV: ", a segmentation fault",
    signal.SIGABRT: ", an abort",
    signal.SIGBUS: ", a bus error: a file that is cut short, or /dev/shm is full",
    signal.SIGILL: ", an illegal instruction: code for another processor",
    signal.SIGFPE: ", an arithmetic error",
}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run(command: Sequence[str], limit: float, variables: Mapping[str, str], folder: str) -> Ended:
    """Runs a command in ``folder`` until it ends or ``limit`` seconds are over; then it and what it started are killed.

    Raises :class:`OSError` where the command cannot be started.
    """
    began = time.monotonic()
    said = os.path.join(folder, "stderr")
    with open(said, "wb") as stderr:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, cwd=folder, env=dict(variables),
            start_new_session=True,
        )  # fmt: skip
    timed_out = False
    _running.add(child)
    try:
        child.wait(limit)
    except subprocess.TimeoutExpired:
        timed_out = True
        _ask_where(child)
    finally:
        _kill(child)
        _running.discard(child)
    seconds = limit if timed_out else time.monotonic() - began
    return Ended(child.returncode, timed_out, seconds, last_words(said))


_running: set[subprocess.Popen[bytes]] = set()


def end_all() -> None:
    """Kills what other threads are waiting for: the user has interrupted the run."""
    for child in tuple(_running):
        _kill(child)


def _ask_where(child: subprocess.Popen[bytes]) -> None:
    """SIGABRT first: Python's fault handler then writes where it was, unless it is beyond that."""
    child.send_signal(signal.SIGABRT)
    try:
        child.wait(2)
    except subprocess.TimeoutExpired:
        return


def _kill(child: subprocess.Popen[bytes]) -> None:
    """The whole session: what the child started goes with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def last_words(path: str) -> tuple[str, ...]:
    """The last lines of a file that say something, of its last few kilobytes."""
    try:
        with open(path, "rb") as file:
            file.seek(max(os.path.getsize(path) - _KEPT, 0))
            text = file.read(_KEPT).decode("utf-8", "replace")
    except OSError:
        return ()
    lines = [line.rstrip() for line in text.split("\n")]
    lines = [line for line in lines if line.strip() and not any(noise in line for noise in _NOISE)]
    fatal = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if fatal is None:
        return tuple(line[:300] for line in lines[-_WORDS:])
    # the fault handler lists the innermost call first; of a file its last two names tell enough
    frames = [_FRAME.sub(_short, line.strip()) for line in lines[fatal + 1 :] if _FRAME.search(line) and "<frozen" not in line]
    return (lines[fatal], *frames[:_WORDS])


_FRAME = re.compile(r'File "(?P<path>[^"]+)", line')


def _short(match: re.Match[str]) -> str:
    return f'File "{"/".join(match["path"].split("/")[-2:])}", line'
