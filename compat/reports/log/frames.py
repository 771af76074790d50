"""Lines of tracebacks: frames, source lines and exception lines of CPython, IPython, Jupyter, Colab, rich, faulthandler, C++
stack traces and hand-written summaries.
"""

from __future__ import annotations

import re

from compat.records import record
from compat.reports.lines import LogLine


@record(frozen=True)
class Frame:
    """One call. ``file`` as written; empty where the text is cut above the source line ``code``."""

    file: str
    line: int | None = None
    function: str | None = None
    code: str | None = None


def with_code(frame: Frame, code: str, line: int | None = None) -> Frame:
    """Return the frame with its source line and, if it has none, a line number."""
    return Frame(frame.file, line if frame.line is None else frame.line, frame.function, code or None)


@record(frozen=True)
class RaisedError:
    """One error of a log: an exception, or, with ``exception`` ``None``, a line that reports a failure without one.

    ``exception`` is the class as written, with its module; ``frames`` are ordered from the outermost call; ``line`` is the
    exception's line in the text, from 1. ``cause`` is the index of the error from which, or during the handling of which,
    this one was raised, or which it re-raises. ``ignored``: Python continued. ``warned``: it was logged as a warning.
    """

    exception: str | None
    message: str
    frames: tuple[Frame, ...]
    rank: int | None
    line: int
    cause: int | None = None
    ignored: bool = False
    warned: bool = False

    @property
    def frame(self) -> Frame | None:
        """The innermost frame, in which it was raised."""
        return self.frames[-1] if self.frames else None

    @property
    def code(self) -> str:
        """The code of that frame, empty if the text does not show it."""
        return (self.frames[-1].code or "") if self.frames else ""


_CLASS = r"[A-Za-z_]\w{0,99}(?:\.(?:<locals>\.)?[A-Za-z_]\w{0,99}){0,20}"
_ANY_EXCEPTION = re.compile(rf"({_CLASS}(?:\([\w.]{{1,100}}\))?)(?::(?:\s(.*))?)?$")
_CLEAR_EXCEPTION = re.compile(
    r"((?:[A-Za-z_]\w{0,99}\.){0,20}"
    r"(?:_?[A-Z]\w{0,99}?(?:Error|Exception|Interrupt)|(?:Base)?Exception(?:Group)?|SystemExit|TimeoutExpired"
    r"|StopIteration|StopAsyncIteration|(?<=\.)(?:Empty|Full|Error|error|timeout|Exit|Again)"
    r"|(?:(?<=exc\.)|(?<=errors\.)|(?<=exceptions\.))[A-Z]\w{0,99})"
    r"(?:\([\w.]{1,100}\))?)(?::(?:\s(.*))?)?$"
)
_ONLY_CLASS = re.compile(r"(?:\w{1,99}\.){0,20}(?:_?[A-Z]\w{0,99}(?:Error|Exception)|KeyboardInterrupt|SystemExit)$")
_MENTIONED = re.compile(
    r"((?:[A-Za-z_]\w{0,99}\.){0,20}_?[A-Z]\w{0,99}(?:Error|Exception|Interrupt))(?::\s*|\s*\(|\s\.\.\.\s|$)(.*)"
)
_NO_CLASS = frozenset({"Killed", "Aborted", "Terminated", "Done", "Hangup", "Quit", "Warning", "Note", "None"})


def exception_after_frames(text: str) -> tuple[str, str] | None:
    """Parse the line below a traceback's frames into class and message; any identifier may be a class there."""
    match = _ANY_EXCEPTION.match(text)
    if not match:
        return None
    name, last = match.group(1), match.group(1).partition("(")[0].rpartition(".")[2]
    if name in _NO_CLASS or not (last.lstrip("_")[:1].isupper() or "." in name or last.lower().endswith("error")):
        return None
    return name, match.group(2) or ""


def exception_alone(text: str) -> tuple[str, str] | None:
    """Parse a line without frames above it into class and message; it must clearly be an exception."""
    match = _CLEAR_EXCEPTION.match(text)
    if not match or (":" not in text and not _ONLY_CLASS.match(text)):
        return None
    return match.group(1), match.group(2) or ""


def exceptions_mentioned(text: str) -> list[tuple[str, str]]:
    """Return class and message of exceptions in a sentence or ``repr``, for text without any recognizable error."""
    found = []
    while match := _MENTIONED.search(text):
        found.append((match.group(1), _unquoted(match.group(2).strip().strip("`*)"))))
        text = match.group(2)
    return found


def _unquoted(text: str) -> str:
    """Remove the quotation marks of a ``repr`` at one or both ends, but not those of quoted words in the text."""
    for mark in "\"'":
        if text.count(mark) == 1 or (text[:1] == text[-1:] == mark and text.count(mark) == 2):
            text = text.strip(mark)
    return text


_Q = r"['\"`]"
_STRAIGHT = str.maketrans("‘’“”", "''\"\"")
"""Word processors and phones replace the quotation marks."""
_PYTHONS_OWN = (
    # "python -m" does not quote the module
    (
        "ModuleNotFoundError",
        "No module named ",
        re.compile(rf"No module named (?:{_Q}[\w.]{{1,200}}{_Q}|[A-Za-z_][\w.]{{1,200}}$)"),
    ),
    ("ImportError", "cannot import name ", re.compile(rf"cannot import name {_Q}?\w{{1,200}}{_Q}?(?: from .{{0,400}})?")),
    (
        "AttributeError",
        " has no attribute ",
        re.compile(rf"module {_Q}?[\w.]{{1,200}}{_Q}? has no attribute {_Q}?\w{{1,200}}{_Q}?"),
    ),
    (
        "AttributeError",
        " has no attribute ",
        re.compile(rf"{_Q}?\b\w{{1,200}}{_Q}? object has no attribute {_Q}?\w{{1,200}}{_Q}?"),
    ),
    (
        "TypeError",
        " got an unexpected keyword ",
        re.compile(r"\b[\w.<>]{1,200}\(\) got an unexpected keyword argument .{1,200}"),
    ),
)
"""Python's own messages, which imply the class: (class, hint, pattern)."""


def pythons_own(text: str) -> tuple[str, str] | None:
    """Return class and message if the text contains one of Python's own messages."""
    text = text.translate(_STRAIGHT)
    for exception, words, pattern in _PYTHONS_OWN:
        if words in text and (found := pattern.search(text)):
            return exception, found[0].strip(" `*.")
    return None


_PLAIN = re.compile(r'\s*File "([^"\n]{1,1000})", line (\d{1,9}|\?{3})(?:,? in (.{1,400}))?$')
_BEHEADED = re.compile(r'\s*([^\s"]{0,1000}[/\\][^\s"/\\]{1,200}\.py)", line (\d{1,9}),? in (.{1,400})$')
"""The same without its beginning: reports are cut in the middle of a line."""
_MARKERS = re.compile(r"\s*[~^][~^ ]*$")
_NOTES = re.compile(r"\s*(?:\[Previous line repeated \d+ more times?\]|\.\.\.<\d+ lines>\.\.\.)$")


def plain_frame(text: str) -> Frame | None:
    """``  File "x.py", line 3, in f``, and faulthandler's form without the comma."""
    match = _PLAIN.match(text) if 'File "' in text else _BEHEADED.match(text) if '.py", line ' in text else None
    if not match:
        return None
    file, line, function = match.groups()
    return Frame(file, int(line) if line.isdecimal() else None, function)


def is_marker(text: str) -> bool:
    """Whether the line underlines the source line above it, or marks omitted frames."""
    return bool(_MARKERS.match(text) or _NOTES.match(text))


_SUMMARY = re.compile(
    r"((?:[\w.~@+-]{0,200}[/\\]){0,60}[\w.+-]{0,200}\.pyx?)"
    r"(?:(?:,? line |:)(\d{1,9}))?"
    r"(?:,? (?:in )?([A-Za-z_<][\w.<>]{0,200})(?:\(\))?)?"
    r"(?::(?: (.*))?)?$"
)
_WARNING = re.compile(r"\w*Warning: ")


def summary_frame(text: str) -> Frame | None:
    """Parse a hand-written frame (``package/file.py line 12 function: code``) or one of pytest (``file.py:12: in f``)."""
    if ".py" not in text:
        return None
    match = _SUMMARY.match(text)
    if not match or (match.group(4) and _WARNING.match(match.group(4))):
        return None
    file, line, function, code = match.groups()
    if code and code.startswith("in ") and function is None:
        function, code = code[3:], None
    if line is None and function is None and code is None:
        return None
    return Frame(file, int(line) if line else None, function, code or None)


_CELL = re.compile(r"(?:Cell |Input )?In ?\[(\d{1,9})\](?:, line (\d{1,9}))?(?:,? in (.{1,400}))?$")
_IPYTHON_FILE = re.compile(r"File (.{1,1000}?):(\d{1,9})(?:, in (.{1,2000}))?$")
_IPYTHON_OLD = re.compile(
    r"\[?((?:<[\w -]{1,100}>)|(?:[\w.~@+:/\\-]{1,1000}\.(?:py|pyx|so|ipynb)))(?:\]\(\S{0,500}\))? in (.{1,2000})$"
)
_IPYTHON_PLAIN = re.compile(
    r"(\S[^:\n]{0,1000}(?::[/\\][^:\n]{0,1000})?\.(?:pyx?|ipynb)):(\d{1,9}), in ([A-Za-z_<].{0,2000}\))$"
)
"""The same without the word "File", as later releases of IPython write it: ``path.py:499, in function(argument)``."""
_IPYTHON_CODE = re.compile(r"\s{0,20}(-{1,20}>)?\s{0,20}(\d{1,9})(?:$| (.*))")


def notebook_frame(text: str) -> Frame | None:
    """Parse the heading of a frame in IPython, Jupyter or Colab."""
    if match := _IPYTHON_FILE.match(text) or _IPYTHON_PLAIN.match(text):
        return Frame(match.group(1), int(match.group(2)), _name(match.group(3)))
    if match := _CELL.match(text):
        return Frame(f"In[{match.group(1)}]", int(match.group(2)) if match.group(2) else None, _name(match.group(3)))
    if match := _IPYTHON_OLD.match(text):
        return Frame(match.group(1), None, _name(match.group(2)))
    return None


@record(frozen=True)
class SourceLine:
    """A numbered source line of a notebook's traceback; ``current``: an arrow points at it."""

    current: bool
    number: int
    code: str


def notebook_code(text: str) -> SourceLine | None:
    """Parse a numbered source line, ``---> 12     loss.backward()``."""
    match = _IPYTHON_CODE.match(text)
    return SourceLine(match[1] is not None, int(match[2]), (match[3] or "").strip()) if match else None


def _name(called: str | None) -> str | None:
    """``Module.forward(self, x)`` → ``Module.forward``; ``<cell line: 1>()`` → ``<cell line: 1>``."""
    return None if called is None else called.partition("(")[0].strip() or None


_RICH_FRAME = re.compile(r"(\S.{0,1000}?):(\d{1,9}) in (.{1,400})$")
_RICH_CODE = re.compile(r"[❱>]\s{0,8}(\d{1,9})\s{0,8}[│|]?(.*)$")


def rich_line(text: str) -> str | None:
    """Return the text within a line of rich's box; ``None`` if the line is not part of a box."""
    inner = text.strip()
    if inner[:1] not in ("│", "|"):
        return None
    inner = inner[1:]
    return (inner[:-1] if inner[-1:] in ("│", "|") else inner).strip()


def rich_frame(inner: str) -> Frame | None:
    """``/path/file.py:12 in function``"""
    match = _RICH_FRAME.match(inner)
    return Frame(match.group(1), int(match.group(2)), match.group(3)) if match else None


def rich_code(inner: str) -> str | None:
    """Return the source line at rich's arrow, without indentation guides."""
    match = _RICH_CODE.match(inner)
    return match.group(2).strip(" │|") if match else None


_NATIVE_FRAME = re.compile(r"\s*frame #\d{1,4}: (.{1,1000}?)(?: \+ 0x[0-9a-f]{1,16})? \(0x[0-9a-f]{1,16} in ([^)]{1,500})\)$")


def native_frame(text: str) -> Frame | None:
    """``frame #0: c10::Error::Error(…) + 0x96 (0x7f… in /…/libc10.so)``"""
    match = _NATIVE_FRAME.match(text) if "frame #" in text else None
    return Frame(match.group(2), None, match.group(1)) if match else None


_CODE = re.compile(
    r">>> |(?:from|import|if|elif|for|while|with|return|raise|assert|yield|await|def|class|del|super)\b"
    r"|[\w.\[\]\"', ]{1,200} ?[-+*/|&@]?= ?\S|[\w.]{1,200}\(|.{1,2000}[(:,)]$"
)


def looks_like_code(text: str) -> bool:
    """Whether a line can be the source line at which a traceback was cut off."""
    return bool(_CODE.match(text)) and text[-1:] not in ".!?"


# --- An error that is being read, and where its message ends: CPython marks no end, so the next lines decide


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
    """An error whose message is being read."""

    __slots__ = ("cause", "exception", "frames", "ignored", "like", "line", "message", "native", "rank", "size",
                 "warned", "weight")  # fmt: skip

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
        self.warned = line.warned
        self.weight: int | None = None
        self.like: Draft | None = None  # the equal error that is kept instead

    def add(self, text: str) -> None:
        """Append a line to the message, up to a limit."""
        if len(self.message) < _MOST_MESSAGE_LINES and self.size < _MOST_MESSAGE_CHARACTERS:
            self.message.append(text)
            self.size += len(text)

    @property
    def promises(self) -> bool:
        """Whether the message announces another one: ``… raised:``."""
        return self.message[-1].endswith(":")

    def text(self) -> str:
        return "\n".join(self.message).rstrip()


def is_foreign(stripped: str) -> bool:
    """Whether a line below a message certainly has another origin."""
    return _FOREIGN.match(stripped) is not None


def continues(stripped: str) -> bool:
    """Whether a line below a message certainly belongs to it, even after an empty line."""
    return _CONTINUES.match(stripped) is not None
