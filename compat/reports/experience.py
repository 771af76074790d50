"""What a report says of releases that work and releases that do not: "works with pyarrow 0.12.1, 0.13.0 crashes".

Only releases are taken that stand in the same clause as a word for one of both; a clause that says both says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.records import record
from compat.reports.stated import wanted_in
from compat.reports.words import distribution_of, is_version, plain_lines

_MOST = 400
"""Lines of prose that are looked at."""
_LONGEST = 600


@record(frozen=True)
class Experience:
    """Releases of one distribution that a report says work or fail, in the order of the text; ``line`` from 1."""

    name: str
    works: tuple[str, ...]
    fails: tuple[str, ...]
    line: int


_V = r"v?(?P<version>\d{1,4}(?:\.\w{1,12}){1,4}(?:\+\w{1,12})?)"
_OTHER = _V.replace("version", "other")
_M = r"[`*\"']{0,3}"
_N = rf"{_M}(?P<name>[A-Za-z][\w-]{{1,30}}){_M}"
_MENTION = re.compile(rf"(?<![\w./-]){_N}(?: ?={{1,3}} ?| (?:version |release )?| \(){_M}{_V}")
_ALONE = re.compile(
    rf"(?<![\w.=+-]){_V}(?![\w%])(?! ?(?:GB|GiB|MiB|ms|s\b|x\b|times|seconds|hours|[mb]illion|B\b))", re.IGNORECASE
)
_MOVED = re.compile(
    rf"\b(?P<way>down|de|up|)(?:grad|dat)\w* (?:my |the |your )?{_N} (?:version )?(?:(?:from )?{_M}{_OTHER}{_M} )?to {_M}{_V}",
    re.IGNORECASE,
)
_SINCE = re.compile(
    rf"\b(?:up(?:grad|dat)|mov|bump|switch)\w*\b[^.;\n]{{0,60}}? from {_M}(?:(?P<name>[A-Za-z][\w-]{{1,30}}) )?{_OTHER}{_M} to "
    rf"{_M}(?:(?P<name_2>[A-Za-z][\w-]{{1,30}}) )?{_V}",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(?:[.!?,](?=\s)|,? (?:but|while|whereas|however|although|yet)\b|[;。，]|-{1,3}>|→)\s*", re.IGNORECASE)
_NEGATED = re.compile(
    r"(?:\bnot|n't|\bnever|\bno longer) (?:be )?(?:work|load|run|import|compil|compatib|ok)\w*", re.IGNORECASE
)
_BLAMED = re.compile(
    r"\b(?:break(?:s|ing)?|broke|incompatible|regression|conflicts? with|stopped working)\b|不兼容", re.IGNORECASE
)
"""Words that make a release the cause; the others below say only what happened with it."""
_FAILS = re.compile(
    r"\b(?:broken|fail(?:s|ed|ing)?|crash(?:es|ed|ing)?|segfaults?|hangs?|errors?|buggy?)\b|报错|不行|失败", re.IGNORECASE
)
_WORKS = re.compile(
    r"\b(?:works?|worked|working|fine|ok(?:ay)?|solve[sd]?|resolve[sd]?|fix(?:e[sd])?|help(?:s|ed)|workaround|success\w*"
    r"|good version|no (?:problem|issue|error)s?|(?:downgrad\w+|revert\w*|roll\w* back|pin\w*) (?:\S+ ){0,2}to)\b"
    r"|解决|可以运行|正常",
    re.IGNORECASE,
)

_WANTED = re.compile(r"\b(?:requires?|needs?(?! to)|expects?|built for|compiled for)\b", re.IGNORECASE)
"""Releases in such a clause are asked for; they did not run."""


def experiences_in(text: str) -> tuple[Experience, ...]:
    """Every distribution of which a report says that a release works, or that one is the cause of the failure."""
    told: dict[str, list[_Told]] = {}
    for number, line in _prose(text):
        for each in _said(line, number):
            told.setdefault(each.name, []).append(each)
    found = []
    for name, said in told.items():
        works = tuple(dict.fromkeys(each.version for each in said if each.works))
        fails = tuple(dict.fromkeys(each.version for each in said if not each.works and (works or each.blamed)))
        if (works or fails) and not set(works) & set(fails):
            found.append(Experience(name, works, fails, said[0].line))
    return tuple(found)


@record(frozen=True)
class _Told:
    name: str
    version: str
    works: bool
    blamed: bool
    line: int


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside of code, with the commands in them; a heading is a line like any other."""
    lines, _ = plain_lines(text)
    prose = [line for line in lines if not line.fenced and not line.edge and 10 < len(line.text) <= _LONGEST]
    for line in prose[:_MOST]:
        if not wanted_in(line.text):  # pip's "requires …, but you have … which is incompatible" is nobody's experience
            yield line.number, line.text


def _said(line: str, number: int) -> Iterator[_Told]:
    """What one line says of releases. A name holds on until the next one: "works with vllm 0.5.1, fails with 0.5.2"."""
    changes = list(_changed(line, number))
    if changes or not any(character.isdecimal() for character in line):
        yield from changes
        return
    last: str | None = None
    for clause in _CLAUSE.split(line):
        negated = _NEGATED.search(clause) is not None
        blamed = negated or _BLAMED.search(clause) is not None
        fails = blamed or _FAILS.search(clause) is not None
        works = _WORKS.search(_NEGATED.sub("", clause)) is not None
        asks = _WANTED.search(clause) is not None
        mentions = [(distribution_of(match["name"]), match["version"]) for match in _MENTION.finditer(clause) if not asks]
        known = [(name, version) for name, version in mentions if name is not None]
        if not known and last is not None and not asks:
            known = [(last, match["version"]) for match in _ALONE.finditer(clause)]
        for name, version in known:
            last = name
            if fails != works and is_version(version):
                yield _Told(name, version, works, blamed, number)


def _changed(line: str, number: int) -> Iterator[_Told]:
    """``downgraded torch from 2.8.0 to 2.7.0``, ``after the upgrade from datasets 3.3.2 to 3.4.0``."""
    for match in _MOVED.finditer(line):
        name = distribution_of(match["name"])
        back = match["way"].lower() in ("down", "de")
        works = back or _WORKS.search(_NEGATED.sub("", line)) is not None
        if name is not None and works != (_COMPLAINS.search(line) is not None and not back):
            yield from _both(name, match["other"], match["version"], number, works=works)
    for match in _SINCE.finditer(line):
        before = re.findall(r"[A-Za-z][\w-]{1,30}", line[: match.start("other")])
        words = [match["name"], match["name_2"], *reversed(before)]
        name = next((found for word in words if word and (found := distribution_of(word))), None)
        if name is not None and _COMPLAINS.search(line):
            yield from _both(name, match["other"], match["version"], number, works=False)


def _both(name: str, before: str | None, after: str, number: int, *, works: bool) -> Iterator[_Told]:
    yield _Told(name, after, works, blamed=True, line=number)
    if before is not None:
        yield _Told(name, before, not works, blamed=True, line=number)


_COMPLAINS = re.compile(
    r"\b(?:not|n't|problems?|issues?|error\w*|fail\w*|broke\w*|break\w*|crash\w*|bug|wrong|anymore|regression)\b", re.IGNORECASE
)
