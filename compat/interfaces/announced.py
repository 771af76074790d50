"""What packages advise instead of what they removed: their own warnings (:mod:`compat.interfaces.messages`), and a table.

A release that warns of a removal mostly says what to use instead: "`--per_gpu_train_batch_size` … will be removed. Using
`--per_device_train_batch_size` is preferred." ``matrix/facts/successors.csv`` has what no warning says in one text.
"""

from __future__ import annotations

import marshal
import os
import re
from collections.abc import Collection, Iterator

from compat.files import DATA, read_table
from compat.interfaces.messages import Template, open_messages
from compat.records import cached, record
from compat.versions import key_of

FILE = os.path.join(DATA, "successors.bin")

_LEAVES = re.compile(
    r"deprecat|renamed|\bremoved?\b|replaced|no longer (?:supported|used|accepted|needed)|now located|moved to", re.IGNORECASE
)
"""How a warning says that something goes away."""
_ADVISES = re.compile(
    r"\b(?:(?:please|you (?:should|can)|consider|instead)\b[ ,]+(?:now |instead |safely |consider )*)?"
    r"(?:use|using|pass|set|specify|update|replace|filter|remove|configure|do not|refer|subclass|instantiate|call|import)\b"
    r"|\bin favou?r of\b|\b(?:renamed|replaced|moved)(?: to| by| with)\b|\bthere is no need\b",
    re.IGNORECASE,
)
"""How a sentence, or the end of one, begins that says what to do instead."""
_NEW = re.compile(
    r"\b(?:use|using|use of|to|by|with|of|pass|set|specify)\s+(?:(?:the|a|new|argument|parameter|keyword|option|flag"
    r"|it as|them as|through|via)\s+){0,3}[`'\"]{0,2}(?P<new>(?:--)?[A-Za-z_][\w.-]*\w)",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\b(?:please |consider )?(?:use|using|pass|set|specify|call|import)\b(?! (?:is|of)\b)|\bin favou?r of\b"
    r"|\b(?:renamed|replaced|moved)(?: to| by| with)\b",
    re.IGNORECASE,
)
"""The same in the sentence that says that something goes away."""
_OWN = re.compile(r"(?:This|The) (?:class|function|method|import path)\b")
_SENTENCE = re.compile(r"(?<=[.;!])\s+(?=\S)")
_LEAST, _LONGEST = 12, 240
"""Characters of a sentence that is worth quoting, and that fits."""


@record(frozen=True)
class Advice:
    """``new``: the name to use instead, if there is one; ``text``: the package's own words; ``release``: the last that says so.

    ``written``: the new name with the value that the package gives with it (``--mm-encoder-tp-mode data``).
    """

    new: str | None
    written: str | None
    text: str
    release: str

    def quoted(self, package: str) -> str:
        """What to do about it, in the words of the package."""
        return f'{package} {self.release} says of it: "{self.text[:1].upper()}{self.text[1:].rstrip(".")}"'


def advised(package: str, name: str, owners: Collection[str] = ()) -> Advice | None:
    """Return what a package says of a name that it removed: a class or function, or an argument or option of ``owners``.

    ``owners``: names of the classes and functions that took the argument. The newest release that says something counts.
    """
    messages = open_messages()
    if package not in messages.packages:
        return None
    word = name.lstrip("-").replace("-", "_")
    spelled = re.compile(rf"(?<![\w.]){re.escape(word).replace('_', '[_-]')}(?![\w-])")
    table = messages.table(package)
    numbers = [
        at for at, text in enumerate(table.texts)
        if (spelled.search(text) or (not owners and _OWN.match(text))) and _LEAVES.search(text)
    ]  # fmt: skip
    found = [
        (template, advice)
        for template in map(table.template, numbers)
        for advice in _advice_of(template, word, spelled, owners)
    ]
    return max(found, key=lambda each: (key_of(each[0].versions[-1]), each[1].new is not None))[1] if found else None


def _advice_of(template: Template, word: str, spelled: re.Pattern[str], owners: Collection[str]) -> Iterator[Advice]:
    text = template.text
    places = [place for place in template.places if not owners or place.function.partition(".")[0] in owners]
    if template.kind == "raise" or not places or not template.versions or "¤" in text:
        return
    sentences = _SENTENCE.split(text)
    first = next((at for at, each in enumerate(sentences) if _LEAVES.search(each)), None)
    if first is None or not _is_about(sentences[first], word, spelled, places[0].function, bool(owners)):
        return
    said = [each for each in (_ending(sentences[first]), *sentences[first + 1 :]) if each and _ADVISES.search(each)]
    advice = next((each for each in said if _LEAST < len(each) <= _LONGEST), None)
    if advice is not None:
        new, written = _new_in(advice, spelled)
        yield Advice(new, written, advice, template.versions[-1])


def _is_about(sentence: str, word: str, spelled: re.Pattern[str], function: str, argument: bool) -> bool:
    """Whether the sentence says that the name itself goes away, and not that it replaces another one."""
    named = spelled.search(sentence)
    own = not argument and word in function.split(".")[::-1][:1] + function.split(".")[:1]
    if named is None:
        return own and _OWN.match(sentence) is not None
    if not (argument or own or is_telling(word)):
        return False
    before = _ADVISES.search(sentence)
    return before is None or named.start() < before.start() or re.match(r"Using deprecated\b", sentence) is not None


def is_telling(name: str) -> bool:
    """Whether a name is more than a word: a class of two words, or words with underscores."""
    return "_" in name.strip("_") or (sum(map(str.isupper, name)) > 1 and not name.isupper())


def _ending(sentence: str) -> str:
    """The advice in the sentence that says that something goes away: "is deprecated, use `new` instead"."""
    leaves = _LEAVES.search(sentence)
    found = _ENDS.search(sentence, leaves.start() if leaves is not None else 0)
    return sentence[found.start() :] if found is not None else ""


def _new_in(advice: str, spelled: re.Pattern[str]) -> tuple[str | None, str | None]:
    """The name that a sentence advises, in quotes or recognizable as one, and the whole text in these quotes."""
    for match in _NEW.finditer(advice):
        new, start = match["new"], match.start("new")
        quote = advice[start - 1] if advice[start - 1] in "`'\"" else ""
        if not spelled.fullmatch(new.lstrip("-")) and (quote or "_" in new or new.startswith("--")):
            end = advice.find(quote, start) if quote else -1
            return new, advice[start:end] if end > 0 else new
    return None, None


# --- What no warning says in one text.


@cached
def _curated() -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = marshal.loads(read_table(FILE))
    return found


def curated(package: str, old: str) -> str | None:
    """Return what to use instead of an option (``--task``), a name or a module (``torch._six``), ``None`` if not known."""
    return _curated().get((package, old))
