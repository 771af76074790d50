"""Statements about releases in messages and issues: which one is required, which one is installed, which ones work.

How packages, installers and resolvers word their requirements is in :mod:`compat.reports.wordings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from compat import versions
from compat.model import Accelerator, Distribution, Environment, normalized
from compat.records import record, replace
from compat.reports.lines import Line, plain_lines
from compat.reports.wordings import FORMS, Form, is_denied, unfit_in
from compat.reports.words import distribution_of, is_specifier, is_version


@record(frozen=True)
class Wanted:
    """A requirement that a text states: a specifier for ``name`` (``"python"`` for the interpreter).

    An empty specifier means any release, or a newer one. ``found`` is the installed release, ``by`` and ``by_version`` the
    package that requires another one, ``line`` the line of the text, from 1. ``in_words``: the message may be about more than
    this requirement ("You need torch>=1.10, using Ampere GPU with cuda>=11.0").
    """

    name: str
    specifier: str
    found: str | None
    by: str | None
    by_version: str | None
    line: int
    in_words: bool = False


_MARKERS = re.compile(r"\{[^{}]{0,60}[=<>!]=? ?'[^{}]{0,200}\}")


def without_markers(text: str) -> str:
    """Remove the markers in uv's messages (``torch{sys_platform == 'linux'}==2.6.0``); the lines keep their numbers."""
    return _MARKERS.sub(lambda match: "\n" * match[0].count("\n"), text) if "{" in text else text


def wanted_in(text: str) -> tuple[Wanted, ...]:
    """Return the requirements that a text states, without duplicates, in the order of the grammars."""
    text = without_markers(text)
    found: dict[tuple[str, str, str | None], Wanted] = {}
    for grammar in FORMS:
        for match in grammar.matches(text):
            wanted = _wanted(match, text.count("\n", 0, match.start()) + 1)
            if wanted is None or is_denied(text, match.start()):
                continue
            same = [key for key in found if key[:2] == (wanted.name, wanted.specifier) and wanted.by in (None, key[2])]
            for key in same:
                found[key] = replace(found[key], found=found[key].found or wanted.found)
            if not same:
                found[wanted.name, wanted.specifier, wanted.by] = wanted
    return tuple(found.values())


def _wanted(match: re.Match[str], line: int) -> Wanted | None:
    groups = {key: value.rstrip(".,") for key, value in match.groupdict().items() if value}
    known = distribution_of(groups["name"])
    name = known or normalized(groups["name"])
    if known is None and ("old" in groups or ("refused" in groups and name != "python")):
        return None  # "driver 470.57 is too old", "CUDA version 12.8 is not supported"
    specifier = _specifier(groups)
    found = next((groups[each] for each in ("refused", "old", "found") if each in groups), "").removeprefix("v") or None
    loose = ("least" in groups or ("part" in groups and name != "python")) and "by" not in groups and found is None
    if loose and known is None:
        return None  # "please update your driver to 550", "FP8 requires CUDA >= 12.4"
    if specifier and not is_specifier(specifier):
        return None
    if found is not None and not versions.is_version(found):
        found = None
    if found is not None and specifier and meets(found, specifier):
        return None
    by = groups.get("by")
    by = by and (distribution_of(by) or normalized(by))
    return Wanted(name, specifier, found, by, groups.get("by_version"), line, in_words="part" in groups)


def _specifier(groups: Mapping[str, str]) -> str:
    """Return the specifier that the groups of a form state; "" for any release."""
    if "least" in groups:
        return f">={groups['least'].removeprefix('v')}"
    if "exact" in groups:
        return f"=={groups['exact']}"
    if "most" in groups:
        *before, last = groups["most"].split(".")  # 2.2 or less: every 2.2.x
        return f"<{'.'.join([*before, str(int(last) + 1)])}" if last.isdecimal() else f"<={groups['most']}"
    if "refused" in groups:
        listed = [each.removeprefix("v") for each in re.split(r",? (?:and |or )?", groups.get("listed", ""))]
        if all(map(is_version, listed)):  # the newest of those that the message lists
            return f"=={max(listed, key=versions.key_of)}"
        return f"!={groups['refused'].removeprefix('v')}"
    if "old" in groups:
        return f">{groups['old'].removeprefix('v').partition('+')[0]}"
    if "series" in groups:
        return f"<{int(groups['series']) + 1}"
    return groups.get("spec", "").replace(" ", "")


_NAMELESS = re.compile(
    r"\b[Ff]ound version (?P<found>\d[\w.]{0,40}?),? but (?:only versions? (?:above|newer than|from)|at least(?: version)?"
    r"|version) (?P<least>\d[\w.]{0,40}?)(?: or (?:newer|later|higher))? (?:is|are) (?:supported|required)"
)


def nameless_in(text: str, known: Mapping[str, str | None]) -> Wanted | None:
    """Return a requirement stated without its package, if exactly one of the ``known`` distributions has the version found."""
    match = _NAMELESS.search(text)
    if match is None or not is_specifier(f">={match['least']}"):
        return None
    names = [name for name, version in known.items() if version is not None and version.partition("+")[0] == match["found"]]
    if len(names) != 1 or meets(match["found"], f">={match['least']}"):
        return None
    return Wanted(names[0], f">={match['least']}", match["found"], None, None, text.count("\n", 0, match.start()) + 1)


def meets(version: str, specifier: str) -> bool:
    """Whether a release satisfies a specifier; its local label is ignored."""
    if not versions.is_version(version):
        return False
    return versions.contains(versions.ranges_of(specifier), versions.key_of(version.partition("+")[0]))


# --- Facts about the machine in messages


_GPU = r"(?P<gpu>[A-Z][\w .()/-]{2,60}?)"
_FACTS = (
    Form("CUDA capability sm_", rf"(?:^|\n){_GPU} with CUDA capability sm_(?P<code>\d{{2,3}})a? is not compatible"),
    Form("GPU has compute capability", rf"[Yy]our {_GPU} GPU has compute capability (?P<capability>\d{{1,2}}\.\d)"),
    Form(
        "which is of cuda capability", rf"Found GPU\d{{1,3}} {_GPU} which is of cuda capability (?P<capability>\d{{1,2}}\.\d)"
    ),
    Form(
        "your device is of CUDA capability",
        rf"Found {_GPU} which is too old [^\n]{{1,200}} your device is of CUDA capability (?P<capability>\d{{1,2}}\.\d)",
    ),
    Form("Current capability: ", r"Current capability: (?P<code>\d{2,3})\b"),
    Form("detected CUDA version", r"detected CUDA version \((?P<cuda_toolkit>\d{1,2}\.\d{1,2})\)"),
)


def stated_in(text: str) -> Environment:
    """Return environment facts from error messages: installed releases, Python, a GPU, the CUDA toolkit."""
    releases: dict[str, set[str]] = {}
    for wanted in wanted_in(text):
        for name, version in ((wanted.name, wanted.found), (wanted.by, wanted.by_version if wanted.found else None)):
            if name is not None and version is not None:
                releases.setdefault(name, set()).add(version)
    pythons = releases.pop("python", set())
    facts: dict[str, str] = {}
    for grammar in _FACTS:
        for match in grammar.matches(text):
            facts.update({key: value for key, value in match.groupdict().items() if value})
    for each in unfit_in(text) if " wheel" in text else ():
        tag = each.here
        mentions = {"python": tag.python, "os": tag.system, "machine": tag.machine, "glibc": tag.glibc}
        facts.update({key: value for key, value in mentions.items() if value})
    if "python" in facts and not pythons:
        pythons.add(facts["python"])
    code = facts.get("code")
    capability = facts.get("capability") or (f"{code[:-1]}.{code[-1]}" if code else None)
    name = facts.get("gpu")
    return Environment(
        python=pythons.pop() if len(pythons) == 1 else None,
        distributions=tuple(Distribution(name, found.pop()) for name, found in sorted(releases.items()) if len(found) == 1)
        or None,
        accelerators=(Accelerator("nvidia", name, capability, extra={"more": True}),) if name or capability else None,
        cuda_toolkit=facts.get("cuda_toolkit"),
        os=facts.get("os"),
        machine=facts.get("machine"),
        glibc=facts.get("glibc"),
    )


# --- Releases that work and releases that do not: "works with pyarrow 0.12.1, 0.13.0 crashes"


_MOST_LINES = 400
"""Maximum number of prose lines read; code is skipped."""
_LONGEST_LINE = 600


@record(frozen=True)
class Experience:
    """Releases of one distribution that work or fail according to a text, in its order; ``line`` is the first, from 1."""

    name: str
    works: tuple[str, ...]
    fails: tuple[str, ...]
    line: int


_RELEASE = r"v?(?P<version>\d{1,4}(?:\.\w{1,12}){1,4}(?:\+\w{1,12}(?:\.\w{1,12}){0,3})?)"
_OTHER = _RELEASE.replace("version", "other")
_M = r"[`*\"']{0,3}"
_BETWEEN = r"(?:from|to|is|was|at|on|version|release)\b"
_SUBJECT = rf"{_M}(?:(?P<before>[A-Za-z]\w{{1,15}}) )?{_M}(?!{_BETWEEN})(?P<name>[A-Za-z][\w-]{{1,30}}){_M}"
_MENTION = re.compile(
    rf"(?<![\w./-]){_SUBJECT}(?:['’]s (?:latest|newest|new|current|last) (?:version|release)| release)?"
    rf"(?: ?={{1,3}} ?| (?:(?:is|was) (?:at |on )?)?(?:version |release )?| ?\(v?){_M}{_RELEASE}"
)
_MENTION_AFTER = re.compile(
    rf"(?<![\w./-])(?:v|version |release )?{_RELEASE}{_M} of (?P<before>){_M}(?P<name>[A-Za-z][\w-]{{1,30}})"
)
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
_CLAUSE = re.compile(r"(?:[.!?,](?=\s)|,? (?:but|while|whereas|however|although|yet)\b|[;。，]|-{1,3}>|→)\s*", re.IGNORECASE)
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
_GONE = re.compile(
    r"\b(?:errors?|problems?|issues?|bugs?|crash(?:es)?) (?:\w+ )?(?:go(?:es)? away|went away|disappear\w*|(?:is|are) gone)\b",
    re.IGNORECASE,
)
"""What sounds like a failure and says the opposite."""
_FROM_THEN = re.compile(r"\s*(?:since|starting (?:from|with)|as of)\b", re.IGNORECASE)
"""The beginning of a clause about the release with which a failure began."""
"""Words that blame a release; those of :data:`_FAILS` only describe what happened with it."""
_FAILS = re.compile(
    r"\b(?:broken|fail(?:s|ed|ing)?|crash(?:es|ed|ing)?|segfaults?|hangs?|errors?|buggy?)\b|报错|不行|失败", re.IGNORECASE
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
    for clause in _CLAUSE.split(line):
        negated = _NEGATED.search(clause) is not None
        blamed = negated or _BLAMED.search(clause) is not None
        fails = blamed or _FAILS.search(clause) is not None
        blamed = blamed or (fails and _FROM_THEN.match(clause) is not None)
        works = _WORKS.search(_NEGATED.sub("", clause)) is not None
        asks = _ASKED.search(clause) is not None
        matches = (*_MENTION.finditer(clause), *_MENTION_AFTER.finditer(clause)) if not asks else ()
        mentions = [(_subject(match), match["version"]) for match in matches]
        known = [(name, version) for name, version in mentions if name is not None]
        if not known and last is not None and not asks:
            known = [(last, match["version"]) for match in _ALONE.finditer(clause)]
        for name, version in known:
            last = name
            if fails != works and is_version(version):
                yield _Run(name, version, works, blamed, number)


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
