"""A plan: what changes, why, what it costs, and who has checked it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from time import monotonic
from typing import Any

from packaging.version import Version

from compat.checks.builds.stack import INDEX
from compat.checks.requirements import Requires
from compat.formats.edit.changes import Change
from compat.index import Index, Settings
from compat.model import EMPTY, Finding, Fix, Source
from compat.records import record, replace
from compat.repair import interfaces as surface
from compat.repair.builds import Flavours
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.clauses import ERRORS
from compat.repair.explain import Contrast, conflict, next_best, reasons, relieving, said
from compat.repair.problem import Problem, family, moves_major
from compat.repair.relaxation import Needs
from compat.repair.rules import forbidden, recommended
from compat.repair.solve import Solution, Solver
from compat.repair.source_builds import Builds, Commits, commits_of
from compat.repair.target import Need
from compat.repair.uv import brought_along, partial, question
from compat.repair.variants import Variants
from compat.repair.verify import Checks, Verified, accepted_by_uv, installable_by_uv
from compat.repair.whole_plans import WholePlans, findings, planned, to_fix
from compat.rules.compiled import Matrix
from compat.tables.builds import open_code_tables
from compat.tables.declared import Declared

_BY_UV = Checks()
_RELIEF = 10.0
"""Seconds for the search for the wish that stands in the way."""
_ACTIONS = ("launch", "config", "env-var", "driver")
_BUILT_AGAINST_TORCH = frozenset(
    ("apex", "causal-conv1d", "detectron2", "flash-attn", "flash-attn-3", "grouped-gemm", "mamba-ssm", "pytorch3d",
     "torch-cluster", "torch-scatter", "torch-sparse", "torch-spline-conv", "transformer-engine-torch")
)  # fmt: skip
"""Extensions of torch that are published as source: an installed one was compiled against the torch that was there then."""


@record(frozen=True)
class Plan:
    """``changes`` in the order of their names; ``left``: errors that no release fixes. ``proven``: nothing cheaper exists.

    Where nothing can hold together ``core`` says what, and ``relief`` what the user might give up. ``unread`` is what could not
    be read, by package or file: it was no candidate; ``narrowed`` are the vendors' indexes that were not reached, ``assumed``
    is what was taken for granted, by release. ``along`` are changes that others bring about, ``refused`` says why none is
    proposed. ``partial``: what is listed lacked some of what it requires before, so that it is not all that is installed.
    ``rebuilt`` stay at their version and have to be compiled again, for another release of torch.
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
    narrowed: Mapping[str, str] = EMPTY
    assumed: Mapping[str, str] = EMPTY
    chosen: Mapping[str, Release] = EMPTY
    next_best: Contrast | None = None
    along: frozenset[str] = frozenset()
    partial: bool = False
    refused: str = ""
    rebuilt: tuple[Change, ...] = ()

    @property
    def stands(self) -> bool:
        """Whether it may be proposed: it fixes something, and nobody who checked it refuses it."""
        return bool(self.changes) and not self.refused and (self.verified is None or self.verified.stands)

    @property
    def why_not(self) -> str:
        """Why the changes are not proposed."""
        return self.refused or (self.verified.why if self.verified is not None else "")

    def to_json(self) -> dict[str, Any]:
        return {
            "changes": [
                {"name": each.name, "from": each.before, "to": each.after, "reasons": [each.why] if each.why else [],
                 **_source(each), "implied": each.implied}
                for each in (self.changes if self.stands else ())
            ],
            "actions": [
                *({"kind": fix.kind, "text": fix.text, "command": fix.command}
                  for finding in self.left for fix in actions(finding)),
                *({"kind": "source-install", "text": f"rebuild {each.name} {each.after}: {each.why}", "command": None}
                  for each in self.rebuilt),
            ],
            "commands": [], "cost": dict(self.cost), "proven": self.proven, "policies": list(self.policies),
            "verified": None if self.verified is None else self.verified.to_json(),
            "left": [each.rule for each in self.left], "core": list(self.core) or None,
            "relief": self.relief or None, "refused": self.refused or None, "unread": dict(self.unread),
            "narrowed": dict(self.narrowed), "assumed": dict(self.assumed),
            "next_best": None if self.next_best is None else self.next_best.to_json(),
        }  # fmt: skip


def actions(finding: Finding) -> tuple[Fix, ...]:
    """The fixes of a finding that change no package."""
    return tuple(fix for fix in finding.fixes if fix.kind in _ACTIONS)


def cost_of(changes: Collection[Change], *, errors: int = 0, source: int = 0, steps: int = 0) -> dict[str, int]:
    """What some changes cost, in the figures that people ask for, without those that are nought.

    torch and its family count as one change, and what the installer moves by itself as none. ``errors`` are left, so many
    releases are built from ``source``.
    """
    there = [each for each in changes if each.before is not None and not each.implied]
    moved = [(each, Version(each.before or "0"), Version(each.after)) for each in there if each.after is not None]
    found = {
        "errors": errors,
        "changed": len({family(each.name) for each in there}),
        "downgraded": sum(each.direct and Version(after.public) < Version(before.public) for each, before, after in moved),
        "major": sum(moves_major(before, after) and family(each.name) == each.name for each, before, after in moved),
        "added": sum(each.before is None for each in changes), "removed": len(there) - len(moved),
        "source": source, "steps": steps,
    }  # fmt: skip
    return {name: amount for name, amount in found.items() if amount}


def _has_index(source: Source | None) -> bool:
    """Whether an index is named that is not the ordinary one."""
    return source is not None and source.kind == "index" and bool(source.details.get("url"))


def _source(change: Change) -> dict[str, Any]:
    """Where a change comes from: of an index (by its address, where it is not the ordinary one), of a repository …"""
    if change.source is None:
        return {"source": "index"}
    details = change.source.details
    return {"source": change.source.kind, **{key: details[key] for key in ("url", "commit", "build") if key in details}}


@record(frozen=True)
class Means:
    """What plans are made with. ``torch_index`` is the folder with torch's indexes, one for each CUDA; ``deadline`` is in
    monotonic seconds."""

    index: Index
    settings: Settings
    matrix: Matrix
    torch_index: str = INDEX
    progress: Callable[[str], None] | None = None
    deadline: float | None = None


class Planner:
    """Makes a plan for one problem; ``needs`` are those of installed releases that are known without an index."""

    def __init__(self, problem: Problem, needs: Mapping[Release, Needs], means: Means) -> None:
        self.means, self._needs = means, dict(needs)
        self._warnings = problem.policy.warnings
        there = planned(problem.environment, problem.current)
        self.errors = to_fix(findings(there, means.matrix, problem.ignored), warnings=self._warnings)
        self.problem = _with_findings(problem, self.errors, means.matrix)
        base = IndexUniverse(means.index, problem.target)
        flavours = Flavours(
            problem.environment, problem.current, open_code_tables(), Declared(), base, means.index, means.torch_index
        )
        policy = problem.policy
        builds = (Builds(base),) if policy.allow_source else ()
        commits = (Commits(base, means.matrix),) if policy.allow_source or policy.allow_commits else ()
        self._universe = Variants(base, flavours, (*builds, *commits))

    def plan(self, *, explained: bool = True, contrasted: bool = False, checks: Checks = _BY_UV) -> Plan:
        """The cheapest plan; ``TimeoutError`` where none was found in time.

        ``explained`` gives each change its reason, ``contrasted`` the plan that would come next.
        """
        solver, solution = self.solved()
        if solution.chosen is None:
            core, relief = self._contradiction(solver)
            return Plan(
                core=core, relief=relief, policies=self.problem.policy.said(), unread=solution.unread,
                narrowed=self._universe.narrowed, proven=not solution.unread,
            )  # fmt: skip
        plan = self._made(solver, solution, checks, explained=explained)
        return replace(plan, next_best=next_best(solver, solution)) if contrasted and plan.changes else plan

    def solved(self) -> tuple[Solver, Solution]:
        """The cheapest choice of releases that nobody has checked yet, and who found it."""
        solver = self._solver(self.problem, self.means.deadline)
        return solver, solver.solve(self._seeds())

    def moved(self, need: Need) -> Planner:
        """The same, for a problem in which one more requirement holds."""
        return Planner(replace(self.problem, keep=(*self.problem.keep, need)), self._needs, self.means)

    def with_commits(self) -> Planner | None:
        """The same, with the commits that rules recommend; ``None`` where that adds nothing."""
        policy = self.problem.policy
        concerned = {name for each in self.errors for name in each.packages}
        if policy.allow_source or policy.allow_commits or not concerned & {name for name, _ in commits_of(self.means.matrix)}:
            return None
        return Planner(replace(self.problem, policy=replace(policy, allow_commits=True)), self._needs, self.means)

    def newest(self, name: str) -> str | None:
        """The newest candidate of a package; ``None`` where its releases could not be read."""
        found = self._universe.releases([name])[name]
        candidates = self.problem.candidates(name, found) if found else ()
        return candidates[-1].version if candidates else None

    def unread(self, name: str) -> str:
        """Why the releases of a package could not be read."""
        return self._universe.unknown.get(name, "there are none")

    def requirements(self) -> tuple[Requires, ...]:
        """What the packages that are there require of each other; of extras only what names a version."""
        current = self.problem.current
        missing = [release for release in current.values() if release not in self._needs]
        self._needs.update({each: needs for each, needs in self._universe.needs(missing).items() if needs is not None})
        return tuple(
            Requires(release.name, need.name, need.specifier, current[need.name].meets(need.specifier), extra or None)
            for release in current.values() for extra, needs in self._needs.get(release, {}).items()
            for need in needs if need.name in current and (need.specifier or not extra)
        )  # fmt: skip

    def _solver(self, problem: Problem, deadline: float | None) -> Solver:
        matrix, ignored, warnings = self.means.matrix, problem.ignored, self._warnings
        return Solver(
            problem, self._universe, needs=self._needs, progress=self.means.progress, deadline=deadline,
            rules=lambda current, known: [
                *forbidden(matrix, problem.environment, current, known, ignored, warnings=warnings),
                *self._universe.forbidden(known), *surface.forbidden(problem.environment, known),
            ],
            judge=WholePlans(problem.environment, matrix, problem.current, ignored, warnings=warnings),
        )  # fmt: skip

    def _seeds(self) -> list[str]:
        """What the errors are about will be looked at for sure."""
        return [name for each in self.errors for name in each.packages if name in self.problem.current]

    def _made(self, solver: Solver, solution: Solution, checks: Checks, *, explained: bool) -> Plan:
        chosen = solution.chosen or {}
        current = self.problem.current
        names = sorted(
            name for name in {*current, *chosen}
            if getattr(current.get(name), "version", None) != getattr(chosen.get(name), "version", None)
        )  # fmt: skip
        why = reasons(solver, chosen, names, self.errors) if explained else {}
        implied = brought_along(self.problem, chosen, solver.needs, solver.opened)
        changes = tuple(self._change(name, chosen.get(name), why.get(name, ""), implied=name in implied) for name in names)
        found = findings(planned(self.problem.environment, chosen), self.means.matrix, self.problem.ignored)
        left = to_fix(found, warnings=self._warnings)
        rules = sum(not chosen.keys().isdisjoint(each.packages) for each in left) <= solution.left(ERRORS)
        core, relief = self._contradiction(solver) if left else ((), "")
        refused = self._refused(left) if changes else ""
        verified = self._verified(chosen, solver, checks, rules=rules) if changes and not refused else Verified(rules, None)
        cost = cost_of(
            changes, errors=solution.left(ERRORS), source=solution.left("source installs"), steps=solution.left("release steps")
        )
        return Plan(
            changes, cost, solution.optimal and not solution.unread, self.problem.policy.said(),
            verified, left, core, relief, solution.unread, self._universe.narrowed, self._assumed(chosen), chosen,
            along=self._along(names, implied), partial=partial(self.problem, chosen, solver.needs), refused=refused,
            rebuilt=self._rebuilt(chosen),
        )  # fmt: skip

    def _along(self, names: Collection[str], implied: frozenset[str]) -> frozenset[str]:
        """What an installer moves by itself with the rest of a plan: what is brought in, and the members of a family."""
        return (implied | {name for name in names if family(name) != name and family(name) in names}) - self.problem.direct

    def _rebuilt(self, chosen: Mapping[str, Release]) -> tuple[Change, ...]:
        """Extensions that stay while torch moves to another release, whose C++ interface is another one."""
        before, after = self.problem.current.get("torch"), chosen.get("torch")
        if before is None or after is None or before.key.release[:2] == after.key.release[:2]:
            return ()
        source, why = Source("index", {"build": True}), f"it is compiled against torch {before.public}"
        return tuple(
            Change(name, each.version, each.version, source=source, why=why)
            for name, each in sorted(self.problem.current.items())
            if name in _BUILT_AGAINST_TORCH and each.source is None and chosen.get(name) == each
        )  # fmt: skip

    def _refused(self, left: tuple[Finding, ...]) -> str:
        """Why a plan that leaves these errors is not worth its changes: it has to lower their number, or fulfil a wish."""
        current = self.problem.current
        wished = any(
            need.name not in self.problem.given and (need.name not in current or not current[need.name].meets(need.specifier))
            for need in (*self.problem.keep, *(() if current else self.problem.asked))
        )
        if len(left) < len(self.errors) or (wished and (len(left) == len(self.errors) or not current)):
            return ""
        return f"no set of releases reduces the number of errors ({len(self.errors)} now, {len(left)} at best)"

    def _contradiction(self, solver: Solver) -> tuple[tuple[str, ...], str]:
        """What cannot hold together without an error, and the wish to give up for which a plan without one exists."""
        if self._universe.unknown:  # what could not be read may be what would help
            return (), ""
        core = conflict(solver)
        deadline = monotonic() + _RELIEF
        eased = relieving(self.problem, core, lambda problem: self._solver(problem, deadline).solve(self._seeds()))
        return said(core, solver.opened), "" if eased is None else eased[0]

    def _change(self, name: str, release: Release | None, why: str, *, implied: bool) -> Change:
        before = self.problem.current.get(name)
        copies = [copy.source for copy in self.problem.environment.distributions or () if copy.name == name]
        own_index = next((each for each in copies if _has_index(each)), None)
        return Change(
            name, None if before is None else before.version, None if release is None else release.installed,
            source=None if release is None else release.source,
            hashes=() if release is None else self._universe.hashes(release), why=why,
            direct=name in self.problem.direct, implied=implied,
            before_source=None if before is None else before.source or own_index,
        )  # fmt: skip

    def _assumed(self, chosen: Mapping[str, Release]) -> dict[str, str]:
        """What the plan takes for granted, of what it holds."""
        assumed = self._universe.assumed
        return {f"{each.name} {each.told}": assumed[each] for each in chosen.values() if each in assumed}

    def _verified(self, chosen: Mapping[str, Release], solver: Solver, checks: Checks, *, rules: bool) -> Verified:
        if not checks.uv:
            return Verified(rules, None)
        target, offline, settings = self.problem.target, self.means.index.offline, self.means.index.reached()
        asked = question(self.problem, chosen, solver.needs, self._universe)
        accepted, why = accepted_by_uv(asked, target, settings, offline=offline)
        if accepted is False:  # perhaps because no index has what is installed: that is told by the pages that were not needed
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


def _with_findings(problem: Problem, errors: tuple[Finding, ...], matrix: Matrix) -> Problem:
    """The problem with what its findings say: the fixes that are recommended, and what no finding gives a reason to move."""
    concerned = {name for each in errors for name in each.packages} | {need.name for need in (*problem.keep, *problem.asked)}
    fixed = (name for name, each in problem.current.items() if each.source is not None and name not in concerned)
    told = tuple(recommended(matrix, problem.environment, errors, problem.current, problem.target))
    violated = frozenset(frozenset(each.packages) for each in errors if each.origin == "metadata")
    unwanted = frozenset(fix.package for each in errors for fix in each.fixes if fix.kind == "uninstall" and fix.package)
    return replace(problem, fixed=frozenset(fixed), recommended=told, violated=violated, unwanted=unwanted)
