"""Checks of complete plans with the evaluator for environments; its findings are learnt as clauses.

Findings derived from tables (builds against hardware, drivers and each other) are not encoded as clauses beforehand. If one
occurs in a plan, the evaluator is run for the other releases of its packages, too, so that few plans are needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import permutations

from compat.checks import deduplicated, derived_findings
from compat.checks.interfaces import open_rows_once
from compat.checks.questions import fold_questions
from compat.checks.reached import Reached, with_trainer
from compat.checks.torch_build import OF_IMAGE, REPLACES
from compat.model import Distribution, Environment, Finding, Source
from compat.records import replace
from compat.repair.candidates import Release
from compat.repair.engine import Statement
from compat.repair.problem import BESIDE, Policy, is_wheel
from compat.repair.relaxation import ABSENT, Forbidden
from compat.repair.rules import level_of
from compat.rules import evaluate as rules
from compat.rules.compiled import Matrix
from compat.rules.facts import visible

_INDEX = Source("index", {})


def environment_after(environment: Environment, chosen: Mapping[str, Release]) -> Environment:
    """The environment after a plan; unchanged packages stay as they were read."""
    before = {copy.name: copy for copy in environment.distributions or ()}
    torch, moved = before.get("torch"), chosen.get("torch")
    stays = torch is not None and moved is not None and torch.version == moved.version
    copies = []
    for name in sorted(chosen):
        here, release = before.get(name), chosen[name]
        if here is not None and here.version == release.version:
            copies.append(here)
        else:
            own = None if here is None or name not in BESIDE or not stays else here.source  # that of torch's build
            index = own if own is not None and own.kind == "index" else _INDEX
            found = Distribution(name=name, version=release.installed, source=release.source or index)
            # a wheel by its address may give way to one for the new torch, which is not compiled
            noted = () if here is None else (REPLACES,) if is_wheel(here.source) else OF_IMAGE
            marks = {} if here is None else {mark: here.extra[mark] for mark in noted if mark in here.extra}
            copies.append(replace(found, extra=marks) if marks else found)
    left = [
        copy for copy in environment.distributions or ()
        if copy.version is None or (copy.name not in chosen and copy.source is not None and copy.source.kind == "conda")
    ]  # fmt: skip
    return replace(environment, distributions=(*copies, *left))


def findings(
    environment: Environment, matrix: Matrix, ignored: Collection[str] = (), known: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Certain findings of severity warning or error, without ignored rules, and only about packages that are ``known``."""
    seen = visible(environment)
    found = (*rules.judge(seen, matrix), *derived_findings(seen))
    return tuple(
        each for each in found
        if each.verdict == "hit" and each.severity in ("error", "warning") and each.rule not in ignored
        and (known is None or each.packages.keys() <= set(known))
    )  # fmt: skip


def open_errors(environment: Environment, matrix: Matrix, ignored: Collection[str] = ()) -> tuple[Finding, ...]:
    """The likeliest errors that depend on what is not known of the job, and are not fixed for that reason."""
    seen = visible(environment)
    found = (*rules.judge(seen, matrix), *derived_findings(seen))
    errors = (each for each in found if each.verdict == "possible" and each.severity == "error" and each.rule not in ignored)
    shown, _ = fold_questions(deduplicated(each for each in errors if not _is_about_version(each)))
    return shown


def left_warnings(
    environment: Environment, matrix: Matrix, ignored: Collection[str] = (), known: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """The warnings that certainly hold for an environment, each of them once."""
    return tuple(each for each in deduplicated(findings(environment, matrix, ignored, known)) if each.severity == "warning")


def _is_about_version(finding: Finding) -> bool:
    """Whether it is open which release is installed, which the plan or an installer decides."""
    return any(path.startswith("distributions.") for path in finding.unknown)


def to_fix(found: Iterable[Finding], policy: Policy) -> tuple[Finding, ...]:
    """The findings that a plan has to fix: errors, and what the policy counts among them, each of them once."""
    return tuple(
        each for each in deduplicated(found)
        if policy.warnings or each.severity == "error" or (policy.contradictions and each.origin == "metadata")
    )  # fmt: skip


class WholePlans:
    """Checks complete plans for one environment."""

    def __init__(
        self, environment: Environment, matrix: Matrix, current: Mapping[str, Release], ignored: Collection[str] = (),
        *, warnings: bool = False, found: tuple[Finding, ...] | None = None, unserved: tuple[Finding, ...] = (),
        known: frozenset[str] | None = None,
    ) -> None:  # fmt: skip
        """``found`` are the findings of the environment as it is, if known, ``unserved`` those about releases that no installer
        takes; ``known`` as for :func:`findings`."""
        self._environment, self._matrix, self._ignored, self._warnings = environment, matrix, ignored, warnings
        self._current, self._unserved, self._known = current, unserved, known
        self._found: dict[frozenset[Release], tuple[Finding, ...]] = {}
        there = environment_after(environment, current).distributions or ()
        if found is not None and set(map(id, there)) == set(map(id, environment.distributions or ())):
            self._found[frozenset(current.values())] = found

    def of(self, chosen: Mapping[str, Release]) -> tuple[Finding, ...]:
        """The findings of a plan: see :func:`findings`."""
        key = frozenset(chosen.values())
        if key not in self._found:
            there = {(name, release.version) for name, release in chosen.items()}
            stays = (each for each in self._unserved if there.issuperset(each.packages.items()))
            after = environment_after(self._environment, chosen)
            self._found[key] = (*findings(after, self._matrix, self._ignored, self._known), *stays)
        return self._found[key]

    def __call__(self, chosen: Mapping[str, Release], known: Mapping[str, tuple[Release, ...]]) -> Iterator[Forbidden]:
        """Forbidden combinations not yet in clauses: errors, new warnings, and warnings about packages that change anyway."""
        there = frozenset(each.rule for each in self.of(self._current))
        for each in self.of(chosen):
            known_warning = each.severity == "warning" and not self._warnings and each.rule in there
            known_warning = known_warning and not any(self._moves(name, chosen) for name in each.packages)
            if each.origin == "metadata" or known_warning:
                continue  # declared requirements are clauses already
            names = [name for name in each.packages if name in chosen]
            level = level_of(each.severity, warnings=self._warnings)
            lacking = [name for name in each.packages if name not in chosen and self._is_provided_by(name, each)]
            if lacking and level is not None:
                statement = Statement("finding", f"{each.title} ({each.rule})")
                yield from (Forbidden(((name, frozenset((ABSENT,))),), statement, level) for name in lacking)
            elif names and level is not None:
                yield from self._generalised(each, level, names, chosen, known)
            elif level is not None and len(each.packages) == 1 and not self._is_there(*each.packages):
                statement = Statement("finding", f"{each.title} ({each.rule})")  # a module that nothing installed provides
                yield Forbidden(tuple((name, frozenset((ABSENT,))) for name in each.packages), statement, level)

    def _is_provided_by(self, name: str, finding: Finding) -> bool:
        """Whether a package is not installed, and installing any release of it fixes a finding."""
        fixes = (fix for fix in finding.fixes if fix.kind == "pin" and fix.package == name and not fix.spec)
        return any(fixes) and finding.packages[name] is None and not self._is_there(name)

    def _is_there(self, name: str) -> bool:
        """Whether a package is installed in any version, known or not."""
        return any(copy.name == name for copy in self._environment.distributions or ())

    def _moves(self, name: str, chosen: Mapping[str, Release]) -> bool:
        return name in self._current and name in chosen and chosen[name].version != self._current[name].version

    def _generalised(
        self, finding: Finding, level: str, names: list[str], chosen: Mapping[str, Release],
        known: Mapping[str, tuple[Release, ...]],
    ) -> Iterator[Forbidden]:  # fmt: skip
        """One clause for each package of a finding: its releases for which the finding holds, with the others unchanged.

        For a finding from published source there is one for each line that fails, over all releases that have that line.
        """
        statement = Statement("finding", f"{finding.title} ({finding.rule})")
        lines = [Forbidden(each, statement, level) for each in self._lines(finding, chosen, known)]
        yield from lines
        for name in () if lines else names:
            bad = frozenset(
                release.version for release in known.get(name, ()) if self._holds(finding, {**chosen, name: release})
            )  # fmt: skip
            others = tuple((other, frozenset((chosen[other].version,))) for other in names if other != name)
            yield Forbidden(((name, bad | {chosen[name].version}), *others), statement, level)

    def _lines(
        self, finding: Finding, chosen: Mapping[str, Release], known: Mapping[str, tuple[Release, ...]]
    ) -> Iterator[tuple[tuple[str, frozenset[str]], ...]]:
        """The releases with each line that fails when the job reaches it, and those that lack what the line imports."""
        rows, workload = open_rows_once(), self._environment.workload
        if finding.origin != "surface" or rows is None or workload is None or len(finding.packages) != 2:
            return
        installed = {name: release.public for name, release in chosen.items()}
        workload = with_trainer(workload, installed)
        reached: dict[str, Reached] = {}
        for consumer, package in permutations(sorted(finding.packages)):
            if consumer not in rows.consumers or not {consumer, package} <= known.keys():
                continue
            needed = rows.bits({package: [installed[package]]})
            for versions, row in rows.all_of(consumer, tier="E2", needed=needed):
                if installed[consumer] not in versions:
                    continue
                here = set()
                for release in known[consumer]:
                    if release.public not in reached and release.public in versions:
                        reached[release.public] = Reached(workload, {**installed, consumer: release.public}, rows)
                    if release.public in versions and reached[release.public].comes_to(row):
                        here.add(release.version)
                if chosen[consumer].version in here:
                    there = frozenset(release.version for release in known[package] if release.public in row.bad)
                    yield (consumer, frozenset(here)), (package, there | {chosen[package].version})

    def _holds(self, finding: Finding, chosen: Mapping[str, Release]) -> bool:
        if finding.origin == "rule":
            return False
        about = {name: release for name, release in chosen.items() if name in finding.packages or name == "torch"}
        suspects = frozenset(finding.packages) if finding.origin == "surface" else frozenset[str]()
        found = derived_findings(visible(environment_after(self._environment, about)), suspects)
        return any(each.rule == finding.rule and each.verdict == "hit" for each in found)
