"""What a resolver says of one package: no wheel fits, the index does not have it, or it leaves out what would do.

Each message names the cause, so that neither the requirements around it nor "the requirements conflict" are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from packaging.version import Version

from compat.checks import derived_findings
from compat.checks.unresolvable import never_released
from compat.diagnosis.frame_packages import version_of
from compat.diagnosis.missing_wheels import SYSTEMS, TAGS, of_other_systems, runs_of
from compat.diagnosis.opposed_requirements import opposed_requirements
from compat.model import Distribution, Environment, Finding, Fix, normalized
from compat.records import replace
from compat.reports.stated import wanted_in, without_markers
from compat.reports.wordings import Tag, Unfit, is_of_uv, unfit_in, unwrapped
from compat.rules.facts import Facts
from compat.tables.declared import fits, newest_python, open_declared
from compat.versions import is_version, key_of

_UV = "https://docs.astral.sh/uv/concepts/"
_PIP = "https://pip.pypa.io/en/stable/topics/dependency-resolution/"
_NAME = r"[`'\"]?(?P<name>[A-Za-z][\w.-]{0,60}?)[`'\"]?"
_UNKNOWN = re.compile(
    rf"[Bb]ecause {_NAME}(?:\[[\w,-]{{1,60}}\])? was not found in the (?:package registry|cache|provided package)"
)
_PRERELEASE = re.compile(
    rf"{_NAME} was requested with a pre-release marker \(e\.g\., (?P<spec>[^)\n]{{1,80}})\),\sbut pre-releases weren't enabled"
    rf"|Pre-releases are available for {_NAME.replace('name', 'name_2')} in the requested range"
    r" \(e\.g\., (?P<release>[^)\n]{1,40})\)"
)
_FIRST_INDEX = re.compile(rf"{_NAME} was found on (?P<index>\S{{1,200}}?),\sbut not at the requested version")
_NO_VERSION = re.compile(
    r"there is no version of (?P<name>[A-Za-z][\w.-]{0,60}?)(?:\[[\w,-]{1,60}\])?(?:\{[^{}]{0,200}\})?"
    r"==(?P<version>\d[\w.]{0,30})(?![\w.+-])"
)
_RANGE = re.compile(r"- (?P<name>[A-Za-z][\w-]{1,60}) requires Python (?P<spec>[<>=!~][^\n]{1,60}?), so it will not be")
_TOGETHER = re.compile(
    r"Cannot install (?P<names>(?:(?!Cannot install )[^\n]){3,2000}?) because these package versions have conflicting dep"
)
_PINNED = re.compile(r"(?P<name>[A-Za-z][\w.-]{0,60}?)(?:\[[\w,-]{1,60}\])?==(?P<version>\d[\w.+!-]{0,40})(?=[,\s]|$)")
_OF_OTHERS = ("will not be", "conflicting dep", "The conflict is caused by", "version solving failed")
_MOST = 12


def explain_resolver_messages(text: str, facts: Facts) -> list[Finding]:
    """Return what the messages of a resolver say of single packages."""
    if not is_of_uv(text) and not any(part in text for part in _OF_OTHERS):
        return []
    found: dict[str, Finding] = {}
    text = without_markers(unwrapped(text))
    for read in (_unfit, _unknown, _prereleases, _unpublished, _other_index, _pythons, _conflicts, opposed_requirements):
        for finding in read(text, facts):
            found.setdefault(finding.rule, finding)
    return list(found.values())


def _finding(rule: str, title: str, why: str, packages: dict[str, str | None], fixes: list[Fix], **of: str) -> Finding:
    return Finding(
        rule=rule,
        origin="release",
        effect="install",
        title=title,
        why=why,
        packages=packages,
        facts=(of.get("fact", "install"),),
        fixes=tuple(fixes),
        evidence=(of.get("evidence", f"{_UV}resolution/"),),
        here="the message of the resolver",
    )


# --- No wheel that fits


_ANOTHER_PYTHON = Fix(
    "config", text="use a Python for which the release has wheels, usually an older one", command="uv venv --python 3.11"
)


def _unfit(text: str, facts: Facts) -> Iterator[Finding]:
    if "wheel" not in text:
        return
    for each in unfit_in(text):
        name, here = normalized(each.name), each.here
        if here.system is not None and (other := of_other_systems(name, here.system)) is not None:
            yield other
            continue
        what = _in_words(here) or "this Python and system"
        offered = ", ".join(dict.fromkeys(filter(None, map(_in_words, each.offered))))
        yield _finding(
            f"wheels-{name}",
            f"{name} {each.version} has no wheel for {what}",
            f"The index has wheels of this release for {offered}."
            if offered
            else "Wheels name the Pythons and systems they are for.",
            {name: each.version},
            [*_of_python(each, name, facts), *_of_system(each)]
            or [
                *([_ANOTHER_PYTHON] if each.of_python and not runs_of(name) else []),
                Fix("pin", name, None, "a release that has wheels here"),
            ],
            fact="python" if here.python or each.of_python else "os",
            evidence=TAGS,
        )


def _in_words(tag: Tag) -> str:
    if tag.python:
        return f"Python {tag.python}"
    on = f" on {tag.machine}" if tag.machine else ""
    return f"{SYSTEMS[tag.system]}{on}{f' with glibc {tag.glibc}' if tag.glibc else ''}" if tag.system else ""


def _of_python(each: Unfit, name: str, facts: Facts) -> Iterator[Fix]:
    """Yield the first later release with a wheel for the Python, and a Python that this release has one for."""
    python, system = each.here.python, facts.value("os")
    system = system if system in SYSTEMS else None
    if python is None:
        return
    runs, key = runs_of(name), key_of(each.version) if is_version(each.version) else None
    own = next((run for run in runs if key and key_of(run.first) <= key <= key_of(run.last)), None)
    if own is not None and fits(own.wheels, system, python):
        return  # its tags include this Python, so that something else does not fit
    first = next((run.first for run in runs if key and key_of(run.first) > key and fits(run.wheels, system, python)), None)
    if first is not None:
        command = f'pip install "{name}>={first}"'
        yield Fix("upgrade", name, f">={first}", f"the first release with a wheel for Python {python}", command)
    pythons = sorted({tag.python for tag in each.offered if tag.python}, key=key_of)
    newest = (
        newest_python(own.wheels, system)
        if own is not None and fits(own.wheels, system, None)
        else next(iter(pythons[-1:]), "")
    )
    if newest:
        yield Fix("config", text=f"use Python {newest}, the newest one with wheels", command=f"uv venv --python {newest}")


def _of_system(each: Unfit) -> Iterator[Fix]:
    here = each.here
    if here.system is None:
        return
    if (here.system, here.machine) == ("darwin", "x86_64"):
        text = (
            "on Apple silicon, a Python for arm64: one for x86_64 runs under Rosetta, and installers take it for an Intel Mac"
        )
        yield Fix("config", text=text, command="uv venv --python cpython-3.12-macos-aarch64")
    least = sorted({tag.glibc for tag in each.offered if tag.glibc and tag.machine == here.machine}, key=key_of)
    if here.glibc and least and key_of(here.glibc) < key_of(least[0]):
        yield Fix("config", text=f"use a system with glibc {least[0]} or newer")
    others = [
        SYSTEMS[tag.system] for tag in each.offered if tag.system and (tag.system, tag.machine) != (here.system, here.machine)
    ]
    if others and not here.glibc:
        yield Fix("config", text=f"use {' or '.join(dict.fromkeys(others))}, for which this release has wheels")
    yield Fix("source-install", normalized(each.name), "", "build it on this machine, if it has a source distribution")


# --- The index does not have it, or the resolver leaves it out


def _unknown(text: str, facts: Facts) -> Iterator[Finding]:
    for match in _UNKNOWN.finditer(text):
        name = normalized(match["name"])
        by = next((each for each in wanted_in(text) if each.name == name and each.by), None)
        first = by and by.by and by.by_version and _no_longer_asking(by.by, by.by_version, name)
        fixes = []
        if by is not None and by.by is not None:
            spec = f">={first}" if first else None
            text_of = (
                f"the first release that no longer requires {name}" if first else f"a release that does not require {name}"
            )
            fixes.append(Fix("upgrade", by.by, spec, text_of, f'pip install "{by.by}{spec}"' if spec else None))
        fixes.append(Fix("config", text=f"add the index that has {name}, or install it from its own wheels"))
        asking = f"; {by.by} {by.by_version or ''}".rstrip() + " requires it" if by is not None else ""
        yield _finding(
            f"index-{name}",
            f"The index has no package {name}{asking}",
            "Some packages are only on an index of their own, or were renamed when they moved to the default one.",
            {name: version_of(name, facts), **({by.by: by.by_version} if by is not None and by.by else {})},
            fixes,
            evidence=f"{_UV}indexes/",
        )


def _no_longer_asking(by: str, version: str, name: str) -> str | None:
    """Return the first release after ``version`` that requires nothing of ``name``, if that one and earlier ones did."""
    package = open_declared().package(by)
    place = None if package is None else package.place(version)
    if package is None or place is None or name not in package.asks:
        return None
    asking = [bool(package.requirements(at, name)) for at in range(len(package.versions))]
    later = next((at for at in range(place + 1, len(asking)) if not any(asking[at:])), None)
    return package.versions[later] if asking[place] and later is not None else None


def _prereleases(text: str, facts: Facts) -> Iterator[Finding]:
    for match in _PRERELEASE.finditer(text):
        name = normalized(match["name"] or match["name_2"])
        release = (match["spec"] or match["release"]).replace(match["name"] or "\0", "").lstrip("=<>~ ").strip("`")
        pin = f'"{name}=={release}"' if is_version(release) else f'"{name}>=0.0.dev0"'
        yield _finding(
            f"prerelease-{name}",
            f"{name} {release} is a pre-release, which uv only selects on request",
            "uv takes pre-releases of what the project itself requires by a pre-release specifier, not of what other "
            "packages require.",
            {name: version_of(name, facts)},
            [
                Fix("config", text="allow pre-releases", command="uv pip install --prerelease=allow …"),
                Fix(
                    "pin",
                    name,
                    f"=={release}" if is_version(release) else None,
                    "require it directly",
                    f"uv pip install {pin} …",
                ),
            ],
            evidence=f"{_UV}resolution/#pre-release-handling",
        )


def _unpublished(text: str, facts: Facts) -> Iterator[Finding]:
    pins = ((normalized(match["name"]), match["version"]) for match in _NO_VERSION.finditer(text))
    return (finding for pin in pins if (finding := never_released(*pin)) is not None)


def _other_index(text: str, facts: Facts) -> Iterator[Finding]:
    """Yield what uv does not find because it takes a package from the first index that has any release of it."""
    names = {normalized(match["name"]): match["index"].rstrip(",.") for match in _FIRST_INDEX.finditer(text)}
    for match in _NO_VERSION.finditer(text):
        name = normalized(match["name"])
        if name not in names and _is_final(match["version"]) and _was_published(text, name, match["version"]):
            names[name] = ""
    for name, index in names.items():
        where = f" ({index})" if index else ""
        finding = _finding(
            "index-first-only",
            f"uv takes {name} from the first index that has it{where}, and that one lacks the release",
            "With several indexes, uv takes all releases of a package from the first one that has any, so that no other "
            "index can put another package in its place. pip compares the releases of all indexes.",
            {name: version_of(name, facts)},
            [
                Fix(
                    "config",
                    text="compare all indexes, as pip does",
                    command="uv pip install --index-strategy unsafe-best-match …",
                ),
                Fix(
                    "config",
                    text="assign each package to its index in [tool.uv.sources], and mark the index as explicit",
                ),
            ],
            evidence=f"{_UV}indexes/#searching-across-multiple-indexes",
        )
        yield replace(finding, verdict="possible", confidence="reported")  # uv says that another one may have it


def _is_final(version: str) -> bool:
    return is_version(version) and not Version(version).is_prerelease


def _was_published(text: str, name: str, version: str) -> bool:
    """Whether a release of the default index requires exactly this one, so that the default index must have had it."""
    for each in wanted_in(text):
        if each.name == name and each.specifier == f"=={version}" and each.by and each.by_version:
            package = open_declared().package(each.by)
            place = None if package is None else package.place(each.by_version)
            if (
                package is not None
                and place is not None
                and any(row[0] == f"=={version}" for row in package.requirements(place, name))
            ):
                return True
    return False


def _pythons(text: str, facts: Facts) -> Iterator[Finding]:
    for match in _RANGE.finditer(text):
        name, spec = normalized(match["name"]), match["spec"].strip()
        yield _finding(
            "project-python-range",
            f"{name} requires Python {spec}, and the project allows others",
            "Poetry resolves for every Python that the project allows, not only for the running one.",
            {name: version_of(name, facts)},
            [Fix("config", text=f'narrow the range of the project: requires-python = "{spec.replace(" ", "")}"')],
            fact="python",
            evidence="https://python-poetry.org/docs/faq/#why-does-poetry-not-adhere-to-semantic-versioning",
        )


def _conflicts(text: str, facts: Facts) -> Iterator[Finding]:
    """Yield what two releases that pip cannot install together require of each other, by their metadata."""
    for match in _TOGETHER.finditer(text):
        pinned = {normalized(each["name"]): each["version"] for each in _PINNED.finditer(match["names"])}
        for pair in list(combinations(pinned.items(), 2))[:_MOST]:
            environment = Environment(distributions=tuple(Distribution(name, version) for name, version in pair))
            yield from (each for each in derived_findings(environment) if each.rule.startswith("requires-"))
