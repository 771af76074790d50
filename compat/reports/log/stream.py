"""Parse the lines of one process: where a traceback begins and ends, and which frames and message belong to it."""

from __future__ import annotations

import re
from collections.abc import Callable

from compat.reports.lines import HEADER, LogLine
from compat.reports.log.frames import (
    Draft,
    Frame,
    continues,
    exception_after_frames,
    exception_alone,
    is_foreign,
    is_marker,
    looks_like_code,
    native_frame,
    notebook_code,
    notebook_frame,
    plain_frame,
    pythons_own,
    rich_code,
    rich_frame,
    rich_line,
    summary_frame,
    with_code,
)
from compat.reports.log.native import CONSEQUENCE, HINTS, NOTICE, is_abrupt, native_weight, passes_on

MOST_FRAMES = 400  # of one traceback; in the middle of a longer one, frames are dropped
_MOST_NOISE = 25  # foreign lines inside a traceback
_SENTENCE = re.compile(r"(?:[A-Z][a-z']|[AI] |[`'\"])[\w`'.]*(?: ?[^\s:]+){3}")
"""The beginning of a sentence, which no log line with a time or a level has."""
_MOST_NESTED = 8  # exceptions within one message
_NEAR = 200  # lines of other processes between two lines of one message

_CHAINED = (
    "The above exception was the direct cause of the following exception",
    "During handling of the above exception, another exception occurred",
)
_HINTS = (
    "rror", "xception", "Interrupt", "SystemExit", 'File "', ".py", ".so", "In[", "In [", "<ipython", "(most recent call",
    "TimeoutExpired", "StopIteration", "exc.", ".Empty", "annot import name", "No module named", *HINTS,
)  # fmt: skip
_OF_IMPORTS = ("ImportError", "ModuleNotFoundError")
_GROUP_BARS = re.compile(r"\s*(?:\| ?)+")
_GROUP_RULE = re.compile(r"\s*\+-[-+ \d.]*$")


class Stream:
    """The state of one source of lines; ``report`` is called with every error, in the order of their exception lines."""

    def __init__(self, report: Callable[[Draft], None]) -> None:
        self._report = report
        self._state: Callable[[str, LogLine], None] = self._idle
        self._idling = True
        self._last: Draft | None = None  # the latest error, for chains
        self._link: Draft | None = None  # the error that the next one was raised from
        self._embeds: Draft | None = None  # the error whose message has the traceback that follows
        self._collecting: list[Draft] = []
        self._pending: list[Frame] = []  # hand-written frames that may belong to the next exception
        self._previous, self._previous_at = "", -1
        self._ignored = False
        self._grouped = False
        self._at = 0
        self._above: Draft | None = None  # an error without frames directly above, such as one in a summary
        self._begin()

    def _begin(self) -> None:
        self._frames: list[Frame] = []
        self._indent = self._code_indent = -1
        self._noise = 0
        self._blank = False
        self._opened = 1  # headers seen before the first exception: the number of processes that write here
        self._expected: str | None = None
        self._partial = ""
        self._shown = False  # a notebook's source line was seen
        self._left = ""  # the sentence below the frames, of which the class may have been cut off

    @property
    def awaits_frames(self) -> bool:
        """Whether a header was seen and nothing after it."""
        return self._state == self._plain and not self._frames

    def feed(self, line: LogLine) -> None:
        """Process the next line of this source."""
        text = line.text
        if self._idling and not self._pending and not any(hint in text for hint in _HINTS):
            if text:
                self._previous, self._previous_at = text, line.number
            return
        if self._grouped:
            text = self._without_bars(text)
        if HEADER in text:
            self._header(text, line)
        elif "xception" in text and any(marker in text for marker in _CHAINED):
            self.close(line)
            self._link = self._last
        elif "```" in text and text.lstrip().startswith("```"):
            self.close(line)
            self._link = self._embeds = None
            self._previous_at = -1
        else:
            self._state(text, line)

    def close(self, line: LogLine | None = None) -> None:
        """End the current error; frames without an exception below them become an error of unknown class."""
        if self._state in (self._plain, self._notebook) and self._frames and (self._state == self._plain or self._shown):
            if self._above is not None:
                self._above.frames.extend(self._frames)
            else:
                at = LogLine(self._at, "", rank=line.rank if line else None)
                message = self._left if line is None and self._noise == 1 else ""
                self._add(Draft(None, message, self._frames, at))
        self._rest()

    def adopt(self, other: Stream) -> None:
        """Take over a traceback header from a stream with a logger's prefix; its frames have none."""
        self._begin()
        self._enter(self._plain)
        self._link, self._embeds = other._link, other._embeds
        other._rest()

    def _rest(self) -> None:
        self._begin()
        self._collecting = []
        self._pending = []
        self._above = None
        self._enter(self._idle)

    def _enter(self, state: Callable[[str, LogLine], None]) -> None:
        self._state = state
        self._idling = state == self._idle

    def _without_bars(self, text: str) -> str:
        """Return a line of an exception group without the box-drawing prefix."""
        if _GROUP_RULE.match(text):
            self.close()
            self._grouped = bool(text.strip(" +-|"))
            return ""
        bars = _GROUP_BARS.match(text)
        if bars is None and text.strip() and HEADER not in text and self._idling:
            self._grouped = False
        return text[bars.end() :] if bars else text

    # --- the beginning of a traceback

    def _header(self, text: str, line: LogLine) -> None:
        before, _, after = text.partition(HEADER)
        if self._state == self._plain and not self._noise and not self._blank:
            self._opened += 1  # a second process began to write here before the first one had finished
            return
        group = "Exception Group" in before
        embeds = self._embedding(before)
        self.close(line)
        self._ignored = self._previous.startswith("Exception ignored in") and self._previous_at >= line.number - 1
        self._grouped = self._grouped or group
        if embeds is not None:
            self._embeds = embeds
        if "─" in text or "----" in text:
            self._enter(self._rich)
        elif not after.strip() and not group:
            self._expected = before.strip(" -+|") or None
            self._enter(self._notebook)
        else:
            self._enter(self._plain)

    def _embedding(self, before: str) -> Draft | None:
        """Return the last error, if this header is part of its message."""
        if self._link is not None or self._last is None:
            return None
        last, near = self._last, self._state == self._message
        if before.strip().startswith("Original") or (near and passes_on(last.exception, last.text())):
            return last
        return last if self._grouped and last.exception and last.exception.endswith("Group") else None

    def _raise(self, found: tuple[str, str], line: LogLine, frames: list[Frame], indent: int = 0) -> None:
        draft = Draft(found[0], found[1], frames, line)
        self._add(draft)
        self._collecting = [draft]
        self._pending = []
        self._enter_message(line, indent)

    def _add(self, draft: Draft) -> None:
        draft.ignored, self._ignored = self._ignored, False
        draft.cause, chained = self._link, self._link is not None
        if self._embeds is not None and (self._embeds.cause is None or chained):
            self._embeds.cause = draft
        elif not self._grouped:
            self._embeds = None
        self._link, self._last = None, draft
        self._report(draft)

    def _enter_message(self, line: LogLine, indent: int = 0) -> None:
        self._begin()
        self._indent = indent
        self._at = line.number
        self._user_code = self._of_pytest = False
        self._enter(self._message)

    # --- states: no error begun

    def _idle(self, text: str, line: LogLine) -> None:
        stripped = text.strip()
        of_pytest = text.startswith("E   ")
        if of_pytest:
            stripped = text[4:].strip()
        if not stripped:
            self._pending = []
            return
        if self._starts_frames(text, line):
            return
        found = exception_alone(stripped)
        if found and not line.quiet:
            frames = self._pending or self._cut_frame(line)
            self._raise(found, line, frames, len(text) - len(text.lstrip()))
            self._of_pytest = of_pytest
            return
        weight = None if line.quiet else native_weight(text)
        own = None if line.quiet or weight is not None else pythons_own(stripped)
        if weight is not None:
            draft = Draft(None, stripped, self._pending, line)
            draft.weight = weight
            self._add(draft)
            self._collecting, self._pending = [draft], []
            self._enter_message(line)
        elif own is not None and own[0] in _OF_IMPORTS:
            self._raise(own, line._replace(warned=True), [])  # a program caught it, and goes on
            self._previous_at = -1
            return
        elif not self._summarised(stripped, text):
            self._pending = []
        self._previous, self._previous_at = text, line.number

    def _starts_frames(self, text: str, line: LogLine) -> bool:
        if "(most recent call" in text and ("hread 0x" in text or text.startswith("Stack (")):
            self._enter(self._fault)
            fatal = self._last is not None and self._last.exception is None and not self._last.frames
            self._faulting = self._last if fatal and not text.startswith("Thread") and "first" in text else None
            return True
        frame = plain_frame(text)
        if frame is not None:
            self._begin()
            self._enter(self._plain)
            self._plain(text, line)
            return True
        in_notebook = text.startswith(("File ", "Cell ", "Input In", "<ipython", "[<ipython", "[/"))
        without_word = text.endswith((")", " in <module>")) and (text[0] == "/" or ", in " in text)
        if (in_notebook or without_word) and notebook_frame(text):
            self._begin()
            self._enter(self._notebook)
            self._notebook(text, line)
            return True
        return False

    def _summarised(self, stripped: str, text: str) -> bool:
        """Keep hand-written frames until an exception follows; return false for any other line."""
        frame = summary_frame(stripped)
        if frame is not None:
            self._pending = [*self._pending, frame][-50:]
            return True
        if self._pending and text[0] == " " and (code := notebook_code(text)):
            if code.current:
                self._pending[-1] = with_code(self._pending[-1], code.code, code.number)
            return True
        if self._pending and text[0] in " \t" and self._pending[-1].code is None:
            self._pending[-1] = with_code(self._pending[-1], stripped)
            return True
        return False

    def _cut_frame(self, line: LogLine) -> list[Frame]:
        """Return a frame for the source line right above an exception, if the text is truncated above it."""
        text = self._previous
        if self._previous_at != line.number - 1 or not (text[:1].isspace() or self._previous_at == 1):
            return []
        return [Frame("", None, None, text.strip())] if looks_like_code(text.strip()) else []

    def _fault(self, text: str, line: LogLine) -> None:
        """Read a line below ``Current thread 0x… (most recent call first):``."""
        frame = plain_frame(text)
        if frame is None:
            self._rest()
            self._faulting = None
            self._idle(text, line)
        elif self._faulting is not None and len(self._faulting.frames) < MOST_FRAMES:
            self._faulting.frames.insert(0, frame)

    # --- states: under a header

    def _plain(self, text: str, line: LogLine) -> None:
        stripped = text.strip()
        if not stripped:
            self._blank = True
            return
        frame = plain_frame(text)
        indent = len(text) - len(text.lstrip())
        if frame is not None:
            self._add_frame(frame)
            self._at, self._indent, self._code_indent, self._blank, self._noise = line.number, indent, -1, False, 0
        elif is_marker(text):
            return
        elif self._frames and indent > self._indent >= 0 and not self._noise and not self._outdented(stripped, indent):
            self._at, self._code_indent = line.number, indent
            self._add_code(stripped)
        elif not self._exception_line(stripped, line, indent):
            self._foreign(text, stripped, line)

    def _outdented(self, stripped: str, indent: int) -> bool:
        """Whether a line is an exception although it is indented: less than the code above it, where a form moved the lines."""
        return indent < self._code_indent and self._frames[-1].code is not None and exception_alone(stripped) is not None

    def _exception_line(self, stripped: str, line: LogLine, indent: int) -> bool:
        if 0 < self._indent <= indent and not self._outdented(stripped, indent):
            return False
        found = exception_alone(stripped) or (None if self._noise else exception_after_frames(stripped))
        if found is None and self._indent == 0 and self._frames and self._frames[-1].code is None:
            self._add_code(stripped)
            return True
        if found is None:
            return False
        self._raise(found, line, self._frames, indent)
        return True

    def _foreign(self, text: str, stripped: str, line: LogLine) -> None:
        """Handle a line that is not part of the traceback, such as a device's assertion."""
        weight = native_weight(text)
        if is_abrupt(text) or self._noise >= _MOST_NOISE or (self._blank and self._indent > 0 and weight is None):
            self.close(line)
            self._idle(text, line)
            return
        self._noise += 1
        self._left = "" if self._blank or _SENTENCE.match(stripped) is None else stripped
        if weight is not None:
            draft = Draft(None, stripped, [], line)
            draft.weight = weight
            self._report(draft)

    def _add_frame(self, frame: Frame) -> None:
        if self._opened > 1:  # every process prints its own copy of the same frame
            recent = self._frames[-self._opened :]
            if any((f.file, f.line, f.function) == (frame.file, frame.line, frame.function) for f in recent):
                return
        self._frames.append(frame)
        if len(self._frames) > MOST_FRAMES:
            del self._frames[MOST_FRAMES // 2]

    def _add_code(self, stripped: str) -> None:
        """Add a source line to the last frame; newer Pythons print all lines of a statement."""
        frame = self._frames[-1]
        if frame.code is None:
            self._frames[-1] = with_code(frame, stripped)
        elif len(frame.code) < 2000 and not (self._opened > 1 and stripped in frame.code):
            self._frames[-1] = with_code(frame, f"{frame.code}\n{stripped}")

    def _notebook(self, text: str, line: LogLine) -> None:
        stripped = text.strip()
        if not stripped:
            return
        self._at = line.number
        if plain_frame(text) is not None:
            self._enter(self._plain)
            self._plain(text, line)
        elif frame := notebook_frame(text.removeprefix("E   ")):
            self._add_frame(frame)
        elif code := notebook_code(text):
            self._shown = True
            if code.current and self._frames:
                self._frames[-1] = with_code(self._frames[-1], code.code, code.number)
        elif (found := exception_alone(stripped) or exception_after_frames(stripped)) and (
            # the last line of a notebook's traceback repeats the class named in the first
            exception_alone(stripped) is not None
            if self._expected is None
            else found[0].rpartition(".")[2] == self._expected.rpartition(".")[2]
        ):
            self._raise(found, line, self._frames)
        else:
            self._noise += 1
            if self._noise > _MOST_NOISE * 8:
                self.close(line)

    def _rich(self, text: str, line: LogLine) -> None:
        inner = rich_line(text)
        if inner is not None:
            frame = rich_frame(self._partial + inner) or rich_frame(inner)
            self._partial = inner if inner.startswith(("/", "~")) and frame is None else ""
            if frame is not None:
                self._add_frame(frame)
            elif self._frames and self._frames[-1].code is None and (code := rich_code(inner)):
                self._frames[-1] = with_code(self._frames[-1], code)
        elif text.strip()[:1] in ("╰", "+", "└"):
            self._enter(self._plain)
            self._indent = 1
        elif text.strip():
            self._noise += 1
            if self._noise > _MOST_NOISE:
                self.close(line)
                self._idle(text, line)

    # --- states: under an exception

    def _message(self, text: str, line: LogLine) -> None:
        near = 1 if not line.source else _NEAR
        if self._of_pytest and text.startswith("E   "):
            text = text[4:]
        stripped = text.strip()
        if line.number > self._at + near or self._ends_message(text, stripped):
            self._leave_message(text, line)
            return
        self._at = line.number
        if not stripped:
            self._blank = True
            return
        if (native := native_frame(text)) is not None:
            if len(self._collecting[0].native) < 60:
                self._collecting[0].native.append(native)
            return
        found = exception_alone(stripped)
        nested = self._collecting[-1].promises and len(self._collecting) < _MOST_NESTED
        self._user_code = self._user_code or stripped.startswith("from user code")
        shown = text[min(self._indent, len(text) - len(text.lstrip())) :]
        for draft in self._collecting:
            if self._blank:
                draft.add("")
            draft.add(shown)
        self._blank = False
        if found is not None and nested:
            # record the exception after … raised: as a separate error with the same frames
            inner = Draft(found[0], found[1], list(self._collecting[0].frames), line)
            if self._collecting[-1].cause is None:
                self._collecting[-1].cause = inner
            self._collecting.append(inner)
            self._report(inner)

    def _ends_message(self, text: str, stripped: str) -> bool:
        if not stripped:
            return False
        first = self._collecting[0]
        promised = self._collecting[-1].promises and len(self._collecting) < _MOST_NESTED
        if 'File "' in text and plain_frame(text) is not None:
            return not self._user_code
        if is_foreign(stripped) or is_abrupt(text):
            return True
        if first.exception is None:
            return not self._continues_native(text, stripped, promised)
        if exception_alone(stripped) is not None and ":" in stripped:
            return not promised
        if not self._blank:
            return False
        return not (promised or text[0] in " \t" or continues(stripped))

    def _continues_native(self, text: str, stripped: str, promised: bool) -> bool:
        """Whether a line belongs to the native message above, which has no end marker."""
        weight = native_weight(text)
        if weight is not None and not (weight == NOTICE and self._collecting[0].weight == NOTICE) and "what()" not in text:
            return False
        return promised or (text[0] in " \t" and not self._blank) or continues(stripped) or "frame #" in text

    def _leave_message(self, text: str, line: LogLine) -> None:
        draft = self._collecting[0]
        frame = plain_frame(text)
        if frame is not None and draft.exception is None and draft.weight is not None and draft.weight < CONSEQUENCE:
            self._at = line.number
            if len(draft.frames) < MOST_FRAMES:
                draft.frames.append(frame)  # a crash handler's own stack
            return
        if frame is not None and self._link is None and passes_on(draft.exception, draft.text()):
            self._embeds = draft
        if text.strip() == '"""':
            self._embeds = None
        alone = frame is not None and draft.exception is not None and not draft.frames and not self._blank
        self._rest()
        self._above = draft if alone else None
        self._idle(text, line)
