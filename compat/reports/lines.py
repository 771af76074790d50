"""Split pasted text into clean lines: those of a log (:func:`read_lines`) or of an issue (:func:`plain_lines`).

Several processes often write into one log, line by line in turn. The label before each line (``[rank1]: ``,
``(EngineCore_0 pid=12) ``, ``vllm-1  | ``) distinguishes them; it is removed and kept as the line's *source*, and so are
colours, quotes and time stamps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

HEADER = "Traceback (most recent call last)"
JOINED = "\0"
"""A line that was joined to the one above it; it is no line of the log, but has its number."""
_LONGEST = 8000  # characters of one line that are read
_MOST_LABELS = 32  # labels learned from the text itself
_HEADERS_TRIED = 2000


class LogLine(NamedTuple):
    """A line of a log: ``number`` counts from 1, ``source`` is the process, ``logger`` the logging call."""

    number: int
    text: str
    source: str = ""
    logger: str = ""
    rank: int | None = None
    quiet: bool = False
    """Whether the line was logged at debug or info level, which is never an error."""
    warned: bool = False
    """Whether the line was logged as a warning: the program went on."""


_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b\n]{0,1000}(?:\x07|\x1b\\)"  # operating system commands, as in hyperlinks
    r"|\x1b[\[#()][0-9;:?]{0,40}[ -/]{0,4}[@-~]"  # colours and cursor movements
    r"|\x1b[@-Z\\-_=>78]"
)
_LOST_ESCAPES = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,5}m(?!\])")  # a web form dropped the escape character
_SPELLED_ESCAPES = ("\\x1b[", "\\x1B[", "\\033[", "\\u001b[", "\\u001B[", "\\e[", "\u241b[")

_LEVELS = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)"
_PREFIX = re.compile(
    r"(?P<quote>>(?:[ \t]|$))"
    r"|(?P<rank>\[(?:[Rr]ank|RANK|default|local_rank)[ :=]{0,2}\d{1,5}\]:? ?|\[\d{1,5},\d{1,5}\]<std(?:err|out)>: ?)"
    r"|(?P<process>\((?=[^()\n]{0,120}\bpid=\d)[^()\n]{1,120}\) ?|\((?:raylet|autoscaler)[^()\n]{0,60}\) ?)"
    r"|(?P<service>[A-Za-z0-9][\w.-]{0,60}[-_]\d{1,4} {1,40}\| ?)"
    r"|(?P<log>"
    rf"{_LEVELS} {{1,8}}\d\d-\d\d \d\d:\d\d:\d\d \[?[\w./\\-]{{1,120}}:\d{{1,6}}\] ?"  # vLLM
    r"|\[?[IWEFCV]\d{3,4} \d\d:\d\d:\d\d(?:\.\d{1,9})? (?: ?\d{1,10} )?[\w./+-]{1,160}:\d{1,6}\] ?"  # glog, torch
    rf"|\[{_LEVELS}\|[^\]\n]{{1,80}}\][^>\n]{{0,100}}>> ?"  # transformers, LLaMA-Factory
    rf"|{_LEVELS}:(?!\w{{0,80}}(?:Error|Exception):)[A-Za-z_][\w.]{{0,100}}:"  # logging.basicConfig
    rf"|\[{_LEVELS}\] ?(?:\[[\w./: -]{{1,120}}\] ?){{0,3}}"
    r"|##\[error\]|::error::"  # GitHub Actions
    r")"
    r"|(?P<time>"
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d[-/]\d{2,4})[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"(?: [A-Z]{2,4}\d{1,4}){0,4}\]?(?: (?:stdout|stderr) [FP])?[ \t]?"
    r"|\[\d\d:\d\d:\d\d(?:\.\d{1,9})?\] ?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w./@-]{1,64}(?:\[\d{1,8}\])?: ?"  # journald, syslog
    r")"
)
_LEVEL_AFTER_TIME = re.compile(
    rf"\| {{0,4}}{_LEVELS} {{0,8}}\| [^ \n]{{1,160}} - "  # loguru
    rf"|- (?:[\w.]{{1,80}} - ){{0,2}}{_LEVELS} - (?:[\w.]{{1,80}} - )?"
    rf"|(?:\[[\w. ]{{1,80}}\] ?){{0,2}}\[{_LEVELS}\] ?(?:\[[^\]\n]{{1,120}}\] ?){{0,2}}(?:- )?"  # DeepSpeed, hydra
    rf"|{_LEVELS}[ \t][\w./]{{1,120}}:\d{{1,6}} -- "  # Ray
    rf"|{_LEVELS}:? ?"
    r"|\[(?:debug|info|warning|error|critical)\] ?"
)
_STARTS = frozenset(">[(#:0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_CALL_SITE = re.compile(r"[A-Za-z_][\w./\\+-]{0,160}:\d{1,6}")
_QUIET = re.compile(r"\b(?:DEBUG|INFO)\b|^\[?I\d{3,4} ")
_WARNED = re.compile(r"\bWARN(?:ING)?\b|^\[?W\d{3,4} ")
_RANK = re.compile(r"(?:[Rr]ank|RANK|default|local_rank)[ :=]*(\d{1,5})|\[\d+,(\d{1,5})\]<")
_NUMBERED = re.compile(r"\s*(\d{1,5}): ?$")
_PROGRESS = re.compile(r"\d%\|[^|\n]{0,200}\|[^\[\n]{0,80}\[[^\]\n]{0,200}\]")
_MOST_BARS = 20
"""Progress bars that a text may have before the old ones are left out."""
_REPEATED = re.compile(r"(?<!\s)\s*\[repeated \d+x across (?:the )?cluster\].*$")
_JSON_LOG = '{"log":'
_MOST_COPIES = 50
"""Identical lines in a row, more than the frames of a recursion that Python prints."""


_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&#x27;": "'", "&apos;": "'", "&amp;": "&"}


def legible(text: str) -> str:
    """Return a text as it is read: its long lines cut, with the quotes and brackets that the program wrote.

    Forums and mail programs replace these.
    """
    text = text.translate(_QUOTES)
    for entity, meant in _ENTITIES.items() if "&" in text else ():
        text = text.replace(entity, meant)
    return cut_lines(text)


def cut_lines(text: str) -> str:
    """Return the text with long lines cut after :data:`_LONGEST` characters, before any pattern is tried on it.

    A line may be an image, a token dump or a whole JSON document. Lines of Docker's json-file driver are kept whole; lines
    that a progress bar overwrote are cut one by one.
    """
    if len(text) <= _LONGEST:
        return text
    lines = without_old_bars(text).split("\n")
    for number, line in enumerate(lines):
        if len(line) > _LONGEST and not line.startswith(_JSON_LOG):
            lines[number] = "\r".join(map(_cut, line.split("\r")))
    return "\n".join(lines)


def without_old_bars(text: str) -> str:
    """Return the text with progress bars that another one follows as empty lines: of thousands, the last tells how far it came.

    Both those that the terminal overwrote and those on lines of their own; the lines keep their numbers.
    """
    if text.count("%|") < _MOST_BARS:
        return text
    pieces = re.split(r"([\r\n])", text)  # every other one is what separates the pieces
    bars = [_is_bar(piece) for piece in pieces[::2]]
    for place, following in enumerate(bars[1:]):
        if following and bars[place]:
            pieces[2 * place] = ""
    return "".join(pieces)


def _is_bar(line: str) -> bool:
    """Whether a line has nothing but a progress bar and its label."""
    found = _PROGRESS.search(line) if "%|" in line else None
    return found is not None and not line[found.end() :].strip()


def without_escapes(text: str) -> str:
    """Remove terminal control sequences, including those whose escape character was lost."""
    text = text.removeprefix("\ufeff")
    if "\\" in text or "\u241b" in text:
        for spelled in _SPELLED_ESCAPES:
            text = text.replace(spelled, "\x1b[")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return _LOST_ESCAPES.sub("", text) if "m" in text else text


def read_lines(text: str) -> Iterator[LogLine]:
    """Yield the lines of a log, in order; a line overwritten by a progress bar yields several with the same number.

    Of many identical consecutive lines only the first ones are yielded: the others say nothing new.
    """
    lines = without_escapes(text).split("\n")
    labels = _learned_labels(lines)
    repeated, previous, copies = "[repeated " in text, "", 0
    for number, line in enumerate(lines, 1):
        if line == JOINED:
            continue
        copies = copies + 1 if line == previous else 0
        previous = line
        if copies >= (_MOST_COPIES if line else 2):
            continue
        if not line:
            yield LogLine(number, "")
            continue
        for piece in _pieces(line):
            found = _peeled(number, piece, labels)
            if repeated and "[repeated " in found.text:
                found = found._replace(text=_REPEATED.sub("", found.text))
            if HEADER + ":\\n" in found.text:
                for inner in _unescaped(found.text):
                    yield found._replace(text=inner)
            else:
                yield found


def without_prefixes(text: str) -> str:
    """Return a text without the labels, quotation marks and time stamps of its lines, which keep their numbers."""
    lines = without_escapes(text).split("\n")
    labels = _learned_labels(lines)
    return "\n".join(_peeled(0, line, labels).text if line else line for line in lines)


def _pieces(line: str) -> Iterator[str]:
    """Yield the successive contents a terminal would show on this line, without progress bars before the text."""
    if line.startswith(_JSON_LOG):
        line = _json_log(line)
    if "\r" not in line:
        yield _without_progress(_cut(line))
        return
    seen = False
    for segment in line.split("\r"):
        if segment:
            seen = True
            yield _without_progress(_cut(segment))
    if not seen:
        yield ""


def _cut(line: str) -> str:
    if len(line) <= _LONGEST:
        return line
    return HEADER + ":" if line.rstrip().endswith(HEADER + ":") else line[:_LONGEST]


def _without_progress(line: str) -> str:
    if "%|" not in line:
        return line
    end = 0
    for bar in _PROGRESS.finditer(line):
        end = bar.end()
    return line[end:] if end and line[end:].strip() else line


def _json_log(line: str) -> str:
    """Return the text in one line of Docker's json-file driver."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line
    log = value.get("log") if isinstance(value, dict) else None
    return without_escapes(log).rstrip("\r\n") if isinstance(log, str) else line


def _unescaped(text: str) -> list[str]:
    """Split a traceback that was written as one string (JSON logs, ``repr``) into lines."""
    start = text.index(HEADER + ":\\n")
    quote = next((c for c in reversed(text[:start]) if c in "\"'"), "")
    body = text[start:]
    if quote and (closed := re.match(rf"(?:[^{quote}\\]|\\.)*", body)):
        body = closed.group()
    for written, meant in (("\\n", "\n"), ("\\t", "\t"), ('\\"', '"'), ("\\'", "'"), ("\\\\", "\\")):
        body = body.replace(written, meant)
    return body.split("\n")


def _peeled(number: int, line: str, labels: tuple[str, ...]) -> LogLine:
    """Remove the labels of a line, which may come in any order."""
    position, source, logger, rank, level = 0, "", "", None, ""
    while position < len(line):
        if labels and line.startswith(labels, position):
            label = max((known for known in labels if line.startswith(known, position)), key=len)
            numbered = _NUMBERED.match(label)
            source, rank = source + label, int(numbered.group(1)) if numbered else rank
            position += len(label)
            continue
        match = _prefix_at(line, position)
        if match is None:
            break
        position, prefix = match.end(), match.group()
        if match.lastgroup in ("rank", "process"):
            source += prefix.rstrip()
            known = _RANK.search(prefix)
            rank = int(known.group(1) or known.group(2)) if known else rank
        elif match.lastgroup == "service":
            source += prefix.rstrip(" |")
        elif match.lastgroup == "log":
            logger, level = _logger_of(prefix), prefix
        elif match.lastgroup == "time" and (after := _LEVEL_AFTER_TIME.match(line, position)):
            position, logger, level = after.end(), _logger_of(after.group()), after.group()
    text = line if not position else line[position:]
    quiet, warned = bool(level and _QUIET.search(level)), bool(level and _WARNED.search(level))
    return LogLine(number, text.rstrip(), source, logger, rank, quiet, warned)


def _prefix_at(line: str, position: int) -> re.Match[str] | None:
    if line[position] not in _STARTS and "|" not in line[position : position + 100]:
        return None
    match = _PREFIX.match(line, position)
    return match if match and match.end() > position else None


def _logger_of(prefix: str) -> str:
    site = _CALL_SITE.search(prefix)
    return site.group() if site else "log"


def _learned_labels(lines: list[str]) -> tuple[str, ...]:
    """Labels of this text (``host-3: ``, ``stderr: ``, ``7: ``): the same before a header and before its first frame."""
    labels: dict[str, None] = {}
    tried = 0
    for index, line in enumerate(lines):
        at = line.find(HEADER)
        if at <= 0:
            continue
        tried += 1
        if tried > _HEADERS_TRIED or len(labels) >= _MOST_LABELS:
            break
        label = _unknown_part(line[:at])
        if not any(map(str.isalnum, label)) or label in labels or len(label) > 80:
            continue  # bars alone draw an exception group
        if any(_labels_a_frame(label, _cut(later)) for later in lines[index + 1 : index + 20]):
            labels[label] = None
    return tuple(labels)


def _labels_a_frame(label: str, line: str) -> bool:
    text = _peeled(0, line, ()).text if 'File "' in line else ""
    return text.startswith(label) and _peeled(0, text[len(label) :], ()).text.startswith('  File "')


def _unknown_part(before: str) -> str:
    """Return the text before a header without known labels on either side: ``host-3: [rank3]: `` → ``host-3: ``."""
    label = _peeled(0, before[-200:] + "\0", ()).text[:-1]
    for position in range(1, len(label)):
        if label[position] in "[(" and _peeled(0, label[position:] + "\0", ()).text == "\0":
            return label[:position]
    return label


# --- Lines of an issue


_LONGEST_PASTED = 2000  # characters of one line that are read
_MOST_PASTED = 50_000  # lines that are read


class Line(NamedTuple):
    """A line of pasted text: ``number`` counts from 1, ``text`` is stripped on the right and empty between paragraphs.

    ``edge``: a fenced block begins or ends here, and the text is what follows the fence. ``fenced``: a block is open after
    this line.
    """

    number: int
    text: str
    edge: bool = False
    fenced: bool = False


_BLANKS = str.maketrans({
    "\u00a0": " ", "\u2007": " ", "\u202f": " ", "\u3000": " ", "\t": " ", "\uff1a": ":", "\u200b": "", "\u200c": "",
    "\u200d": "", "\ufeff": "", "\x00": "",
})  # fmt: skip
_TAG = re.compile(
    r"</?(?:details|summary|pre|code|p|div|span|b|i|em|strong|font|sub|sup|ul|ol|li|table|tbody|thead|tr|t[dh]|h[1-6]|br)"
    r"(?: [^<>]{0,200})?/?>",
    re.IGNORECASE,
)
_BREAKS = ("br", "summary", "details", "tr", "li", "p", "pre", "div")
"""Tags that start a new line; every other tag becomes a space."""
_QUOTE = re.compile(r"(?: {0,3}>(?!>>) ?)+")
_FENCE = re.compile(r" {0,8}(?:```+|~~~+) ?(?P<rest>.*)")
_LANGUAGE = re.compile(r"[\w+#.-]{0,20}$")


def plain_lines(text: str) -> tuple[list[Line], str | None]:
    """Return the lines of a pasted text without Markdown, HTML and colours, and a note if only its beginning is read.

    Runs of empty lines become one. A line that opens a fenced block keeps the text after the fence.
    """
    found: list[Line] = []
    blank, fenced = True, False
    for number, raw in enumerate(_unified(text).split("\n"), 1):
        if not raw or raw.isspace():
            if not blank:
                found.append(Line(number, "", fenced=fenced))
            blank = True
            continue
        if len(found) >= _MOST_PASTED:
            return found, f"only the first {number - 1} lines were read"
        line = _plain(number, raw[:_LONGEST_PASTED])
        fenced = fenced != line.edge
        if line.text or line.edge or not blank:
            found.append(line._replace(fenced=fenced) if fenced else line)
        blank = not line.text
    return found, None


def _unified(text: str) -> str:
    text = without_escapes(text).replace("\r\n", "\n").replace("\r", "\n").translate(_BLANKS)
    if "&" in text and ";" in text:
        from html import unescape

        text = unescape(text).replace("\u00a0", " ")
    if "<" in text:
        text = _TAG.sub(lambda tag: "\n" if tag[0].strip("</> ").partition(" ")[0].lower() in _BREAKS else " ", text)
    return text


def _plain(number: int, raw: str) -> Line:
    if raw.lstrip(" ")[:1] == ">" and (quote := _QUOTE.match(raw)):
        raw = raw[quote.end() :]
    fence = _FENCE.match(raw) if "```" in raw or "~~~" in raw else None
    if fence is not None:
        rest = fence["rest"].strip("`~ ")
        return Line(number, "" if _LANGUAGE.match(rest) else rest, edge=True)
    return Line(number, raw.replace("\\_", "_").rstrip())
