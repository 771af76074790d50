"""An error while it is read, and where its message ends: CPython marks no end, so the next lines have to tell."""

from __future__ import annotations

import re

from compat.read.log.log_lines import LogLine
from compat.read.log.traceback_frames import Frame

_MOST_MESSAGE_LINES, _MOST_MESSAGE_CHARACTERS = 100, 10_000

_CONTINUES = re.compile(
    r"CUDA kernel errors|For debugging|Compile with|Device-side assert|Exception raised from|what\(\)|Last error|Search for "
    r"|from user code|Set TORCH|You can suppress|The current PyTorch install|If you want to use|versions of NumPy|NumPy \d"
    r"|-- Process \d+ terminated|You have the option|Please |Note: |Hint: |GPU \d|Process \d|PyTorch \d|Failures:|Root Cause"
)
_FOREIGN = re.compile(
    r"wandb: |(?:\([\w./-]{1,64}\) ?)?[\w.-]{1,64}@[\w.-]{1,64}[:~ ][^$#]{0,300}[$#](?: |$)"
    r"|\[?\d\d:\d\d:\d\d\]?\s+(?:INFO|WARNING|ERROR)\s"
    r"|Exception ignored in|Process \S{1,80}:$|\d{1,3}%\||</?(?:details|summary)|\"\"\"$|#{2,6} |WARNING:|INFO:|-{70,}$"
    r"|(?:Cell |Input )In ?\[|\[end of output\]|note: This error originates|[╰╭│├└×]|(?:srun|slurmstepd): error"
)


class Draft:
    """An error while its message is still being read."""

    __slots__ = ("cause", "exception", "frames", "ignored", "like", "line", "message", "native", "rank", "size", "weight")

    def __init__(self, exception: str | None, first: str, frames: list[Frame], line: LogLine) -> None:
        self.exception = exception
        self.message = [first]
        self.size = len(first)
        self.frames = frames
        self.native: list[Frame] = []
        self.line = line.number
        self.rank = line.rank
        self.cause: Draft | None = None
        self.ignored = False
        self.weight: int | None = None
        self.like: Draft | None = None  # the kept error that stands for this one

    def add(self, text: str) -> None:
        """One more line of the message, up to a bound."""
        if len(self.message) < _MOST_MESSAGE_LINES and self.size < _MOST_MESSAGE_CHARACTERS:
            self.message.append(text)
            self.size += len(text)

    @property
    def promises(self) -> bool:
        """Whether the message so far announces what follows: ``… raised:``."""
        return self.message[-1].endswith(":")

    def text(self) -> str:
        """The message read so far."""
        return "\n".join(self.message).rstrip()


def is_foreign(stripped: str) -> bool:
    """Whether a line under a message was surely written by somebody else."""
    return _FOREIGN.match(stripped) is not None


def continues(stripped: str) -> bool:
    """Whether a line under a message, even after an empty one, is known to belong to it."""
    return _CONTINUES.match(stripped) is not None
