"""What a report says in words about releases: which ones work, and which ones cause the failure.

"works with pyarrow 0.12.1, 0.13.0 crashes", "Pin transformers<5 to fix inference", "hangs with DeepSpeed >= 0.17.3".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compat.records import record
from compat.reports.lines import Line, plain_lines
from compat.reports.stated import wanted_in
from compat.reports.words import distribution_of, is_version

_MOST_LINES = 400
"""Maximum number of prose lines read; code is skipped."""
_LONGEST_LINE = 600


@record(frozen=True)
class Experience:
    """Releases of one distribution that work or fail according to a text, in its order; ``line`` is the first, from 1.

    A release is a version, or a specifier where the text states one ("pin transformers<5", "since 0.17.3").
    """

    name: str
    works: tuple[str, ...]
    fails: tuple[str, ...]
    line: int


_RELEASE = r"v?(?P<version>\d{1,4}(?:\.\w{1,12}){1,4}(?:\+\w{1,12}(?:\.\w{1,12}){0,3})?)"
_OTHER = _RELEASE.replace("version", "other")
_M = r"[`*\"']{0,3}"
_BETWEEN = r"(?:from|to|is|was|at|on|versions?|releases?)\b"
_SUBJECT = rf"{_M}(?:(?P<before>[A-Za-z]\w{{1,15}}) )?{_M}(?!{_BETWEEN})(?P<name>[A-Za-z][\w-]{{1,30}}){_M}"
_MENTION = re.compile(
    rf"(?<![\w./-]){_SUBJECT}(?:['’]s (?:latest|newest|new|current|last) (?:version|release)| release)?"
    rf"(?: ?={{1,3}} ?| (?:(?:is|was) (?:at |on )?)?(?:version |release )?| ?\(v?){_M}{_RELEASE}"
)
_MENTION_AFTER = re.compile(
    rf"(?<![\w./-])(?:v|version |release )?{_RELEASE}{_M} of (?P<before>){_M}(?P<name>[A-Za-z][\w-]{{1,30}})"
)
_RANGE = re.compile(
    rf"(?<![\w./-]){_SUBJECT}(?: (?:versions?|releases?))? ?{_M}(?:(?P<sign>[<>]=?|~=) ?"
    rf"|(?P<words>newer than|later than|above|since|older than|earlier than|before|below|prior to) )?{_M}{_RELEASE}{_M}"
    r"(?P<after> ?\+| (?:and|or) (?:newer|later|above|higher|up|older|earlier|below|lower)\b)?",
    re.IGNORECASE,
)
_SIGNS = {
    "newer than": ">", "later than": ">", "above": ">", "since": ">=",
    "older than": "<", "earlier than": "<", "before": "<", "below": "<", "prior to": "<",
}  # fmt: skip
_DOWNWARDS = ("older", "earlier", "below", "lower")
_ALONE = re.compile(
    rf"(?<![\w.=+-]){_RELEASE}(?![\w%])(?! ?(?:GB|GiB|MiB|ms|s\b|x\b|times|seconds|hours|[mb]illion|B\b))", re.IGNORECASE
)
_MOVED = re.compile(
    rf"\b(?P<way>down|de|up|)(?:grad|dat)\w* (?:my |the |your )?{_SUBJECT} (?:version )?"
    rf"(?:(?:from )?{_M}{_OTHER}{_M} )?to (?:version )?{_M}{_RELEASE}",
    re.IGNORECASE,
)
_MOVED_TO = re.compile(
    rf"\b(?P<way>up)(?:grad|dat)\w* to (?:the )?(?:latest |newest |new )?(?:version )?{_SUBJECT}"
    rf"(?: ?={{1,3}} ?| (?:version )?){_M}{_RELEASE}",
    re.IGNORECASE,
)
_SINCE = re.compile(
    rf"\b(?:up(?:grad|dat)|mov|bump|switch)\w*\b[^.;\n]{{0,60}}? from {_M}(?:(?P<name>[A-Za-z][\w-]{{1,30}}) )?{_OTHER}{_M} to "
    rf"{_M}(?:(?P<name_2>[A-Za-z][\w-]{{1,30}}) )?{_RELEASE}",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?:[.!?,](?=\s)|,? (?:but|while|whereas|however|although|yet)\b| (?:due to|because of)\b|[;。，]|-{1,3}>|→)\s*",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?:\bnot|n['’]t|\bnever|\bno longer) (?:be )?(?:work|load|run|import|compil|compatib|ok)\w*"
    r"|\b(?:does|do|did)(?: not|n['’]t)[\s.!]*$|^\s*not (?:with|on|in|under|for)\b",
    re.IGNORECASE,
)
"""``does not work``; also what leaves the verb out: "4.57.1 works, 5.0.0 does not", "works with 0.8.5 but not with 0.9.0"."""
_BLAMED = re.compile(
    r"\b(?:break(?:s|ing)?|broke|incompatible|regression|conflicts? with|stopped working|introduced in|bisect\w*"
    r"|only (?:occurs|happens|appears)|(?:started|starts|began|begins) (?:\w+ )?(?:with|in|since|after)"
    r"|(?:appear|happen)(?:s|ed|ing) (?:since|after))\b|不兼容",
    re.IGNORECASE,
)
"""Words that blame a release; those of :data:`_FAILS` only describe what happened with it."""
_GONE = re.compile(
    r"\b(?:errors?|problems?|issues?|bugs?|crash(?:es)?) (?:\w+ )?(?:go(?:es)? away|went away|disappear\w*|(?:is|are) gone)\b",
    re.IGNORECASE,
)
"""What sounds like a failure and says the opposite."""
_FROM_THEN = re.compile(r"\s*(?:since|starting (?:from|with)|as of)\b", re.IGNORECASE)
"""The beginning of a clause about the release with which a failure began."""
_FAILS = re.compile(
    r"\b(?:broken|fail(?:s|ed|ing)?|crash(?:es|ed|ing)?|segfaults?|hangs?|errors?|bugs?|buggy)\b|报错|不行|失败", re.IGNORECASE
)
_WORKS = re.compile(
    r"\b(?:works?|worked|working|fine|ok(?:ay)?|solve[sd]?|resolve[sd]?|fix(?:e[sd])?(?!\()|help(?:s|ed)|workaround|success\w*"
    r"|good version|(?:runs?|trains?|ran) (?:as expected|normally|correctly)|(?:go(?:ing)?|went) back to"
    r"|no (?:problem|issue|error)s?|(?<!not be )(?<!n't be )(?:downgrad\w+|revert\w*|roll\w* back|pin\w*) "
    r"(?:(?!due )\S+ ){0,2}to)\b"
    r"|解决|可以运行|正常",
    re.IGNORECASE,
)

_COMPLAINS = re.compile(
    r"\b(?:not|n't|problems?|issues?|error\w*|fail\w*|broke\w*|break\w*|crash\w*|bug|wrong|anymore|regression|OOM|out of memory"
    r"|nan|zeros?|hangs?|hung|stuck|freez\w*|slow\w*|leaks?|diverg\w*|incorrect)\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"\b(?:due to|because of|instead of|to avoid)\b", re.IGNORECASE)
_ADVISED = re.compile(r"(?<!\bI )(?<!\bwe )\b(?:use|install|pin|keep|stick (?:to|with))\b", re.IGNORECASE)
"""What recommends a release where a reason follows: "use deepspeed 0.15.0 due to a bug of 0.16.3"."""
_OWN = re.compile(r"\b(?:my|I(?:'m| am)?(?: use| using| have| had| run| running)?|installed|tried)\s{1,3}$", re.IGNORECASE)
"""What precedes a range that is installed or was asked for, and is not blamed."""
_ASKED = re.compile(r"\b(?:requires?|needs?(?! to)|expects?|built for|compiled for)\b", re.IGNORECASE)
"""Releases in such a clause are required; they did not run."""


def experiences_in(text: str) -> tuple[Experience, ...]:
    """Return every distribution with a release that, according to the text, works or causes the failure.

    A release counts only if its clause has words for one of the two; a clause with words for both is ignored.
    """
    return experiences_of(plain_lines(text)[0])


def experiences_of(lines: Sequence[Line]) -> tuple[Experience, ...]:
    """Do the same for a text that was cut into lines."""
    prose = [line for line in lines if not line.fenced and not line.edge and 10 < len(line.text) <= _LONGEST_LINE]
    runs: dict[str, list[_Run]] = {}
    for line in prose[:_MOST_LINES]:
        if wanted_in(line.text):
            continue  # pip's "requires …, but you have … which is incompatible" is no experience
        for each in _runs(line.text, line.number):
            runs.setdefault(each.name, []).append(each)
    found = []
    for name, mentions in runs.items():
        works = tuple(dict.fromkeys(each.version for each in mentions if each.works))
        fails = tuple(dict.fromkeys(each.version for each in mentions if not each.works and (works or each.blamed)))
        if (works or fails) and not set(works) & set(fails):
            found.append(Experience(name, works, fails, mentions[0].line))
    return tuple(found)


@record(frozen=True)
class _Run:
    """A release that works or not; ``blamed``: it is the cause of the failure."""

    name: str
    version: str
    works: bool
    blamed: bool
    line: int


def _runs(line: str, number: int) -> Iterator[_Run]:
    """Return the releases of one line. A name applies until the next one: "works with vllm 0.5.1, fails with 0.5.2"."""
    line = _GONE.sub("works", line)
    changes = list(_changed(line, number))
    if changes or not any(character.isdecimal() for character in line):
        yield from changes
        return
    last: str | None = None
    reasoned = _REASON.search(line)
    for clause in _CLAUSE.split(line):
        negated = _NEGATED.search(clause) is not None
        blamed = negated or _BLAMED.search(clause) is not None
        fails = blamed or _FAILS.search(clause) is not None
        blamed = blamed or (fails and _FROM_THEN.match(clause) is not None)
        works = _WORKS.search(_NEGATED.sub("", clause)) is not None
        works = works or (reasoned is not None and not fails and _ADVISED.search(clause) is not None)
        asks = _ASKED.search(clause) is not None
        ranges = dict(_ranges(clause)) if not asks else {}
        for name, specifier in ranges.items():
            last = name
            if fails != works:
                yield _Run(name, specifier, works, blamed=True, line=number)
        matches = (*_MENTION.finditer(clause), *_MENTION_AFTER.finditer(clause)) if not asks else ()
        mentions = [(_subject(match), match["version"]) for match in matches]
        known = [(name, version) for name, version in mentions if name is not None and name not in ranges]
        if not known and not ranges and last is not None and not asks:
            known = [(last, match["version"]) for match in _ALONE.finditer(clause)]
        for name, version in known:
            last = name
            if fails != works and is_version(version):
                yield _Run(name, version, works, blamed, number)


def _ranges(clause: str) -> Iterator[tuple[str, str]]:
    """Yield the distributions of which a clause states a range of releases, as a specifier."""
    for match in _RANGE.finditer(clause):
        words, after = (match["words"] or "").lower(), (match["after"] or "").lower()
        sign = match["sign"] or _SIGNS.get(words) or (after and ("<=" if after.endswith(_DOWNWARDS) else ">="))
        name = _subject(match)
        if sign and name is not None and is_version(match["version"]) and not _OWN.search(clause[: match.start()]):
            yield name, f"{sign}{match['version']}"


def _subject(match: re.Match[str]) -> str | None:
    """Return the distribution before a release; its name may be two words ("flash attention 2.5.8")."""
    return distribution_of(f"{match['before']} {match['name']}") or distribution_of(match["name"])


def _changed(line: str, number: int) -> Iterator[_Run]:
    """``downgraded torch from 2.8.0 to 2.7.0``, ``after the upgrade from datasets 3.3.2 to 3.4.0``."""
    for match in (*_MOVED.finditer(line), *_MOVED_TO.finditer(line)):
        name = _subject(match)
        back = match["way"].lower() in ("down", "de")
        works = back or _WORKS.search(_NEGATED.sub("", line)) is not None
        if name is not None and works != (_COMPLAINS.search(line) is not None and not back):
            yield from _both(name, match.groupdict().get("other"), match["version"], number, works=works)
    for match in _SINCE.finditer(line):
        before = re.findall(r"[A-Za-z][\w-]{1,30}", line[: match.start("other")])
        words = [match["name"], match["name_2"], *reversed(before)]
        name = next((found for word in words if word and (found := distribution_of(word))), None)
        if name is not None and _COMPLAINS.search(line):
            yield from _both(name, match["other"], match["version"], number, works=False)


def _both(name: str, before: str | None, after: str, number: int, *, works: bool) -> Iterator[_Run]:
    yield _Run(name, after, works, blamed=True, line=number)
    if before is not None:
        yield _Run(name, before, not works, blamed=True, line=number)
