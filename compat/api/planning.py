"""Shared by ``fix``, ``why`` and ``suggest``: the case to be fixed, and its planner."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from compat.api.report import chosen_targets, config_of, in_force, requested_of, targeted
from compat.errors import InputError, Undecided
from compat.model import Distribution, Environment, Source, of_no_index
from compat.records import record, replace
from compat.redact import excerpt
from compat.rules.compiled import Matrix

if TYPE_CHECKING:
    from compat.api.options import Options
    from compat.checks.choices import Requested
    from compat.formats.listing import Listing
    from compat.formats.project.config import ProjectConfig, Target
    from compat.index import Index
    from compat.index.records import File
    from compat.repair.candidates import Release
    from compat.repair.plan import Means, Planner
    from compat.repair.problem import Policy
    from compat.repair.relaxation import Needs
    from compat.repair.target import Need
    from compat.repair.target import Target as Machine
    from compat.repair.uv import Question


INDEX = Source("index")
_OLDER = 3
"""Maximum number of older Pythons that are tried."""
_ONLY_LISTED = "uv cannot resolve this file, so only the packages it lists are checked"
_REFUSED = "installers refuse these pins, which contradict each other"
_TIME_LIMIT = 90
"""Default time limit of the search, in seconds; the best plan found by then is checked and printed."""


@record(frozen=True)
class Case:
    """The input to be fixed. ``file`` is its path, ``None`` for an environment; ``folders`` contain installed metadata.

    ``told`` describes the target of the plan; ``ignored`` are the rules that the project ignores. ``listing`` is the parsed
    file, ``asked_choices`` are the requested extras and groups, ``selection`` those of this case in words.
    ``resolves``: whether uv can resolve a file that lists only some of its packages (``None``: unknown; ``unresolved`` is the
    reason), ``overrides`` whether that requires its pins to override the requirements of other packages. ``needs`` are the
    requirements of its releases that were read, ``pythons`` older Pythons that the pins support as well."""

    environment: Environment
    file: str | None = None
    folders: tuple[str, ...] = ()
    interpreter: str | None = None
    direct: frozenset[str] | None = None
    asked: tuple[Need, ...] = ()
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    whole: bool = True
    ignored: frozenset[str] = frozenset()
    resolves: bool | None = None
    unresolved: str = ""
    overrides: bool | None = None
    needs: Mapping[Release, Needs] | None = None
    pythons: tuple[str, ...] = ()
    listing: Listing | None = None
    asked_choices: Requested | None = None
    selection: str = ""

    def without_note(self) -> Case:
        """Without the note that uv cannot resolve the file, where that is the answer."""
        return replace(self, notes=tuple(note for note in self.notes if not note.startswith((_ONLY_LISTED, _REFUSED))))

    @property
    def is_refused(self) -> bool:
        """Whether installers refuse the file as it is, because its pins contradict each other."""
        return self.overrides is True and self.listing is not None and self.listing.kind == "requirements"

    @property
    def listed(self) -> dict[str, bool]:
        """The packages listed in the file, in any of its selections, and whether one of them pins the package."""
        found: dict[str, bool] = {}
        for each in self.listing.entries if self.listing else ():
            copy = each.distribution
            pinned = copy.version is not None or (copy.source is not None and copy.source.kind != "index")
            found[copy.name] = found.get(copy.name, False) or pinned
        return found


def case_of(options: Options, matrix: Matrix, index: Callable[[], Index]) -> Case:
    """The case named by the options: a file, a described environment, or the installed packages.

    ``index`` is only called if the file leaves something open. :class:`InputError` if several inputs are named.
    """
    if len(options.operands) + options.flag("environment") + options.flag("python") > 1:
        raise InputError("pass only one of FILE, --python and --environment")
    config = config_of(options.operands[0] if options.operands else ".", options)
    if options.operands:
        return _of_file(options, config, matrix, index)
    if options.flag("environment"):
        from compat.formats.described import read_described

        return described_case(*read_described(options.one("environment") or ""), options)
    if options.flag("target"):
        raise InputError("--target needs a file or --environment; installed packages are always planned for this machine")
    from compat.api.machine import read_machine
    from compat.machine.interpreter import default_target, target_at
    from compat.repair.subject import placed

    python = options.one("python")
    place = target_at(python) if python else default_target(os.environ)
    machine = read_machine(python, matrix)
    environment, more = _told_of(machine.environment, None, options)
    environment, told = placed(environment)
    return Case(
        environment, folders=place.folders, interpreter=machine.interpreter, notes=(*machine.notes, *more),
        told=(f"Python {environment.python}", *told), ignored=_ignored(config, None),
    )  # fmt: skip


def described_case(environment: Environment, notes: tuple[str, ...], options: Options) -> Case:
    """The case of a described environment, for the target declared by the project or named by the options."""
    from compat.repair.subject import placed

    config = config_of(".", options)
    target = _one_target(options, config)
    environment, more = _told_of(environment, target, options)
    environment, told = placed(environment)
    told = (f"Python {environment.python}", *told)
    return Case(environment, notes=(*notes, *more), told=told, ignored=_ignored(config, target))


def _one_target(options: Options, config: ProjectConfig) -> Target | None:
    """The target to plan for; :class:`InputError` if several are declared and none is selected."""
    targets = chosen_targets(options, config)
    if len(targets) > 1:
        names = ", ".join(each.name for each in targets if each is not None)
        raise InputError(f"several targets are declared ({names}): choose one with --target", config.file)
    return next(iter(targets), None)


def _ignored(config: ProjectConfig, target: Target | None) -> frozenset[str]:
    """The rules that the project currently ignores."""
    named = (None, None if target is None else target.name)
    return frozenset(each.rule for each in config.ignores if each.target in named and in_force(each))


def _told_of(environment: Environment, target: Target | None, options: Options) -> tuple[Environment, tuple[str, ...]]:
    """The environment with the facts of its target and of the command line, and notes about them."""
    from compat.checks import named_devices

    environment, notes = targeted(environment, target, options)
    environment, more = named_devices(environment)
    return environment, (*notes, *more)


def _of_file(options: Options, config: ProjectConfig, matrix: Matrix, index: Callable[[], Index]) -> Case:
    from compat.formats.registry import format_of, read_content
    from compat.repair.subject import installed_by

    path = options.operands[0]
    content = read_content(path)
    listings = [each for each in format_of(path, content).listings(path, content) if each.entries]
    if not listings:
        raise InputError("lists no packages", path)
    if len(listings) > 1:
        names = ", ".join(each.label or each.file for each in listings)
        raise InputError(f"contains several environments ({names}); fix handles one at a time", path)
    (listing,) = listings
    target = _one_target(options, config)
    known, notes = _told_of(listing.context, target, options)
    asked = requested_of(target, options)
    found = installed_by(listing, known, matrix, index, asked)
    return Case(
        found.environment, file=path, direct=found.direct, asked=found.asked, notes=(*listing.notes, *notes), told=found.told,
        whole=found.whole, ignored=_ignored(config, target), listing=listing, asked_choices=asked, pythons=found.pythons,
        selection=found.selection,
    )  # fmt: skip


def read_again(case: Case, listing: Listing, means: Means) -> Case:
    """The case of an edited file, for the same target: the selection with the most errors."""
    from compat.repair.subject import installed_by

    known = replace(case.environment, distributions=None, distributions_complete=False)
    found = installed_by(listing, known, means.matrix, lambda: means.index, case.asked_choices)
    return replace(
        case, environment=found.environment, direct=found.direct, asked=found.asked, whole=found.whole, listing=listing,
        selection=found.selection,
    )  # fmt: skip


def closed(case: Case, means: Means) -> Case | None:
    """The case marked as complete, if its pins are all that is installed: each has a wheel, and every requirement is pinned.

    ``None`` if that is false or unknown. uv would resolve to the same set, and is run on the edited file.
    """
    from compat.repair.candidates import IndexUniverse
    from compat.repair.inputs import problem_of
    from compat.repair.problem import Policy
    from compat.repair.uv import unmet

    problem = problem_of(case.environment, asked=case.asked, policy=Policy())
    pins = problem.current
    if len(pins) != len(case.environment.distributions or ()) or any(each.source is not None for each in pins.values()):
        return None
    universe = IndexUniverse(means.index, problem.target)
    needs = {release: found for release, found in universe.needs(pins.values()).items() if found is not None}
    asked_met = all(need.name in pins and pins[need.name].meets(need.specifier) for need in case.asked)
    if len(needs) < len(pins) or not asked_met or not all(map(universe.serves, needs)) or any(unmet(problem, pins, needs)):
        return None
    environment = replace(case.environment, distributions_complete=True)
    return replace(case, environment=environment, resolves=True, overrides=False, needs=needs)


def completed(case: Case, means: Means) -> Case:
    """The case of an incomplete file with all packages that get installed.

    Pins often have wheels for a newer Python than what they require; if uv finds no solution for an inferred Python, the next
    older ones are tried.
    """
    found = closed(case, means) or resolved(case, means)
    assert case.listing is not None
    for python in case.pythons[:_OLDER] if found.resolves is False else ():
        other = read_again(replace(case, environment=replace(case.environment, python=python)), case.listing, means)
        other = closed(other, means) or resolved(other, means)
        if other.resolves:
            return replace(other, told=(f"Python {python} (the newest that uv resolves the file for)", *other.told[1:]))
    return found


def resolved(case: Case, means: Means, indexes: tuple[str, ...] = ()) -> Case:
    """The case of an incomplete file with all packages that uv resolves today; if uv fails, the same case with a note.

    A build of torch that no index serves is resolved as the default build of its release.
    """
    from compat.repair.builds import libraries_of_default, unserved
    from compat.repair.inputs import UNBUILT, is_given
    from compat.repair.target import Target
    from compat.repair.uv import Question
    from compat.repair.verify import resolved_by_uv

    case = _without_vendors(case, means.index)
    environment = case.environment
    copies = [copy for copy in environment.distributions or () if is_given(copy) or copy.version is not None]
    given = frozenset(copy.name for copy in copies if is_given(copy) or of_no_index(copy))
    elsewhere = means.index.unpinned().files_many(means.index.lost()) if means.index.settings.pinned else {}
    nowhere = frozenset(name for name, files in elsewhere.items() if files == ())
    given |= nowhere
    pins = {copy.name: copy.version for copy in copies if copy.version is not None and copy.name not in given}
    builds = unserved(pins, (means.index, *map(means.index.beside, indexes)))
    public = {name: version.partition("+")[0] for name, version in builds.items()}
    asked = tuple(need.text for need in case.asked)
    question = Question({**pins, **public}, without=given, requires=asked, indexes=() if builds else indexes)
    offline = means.index.offline
    settings, override = means.index.reached(), case.overrides is not False
    target = Target(environment)
    resolve = partial(
        resolved_by_uv, target=target, settings=settings, offline=offline, override=override, before=means.index.before
    )
    found = resolve(question)
    if early := _only_early(found.releases or {}, question, target, means.index):
        again = resolve(replace(question, without=question.without | early))
        found = found if again.releases is None else replace(again, unbuilt=again.unbuilt | early)
    if found.releases is None:
        note = f"{_ONLY_LISTED}: {excerpt(found.why, 200)}"
        resolves = False if found.refused and not offline else None
        return replace(case, notes=(*case.notes, note), resolves=resolves, unresolved=found.why)
    releases = {name: version for name, version in found.releases.items() if not libraries_of_default(name, builds)}
    listed = {copy.name for copy in copies}
    if not environment.accelerators:  # ``torch==2.8.0`` is a build without CUDA where an index has one
        copies = [_as_built(copy, found.releases.get(copy.name)) for copy in copies]
    copies += [Distribution(name, version, source=INDEX) for name, version in releases.items() if name not in listed]
    unbuilt = [name for name in sorted(found.unbuilt) if name not in listed]
    copies += [Distribution(name, source=UNBUILT) for name in unbuilt]
    notes = [
        *([f"{', '.join(unbuilt)}: no wheel, and nothing is built, so their requirements are unknown"] if unbuilt else ()),
        *([f"{', '.join(sorted(builds))}: resolved like the default build, as no index read has this one"] if builds else ()),
    ]
    if replace(case, overrides=found.overridden).is_refused:
        notes.append(f"{_REFUSED}: {excerpt(found.why, 300)}")
    environment = replace(environment, distributions=tuple(copies), distributions_complete=True)
    told = (*case.told, f"the {len(releases)} packages that uv resolves today")
    return replace(
        case,
        environment=environment,
        asked=tuple(need for need in case.asked if need.name not in found.unbuilt),
        told=told,
        notes=(*case.notes, *notes),
        resolves=True,
        unresolved=found.why,
        overrides=found.overridden,
    )


def _without_vendors(case: Case, index: Index) -> Case:
    """The case without requirements of packages that only a vendor's index has, which the file names for them."""
    from compat.repair.inputs import UNBUILT

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
        notes=(*case.notes, f"{', '.join(sorted(lost))}: on an index that is not read, so its requirements are unknown"),
    )


def _only_early(releases: Mapping[str, str], question: Question, machine: Machine, index: Index) -> frozenset[str]:
    """The packages that uv resolves to a pre-release only because no final release has a wheel: an installer builds those."""
    from compat.repair.candidates import parsed

    def is_early(version: str) -> bool:
        key = parsed(version)
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


def planner_of(case: Case, policy: Policy, means: Means, keep: Sequence[str] = ()) -> Planner:
    """The planner for a case; ``keep`` are additional requirements."""
    from compat.repair.candidates import IndexUniverse
    from compat.repair.inputs import needs_of_installed, problem_of, roots
    from compat.repair.plan import Planner
    from compat.repair.whole_plans import findings, to_fix

    judged = findings(case.environment, means.matrix, case.ignored)
    refused = case.is_refused and not policy.allow_source  # a local build may require less than the wheel of its release
    policy = replace(policy, contradictions=policy.contradictions or refused)
    found = to_fix(judged, policy)
    concerned = {name for each in found for name in each.packages}
    problem = problem_of(
        case.environment, asked=case.asked, keep=keep, direct=case.direct or (), policy=policy, ignored=case.ignored,
        concerned=concerned, listed=None if case.whole else case.listed,
    )  # fmt: skip
    needs = {**(case.needs or {}), **needs_of_installed(case.folders, problem.current, problem.target)}
    alone = frozenset(problem.current)  # every package of an incomplete list was listed by the user
    if problem.complete and (found or keep):
        missing = [release for release in problem.current.values() if release not in needs]
        read = IndexUniverse(means.index, problem.target).needs(missing)
        needs |= {release: found for release, found in read.items() if found is not None}
        alone = roots(needs, problem.current)
    problem = replace(problem, alone=alone, direct=alone if case.direct is None else problem.direct)
    return Planner(problem, needs, means, judged)


def means_of(options: Options, matrix: Matrix, progress: Callable[[str], None] | None = None) -> Means:
    """The means of planning, from the options and the index configuration; the caller has to close its index."""
    from compat.checks.torch_build import INDEX
    from compat.index import Index, Store, gather
    from compat.repair.plan import Means

    settings = gather(
        os.path.dirname(options.operands[0]) or "." if options.operands else ".",
        index_url=options.one("index-url"), extra_index_urls=tuple(options.all("extra-index-url")),
        find_links=tuple(options.all("find-links")),
    )  # fmt: skip
    seconds = _seconds(options.one("time-limit") or str(_TIME_LIMIT))
    index = Index(settings, Store(), offline=options.flag("offline"), before=options.one("before"))
    return Means(index, settings, matrix, options.one("torch-index") or INDEX, progress, monotonic() + seconds)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--time-limit: expected seconds, not {text!r}") from None


class _Progress:
    """Progress on a single, overwritten line of the terminal."""

    def __init__(self) -> None:
        self.last = ""
        self._shown = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        self.last = text
        if self._shown:
            from shutil import get_terminal_size

            print(f"\r\033[K{text[: get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextmanager
def planning(options: Options, matrix: Matrix, policy: Policy, case: Case | None = None) -> Iterator[tuple[Case, Planner]]:
    """Context manager for the case named by the options (or ``case``) and its planner; closes the index.

    Raises :class:`Undecided` if time ran out before a plan was found. On interruption the progress so far is printed.
    """
    progress = _Progress()
    opened: list[Means] = []

    def means() -> Means:
        if not opened:
            opened.append(means_of(options, matrix, progress))
        return opened[0]

    try:
        case = case or case_of(options, matrix, lambda: means().index)
        case = case if case.whole else completed(case, means())
        yield case, planner_of(case, policy, means(), options.values.get("keep", ()))
    except TimeoutError as problem:
        raise Undecided(str(problem)) from None
    except KeyboardInterrupt:
        progress.clear()
        if progress.last:
            print(f"compat: interrupted: {progress.last}", file=sys.stderr)
        raise
    finally:
        for each in opened:
            each.index.close()
        progress.clear()
