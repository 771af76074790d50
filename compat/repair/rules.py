"""What known facts forbid among candidate releases: curated rules, and names that published or the user's code uses and other
releases lack.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from packaging.version import Version

from compat.checks.interfaces import open_rows_once
from compat.interfaces.at_once import importable
from compat.interfaces.rows import Row, Rows
from compat.model import Distribution, Environment, Finding, Source, normalized
from compat.repair.candidates import Release
from compat.repair.engine import ERRORS, WARNINGS, Statement
from compat.repair.problem import FOLLOWING, Problem, Recommended
from compat.repair.relaxation import ABSENT, Forbidden
from compat.repair.target import Need
from compat.rules.compiled import Matrix
from compat.rules.evaluate import defaults_of, exempts, severity_of, verdict_of
from compat.rules.facts import Facts
from compat.rules.logic import holds
from compat.rules.rule import OF_PACKAGES, AnyOf, Condition, HasPackage, InstalledFrom, OfPackage, Rule
from compat.versions import contains, key_of

if TYPE_CHECKING:
    from compat.interfaces.code.needs import CodeNeed
    from compat.interfaces.code.releases import Lean, Releases


MOVES = ("upgrade", "downgrade", "pin")
_INDEX = Source("index", {})
Known = Mapping[str, tuple[Release, ...]]


class Memo:
    """Results that depend on the known releases of some packages alone, kept until these change.

    A search asks for them again in every round, in most of which the releases of two or three packages are new.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, tuple[Forbidden, ...]]] = {}

    def of(
        self, what: str, names: Iterable[str], known: Known, make: Callable[[], Iterable[Forbidden]]
    ) -> tuple[Forbidden, ...]:  # fmt: skip
        """The result named ``what``, made again if the releases of one of the names have changed."""
        key = tuple(map(known.get, names))
        kept = self._kept.get(what)
        if kept is None or kept[0] != key:
            kept = self._kept[what] = (key, tuple(make()))
        return kept[1]


def level_of(severity: str, *, warnings: bool) -> str | None:
    """The cost level of a remaining finding; ``None`` for severity info. ``warnings``: treat warnings as errors."""
    return {"error": ERRORS, "warning": ERRORS if warnings else WARNINGS}.get(severity)


def forbidden(
    matrix: Matrix, environment: Environment, current: Mapping[str, Release], known: Known, ignored: Collection[str] = (),
    *, warnings: bool = False, memo: Memo | None = None,
) -> Iterator[Forbidden]:  # fmt: skip
    """The forbidden combinations of every rule that can apply on this machine, over the known releases of each package."""
    facts, memo = Facts(environment), memo or Memo()

    def found(rule: Rule) -> Iterator[Forbidden]:
        level = level_of(severity_of(rule, facts), warnings=warnings)
        if level is not None and rule.id not in ignored:
            yield from _of_rule(rule, level, facts.presuming(defaults_of(rule, facts)), current, known)

    for rule in map(matrix.rule, matrix.among(known)):
        names = _packages_of(rule)
        yield from memo.of(rule.id, names, known, partial(found, rule))


def _packages_of(rule: Rule) -> tuple[str, ...]:
    """The packages whose releases decide which combinations of a rule are forbidden."""
    conditions = chain(rule.packages, rule.when, *rule.unless)
    return tuple(dict.fromkeys(each.name for each in conditions if isinstance(each, OF_PACKAGES)))


def _of_rule(rule: Rule, level: str, facts: Facts, current: Mapping[str, Release], known: Known) -> Iterator[Forbidden]:
    conditions = (*rule.packages, *rule.when)
    if any(holds(each, facts) is not True for each in conditions if not _about_packages(each)):
        return
    together = _together([each for each in conditions if _about_packages(each)], facts, current, known)
    if together is None:
        return
    unless = []
    for group in rule.unless:
        states = [exempts(each, facts, group) for each in group if not _about_packages(each)]
        if False in states:
            continue
        about = [each for each in group if _about_packages(each)]
        if not about or None in states or not all(isinstance(each, OF_PACKAGES) for each in about):
            return  # exempt, or unknown until the plan is complete
        spared = _together(about, facts, current, known, spares=True)
        if spared is not None and all(name in known for name, versions in spared if ABSENT not in versions):
            unless.append(spared)
    statement = Statement("rule", f"{rule.title} ({rule.id})")
    yield Forbidden(together, statement, level, tuple(unless))


def recommended(matrix: Matrix, problem: Problem, errors: Collection[Finding]) -> Iterator[Recommended]:
    """The package versions recommended by findings and their rules, for packages that are installed or wrongly absent.

    What is recommended for one finding may also fix another one about the same package, so it is its last alternative. Of a
    unpinned package, any older release will do if a rule recommends a downgrade. Nothing is recommended for torch
    and a package released for it that do not match: which release of that is right follows from torch.
    """
    own = [
        (finding, found) for finding in errors
        if not _follows_torch(finding) and (found := _recommended(finding, matrix, problem))
    ]  # fmt: skip
    alone = _moving(problem, errors)
    for finding, alternatives in own:
        others = (each for other, found in own if other is not finding for each in found if len(each) == 1)
        shared = (each for each in others if each[0].name in finding.packages)
        named = {need.name for each in alternatives for need in each}
        moving = frozenset(finding.packages) & alone - named if len(finding.packages) > 1 else frozenset[str]()
        yield Recommended(finding.rule, tuple(dict.fromkeys((*alternatives, *shared))), moving)


def _follows_torch(finding: Finding) -> bool:
    """Whether a finding is that torch and packages released for it do not match."""
    return {"torch"} < set(finding.packages) <= {"torch", *FOLLOWING}


def _moving(problem: Problem, errors: Collection[Finding]) -> frozenset[str]:
    """The packages that move because of an error of their own, or of torch and what is released for it."""
    alone = {name for finding in errors if len(finding.packages) == 1 for name in finding.packages if name in problem.current}
    return frozenset({*alone, "torch"} if any(map(_follows_torch, errors)) else alone)


def advised(matrix: Matrix, problem: Problem, errors: Collection[Finding]) -> Iterator[Need]:
    """The releases that a finding or its rule names as a fix, which may be old if none of its fixes is newer.

    So may those of the first fix, if it only moves what the file leaves open: that went too far, unless the others move anyway.
    """
    moving = _moving(problem, errors)
    for finding in errors:
        fixes = _fixes_of(finding, matrix, problem)
        stay = moving.isdisjoint(finding.packages)
        first = [needs for _, needs in fixes[:1] if stay and all(need.name in problem.unpinned for need in needs)]
        newer = [needs for kind, needs in fixes if kind == "upgrade"]
        yield from (need for needs in (*first, *newer) or [needs for _, needs in fixes] for need in needs)


def _recommended(finding: Finding, matrix: Matrix, problem: Problem) -> tuple[tuple[Need, ...], ...]:
    found = _fixes_of(finding, matrix, problem)
    older = [
        tuple(need._replace(specifier=_without_floor(need.specifier)) for need in each) for kind, each in found
        if kind == "downgrade" and finding.origin != "build" and all(need.name in problem.unpinned for need in each)
    ]  # fmt: skip
    return (*(each for _, each in found), *older)


def _fixes_of(finding: Finding, matrix: Matrix, problem: Problem) -> list[tuple[str, tuple[Need, ...]]]:
    """The kinds of the fixes of a finding that move packages, and what they ask for."""
    rule = matrix.named(finding.rule)
    facts, current, needs = Facts(problem.environment), problem.current, problem.target.needs
    rules = [rule] if rule is not None else _open_rules(finding, matrix, facts)
    lacking = {each.name for each in rule.packages if each.how == "absent"} if rule is not None else ()
    if rule is None and finding.origin == "build":
        return [
            (fix.kind, needs((f"{fix.package}{fix.spec}",))) for fix in finding.fixes
            if fix.kind in MOVES and fix.spec and fix.package in current and fix.package != "torch"  # it has other builds
        ]  # fmt: skip
    fixes = [
        fix for each in rules for fix in each.fixes
        if fix.kind in MOVES and fix.packages
        and all(normalized(name) in current or normalized(name) in lacking for name, _ in fix.packages)
        and all(holds(condition, facts) is not False for condition in fix.when)
    ]  # fmt: skip
    return [(fix.kind, needs(f"{name}{spec}" for name, spec in fix.packages)) for fix in fixes]


def _open_rules(finding: Finding, matrix: Matrix, facts: Facts) -> list[Rule]:
    """The rules on errors of the same packages that the job may meet: what they recommend is better than the next release with
    the names that a finding from source is about."""
    if finding.origin != "surface" or facts.workload.task is not None:
        return []
    names = set(finding.packages)
    rules = (rule for rule in map(matrix.rule, matrix.among(names)) if {each.name for each in rule.packages} == names)
    return [rule for rule in rules if severity_of(rule, facts) == "error" and verdict_of(rule, facts).word == "possible"]


def _without_floor(specifier: str) -> str:
    return ",".join(part for part in specifier.split(",") if not part.strip().startswith(">"))


def _about_packages(condition: Condition) -> bool:
    if isinstance(condition, AnyOf):
        return any(map(_about_packages, condition.conditions))
    return isinstance(condition, OF_PACKAGES)


def _together(
    conditions: list[Condition], facts: Facts, current: Mapping[str, Release], known: Known, *, spares: bool = False
) -> tuple[tuple[str, frozenset[str]], ...] | None:
    """The releases of each package for which all conditions hold; ``None`` if they never do.

    In an incomplete list it is unknown whether an unlisted package is absent: exemptions assume it is, findings do not.
    """
    found: dict[str, frozenset[str]] = {}
    for condition in conditions:
        if not isinstance(condition, OF_PACKAGES):
            return None  # alternatives, which are checked on the finished plan
        name = condition.name
        versions = frozenset(_fitting(condition, facts, current.get(name), known.get(name, ())))
        if name not in current and facts.environment.distributions_complete is not True:
            versions = versions | {ABSENT} if spares else versions - {ABSENT}
        found[name] = found[name] & versions if name in found else versions
        if not found[name]:
            return None
    return tuple(found.items())


def _fitting(
    condition: OfPackage, facts: Facts, current: Release | None, releases: tuple[Release, ...]
) -> Iterator[str]:  # fmt: skip
    """The versions of a package for which a condition holds."""
    if isinstance(condition, HasPackage) and condition.how == "absent":
        if current is not None or not any(copy.name == condition.name for copy in facts.environment.distributions or ()):
            yield ABSENT  # otherwise it is installed in an unknown version
        return
    for release in releases:
        if isinstance(condition, HasPackage):
            fits = condition.how != "in" or contains(condition.ranges, key_of(release.version))
        elif release == current:
            fits = holds(condition, facts) is True
        else:
            known_source = isinstance(condition, InstalledFrom) or release.source is not None
            fits = known_source and holds(condition, _alone(release)) is True
        if fits:
            yield release.version


def _alone(release: Release) -> Facts:
    """The facts about one candidate alone: a commit determines the code it contains."""
    copy = Distribution(release.name, release.installed, source=release.source or _INDEX)
    return Facts(Environment(distributions=(copy,)))


def forbidden_by_source(environment: Environment, known: Known, memo: Memo | None = None) -> Iterator[Forbidden]:
    """Incompatibilities between the known releases according to their source, as errors; plain releases only."""
    plain = {name: tuple(each for each in found if each.plain) for name, found in known.items()}
    rows, memo = open_rows_once(), memo or Memo()
    if rows is not None:
        tops = importable(known)
        for consumer in sorted(rows.consumers & plain.keys()):
            packages, asks = rows.mentioned(consumer, tier="E1")
            names, asked = sorted(packages & plain.keys()), tops & asks
            what = " ".join((f"{consumer}: imports, with", *sorted(asked), "and", *names))
            yield from memo.of(what, (consumer, *names), plain, partial(_of_consumer, consumer, plain, names, asked, rows))
    workload = environment.workload
    if workload is not None and workload.code:
        yield from of_code(workload.code, plain)


COMPILED = 3
"""Cost of an extension that is compiled for hours although the file names a wheel by its address, as changed packages."""


def forbidden_by_wheels(
    published: Mapping[str, Mapping[str, tuple[str, ...]]], known: Known, by_address: Collection[str] = ()
) -> Iterator[Forbidden]:  # fmt: skip
    """Extensions and releases of torch for which nobody published a wheel, as warnings: they would be compiled for hours.

    ``published`` are the minor releases of torch with a wheel, by extension and release; a later post-release has no more of
    them. Those that are installed ``by_address`` of a wheel are rather not compiled: whoever names one mostly has no compiler.
    """
    minors: dict[str, set[str]] = {}
    for release in known.get("torch", ()):
        minors.setdefault(".".join(map(str, release.key.release[:2])), set()).add(release.version)
    for name in sorted(published.keys() & known.keys()):
        by_series: dict[tuple[str, ...], set[str]] = {}
        last = Version(newest := max(published[name], key=key_of))
        for release in known[name]:
            is_later = release.key > last and release.key.release == last.release
            unread = published[name][newest] if is_later else () if name in by_address else None
            series = published[name].get(release.version, unread) if release.plain else None
            if series is not None:
                by_series.setdefault(series, set()).add(release.version)
        for series, versions in by_series.items():
            lacking = frozenset[str]().union(*(found for minor, found in minors.items() if minor not in series))
            if lacking:
                says = f"is only published as a wheel for torch {series[0]} to {series[-1]}" if series else "has no wheel"
                statement = Statement("finding", f"{name} {max(versions, key=key_of)} {says}", name, says)
                cost = ("changes", (), COMPILED) if name in by_address else (WARNINGS, ())
                yield Forbidden(((name, frozenset(versions)), ("torch", lacking)), statement, *cost)


def _of_consumer(
    consumer: str, known: Known, packages: Iterable[str], asked: set[str], rows: Rows
) -> Iterator[Forbidden]:  # fmt: skip
    """Imports that fail when the consumer itself is imported: one clause for each set of releases that lack the name.

    ``packages`` are the known ones that its imports are about, ``asked`` those of which they depend that can be imported.
    """
    needed = rows.bits({name: [each.version for each in known[name]] for name in packages})
    by_version = {version: version for version in rows.versions(consumer)}
    mine = {release.version: by_version.get(_public(release), "") for release in known[consumer]}
    unread = {name: dict(_unread(known[name], rows.versions(name))) for name in packages}
    for versions, row in rows.all_of(consumer, tier="E1", needed=needed):
        if row.package not in known or not asked.issuperset(row.asks):
            continue
        here = frozenset(version for version, public in mine.items() if public in versions)
        bad = {release.version for release in known[row.package] if _public(release) in row.bad}
        there = bad | {version for version, near in unread[row.package].items() if near.issubset(row.bad)} if bad else bad
        if here and there:
            yield Forbidden(((consumer, here), (row.package, frozenset(there))), _statement(row, len(here)), ERRORS)


def _unread(releases: Iterable[Release], read: tuple[str, ...]) -> Iterator[tuple[str, frozenset[str]]]:
    """The releases whose source was not read, each with the ones before and after it that were: it is taken to lack what both
    lack, so that no plan moves to a release only because nothing is known of it."""
    there = frozenset(read)
    unread = [release for release in releases if release.public not in there]
    keys = [key_of(each) for each in read] if unread else []
    for release in unread:
        at = bisect(keys, key_of(_public(release)))
        if at:
            yield release.version, frozenset(read[at - 1 : at + 1])


def _statement(row: Row, releases: int) -> Statement:
    says = f"imports {row.what} of {row.package} when it is imported"
    others = f" and {releases - 1} more" if releases > 1 else ""
    return Statement("finding", f"{row.consumer} {row.version}{others} {says} ({row.path}:{row.line})", row.consumer, says)


def _public(release: Release) -> str:
    return str(release.public)


def of_code(paths: tuple[str, ...], known: Known) -> Iterator[Forbidden]:
    """Forbid releases that lack something the code uses, alone or in combination with other releases."""
    from compat.checks.code import code_needs, releases

    wanted, answers = code_needs(paths), releases()
    for each in wanted.all:
        for package in wanted.packages_of(each)[:1]:
            if package in known and each.sure:
                yield from _of_need(each, package, known, answers)


def _of_need(each: CodeNeed, package: str, known: Known, answers: Releases) -> Iterator[Forbidden]:
    lacking: set[str] = set()
    leaning: dict[Lean, set[str]] = {}
    for release in known[package]:
        answer = answers.answer(package, release.version, each.need)
        if answer.met is False:
            lacking.add(release.version)
        elif answer.lean is not None and answer.lean.package in known:
            leaning.setdefault(answer.lean, set()).add(release.version)
    if len(lacking) == len(known[package]) and answers.nowhere(package, each.need):
        return  # no release has it: a mistake in the code, and no reason to prefer a release
    statement = Statement("finding", f"{each.place} uses {each.what}")
    if lacking:
        yield Forbidden(((package, frozenset(lacking)),), statement, ERRORS)
    for lean, versions in leaning.items():
        others = known[lean.package]
        bad = frozenset(
            other.version for other in others if answers.answer(lean.package, other.version, lean.need).met is False
        )
        if bad and len(bad) < len(others):
            yield Forbidden(((package, frozenset(versions)), (lean.package, bad)), statement, ERRORS)
