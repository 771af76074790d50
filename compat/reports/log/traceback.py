"""Parse tracebacks and logs into errors: :func:`parse_log`, with :func:`decisive` and :func:`versions_in`."""

from __future__ import annotations

import re
from collections import deque

from compat.records import replace
from compat.reports.lines import LogLine, read_lines
from compat.reports.log.frames import Draft, Frame, RaisedError, exceptions_mentioned, plain_frame, pythons_own
from compat.reports.log.native import VARYING, decisive, sounds_like_failure
from compat.reports.log.paraphrases import paraphrased
from compat.reports.log.stream import Stream
from compat.reports.log.versions import versions_in
from compat.reports.stated import wanted_in

__all__ = ["Frame", "RaisedError", "decisive", "parse_log", "versions_in"]

MOST_ERRORS = 200
_MOST_ALIKE = 5  # errors with the same class, first line and rank
_MOST_KINDS = 2000
_LONGEST = 2000  # characters of a line that are searched for a message
_SHORT = 200  # lines; longer text without any error is not searched for complaints


def parse_log(text: str) -> tuple[RaisedError, ...]:
    """Return every error in a traceback or log, in text order, in linear time.

    At most :data:`MOST_ERRORS` are kept, the first and the last ones, and only a few of equal ones. A short text without
    any recognizable error yields the lines that report a problem.
    """
    collected = _Collector()
    streams: dict[tuple[str, str], Stream] = {}
    waiting: dict[str, Stream] = {}
    for line in read_lines(text):
        stream = streams.get((line.source, line.logger))
        if stream is None:
            stream = streams[line.source, line.logger] = Stream(collected.add)
        if line.logger:
            stream.feed(line)
            if stream.awaits_frames:
                waiting[line.source] = stream
            continue
        if waiting and line.source in waiting and line.text:
            header = waiting.pop(line.source)
            if header.awaits_frames and plain_frame(line.text):
                stream.adopt(header)
        stream.feed(line)
    for stream in streams.values():
        stream.close()
    errors = tuple(_with_raised_literal(_with_assertion(error)) for error in collected.errors())
    return _with_complaints(_after_imports(errors), text)


def _with_assertion(error: RaisedError) -> RaisedError:
    """Take the asserted statement as the message of an assertion without one, as pytest prints it."""
    if error.message or error.exception != "AssertionError" or not error.frames:
        return error
    code = error.frames[-1].code or ""
    return replace(error, message=code) if code.startswith("assert ") else error


_RAISED = re.compile(r"""raise (?P<exception>[A-Z]\w{2,60})\((?P<quote>["'])(?P<message>[^"'\\]{8,300})(?P=quote)\)$""")


def _with_raised_literal(error: RaisedError) -> RaisedError:
    """Take exception and message from the code of the last frame, if a traceback is cut off before them."""
    code = error.frames[-1].code if error.frames and error.exception is None and not error.message else None
    match = _RAISED.match(code.strip()) if code else None
    return error if match is None else replace(error, exception=match["exception"], message=match["message"])


_WHILE_IMPORTING = re.compile(r"while importing (?P<name>\w{1,60}): (?P<message>.{1,2000})")
_ABSENT = re.compile(r"not (?:be )?found|No module named|not installed|not available")


def _after_imports(errors: tuple[RaisedError, ...]) -> tuple[RaisedError, ...]:
    """Set a failed import that an earlier line reports as the cause of errors about the same missing module."""
    if not any(error.exception is None and "while importing " in error.message for error in errors):
        return tuple(map(_with_class, errors))
    failed: dict[str, int] = {}
    linked = []
    for index, error in enumerate(errors):
        found = _WHILE_IMPORTING.search(error.message) if error.exception is None else None
        if found is not None:
            failed[found["name"]] = index
            exception, message = pythons_own(found["message"]) or (None, error.message)
            linked.append(replace(error, exception=exception, message=message))
        elif error.cause is None and _ABSENT.search(error.message):
            cause = next((at for name, at in failed.items() if re.search(rf"\b{name}\b", error.message)), None)
            linked.append(replace(error, cause=cause))
        else:
            linked.append(error)
    return tuple(linked)


def _with_class(error: RaisedError) -> RaisedError:
    """An error with a sentence that ends in one of Python's own messages has its class.

    ``Error: loading failed: 'X' object has no attribute 'y'``, ``Error: No module named 'z'. Please install …``
    """
    own = pythons_own(error.message[:_LONGEST]) if error.exception is None and "\n" not in error.message else None
    if own is None or own[1] not in error.message or _SENTENCE_ENDS.match(error.message.partition(own[1])[2]) is None:
        return error
    return replace(error, exception=own[0], message=own[1])


_SENTENCE_ENDS = re.compile(r"[ .`]*$|[`)\]]*[.;!](?: |$)")


class _Collector:
    """Keep the first and the last errors, and a few of equal ones."""

    def __init__(self) -> None:
        self._first: list[Draft] = []
        self._last: deque[Draft] = deque(maxlen=MOST_ERRORS // 2)
        self._alike: dict[tuple[str | None, str, int | None], tuple[Draft, int]] = {}

    def add(self, draft: Draft) -> None:
        """Keep an error, unless enough equal ones are kept."""
        signature = (draft.exception, VARYING.sub("0", draft.message[0][:300]), draft.rank)
        alike, count = self._alike.get(signature, (draft, 0))
        if count or len(self._alike) < _MOST_KINDS:
            self._alike[signature] = alike, count + 1
        if count >= _MOST_ALIKE:
            draft.like = alike
            return
        if len(self._first) < MOST_ERRORS - MOST_ERRORS // 2:
            self._first.append(draft)
        else:
            self._last.append(draft)

    def errors(self) -> tuple[RaisedError, ...]:
        """Return the kept errors, in text order."""
        kept = sorted([*self._first, *self._last], key=lambda draft: draft.line)
        indices = {id(draft): index for index, draft in enumerate(kept)}
        finished = []
        for draft in kept:
            frames = tuple(draft.frames or draft.native[::-1])
            cause = draft.cause and (draft.cause.like or draft.cause)
            index = None if cause is None or cause is draft else indices.get(id(cause))
            finished.append(
                RaisedError(draft.exception, draft.text(), frames, draft.rank, draft.line, index, draft.ignored, draft.warned)
            )
        return tuple(finished)


def _with_complaints(errors: tuple[RaisedError, ...], text: str) -> tuple[RaisedError, ...]:
    """Add, for a short text without an exception, exceptions mentioned in sentences, or else lines that report a problem.

    If a traceback is truncated before its last line, the title or a sentence often contains that line.
    """
    raised = tuple(error for error in errors if error.frames or not error.warned)  # a title may only report an exception
    if any(error.exception is not None or (error.frames and error.message) for error in raised) or text.count("\n") > _SHORT:
        return errors
    errors = raised
    cut_off = [error for error in errors if error.frames]
    taken = {error.line + offset for error in errors for offset in range(error.message.count("\n") + 1)}
    lines = [line for line in read_lines(text) if line.text.strip() and line.number not in taken]
    found = [
        RaisedError(*mentioned, (), line.rank, line.number) for line in lines for mentioned in _mentioned(line.text[:_LONGEST])
    ]
    if not found:
        found = [_complaint(line) for line in lines if _reports_a_problem(line.text[:_LONGEST])]
    if cut_off:
        title = next((line.number for line in lines), 0)
        found = [each for each in found if each.exception is not None or each.line == title]
        if len(cut_off) == 1 and len({(each.exception, each.message) for each in found}) == 1:
            last = replace(cut_off[0], exception=found[0].exception, message=found[0].message, line=found[0].line)
            return tuple(last if error is cut_off[0] else error for error in errors)
    return tuple(sorted([*errors, *found[: MOST_ERRORS - len(errors)]], key=lambda error: error.line))


def _reports_a_problem(line: str) -> bool:
    """Whether a line sounds like a failure or states a requirement: "Numba needs NumPy 2.2 or less"."""
    return sounds_like_failure(line) or bool(wanted_in(line))


def _mentioned(text: str) -> list[tuple[str, str]]:
    """Return class and message of the exceptions in a sentence; a message of Python's own needs no class."""
    found = exceptions_mentioned(text)
    own = None if any(message for _, message in found) else pythons_own(text)
    if own is not None:
        return [own]
    return found or list(paraphrased(text))


def _complaint(line: LogLine) -> RaisedError:
    text = line.text.strip()
    exception, message = pythons_own(text[:_LONGEST]) or (None, text)
    return RaisedError(exception, message, (), line.rank, line.number)
