"""The planner for a case and what it plans with, for ``fix``, ``why`` and ``suggest``; and why a package is at its version."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from compat.api.case import Case, case_of, contradictions_in, with_note_on_choices
from compat.api.commands import Options
from compat.api.resolution import complete_case, pins_of, ranges_of, refused_pins
from compat.checks.requirements import Requires
from compat.checks.torch_build import INDEX
from compat.checks.unresolvable import HELD_BY_IMAGE
from compat.errors import InputError, Undecided, complain, on_terminal
from compat.index import Index, Store, gather
from compat.model import EMPTY, Finding
from compat.records import record, replace
from compat.repair.candidates import IndexUniverse
from compat.repair.inputs import needs_of_installed, problem_of, roots
from compat.repair.plan import Plan
from compat.repair.planner import Means, Planner
from compat.repair.problem import BESIDE, Policy
from compat.repair.target import Need
from compat.repair.verify import Checks
from compat.repair.whole_plans import findings, to_fix
from compat.rules.compiled import Matrix

_LATE = 30.0
"""Seconds after the time limit in which the plan that was found may still be completed from the index."""
TIME_LIMIT = 60
"""Default time limit of the search, in seconds; the best plan found by then is checked and printed."""


def planner_of(
    case: Case, policy: Policy, means: Means, keep: Sequence[str] = (), movable: frozenset[str] = frozenset()
) -> Planner:  # fmt: skip
    """The planner for a case; ``keep`` are additional requirements, ``movable`` packages of conda that may change."""
    case = replace(case, unserved=(*case.unserved, *_held_by_image(case)))
    found_here = findings(case.environment, means.matrix, case.ignored, case.known)
    judged = (*filter(case.is_met, found_here), *case.unserved)
    refused = case.is_refused and not policy.allow_source  # a local build may require less than the wheel of its release
    if refused and not any(each.origin == "metadata" for each in judged):
        stated = {**ranges_of(case), **pins_of(case)}
        case = replace(case, unserved=(*case.unserved, refused_pins(stated, case.unresolved)))
        judged = (*judged, case.unserved[-1])
    if not policy.allow_source and any(each.origin == "metadata" and case.refuses(each) for each in judged):
        refused = True
    hashed = case.listing is not None and case.listing.hashed
    policy = replace(policy, contradictions=policy.contradictions or refused, hashed=hashed)
    found = to_fix(judged, policy)
    concerned = {name for each in found for name in each.packages} | movable
    concerned |= {*BESIDE} if "torch" in concerned else set()
    problem = problem_of(
        case.environment, asked=case.asked, keep=[*keep, *case.anchors], direct=case.direct or (), policy=policy,
        ignored=case.ignored, concerned=concerned, listed=None if case.whole else case.listed, unserved=case.unserved,
        known=case.known,
    )  # fmt: skip
    # what a project in a folder requires is edited; an index may have another one of its name and version
    own = {release: EMPTY for release in problem.current.values() if release.source and release.source.kind == "directory"}
    needs = {**own, **(case.needs or {}), **needs_of_installed(case.folders, problem.current, problem.target)}
    alone = frozenset(problem.current) - problem.unnamed  # of an incomplete list, what the user has listed
    if problem.complete and (found or keep):
        missing = [release for release in problem.current.values() if release not in needs]
        read = IndexUniverse(means.index, problem.target).needs(missing)
        needs |= {release: found for release, found in read.items() if found is not None}
        alone = roots(needs, problem.current)
    problem = replace(problem, alone=alone, direct=alone if case.direct is None else problem.direct)
    return Planner(problem, needs, means, judged)


def _held_by_image(case: Case) -> tuple[Finding, ...]:
    """The errors of what a constraint of the image keeps pip from installing, which no release fixes."""
    found = (each.finding for each in contradictions_in(case))
    return tuple(each for each in found if each.rule == HELD_BY_IMAGE and each not in case.unserved)


def means_of(options: Options, matrix: Matrix, progress: Callable[[str], None] | None = None) -> Means:
    """The means of planning, from the options and the index configuration; the caller has to close its index."""
    settings = gather(
        os.path.dirname(options.operands[0]) or "." if options.operands else ".",
        index_url=options.one("index-url"), extra_index_urls=tuple(options.all("extra-index-url")),
        find_links=tuple(options.all("find-links")),
    )  # fmt: skip
    deadline = monotonic() + seconds_of(options.one("time-limit") or str(TIME_LIMIT))
    settings = replace(settings, deadline=deadline + _LATE)
    index = Index(settings, Store(), offline=options.flag("offline"), before=options.one("before"))
    return Means(index, settings, matrix, options.one("torch-index") or INDEX, progress, deadline, set())


def seconds_of(text: str) -> float:
    """Return a time limit; :class:`InputError` if it is no number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--time-limit: expected seconds, not {text!r}") from None


class _Progress:
    """Progress on a single, overwritten line of the terminal."""

    def __init__(self) -> None:
        self.last = ""
        self._shown = on_terminal()

    def __call__(self, text: str) -> None:
        self.last = text
        if self._shown:
            from shutil import get_terminal_size

            complain(f"\r\033[K{text[: get_terminal_size().columns - 1]}", end="")

    def clear(self) -> None:
        if self._shown:
            complain("\r\033[K", end="")


@contextmanager
def planning(
    options: Options, matrix: Matrix, policy: Policy, case: Case | None = None, part: int | None = None
) -> Iterator[tuple[Case, Planner]]:  # fmt: skip
    """Context manager for the case named by the options (or ``case``) and its planner; closes the index.

    ``part`` is the number of an environment of a file that describes several.

    Raises :class:`Undecided` if time ran out before a plan was found. On interruption the progress so far is printed.
    """
    progress = _Progress()
    opened: list[Means] = []

    def means() -> Means:
        if not opened:
            opened.append(means_of(options, matrix, progress))
        return opened[0]

    try:
        case = case or case_of(options, matrix, lambda: means().index, part)
        case = case if case.whole else with_note_on_choices(complete_case(case, means()))
        yield case, planner_of(case, policy, means(), options.values.get("keep", ()))
    except TimeoutError as problem:
        raise Undecided(str(problem)) from None
    except KeyboardInterrupt:
        progress.clear()
        if progress.last:
            complain(f"compat: interrupted: {progress.last}")
        raise
    finally:
        for each in opened:
            each.index.close()
        progress.clear()


@record(frozen=True)
class Why:
    """``requirements`` are all known requirements between installed packages, ``versions`` the installed (name, version) pairs.

    ``moved`` is the plan with the package at ``wanted``; ``None`` if that is the installed release.
    """

    name: str
    version: str
    requirements: tuple[Requires, ...]
    versions: tuple[tuple[str, str], ...]
    wanted: str
    moved: Plan | None = None

    @property
    def asking(self) -> tuple[Requires, ...]:
        """The requirements on the package itself."""
        return tuple(each for each in self.requirements if each.asked == self.name)


def why(name: str, planner: Planner, wanted: str | None = None, *, planned: bool = True) -> Why:
    """Explain what holds a package at its version, and what else a move to its newest release (or ``wanted``) changes.

    Without ``planned``, only the requirements are returned and no move is planned.
    :class:`InputError` if the package is not installed, :class:`Undecided` if required data could not be read.
    """
    current = planner.problem.current.get(name)
    if current is None:
        raise InputError(f"{name} is not among the packages")
    requirements = planner.requirements()
    wanted = (wanted or planner.newest(name)) if planned else current.version
    if wanted is None:
        raise Undecided(f"the releases of {name} could not be read: {planner.unread(name)}")
    moved = None
    if wanted != current.version:
        moved = planner.moved(Need(name, f"=={wanted}", ())).plan(checks=Checks(uv=False))
        if not moved.changes and not moved.proven and moved.unread:
            other, reason = next(iter(moved.unread.items()))
            raise Undecided(f"{other} could not be read: {reason}")
    versions = tuple((release.name, release.version) for release in planner.problem.current.values())
    return Why(name, current.version, requirements, versions, wanted, moved)
