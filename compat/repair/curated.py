"""Curated rules over candidate releases: what must not be together on this machine, for this job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from compat.environment import Environment
from compat.judge.facts import Facts
from compat.judge.logic import holds
from compat.matrix.compiled import Matrix
from compat.matrix.rule import Rule
from compat.repair.candidates import Release
from compat.repair.clauses import Statement
from compat.repair.relaxation import ABSENT, Forbidden
from compat.versions import contains, key_of

LEVEL = {"error": "error findings left", "warning": "warnings left"}
_OF_PACKAGES = ("package", "source", "code")
Known = Mapping[str, tuple[Release, ...]]


def forbidden(
    matrix: Matrix, environment: Environment, current: Mapping[str, Release], known: Known, ignored: Collection[str] = ()
) -> Iterator[Forbidden]:
    """Every rule that can hold on this machine, over the releases that are known of each package."""
    facts = Facts(environment)
    for rule in matrix.rules():
        if rule.severity in LEVEL and rule.id not in ignored:
            yield from _of_rule(rule, facts.presuming(rule.presume), current, known)


def _of_rule(rule: Rule, facts: Facts, current: Mapping[str, Release], known: Known) -> Iterator[Forbidden]:
    conditions = (*rule.packages, *rule.when)
    if any(holds(atom, facts) is not True for atom in conditions if not _about_packages(atom)):
        return
    together = _together([atom for atom in conditions if _about_packages(atom)], facts, current, known)
    if together is None:
        return
    unless = []
    for atoms in rule.unless:
        states = [holds(atom, facts) for atom in atoms if not _about_packages(atom)]
        if False in states:
            continue
        about = [atom for atom in atoms if _about_packages(atom)]
        if not about or None in states or any(atom[0] == "any" for atom in about):
            return  # it is spared, or nobody knows whether it is before the plan is finished
        group = _together(about, facts, current, known, spares=True)
        if group is not None and all(name in known for name, versions in group if ABSENT not in versions):
            unless.append(group)
    statement = Statement("rule", f"{rule.title} ({rule.id})")
    yield Forbidden(together, statement, LEVEL[rule.severity], tuple(unless))


def _about_packages(atom: Any) -> bool:
    return atom[0] in _OF_PACKAGES or (atom[0] == "any" and any(_about_packages(each) for each in atom[1]))


def _together(
    atoms: list[Any], facts: Facts, current: Mapping[str, Release], known: Known, *, spares: bool = False
) -> tuple[tuple[str, frozenset[str]], ...] | None:
    """The releases of each package for which all of some conditions hold; ``None`` where they never do.

    Whether something that is not listed is there is not known where not everything is listed: that spares, and accuses nobody.
    """
    found: dict[str, frozenset[str]] = {}
    for atom in atoms:
        if atom[0] == "any":
            return None  # judged on the finished plan
        name = atom[1]
        versions = frozenset(_fitting(atom, facts, current.get(name), known.get(name, ())))
        if name not in current and facts.environment.distributions_complete is not True:
            versions = versions | {ABSENT} if spares else versions - {ABSENT}
        found[name] = found[name] & versions if name in found else versions
        if not found[name]:
            return None
    return tuple(found.items())


def _fitting(atom: Any, facts: Facts, current: Release | None, releases: tuple[Release, ...]) -> Iterator[str]:
    form, _, how, *rest = atom
    if form == "package" and how == "absent":
        yield ABSENT
        return
    for release in releases:
        if form == "package":
            if how != "in" or contains(rest[0], key_of(release.version)):
                yield release.version
        elif release == current:
            if holds(atom, facts):
                yield release.version
        elif form == "source" and ("index" if release.source is None else release.source.kind) in how:
            yield release.version
