"""A plan: what changes, why, what it costs, and who has checked it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compat.environment import EMPTY
from compat.index import Index, Settings
from compat.judge.builds.stack import INDEX
from compat.matrix.code_tables import open_code_tables
from compat.matrix.compiled import Matrix
from compat.matrix.declared import Declared
from compat.records import record, replace
from compat.repair import surface
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.clauses import LEVELS
from compat.repair.curated import forbidden
from compat.repair.explain import Contrast, conflict, next_best, reasons, relieving
from compat.repair.flavours import Flavours
from compat.repair.problem import Problem
from compat.repair.questions import brought_along, partial, question
from compat.repair.relaxation import Needs
from compat.repair.solve import Solution, Solver
from compat.repair.source_builds import Builds, Commits
from compat.repair.target import Need
from compat.repair.variants import Variants
from compat.repair.verify import Checks, Verified, accepted_by_uv, installable_by_uv
from compat.repair.whole_plans import WholePlans, findings, planned
from compat.report import Finding
from compat.write.changes import Change

_BY_UV = Checks()


@record(frozen=True)
class Plan:
    """``changes`` in the order of their names; ``left``: errors that no release mends. ``proven``: nothing cheaper exists.

    Where nothing can hold together ``core`` says what, and ``relief`` what the user might give up. ``unread`` is what could not
    be read, by package or file: it was no candidate; ``assumed`` is what was taken for granted, by release. ``partial``: what
    is listed lacked some of what it requires before, so that it is not all that is installed.
    """

    changes: tuple[Change, ...] = ()
    cost: Mapping[str, int] = EMPTY
    proven: bool = False
    policies: tuple[str, ...] = ()
    verified: Verified | None = None
    left: tuple[Finding, ...] = ()
    core: tuple[str, ...] = ()
    relief: str = ""
    unread: Mapping[str, str] = EMPTY
    assumed: Mapping[str, str] = EMPTY
    chosen: Mapping[str, Release] = EMPTY
    next_best: Contrast | None = None
    partial: bool = False

    @property
    def stands(self) -> bool:
        """Whether it may be proposed: it changes something, and nobody who checked it refuses it."""
        return bool(self.changes) and (self.verified is None or self.verified.stands)

    def to_json(self) -> dict[str, Any]:
        return {
            "changes": [
                {"name": each.name, "from": each.before, "to": each.after, "reasons": [each.why] if each.why else [],
                 **_source(each), "implied": each.implied}
                for each in (self.changes if self.stands else ())
            ],
            "actions": [
                {"kind": fix.kind, "text": fix.text, "command": fix.command}
                for finding in self.left for fix in finding.fixes if fix.kind in ("launch", "config", "env-var", "driver")
            ],
            "commands": [], "cost": dict(self.cost), "proven": self.proven, "policies": list(self.policies),
            "verified": None if self.verified is None else self.verified.to_json(),
            "left": [each.rule for each in self.left], "core": list(self.core) or None,
            "relief": self.relief or None, "unread": dict(self.unread), "assumed": dict(self.assumed),
            "next_best": None if self.next_best is None else self.next_best.to_json(),
        }  # fmt: skip


def _source(change: Change) -> dict[str, Any]:
    """Where a change comes from: of an index (by its address, where it is not the ordinary one), of a repository …"""
    if change.source is None:
        return {"source": "index"}
    details = change.source.details
    return {"source": change.source.kind, **{key: details[key] for key in ("url", "commit", "build") if key in details}}


def _universe(problem: Problem, index: Index, matrix: Matrix, torch_index: str) -> Variants:
    """The releases of the index, torch's builds for other CUDAs, and what may be built from source."""
    base = IndexUniverse(index, problem.target)
    flavours = Flavours(problem.environment, problem.current, open_code_tables(), Declared(), base, index, torch_index)
    return Variants(base, flavours, (Builds(base), Commits(base, matrix)) if problem.policy.allow_source else ())


class Planner:
    """Makes a plan for one problem."""

    def __init__(
        self, problem: Problem, index: Index, settings: Settings, matrix: Matrix, needs: Mapping[Release, Needs],
        progress: Callable[[str], None] | None = None, deadline: float | None = None,
        torch_index: str = INDEX,
    ) -> None:  # fmt: skip
        """``torch_index`` is the folder with torch's indexes, one for each CUDA."""
        self._torch_index = torch_index
        self.problem, self.matrix, self.settings, self.index = problem, matrix, settings, index
        self._needs, self._progress, self._deadline = dict(needs), progress, deadline
        self._universe = _universe(problem, index, matrix, torch_index)

    def plan(self, *, explained: bool = True, contrasted: bool = False, checks: Checks = _BY_UV) -> Plan:
        """The cheapest plan; ``TimeoutError`` where none was found in time.

        ``explained`` gives each change its reason, ``contrasted`` the plan that would come next.
        """
        solver, solution = self.solved()
        policies = self.problem.policy.said()
        if solution.chosen is None:
            core, relief = self._contradiction(solver)
            return Plan(core=core, relief=relief, policies=policies, unread=solution.unread, proven=not solution.unread)
        plan = self._made(solver, solution, checks, explained=explained)
        return replace(plan, next_best=next_best(solver, solution)) if contrasted and plan.changes else plan

    def solved(self) -> tuple[Solver, Solution]:
        """The cheapest choice of releases that nobody has checked yet, and who found it."""
        solver = self._solver(self.problem)
        return solver, solver.solve(self._seeds())

    def moved(self, need: Need) -> Planner:
        """The same, for a problem in which one more requirement holds."""
        problem = replace(self.problem, keep=(*self.problem.keep, need))
        return Planner(
            problem, self.index, self.settings, self.matrix, self._needs, self._progress, self._deadline, self._torch_index
        )

    def newest(self, name: str) -> str | None:
        """The newest candidate of a package; ``None`` where its releases could not be read."""
        found = self._universe.releases([name])[name]
        candidates = self.problem.candidates(name, found) if found else ()
        return candidates[-1].version if candidates else None

    def unread(self, name: str) -> str:
        """Why the releases of a package could not be read."""
        return self._universe.unknown.get(name, "there are none")

    def asking(self, name: str) -> tuple[str, ...]:
        """What is there and asks for a package, and for which versions."""
        missing = [release for release in self.problem.current.values() if release not in self._needs]
        self._universe.releases([each.name for each in missing])
        self._needs.update({each: needs for each, needs in self._universe.needs(missing).items() if needs is not None})
        return tuple(
            f"{release.name} {release.version}: {need.text}" + (f" (for its extra {extra})" if extra else "")
            for release in self.problem.current.values() for extra, needs in self._needs.get(release, {}).items()
            for need in needs if need.name == name and (need.specifier or not extra)
        )  # fmt: skip

    def _solver(self, problem: Problem) -> Solver:
        return Solver(
            problem, self._universe, needs=self._needs, progress=self._progress, deadline=self._deadline,
            rules=lambda current, known: [
                *forbidden(self.matrix, problem.environment, current, known, problem.ignored), *self._universe.forbidden(known),
                *surface.forbidden(problem.environment, known),
            ],
            judge=WholePlans(problem.environment, self.matrix, problem.current, problem.ignored),
        )  # fmt: skip

    def _seeds(self) -> list[str]:
        """What the errors are about will be looked at for sure."""
        found = findings(self.problem.environment, self.matrix, self.problem.ignored)
        return [name for each in found if each.severity == "error" for name in each.packages if name in self.problem.current]

    def _made(self, solver: Solver, solution: Solution, checks: Checks, *, explained: bool) -> Plan:
        chosen = solution.chosen or {}
        current = self.problem.current
        names = sorted(
            name for name in {*current, *chosen}
            if getattr(current.get(name), "version", None) != getattr(chosen.get(name), "version", None)
        )  # fmt: skip
        why = reasons(solver, solution, names) if explained else {}
        implied = brought_along(self.problem, chosen, solver.needs, solver.opened)
        changes = tuple(
            self._change(name, chosen.get(name), why[name].text if name in why else "", implied=name in implied)
            for name in names
        )
        environment = planned(self.problem.environment, chosen)
        left = tuple(each for each in findings(environment, self.matrix, self.problem.ignored) if each.severity == "error")
        rules = sum(not chosen.keys().isdisjoint(each.packages) for each in left) <= solution.left(LEVELS[0])
        core, relief = self._contradiction(solver) if left else ((), "")
        verified = self._verified(chosen, solver, checks, rules=rules) if changes else Verified(rules, None)
        return Plan(
            changes, dict(zip(LEVELS, solution.cost)), solution.optimal and not solution.unread,
            self.problem.policy.said(), verified, left, core,
            relief, unread=solution.unread, chosen=chosen, assumed=self._assumed(chosen),
            partial=partial(self.problem, chosen, solver.needs),
        )  # fmt: skip

    def _contradiction(self, solver: Solver) -> tuple[tuple[str, ...], str]:
        """What cannot hold together without an error, and the wish to give up for which a plan without one exists."""
        if self._universe.unknown:  # what could not be read may be what would help
            return (), ""
        core = conflict(solver)
        eased = relieving(self.problem, core, lambda problem: self._solver(problem).solve(self._seeds()))
        return tuple(each.text for each in core), "" if eased is None else eased[0]

    def _change(self, name: str, release: Release | None, why: str, *, implied: bool) -> Change:
        before = self.problem.current.get(name)
        return Change(
            name, None if before is None else before.version, None if release is None else release.installed,
            source=None if release is None else release.source,
            hashes=() if release is None else self._universe.hashes(release), why=why,
            direct=name in self.problem.direct, implied=implied, before_source=None if before is None else before.source,
        )  # fmt: skip

    def _assumed(self, chosen: Mapping[str, Release]) -> dict[str, str]:
        """What the plan takes for granted, of what it holds."""
        assumed = self._universe.assumed
        return {f"{each.name} {each.told}": assumed[each] for each in chosen.values() if each in assumed}

    def _verified(self, chosen: Mapping[str, Release], solver: Solver, checks: Checks, *, rules: bool) -> Verified:
        target, offline = self.problem.target, self.index.offline
        if not checks.uv:
            return Verified(rules, None)
        asked = question(self.problem, chosen, solver.needs, self._universe)
        accepted, why = accepted_by_uv(asked, target, self.settings, offline=offline)
        if accepted is False:  # perhaps because no index has what is installed: that is told by the pages that were not needed
            self._universe.releases([name for name, release in chosen.items() if self._universe.serves(release) is None])
            again = question(self.problem, chosen, solver.needs, self._universe)
            if again != asked:
                asked = again
                accepted, why = accepted_by_uv(asked, target, self.settings, offline=offline)
        unasked = tuple(sorted(name for name in asked.without if self._moved(chosen, name)))
        if not (accepted and checks.install):
            return Verified(rules, accepted, why, unasked)
        installs, why = installable_by_uv(asked, target, self.settings, python=checks.python, offline=offline)
        return Verified(rules, accepted, why, unasked, installs)

    def _moved(self, chosen: Mapping[str, Release], name: str) -> bool:
        return chosen.get(name) != self.problem.current.get(name)
