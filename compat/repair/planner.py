"""Planning: the cheapest plan for a problem, its reasons, and the contradiction where there is none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from time import monotonic

from packaging.version import Version

from compat.checks.requirements import Requires
from compat.checks.torch_build import INDEX
from compat.formats.edit.changes import Change
from compat.index import Index, Settings
from compat.model import Finding, Source
from compat.records import record, replace
from compat.repair.builds import Flavours
from compat.repair.by_uv import Asking, chosen_by_uv
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.engine import ERRORS, LEVELS
from compat.repair.explain import (
    conflict,
    contradiction_text,
    most_helpful_removal,
    next_best,
    reasons,
    why_unsatisfied,
)
from compat.repair.plan import Plan, cost_of
from compat.repair.problem import BESIDE, BUILT_AGAINST_TORCH, UNRESOLVED, Problem, family, is_wheel
from compat.repair.relaxation import Needs
from compat.repair.resolved import resolved_by_uv
from compat.repair.rules import MOVES, Memo, advised, forbidden, forbidden_by_source, forbidden_by_wheels, recommended
from compat.repair.solve import Solution, Solver
from compat.repair.source_builds import Builds, Commits, Variants, commits_of
from compat.repair.target import Need
from compat.repair.verify import (
    Checks,
    Verified,
    accepted_by_uv,
    brought_along,
    installable_by_uv,
    is_partial,
    question,
    replaced_libraries,
)
from compat.repair.whole_plans import WholePlans, to_fix
from compat.rules.compiled import Matrix
from compat.tables.builds import open_code_tables
from compat.tables.declared import Declared

_BY_UV = Checks()
_RELIEF = 10.0
"""Seconds for finding the user requirement whose removal resolves a contradiction."""
_LATE = 15.0
"""Seconds for the answers of uv, after the deadline of the search."""


@record(frozen=True)
class Means:
    """Resources for planning. ``torch_index`` is the base URL of torch's indexes, one for each CUDA version; ``deadline`` is
    in monotonic seconds. ``opened`` are the packages that an earlier search needed: the next one reads them at once."""

    index: Index
    settings: Settings
    matrix: Matrix
    torch_index: str = INDEX
    progress: Callable[[str], None] | None = None
    deadline: float | None = None
    opened: set[str] | None = None

    def is_late(self, seconds: float = 0.0) -> bool:
        """Whether the deadline passed that many seconds ago."""
        return self.deadline is not None and monotonic() > self.deadline + seconds


class Planner:
    """Plans for one problem."""

    def __init__(
        self, problem: Problem, needs: Mapping[Release, Needs], means: Means, found: tuple[Finding, ...] | None = None
    ) -> None:  # fmt: skip
        """``needs`` are the requirements of installed releases known without an index, ``found`` the environment's findings."""
        self.means, self._needs = means, dict(needs)
        self._warnings = problem.policy.warnings
        self._whole = WholePlans(
            problem.environment, means.matrix, problem.current, problem.ignored, warnings=self._warnings, found=found,
            unserved=problem.unserved, known=problem.known,
        )  # fmt: skip
        self.errors = to_fix(self._whole.of(problem.current), problem.policy)
        self.problem = _with_findings(problem, self.errors, means.matrix)
        base = IndexUniverse(means.index, problem.target)
        flavours = Flavours(
            problem.environment,
            problem.current,
            open_code_tables(),
            Declared(),
            base,
            means.index,
            means.torch_index,
            hashed=problem.policy.hashed,
        )
        policy = problem.policy
        builds = (Builds(base),) if policy.allow_source else ()
        commits = (Commits(base, means.matrix),) if (policy.allow_source or policy.allow_commits) and not policy.hashed else ()
        self._universe = Variants(base, flavours, (*builds, *commits))

    def plan(self, *, explained: bool = True, contrasted: bool = False, checks: Checks = _BY_UV) -> Plan:
        """The cheapest plan, past the deadline the best of those found by the search and by uv; ``TimeoutError`` without one.

        ``explained`` adds the reason of each change, ``contrasted`` the next-best plan.
        """
        solver = self._solver(self.problem, self.means.deadline)
        try:
            solution = self._solved(solver)
        except TimeoutError:
            by_uv = self._by_uv(solver, self.errors)
            if by_uv is None:
                raise
            return self._made(solver, by_uv, checks, explained=explained)
        if solution.chosen is None:
            core, relief, narrowed = self._contradiction(solver, self.errors)
            return Plan(
                core=core, relief=relief, policies=self.problem.policy.said(), unread=solution.unread,
                narrowed=narrowed, proven=solution.decided,
            )  # fmt: skip
        by_uv = None if solution.optimal else self._by_uv(solver, self._errors_of(solution.chosen))  # not checked in time
        plan = self._made(solver, by_uv or solution, checks, explained=explained)
        return replace(plan, next_best=next_best(solver, solution)) if contrasted and plan.changes else plan

    def solved(self) -> tuple[Solver, Solution]:
        """The solver and the cheapest choice of releases, not yet verified."""
        solver = self._solver(self.problem, self.means.deadline)
        return solver, self._solved(solver)

    def _solved(self, solver: Solver) -> Solution:
        """The solution, and what was read for it for the next planner."""
        opened = self.means.opened
        solution = solver.solve([*self._seeds(), *sorted(opened or ())])
        self._needs.update(solver.needs)
        if opened is not None:
            opened.update(solver.opened)
        return solution

    def _errors_of(self, chosen: Mapping[str, Release]) -> tuple[Finding, ...]:
        return to_fix(self._whole.of(chosen), self.problem.policy)

    def _by_uv(self, solver: Solver, found: tuple[Finding, ...]) -> Solution | None:
        """Releases that uv finds with fewer errors than the search has ``found``; ``None`` if there are none."""
        if not found:
            return None
        index, deadline = self.means.index, monotonic() + _LATE
        resolve = partial(
            resolved_by_uv, target=self.problem.target, settings=index.reached(), offline=index.offline, override=False,
            before=index.before, seconds=_LATE,
        )  # fmt: skip
        relaxation = solver.relaxation()
        asking = Asking(resolve, self._errors_of, self._universe, relaxation.forbidden, deadline, self._universe.serves)
        chosen = chosen_by_uv(self.problem, self.errors, asking, len(found))
        if chosen is None:
            return None
        left = len(self._errors_of(chosen))
        cost = tuple(left if level == ERRORS else 0 for level in LEVELS)
        added = frozenset(chosen.keys() - self.problem.current.keys())
        return Solution(chosen, cost, optimal=False, relaxation=relaxation, unread={}, rounds=0, added=added)

    def moved(self, need: Need) -> Planner:
        """A planner for the same problem with an additional requirement."""
        return Planner(replace(self.problem, keep=(*self.problem.keep, need)), self._needs, self.means)

    def with_commits(self) -> Planner | None:
        """A planner that also considers commits recommended by rules; ``None`` if that adds no candidates."""
        policy = self.problem.policy
        concerned = {name for each in self.errors for name in each.packages}
        if policy.allow_source or policy.allow_commits or not concerned & {name for name, _ in commits_of(self.means.matrix)}:
            return None
        return Planner(replace(self.problem, policy=replace(policy, allow_commits=True)), self._needs, self.means)

    def with_older(self) -> Planner | None:
        """A planner that also considers old releases of transitive packages; ``None`` if that adds no candidates.

        A release that a direct requirement needs to run on the target may pin its own requirements to old releases.
        """
        policy = self.problem.policy
        if policy.any_age or policy.older or not self.problem.current.keys() - self.problem.direct:
            return None
        return Planner(replace(self.problem, policy=replace(policy, older=True)), self._needs, self.means)

    def without_remedy(self) -> tuple[Finding, ...]:
        """The errors about one package that all its candidates have, while newer releases of it are for other Pythons: whatever
        moves, they stay."""
        found = []
        for each in self.errors:
            name = next(iter(each.packages), "")
            if len(each.packages) != 1 or name not in self.problem.current:
                continue
            candidates = self.problem.candidates(name, self._universe.releases([name])[name] or ())
            if self.for_other_pythons((each,)) and all(self._keeps(each, release) for release in candidates):
                found.append(each)
        return tuple(found)

    def _keeps(self, error: Finding, release: Release) -> bool:
        moved = {**self.problem.current, release.name: release}
        return any(each.rule == error.rule for each in self._whole.of(moved))

    def required_by(self, release: Release) -> frozenset[str]:
        """The packages that a release requires, if its requirements were read."""
        return frozenset(need.name for need in self._needs.get(release, {}).get("", ()))

    def newest(self, name: str) -> str | None:
        """The newest candidate of a package; ``None`` if its releases could not be read."""
        found = self._universe.releases([name])[name]
        candidates = self.problem.candidates(name, found) if found else ()
        return candidates[-1].version if candidates else None

    def limit(self, name: str, version: str) -> str:
        """The shortest upper bound that excludes the releases after this one (``<26``); "" if they could not be read."""
        after = Version(version)
        newer = (each.key for each in self._universe.releases([name])[name] or () if each.plain and each.key > after)
        first = min((each for each in newer if not each.is_prerelease), default=None)
        if first is None or first.epoch:
            return ""
        bounds = (".".join(map(str, first.release[:length])) for length in range(1, len(first.release) + 1))
        return next((f"<{each}" for each in bounds if after < Version(each) <= first), "")

    def unread(self, name: str) -> str:
        """Why the releases of a package could not be read."""
        return self._universe.unknown.get(name, "there are none")

    def requirements(self) -> tuple[Requires, ...]:
        """The requirements between installed packages; those of extras only if they have a specifier."""
        current = self.problem.current
        missing = [release for release in current.values() if release not in self._needs]
        self._needs.update({each: needs for each, needs in self._universe.needs(missing).items() if needs is not None})
        return tuple(
            Requires(release.name, need.name, need.specifier, current[need.name].meets(need.specifier), extra or None)
            for release in current.values() for extra, needs in self._needs.get(release, {}).items()
            for need in needs if need.name in current and (need.specifier or not extra)
        )  # fmt: skip

    def _solver(self, problem: Problem, deadline: float | None) -> Solver:
        matrix, ignored, warnings, memo = self.means.matrix, problem.ignored, self._warnings, Memo()
        by_address = frozenset(name for name, each in problem.current.items() if is_wheel(each.source))
        return Solver(
            problem, self._universe, needs=self._needs, progress=self.means.progress, deadline=deadline,
            rules=lambda current, known: [
                *forbidden(matrix, problem.environment, current, known, ignored, warnings=warnings, memo=memo),
                *self._universe.forbidden(known), *forbidden_by_source(problem.environment, known, memo),
                *forbidden_by_wheels(open_code_tables().published, known, by_address),
            ],
            judge=self._whole,
        )  # fmt: skip

    def _seeds(self) -> list[str]:
        """The packages of the errors, whose releases are always read."""
        found = (each for each in self.errors if each.rule != UNRESOLVED)
        return [name for each in found for name in each.packages if name in self.problem.current]

    def _made(self, solver: Solver, solution: Solution, checks: Checks, *, explained: bool) -> Plan:
        chosen, current = dict(solution.chosen or {}), self.problem.current
        unneeded = replaced_libraries(self.problem, chosen, solver.needs)
        for name in unneeded:
            del chosen[name]
        names = sorted(
            name for name in {*current, *chosen}
            if getattr(current.get(name), "version", None) != getattr(chosen.get(name), "version", None)
        )  # fmt: skip
        left = self._errors_of(chosen)
        fixed = [each for each in self.errors if each.rule not in {other.rule for other in left}]
        changed = [each for each in names if each not in unneeded]
        why = reasons(solver, chosen, changed, fixed, self._whole.of) if explained else {}
        why |= {name: f"only torch {current['torch'].public} requires it" for name in unneeded if explained}
        implied = brought_along(self.problem, chosen, solver.needs, solver.opened) | solution.added
        changes = tuple(
            self._change(name, chosen.get(name), why.get(name, ""), implied=name in implied, with_torch="torch" in names)
            for name in names
        )
        rules = sum(not chosen.keys().isdisjoint(each.packages) for each in left) <= solution.left(ERRORS)
        nothing: tuple[tuple[str, ...], str, Mapping[str, str]] = (), "", self._universe.narrowed
        core, relief, narrowed = self._contradiction(solver, left) if left and not solution.added else nothing
        refused = self._refused(left) if changes else ""
        verified = self._verified(chosen, solver, checks, rules=rules) if changes and not refused else Verified(rules, None)
        source, steps = solution.left("source installs"), solution.left("release steps")
        cost = cost_of(changes, errors=len(left), source=source, steps=steps)
        return Plan(
            changes, cost, solution.optimal and solution.decided, self.problem.policy.said(),
            verified, left, core, relief, solution.unread, narrowed, self._assumed(chosen), chosen,
            along=self._along(names, implied), partial=is_partial(self.problem, chosen, solver.needs), refused=refused,
            rebuilt=self._rebuilt(chosen), compiled=(compiled := self._compiled(names, chosen)),
            downloaded=frozenset(name for name in compiled if _is_published(name, chosen)),
            subjects=frozenset(name for each in self.errors for name in each.packages),
        )  # fmt: skip

    def _along(self, names: Collection[str], implied: frozenset[str]) -> frozenset[str]:
        """Changes an installer makes implicitly with the rest of a plan: implied ones, and those of family members."""
        moved = {name for name in names if family(name) != name and family(name) in names}
        return (implied | moved) - (self.problem.direct & self.problem.current.keys())

    def _rebuilt(self, chosen: Mapping[str, Release]) -> tuple[Change, ...]:
        """Extensions that keep their version while torch moves to a minor release with a different C++ ABI."""
        before, after = self.problem.current.get("torch"), chosen.get("torch")
        if before is None or after is None or before.key.release[:2] == after.key.release[:2]:
            return ()
        source, why = Source("index", {"build": True}), f"it is compiled against torch {before.public}"
        return tuple(
            Change(name, each.version, each.version, source=source, why=why)
            for name, each in sorted(self.problem.current.items())
            if name in BUILT_AGAINST_TORCH and each.source is None and chosen.get(name) == each
        )  # fmt: skip

    def _compiled(self, names: Collection[str], chosen: Mapping[str, Release]) -> frozenset[str]:
        """The changed packages that are compiled against torch when they are installed, as they have no wheel."""
        before = self.problem.current
        of_torch = [name for name in names if name in BUILT_AGAINST_TORCH or (name in before and is_wheel(before[name].source))]
        return frozenset(
            name for name in of_torch
            if name in chosen and chosen[name].source is None and self._universe.serves(chosen[name]) is False
        )  # fmt: skip

    def _refused(self, left: tuple[Finding, ...]) -> str:
        """Why a plan that leaves these errors is refused, else "": it must reduce their number or satisfy a requirement."""
        current = self.problem.current
        asked = () if current or self.errors else self.problem.asked  # what conda resolves is no reason to pin the rest
        wished = any(
            need.name not in self.problem.given and (need.name not in current or not current[need.name].meets(need.specifier))
            for need in (*self.problem.keep, *asked)
        )
        if len(left) < len(self.errors) or (wished and (len(left) == len(self.errors) or not current)):
            return ""
        return f"no set of releases reduces the number of errors ({len(self.errors)} now, {len(left)} at best)"

    def _contradiction(
        self, solver: Solver, left: tuple[Finding, ...]
    ) -> tuple[tuple[str, ...], str, Mapping[str, str]]:  # fmt: skip
        """The contradiction that prevents a plan without errors, the requirement whose removal would allow one, and the
        vendors' indexes that were not reached, unless it holds whatever they have.

        Newer releases of the packages of the errors ``left`` that are only for other Pythons are part of it.
        """
        narrowed = self._universe.narrowed
        whatever = conflict(solver, ("torch", *BESIDE, *narrowed)) if narrowed else ()
        narrowed = {} if whatever else narrowed
        core = whatever or conflict(solver)
        if not core:
            return (), "", narrowed  # what was not read might contain a solution
        deadline = monotonic() + _RELIEF
        seeds = [*self._seeds(), *sorted(solver.opened)]
        eased = most_helpful_removal(self.problem, core, lambda problem: self._solver(problem, deadline).solve(seeds))
        others = self.for_other_pythons(left) if any(each.kind in ("finding", "rule") for each in core) else ()
        reasons_of_none = why_unsatisfied(
            core, self.problem, solver.opened, lambda name: self._universe.releases([name])[name] or (), self._universe.unbuilt
        )
        return (
            (*contradiction_text(core, solver.opened), *reasons_of_none, *others),
            "" if eased is None else eased[0],
            narrowed,
        )

    def for_other_pythons(self, errors: Iterable[Finding]) -> tuple[str, ...]:
        """The newer releases of the packages of some errors that have wheels for other Pythons than the target's."""
        moves = [(each, {fix.package for fix in each.fixes if fix.kind in MOVES}) for each in errors]
        names = dict.fromkeys(
            name
            for each, moved in moves
            for name in each.packages
            if name in moved or not any(fix.package for fix in each.fixes)
        )
        first = self._universe.beyond
        python = self.problem.target.minor
        return tuple(f"{name} {first[name]} and later have no wheel for Python {python}" for name in names if name in first)

    def _change(self, name: str, release: Release | None, why: str, *, implied: bool, with_torch: bool) -> Change:
        """The change of a package; one beside a torch that stays leaves the index of torch's build as it is."""
        before = self.problem.current.get(name)
        copies = [copy.source for copy in self.problem.environment.distributions or () if copy.name == name]
        own_index = next((each for each in copies if _has_index(each)), None)
        before_source = None if before is None else before.source or own_index or self._universe.origin(before)
        return Change(
            name, None if before is None else before.version, None if release is None else release.installed,
            source=None if release is None else release.source,
            hashes=() if release is None else self._universe.hashes(release), why=why,
            direct=name in self.problem.direct, implied=implied,
            before_source=before_source, default_index=self._default_index(release, before_source) if with_torch else None,
        )  # fmt: skip

    def _default_index(self, release: Release | None, before: Source | None) -> str | None:
        return None if release is None or release.source is not None else self._universe.default_index(release, before)

    def _assumed(self, chosen: Mapping[str, Release]) -> dict[str, str]:
        """The assumptions about the releases of the plan."""
        assumed = self._universe.assumed
        return {f"{each.name} {each.told}": assumed[each] for each in chosen.values() if each in assumed}

    def _verified(self, chosen: Mapping[str, Release], solver: Solver, checks: Checks, *, rules: bool) -> Verified:
        if not checks.uv:
            return Verified(rules, None)
        target, offline, settings = self.problem.target, self.means.index.offline, self.means.index.reached()
        asked = question(self.problem, chosen, solver.needs, self._universe)
        accepted, why = accepted_by_uv(asked, target, settings, offline=offline)
        if accepted is False:  # perhaps an installed release is on no index: read the pages that were not needed so far
            self._universe.releases([name for name, release in chosen.items() if self._universe.serves(release) is None])
            again = question(self.problem, chosen, solver.needs, self._universe)
            if again != asked:
                asked = again
                accepted, why = accepted_by_uv(asked, target, settings, offline=offline)
        unasked = tuple(sorted(name for name in asked.without if self._moved(chosen, name)))
        if not (accepted and checks.install):
            return Verified(rules, accepted, why, unasked)
        installs, why = installable_by_uv(asked, target, settings, python=checks.python, offline=offline)
        return Verified(rules, accepted, why, unasked, installs)

    def _moved(self, chosen: Mapping[str, Release], name: str) -> bool:
        return chosen.get(name) != self.problem.current.get(name)


def _is_published(name: str, chosen: Mapping[str, Release]) -> bool:
    """Whether there is a wheel outside the index for the torch of a plan."""
    series = open_code_tables().published.get(name, {}).get(chosen[name].version, ())
    torch = chosen.get("torch")  # of AMD's, none is known
    return torch is not None and "+rocm" not in torch.version and ".".join(map(str, torch.key.release[:2])) in series


def _with_findings(problem: Problem, errors: tuple[Finding, ...], matrix: Matrix) -> Problem:
    """The problem with data from its findings: recommended fixes, and packages that no finding gives a reason to change."""
    concerned = {name for each in errors for name in each.packages} | {need.name for need in (*problem.keep, *problem.asked)}
    if "torch" in concerned:  # what is compiled for another torch cannot stay
        concerned |= {*BESIDE, *(name for name, each in problem.current.items() if is_wheel(each.source))}
    fixed = (name for name, each in problem.current.items() if each.source is not None and name not in concerned)
    told = tuple(recommended(matrix, problem, errors))
    violated = frozenset(frozenset(each.packages) for each in errors if each.origin == "metadata")
    # what is requested by name is only removed if a finding advises that before anything else
    unwanted = frozenset(
        fix.package for each in errors for at, fix in enumerate(each.fixes)
        if fix.kind == "uninstall" and fix.package and (at == 0 or fix.package not in problem.direct)
    )  # fmt: skip
    named = frozenset(advised(matrix, problem, errors))
    return replace(
        problem, fixed=frozenset(fixed), recommended=told, advised=named, violated=violated, unwanted=unwanted,
        concerned=frozenset(name for each in errors if each.rule != UNRESOLVED for name in each.packages),
    )  # fmt: skip


def _has_index(source: Source | None) -> bool:
    """Whether the source names an index other than the ordinary one."""
    return source is not None and source.kind == "index" and bool(source.details.get("url"))
