"""What an incomplete file installs: its pins, if they are all, otherwise what uv resolves today; pins no installer takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from compat.api.case import ONLY_LISTED, REFUSED, Case, read_again
from compat.api.far_back import from_newest_of_ranges
from compat.checks.choices import is_union
from compat.checks.ranges import is_nightly, newest_on_its_index
from compat.checks.selections import names_other_index
from compat.checks.torch_build import OF_IMAGE, replaced_image_of
from compat.index import Index
from compat.index.metadata import File
from compat.model import EMPTY, Distribution, Environment, Finding, Source, normalized, of_no_index
from compat.records import replace
from compat.redact import excerpt
from compat.repair.builds import libraries_of_default
from compat.repair.builds import unserved as unserved_builds
from compat.repair.candidates import IndexUniverse, Release, parse_version
from compat.repair.inputs import UNBUILT, is_given, problem_of
from compat.repair.planner import Means
from compat.repair.problem import UNRESOLVED, Policy
from compat.repair.relaxation import Needs
from compat.repair.resolved import resolved_by_uv
from compat.repair.target import Target, satisfies
from compat.repair.verify import NOT_FOUND, Question, unmet_requirements

INDEX = Source("index")
RESOLVED = "that uv resolves today"
_OLDER = 3
"""Maximum number of older Pythons that are tried."""


def complete_case(case: Case, means: Means) -> Case:
    """The case of an incomplete file with all packages that get installed.

    Pins often have wheels for a newer Python than what they require; if uv finds no solution for an inferred Python, or a range
    only has wheels for others, the next older ones are tried.
    """
    if not case.asked and all(map(of_no_index, case.environment.distributions or ())):
        return replace(case, unresolved="the file leaves uv nothing to resolve")
    found = from_newest_of_ranges(case, closed(case, means) or resolve_case(case, means), means, resolve_case)
    assert case.listing is not None
    if found.anchors:
        return found
    lacking = _for_other_pythons(found, means.index) if case.pythons and found.resolves else frozenset()
    for python in case.pythons[:_OLDER] if lacking or found.resolves is False else ():
        other = read_again(replace(case, environment=replace(case.environment, python=python)), case.listing, means)
        other = closed(other, means) or resolve_case(other, means)
        if other.resolves and not lacking & _unbuilt(other):
            why = f"that {' and '.join(sorted(lacking))} has wheels for" if lacking else "that uv resolves the file for"
            return replace(other, told=(f"Python {python} (the newest {why})", *other.told[1:]))
    if found.resolves is False and is_union(case.selection) and not case.one_by_one:
        alone = read_again(replace(case, one_by_one=True), case.listing, means)
        note = f"uv cannot resolve {case.selection} together, so each extra and group is checked on its own: "
        return complete_case(replace(alone, notes=(*alone.notes, note + excerpt(found.unresolved, 200))), means)
    return _with_others(case, found, means) if found.resolves is False else found


def _unbuilt(case: Case) -> frozenset[str]:
    """The packages of which uv found no wheel."""
    return frozenset(copy.name for copy in case.environment.distributions or () if copy.source == UNBUILT)


def _for_other_pythons(case: Case, index: Index) -> frozenset[str]:
    """The packages without a wheel that have some for the target's platform and another Python: of the installed release, or in
    the range that the file states."""
    target, unbuilt = Target(case.environment), _unbuilt(case)
    ranges = {each.distribution.name: each.distribution.specifier for each in (case.listing.entries if case.listing else ())}
    there = {copy.name: copy.version for copy in case.environment.distributions or () if copy.version is not None}
    named = [name for name in unbuilt if ranges.get(name)]
    found = {name: [file for file in files or () if satisfies(file.version, ranges[name] or "")]
             for name, files in index.files_many(named).items()}  # fmt: skip
    pins = index.files_of_pins((name, there[name]) for name in unbuilt & there.keys() - found.keys())
    found |= {name: list(files or ()) for (name, _), files in pins.items()}
    return frozenset(
        name for name, files in found.items()
        if any(each.kind == "wheel" and each.tags[2] != "any" and target.has_platform(each.tags[2]) for each in files)
    )  # fmt: skip


def original_case(case: Case) -> Case:
    """The case of a file before :func:`complete_case`."""
    told = tuple(each for each in case.told if not each.endswith(RESOLVED))
    notes = () if case.listing is None else tuple(dict.fromkeys((*case.listing.notes, *case.listing.unread)))
    case = replace(case, overrides=None, unserved=(), anchors=(), needs=None)
    return replace(case, told=told, notes=notes, resolves=None, unresolved="")


def _with_others(case: Case, refused: Case, means: Means) -> Case:
    """The case without what pins require that no installer can take on the target, if uv then resolves the file."""
    pins = pins_of(case)
    lost = unserved(pins, Target(case.environment), means.index, elsewhere=_names_other_index(case))
    found = resolve_case(case, means, spared=frozenset(lost)) if lost else refused
    if found.resolves:
        return replace(found, unserved=tuple(lost.values()))
    if found.resolves is False and NOT_FOUND not in found.unresolved and len(alone := _named_in(found.unresolved, pins)) == 1:
        # by what it requires, no installer can take this one, either
        error = refused_pins({name: pins[name] for name in alone}, found.unresolved)
        rest = resolve_case(case, means, spared=frozenset((*lost, *alone)))
        if rest.resolves:
            return replace(rest, unserved=(*lost.values(), error), unfit=frozenset(alone))
    overridden = case.listing is not None and case.listing.overridden  # which may resolve what is refused here
    if found.resolves is None or NOT_FOUND in found.unresolved or overridden or not pins.keys() - lost.keys():
        return refused
    return replace(found, unserved=(*lost.values(), refused_pins(pins, found.unresolved)))


def _names_other_index(case: Case) -> bool:
    """Whether the file names an index that is not queried, other than PyTorch's."""
    return case.listing is not None and names_other_index(case.listing)


def pins_of(case: Case) -> dict[str, str]:
    """The releases from an index that a file pins."""
    copies = (copy for copy in case.environment.distributions or () if case.listed.get(copy.name) and not of_no_index(copy))
    return {copy.name: copy.version for copy in copies if copy.version is not None}


def ranges_of(case: Case) -> dict[str, str]:
    """The releases that the ranges of a file resolve to."""
    ranged = {need.name for need in case.asked if need.specifier}
    copies = (copy for copy in case.environment.distributions or () if copy.name in ranged and not of_no_index(copy))
    return {copy.name: copy.version for copy in copies if copy.version is not None}


_STATED = re.compile(r"(?<![\w.-])([A-Za-z0-9][\w.-]*)(?:\[[^\]\s]{0,99}\])?[=<>~!]=?")


def _named_in(why: str, pins: Mapping[str, str]) -> list[str]:
    """The pins that uv's reason for a refusal is about."""
    return [name for name in dict.fromkeys(map(normalized, _STATED.findall(why))) if name in pins]


def refused_pins(pins: Mapping[str, str], why: str) -> Finding:
    """The error that installers refuse these pins, with uv's reason."""
    named = _named_in(why, pins)
    texts = [f"{name} {pins[name]}" for name in named]
    title = "Installers cannot satisfy these requirements"
    if len(texts) > 1:
        title = f"{', '.join(texts[:-1])} and {texts[-1]} cannot be installed together"
    elif texts:
        title = f"{texts[0]} cannot be installed with the other requirements"
    return Finding(
        rule=UNRESOLVED, origin="release", effect="install", title=title, why=why,
        packages=pins, facts=("python",), evidence=(_RESOLUTION,), here=why,
    )  # fmt: skip


def closed(case: Case, means: Means) -> Case | None:
    """The case marked as complete, if its pins are all that is installed: each has a wheel, and every requirement is pinned.

    ``None`` if that is false or unknown. uv would resolve to the same set, and is run on the edited file.
    """
    problem = problem_of(case.environment, asked=case.asked, policy=Policy())
    pins = problem.current
    if len(pins) != len(case.environment.distributions or ()) or any(each.source is not None for each in pins.values()):
        return None
    universe = IndexUniverse(means.index, problem.target)
    needs = {release: found for release, found in universe.needs(pins.values()).items() if found is not None}
    asked_met = all(need.name in pins and pins[need.name].meets(need.specifier) for need in case.asked)
    if (
        len(needs) < len(pins)
        or not asked_met
        or not all(map(universe.serves, needs))
        or any(unmet_requirements(problem, pins, needs))
    ):
        return None
    environment = replace(case.environment, distributions_complete=True)
    return replace(case, environment=environment, resolves=True, overrides=False, needs=needs)


_MARKER = re.compile(r"\{[^{}]*\}")
"""The marker that uv writes behind the name of a package."""


def _first_reason(why: str) -> str:
    """The first sentences of uv's message, which goes on for pages where the conflict does."""
    reason = _MARKER.sub("", why[max(0, why.find("Because ")) :])
    return excerpt(reason if len(reason) <= _LONGEST else reason[: reason.rfind(". ", 0, _LONGEST)].rstrip("."), _LONGEST)


_LONGEST = 300


def resolve_case(case: Case, means: Means, indexes: tuple[str, ...] = (), spared: frozenset[str] = frozenset()) -> Case:
    """The case of an incomplete file with all packages that uv resolves today; if uv fails, the same case with a note.

    ``spared`` are packages that it leaves out. A build of torch that no index serves is resolved as the default build of its
    release.
    """
    case = _on_vendors_indexes(_without_vendors(case, means.index))
    environment = case.environment
    every = environment.distributions or ()
    copies = [copy for copy in every if (is_given(copy) or copy.version is not None) and not replaced_image_of(copy)]
    given = frozenset(copy.name for copy in copies if is_given(copy) or of_no_index(copy))
    elsewhere = means.index.unpinned().files_many(means.index.lost()) if means.index.settings.pinned else {}
    nowhere = frozenset(name for name, files in elsewhere.items() if files == ())
    given |= nowhere
    if _names_other_index(case):
        pinned = [(copy.name, copy.version) for copy in copies if copy.version is not None and copy.name not in given]
        given |= frozenset(name for (name, _), files in means.index.files_of_pins(pinned).items() if files == ())
    given |= spared
    pins = {copy.name: copy.version for copy in copies if copy.version is not None and copy.name not in given}
    builds = unserved_builds(pins, (means.index, *map(means.index.beside, indexes)))
    public = {name: version.partition("+")[0] for name, version in builds.items()}
    asked = tuple(need.text for need in case.asked)
    given |= frozenset(name for name in pins if libraries_of_default(name, builds))  # pinned for the build, which is not read
    pins = {name: version for name, version in pins.items() if name not in given}
    limits = tuple(_text(each) for each in (case.listing.constraints if case.listing else ()) if each.name not in given)
    question = Question(
        {**pins, **public}, without=given, requires=asked, constraints=limits, indexes=() if builds else indexes
    )  # fmt: skip
    offline = means.index.offline
    settings, override = means.index.reached(), case.overrides is not False
    target = Target(environment)
    resolve = partial(
        resolved_by_uv, target=target, settings=settings, offline=offline, override=override, before=means.index.before,
        needs=partial(_needs, IndexUniverse(means.index, target)),
    )  # fmt: skip
    found = resolve(question)
    if early := _only_early(found.releases or {}, question, target, means.index):
        again = resolve(replace(question, without=question.without | early))
        found = found if again.releases is None else replace(again, unbuilt=again.unbuilt | early)
    if found.releases is None:
        note = f"{ONLY_LISTED}: {_first_reason(found.why)}"
        resolves = False if found.refused and not offline else None
        return replace(case, notes=(*case.notes, note), resolves=resolves, unresolved=found.why)
    releases = {name: version for name, version in found.releases.items() if not libraries_of_default(name, builds)}
    listed = {copy.name for copy in copies}
    if not environment.accelerators:  # ``torch==2.8.0`` is a build without CUDA where an index has one
        copies = [_as_built(copy, found.releases.get(copy.name)) for copy in copies]
    marked = {copy.name: copy.extra for copy in every if not copy.extra.keys().isdisjoint(OF_IMAGE)}
    from_index = {copy.name: copy.source for copy in every if copy.source is not None and copy.source.details.get("url")}
    sources = dict.fromkeys(found.unbuilt, UNBUILT) | from_index
    copies += [
        Distribution(name, version, source=sources.get(name, INDEX), extra=marked.get(name, EMPTY))
        for name, version in releases.items() if name not in listed
    ]  # fmt: skip
    unbuilt = [name for name in sorted(found.unbuilt) if name not in listed]
    copies += [Distribution(name, source=UNBUILT) for name in unbuilt if name not in releases]
    unknown = [name for name in unbuilt if name in found.assumed or name not in releases]
    sourced = [f"{name} {releases[name]}" for name in unbuilt if name not in unknown]
    notes = [
        *([f"{', '.join(sourced)}: no wheel, so installers build {_them(sourced)} from source"] if sourced else ()),
        *([f"{', '.join(unknown)}: no wheel, and compat builds nothing, so their requirements are unknown"] if unknown else ()),
        *(
            [f"{', '.join(sorted(builds))}: resolved as the default build, because no queried index has this one"]
            if builds
            else ()
        ),
    ]
    if replace(case, overrides=found.overridden).is_refused:
        notes.append(f"{REFUSED}: {_first_reason(found.why)}")
    environment = replace(environment, distributions=tuple(copies), distributions_complete=case.known is None)
    count = "one package" if len(releases) == 1 else f"{len(releases)} packages"
    told = (*case.told, f"the {count} {RESOLVED}")
    return replace(
        case,
        environment=environment,
        asked=tuple(need for need in case.asked if need.name in releases or need.name not in found.unbuilt),
        told=told,
        notes=(*case.notes, *notes),
        resolves=True,
        unresolved=found.why,
        overrides=found.overridden,
        unserved=_with_sources_before_the_python(case, {**releases, **pins}, found.unbuilt, means.index),
    )


def _them(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _needs(universe: IndexUniverse, name: str, version: str) -> Needs | None:
    """The requirements of a release of which uv found only the source; ``None`` if they are unknown without a build."""
    release = Release(name, version)
    needs = universe.needs([release])[release]
    return None if release in universe.assumed else needs


def _with_sources_before_the_python(
    case: Case, releases: Mapping[str, str], unbuilt: frozenset[str], index: Index
) -> tuple[Finding, ...]:
    """The errors of a case, with those of releases without a wheel for the target's Python whose source is older than it.

    Their wheels for older Pythons show that they are compiled, and code for an older Python's C interface hardly ever is.
    """
    target, named = Target(case.environment), {name for each in case.unserved for name in each.packages}
    if not target.released:
        return case.unserved
    errors = []
    found = index.files_of_pins((name, releases[name]) for name in unbuilt & releases.keys())
    for (name, version), files in found.items():
        wheels = [
            file for file in files or () if file.kind == "wheel" and file.tags[2] != "any" and target.has_platform(file.tags[2])
        ]
        old = all(file.uploaded is not None and file.uploaded < target.released for file in files or ())
        if wheels and old and name not in named:
            source = f"Installers build its source, which is older than Python {target.minor}; that usually fails."
            errors.append(replace(_finding(name, version, tuple(wheels), target), why=source))
    return (*case.unserved, *errors)


def _text(limit: Distribution) -> str:
    marker = f" ; {limit.marker}" if limit.marker else ""
    return f"{limit.name}{limit.specifier if limit.version is None else f'=={limit.version}'}{marker}"


def _without_vendors(case: Case, index: Index) -> Case:
    """The case without requirements of packages that only a vendor's index has, which the file names for them."""
    copies = case.environment.distributions or ()
    named = [copy.name for copy in copies if copy.version is None and copy.source and copy.source.details.get("url")]
    lost = {name for name, files in index.files_many(set(named) & {need.name for need in case.asked}).items() if not files}
    if not lost:
        return case
    kept = tuple(replace(copy, source=UNBUILT) if copy.name in lost else copy for copy in copies)
    return replace(
        case,
        environment=replace(case.environment, distributions=kept),
        asked=tuple(need for need in case.asked if need.name not in lost),
        notes=(*case.notes, f"{', '.join(sorted(lost))}: on an index that was not queried, so its requirements are unknown"),
    )


def _on_vendors_indexes(case: Case) -> Case:
    """The case with the release of torch that its index for one CUDA release ends with; that of a nightly build is unknown."""
    copies = tuple(map(partial(_on_its_index, case.environment), case.environment.distributions or ()))
    known = {copy.name for copy in copies if copy.version is not None or copy.source == UNBUILT}
    asked = tuple(each for each in case.asked if each.name not in known or each.extras)
    return replace(case, environment=replace(case.environment, distributions=copies), asked=asked)


def _on_its_index(environment: Environment, copy: Distribution) -> Distribution:
    if copy.version is not None:
        return copy
    if is_nightly(copy):
        return replace(copy, source=UNBUILT)
    newest = newest_on_its_index(copy, environment)
    return replace(copy, version=newest, specifier=None) if newest else copy


def _only_early(releases: Mapping[str, str], question: Question, machine: Target, index: Index) -> frozenset[str]:
    """The packages that uv resolves to a pre-release only because no final release has a wheel: an installer builds those."""

    def is_early(version: str) -> bool:
        key = parse_version(version)
        return key is None or key.is_prerelease

    def is_wheel(file: File) -> bool:
        return file.kind == "wheel" and machine.takes(file.tags)

    early = [name for name, version in releases.items() if name not in question.pins and is_early(version)]
    final = {
        name: [file for file in files or () if not is_early(file.version)] for name, files in index.files_many(early).items()
    }
    return frozenset(name for name, files in final.items() if files and not any(map(is_wheel, files)))


def _as_built(copy: Distribution, taken: str | None) -> Distribution:
    """A pin with the local version of the build that the installer chooses."""
    same = taken is not None and copy.version is not None and taken.partition("+")[0] == copy.version
    return replace(copy, version=taken) if same else copy


_RESOLUTION = "https://docs.astral.sh/uv/concepts/resolution/"
_TAGS = "https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/"


def unserved(pins: Mapping[str, str], target: Target, index: Index, *, elsewhere: bool = False) -> dict[str, Finding]:
    """The pins that no installer can take on the target, each with the error to be fixed.

    Their files are for others, or the index has other releases, but not this one. Another build may be on a vendor's index, and
    anything on an index that is not read: ``elsewhere``.
    """
    files = index.files_of_pins(pins.items())
    lost = {name: found for (name, _), found in files.items() if found and not any(_takes(target, each) for each in found)}
    absent = [name for (name, version), found in files.items() if found == () and "+" not in version and not elsewhere]
    gone = {name: _gone(name, pins[name]) for name, page in index.files_many(absent).items() if page}
    return {**{name: _finding(name, pins[name], found, target) for name, found in lost.items()}, **gone}


def _gone(name: str, version: str) -> Finding:
    return Finding(
        rule=f"wheels-{name}", origin="release", effect="install",
        title=f"{name} {version} is not on the index", why="Installers cannot find it: it was removed, or never released.",
        packages={name: version}, facts=(), evidence=(_TAGS,), here=f"{name} {version}",
    )  # fmt: skip


def _takes(target: Target, file: File) -> bool:
    return target.accepts_python(file.requires_python) and (file.kind != "wheel" or target.takes(file.tags))


def _finding(name: str, version: str, files: tuple[File, ...], target: Target) -> Finding:
    rejected = [each.requires_python for each in files if not target.accepts_python(each.requires_python)]
    title = f"{name} {version} has no wheel for Python {target.minor} on this platform"
    why = "It has no source distribution either, so installers cannot find it."
    if len(rejected) == len(files):
        title = f"{name} {version} does not support Python {target.minor}"
        why = f"It declares Requires-Python {rejected[0]}; installers reject it."
    return Finding(
        rule=f"wheels-{name}", origin="release", effect="install", title=title, why=why,
        packages={name: version}, facts=("python",), evidence=(_TAGS,),
        here=f"{name} {version}, Python {target.minor}",
    )  # fmt: skip
