"""Statements about releases in messages and issues: which one is required, which one is installed, which ones work.

How packages, installers and resolvers word their requirements is in :mod:`compat.reports.wordings`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from compat import versions
from compat.model import Accelerator, Distribution, Environment, normalized
from compat.records import record, replace
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
