"""What installers do not find, and what they build from source because no wheel fits and then fail to.

A compiler's error is about a missing tool or a header; the cause is a Python or a system that is newer than the release.

pip's "No matching distribution found" has several causes. The recorded releases tell them apart, and the versions that pip
offers instead (``from versions: 2.2.0, 2.2.1``) tell the Python, where the text does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from compat.checks.fix_commands import by_pip, downgrade_to, upgrade_to
from compat.checks.installation import INSTEAD
from compat.checks.torch_build import INDEX, cuda_of, torch_for
from compat.checks.unresolvable import never_released
from compat.diagnosis.frame_packages import version_of
from compat.model import Finding, Fix, normalized
from compat.records import record
from compat.rules.facts import Facts
from compat.tables.builds import open_code_tables
from compat.tables.declared import Published, Run, fits, newest_python, open_declared, wheels_of
from compat.tables.linked import series_of
from compat.versions import contains, is_version, key_of, ranges_of

_NAME = r"[A-Za-z][\w.-]{0,60}?"
_VERSION = r"\d[\w.]{0,30}?"
_NAMED = re.compile(
    rf"(?:Failed building wheel for|Could not build wheels for|Failed to (?:download and )?build:?) [`']?(?P<name>{_NAME})"
    rf"(?:==(?P<version>{_VERSION}))?(?=[`',\s]|$)"
    rf"|Building wheel for (?P<name_2>{_NAME}) \([^)\n]{{1,40}}\)[ .:]{{1,6}}(?:error|finished with status 'error')",
    re.MULTILINE,
)
_PREPARING = re.compile(
    r"(?:Getting requirements to build wheel|Preparing metadata|python setup\.py egg_info)[^\n]{0,60}(?:error|did not run)"
    r"|metadata-generation-failed"
)
_SOURCE = re.compile(
    rf"\b(?:Downloading|Using cached|Collecting)[ \t]+\S{{0,200}}?(?P<name>{_NAME})-(?P<version>{_VERSION})\.(?:tar\.gz|zip)"
)
_COLLECTING = re.compile(
    rf"^[ \t]{{0,40}}Collecting (?P<name>{_NAME})(?:==(?P<version>{_VERSION}))?(?=[\s\[(<>=!~;]|$)", re.MULTILINE
)
_HINTS = (
    "building wheel",
    "Building wheel",
    "build wheel",
    "Failed to build",
    "Failed to download and build",
    "metadata-gen",
    "egg_info",
)
_NOT_FOUND = re.compile(
    rf"(?:No matching distribution found for|Could not find a version that satisfies the requirement) (?P<name>{_NAME})"
    r"(?:\[[\w,-]{1,60}\])?(?P<spec>(?:,?[ ]?(?:===?|[<>!~]=|[<>])[ ]?[\w.!+*-]{1,40}){0,8})(?=[\s,;(]|$)"
)
_OFFERED = "(from versions: "
_LONGEST = 20_000
"""Characters of a list of versions."""
_MOST = 12
"""Requirements that are explained."""
_MOST_MESSAGES = 200
SYSTEMS = {"linux": "Linux", "windows": "Windows", "darwin": "macOS"}
TAGS = "https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/"


def failed_builds(text: str, facts: Facts) -> list[Finding]:
    """Return a finding for each package that is built, and fails to be, because its release has no wheel for this Python."""
    if not any(hint in text for hint in _HINTS):
        return []
    python, system = _python_of(facts), _system_of(facts)
    if python is None or system not in (None, *SYSTEMS):
        return []
    found = {}
    for name, stated in _built(text):
        version = stated or version_of(name, facts)
        if name not in found and (finding := _without_wheel(name, version, python, system)) is not None:
            found[name] = finding
    return list(found.values())


def _python_of(facts: Facts) -> str | None:
    python = facts.value("python")
    return python if isinstance(python, str) and is_version(python) else None


def _system_of(facts: Facts) -> str | None:
    """Return the system as the tables name it, also one that they do not have."""
    system = facts.value("os")
    return "darwin" if system == "macos" else system if isinstance(system, str) else None


@record(frozen=True)
class _Refused:
    """A requirement for which pip finds nothing; ``offered`` are the versions it has, ``None`` if the text does not say."""

    name: str
    specifier: str
    offered: tuple[str, ...] | None

    @property
    def pin(self) -> str:
        """Return the required version; "" for a range."""
        version = self.specifier.removeprefix("==")
        return version if version != self.specifier and is_version(version) else ""

    def __str__(self) -> str:
        return f"{self.name} {self.pin}" if self.pin else f"{self.name}{self.specifier}"


def not_offered(text: str, facts: Facts) -> list[Finding]:
    """Return a finding for each requirement for which pip finds no release, if the recorded releases say why."""
    if "No matching distribution" not in text and "Could not find a version" not in text:
        return []
    return [finding for each in _refused(text)[:_MOST] if (finding := _why_refused(each, facts)) is not None]


def _refused(text: str) -> list[_Refused]:
    found: dict[tuple[str, str], _Refused] = {}
    for match in islice(_NOT_FOUND.finditer(text), _MOST_MESSAGES):
        name, specifier = normalized(match["name"]), match["spec"].replace(" ", "")
        end = text.find("\n", match.end())
        rest = text[match.end() : end if end >= 0 else len(text)][:_LONGEST]
        _, told, versions = rest.partition(_OFFERED)
        offered = tuple(filter(is_version, map(str.strip, versions.partition(")")[0].split(",")))) if told else None
        known = found.get((name, specifier))
        found[name, specifier] = _Refused(name, specifier, offered if known is None or offered is not None else known.offered)
    return list(found.values())


def _why_refused(each: _Refused, facts: Facts) -> Finding | None:
    system = _system_of(facts)
    system = system if system in SYSTEMS else None
    if system is not None and (found := of_other_systems(each.name, system)) is not None:
        return found
    release, _, label = each.pin.partition("+")
    if label:
        return _labelled(release, label) if each.name == "torch" else None
    return never_released(each.name, each.pin) or _of_another_python(each, facts, system)


def _labelled(release: str, label: str) -> Finding | None:
    """Return the finding for a build of torch that is on its own index, or nowhere; ``None`` if its builds are unknown."""
    cuda = cuda_of(label)
    there = {build.cuda for build in open_code_tables().torch_builds(release)}
    if cuda is None or not there:
        return None
    numbered = sorted((each for each in there if each[:1].isdecimal()), key=key_of, reverse=True)
    index = f'pip install "torch=={release}+{label}" --index-url {INDEX}/{label}'
    if cuda in there or not cuda[:1].isdecimal():
        title = f"torch {release}+{label} is only on the index for {label}"
        why = "The default index has the same release without a label, built for one CUDA release."
        fixes = [Fix("source-install", "torch", f"=={release}+{label}", "take it from there", index)]
    else:
        title = f"torch {release} was not built for CUDA {cuda}"
        why = f"Its index has builds for CUDA {', '.join(reversed(numbered))}."
        fixes = [torch_for(release, each, f"the same release for CUDA {each}") for each in numbered]
    return Finding(
        rule="wheels-torch", origin="release", effect="install", title=title, why=why, packages={"torch": f"{release}+{label}"},
        facts=("build",), fixes=tuple(fixes), evidence=(TAGS,), here=_HERE,
    )  # fmt: skip


_HERE = "the message of the installer"
_PYTHONS = tuple(f"3.{minor}" for minor in range(7, 16))
_USUAL = "3.12"
"""The newest Python that is suggested where an older one does as well: almost every package has wheels for it."""


def _of_another_python(each: _Refused, facts: Facts, system: str | None) -> Finding | None:
    """Return the finding for releases that are not for this Python, which the versions that pip offers may tell."""
    package, stated = open_declared().package(each.name), _python_of(facts)
    try:
        ranges = ranges_of(each.specifier)
    except ValueError:
        return None
    releases = [r for r in package.releases if r.yanked is None or r.version == each.pin] if package is not None else []
    wanted = [release for release in releases if contains(ranges, key_of(release.version))]
    able = [python for python in _PYTHONS if any(_is_for(release, python, system) for release in wanted)]
    is_older = bool(each.pin and releases) and key_of(each.pin) < key_of(releases[0].version)
    if not able and not is_older:
        return None
    if not each.offered and stated is None:  # another Python, or no connection to the index
        unclear = is_older or able[-1] == _PYTHONS[-1]
        return None if unclear else _unavailable(each, facts, "this Python", able, [_other_python(able)])
    places = _places(each, releases, wanted, (stated,) if stated else _PYTHONS, (system,) if system else _systems(releases))
    of_system = len({python for python, _ in places}) > 1
    certain = not of_system or (len({on for _, on in places}) == 1 and system is None)
    if not places or (is_older and not certain):
        return None
    python, on = places[0]
    where = "this Python" if not certain else SYSTEMS[on] if of_system else f"Python {series_of(python)}"
    others = [other for other in SYSTEMS if any(_is_for(r, python, other) for r in wanted)] if of_system else []
    fixes = [_other_system(others) if others else _other_python(able)]
    first, last = (key_of(wanted[0].version), key_of(wanted[-1].version)) if wanted else (key_of(each.pin), key_of(each.pin))
    there = [release.version for release in releases if certain and _is_for(release, python, on)]
    if (after := next((version for version in there if key_of(version) > last), None)) is not None:
        fixes.insert(0, upgrade_to(each.name, after, f"the first release after it for {where}"))
    elif (before := next((version for version in reversed(there) if key_of(version) < first), None)) is not None:
        fixes.append(downgrade_to(each.name, before, f"the newest release before it for {where}"))
    return _unavailable(each, facts, where, able, fixes, certain=certain, of_system=of_system)


def _unavailable(
    each: _Refused, facts: Facts, where: str, able: Sequence[str], fixes: Sequence[Fix], *,
    certain: bool = False, of_system: bool = False,
) -> Finding:  # fmt: skip
    """Return the finding for a requirement without a release for a Python or system; ``able`` are the Pythons that have one."""
    reason = "It has wheels for older Pythons."
    if able:
        reason = f"It is for Python {able[0] if len(able) == 1 else f'{able[0]} to {able[-1]}'}."
    if of_system and certain:
        reason = "It has no wheel for this system, and no source distribution."
    return Finding(
        rule=f"wheels-{each.name}", origin="release", verdict="hit" if certain else "possible", effect="install",
        title=f"{each} is not available for {where}", why=f"{reason} Installers skip what is not for their Python and system.",
        packages={each.name: each.pin or version_of(each.name, facts)}, facts=("os" if of_system else "python",),
        fixes=tuple(fixes), evidence=(TAGS,), here=_HERE,
    )  # fmt: skip


def _other_system(systems: Sequence[str]) -> Fix:
    return Fix("config", text=f"use {' or '.join(SYSTEMS[each] for each in systems)}, which it is for")


def _other_python(pythons: Sequence[str]) -> Fix:
    """Return the fix to use one of these Pythons; without any, the release is older than all that are recorded."""
    if not pythons:
        return Fix("config", text="use an older Python, which it has wheels for")
    python = max((each for each in pythons if key_of(each) <= key_of(_USUAL)), key=key_of, default=pythons[0])
    return Fix("config", text=f"use Python {python}, which it is for", command=f"uv venv --python {python}")


def _places(
    each: _Refused, releases: Sequence[Published], wanted: Sequence[Published], pythons: Sequence[str], systems: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the (Python, system) pairs on which pip finds what it offers and nothing that is wanted, those that fit best."""
    offered = frozenset(each.offered or ())
    known = offered & {release.version for release in releases}
    newest = max(map(key_of, offered), default=None)  # later releases may not have been published when the message was
    found: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for python in pythons:
        for system in systems:
            there = {release.version for release in releases if _is_for(release, python, system)}
            unseen = {version for version in there - offered if newest is not None and key_of(version) < newest}
            if known <= there and there.isdisjoint(release.version for release in wanted):
                found.setdefault((len(unseen), len(there - known)), []).append((python, system))
    return found[min(found)] if found else []


def _systems(releases: Sequence[Published]) -> tuple[str, ...]:
    """Return the systems that can make a difference: one if none of the releases has wheels for some systems alone."""
    return tuple(SYSTEMS) if any(release.wheels and "sdist" not in release.wheels for release in releases) else ("linux",)


def _is_for(release: Published, python: str, system: str | None) -> bool:
    return release.supports(python) and release.has_files_for(system, python)


def of_other_systems(name: str, system: str) -> Finding | None:
    runs = runs_of(name)
    others = [title for each, title in SYSTEMS.items() if any(fits(run.wheels, each, None) for run in runs)]
    if not others or any(fits(run.wheels, system, None) or "sdist" in run.wheels.split() for run in runs):
        return None
    instead = INSTEAD.get((name, system))
    fixes = [Fix("config", text=f"use {' or '.join(others)}{' (WSL 2)' if system == 'windows' and 'Linux' in others else ''}")]
    if instead is not None:
        text = f"third-party builds of {name} for {SYSTEMS[system]}"
        fixes.insert(0, by_pip("pin", instead, None, text))
    return Finding(
        rule=f"wheels-{name}",
        origin="release",
        effect="install",
        title=f"No release of {name} has a wheel for {SYSTEMS[system]}",
        why=f"The index has wheels for {' and '.join(others)}, and no source that installers could build.",
        packages={name: None},
        facts=("os",),
        fixes=tuple(fixes),
        evidence=(TAGS,),
        here=f"the installation of {name}",
    )


def _built(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the packages whose build fails, with the version if the text has it."""
    sources = {normalized(each["name"]): each["version"] for each in _SOURCE.finditer(text)}
    for each in _NAMED.finditer(text):
        name = normalized(each["name"] or each["name_2"])
        yield name, each["version"] or sources.get(name)
    for preparing in _PREPARING.finditer(text):
        before = [*_COLLECTING.finditer(text, 0, preparing.start())]
        if before:
            name = normalized(before[-1]["name"])
            yield name, before[-1]["version"] or sources.get(name)


def runs_of(name: str) -> Sequence[Run]:
    """Return the wheels of the releases of a package; of those that have some everywhere, nothing is known."""
    if known := wheels_of(name):
        return known
    package = open_declared().package(name)
    releases = package.releases if package is not None else ()
    return [Run(each.version, each.version, each.wheels) for each in releases if each.wheels and each.yanked is None]


def _without_wheel(name: str, version: str | None, python: str, system: str | None) -> Finding | None:
    runs = runs_of(name)
    here = version if version is not None and is_version(version) else None
    fitting = [run for run in runs if fits(run.wheels, system, python)]
    own = next((run for run in runs if here and key_of(run.first) <= key_of(here) <= key_of(run.last)), None)
    if not fitting or (here is None and fitting == runs) or (here is not None and (own is None or own in fitting)):
        return None
    on = f"Python {series_of(python)}" + (f" on {SYSTEMS[system]}" if system is not None else "")
    first = next((run.first for run in fitting if here is None or key_of(run.first) > key_of(here)), None)
    fixes = []
    if first is not None:
        spec = f">={first}"
        text = f"the first release with a wheel for {on}"
        fixes.append(by_pip("upgrade", name, spec, text))
    if own is not None and fits(own.wheels, system, None):
        newest = newest_python(own.wheels, system)
        command = f"uv venv --python {newest}"
        fixes.append(Fix("config", text=f"use Python {newest}, the newest one with wheels", command=command))
    which = f"{name} {here}" if here is not None else f"{name} before {first}"
    return Finding(
        rule=f"wheels-{name}",
        origin="release",
        verdict="hit" if here is not None else "possible",
        effect="install",
        title=f"{which} has no wheel for {on}, and building it fails",
        why="Without a matching wheel, installers compile the source, which needs the project's compilers and libraries. "
        "Compiler errors are only a consequence.",
        packages={name: here},
        facts=("python",),
        fixes=tuple(fixes),
        evidence=(TAGS,),
        here=f"the build of {name}",
    )
