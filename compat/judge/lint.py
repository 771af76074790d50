"""Checking the rules themselves: examples do what they say, and no fix leads into this or another rule."""

from __future__ import annotations

import re

from compat.environment import Distribution, Environment, Source, Workload, normalized
from compat.judge import named_devices
from compat.judge.facts import Facts, visible
from compat.judge.rules import verdict_of
from compat.read.described import parse_described
from compat.records import record, replace
from compat.versions import contains, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from compat.matrix.rule import Example, FixTemplate, Rule


@record(frozen=True)
class Problem:
    """What is wrong with a rule, in one line."""

    rule: str
    message: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: rule {self.rule}: {self.message}"


def problems_of(rules: Sequence[Rule], among: Sequence[Rule] | None = None) -> list[Problem]:
    """Everything that is wrong with ``rules``; their fixes are held against the rules of ``among`` (default: the same)."""
    others = rules if among is None else among
    return [
        Problem(rule.id, message, rule.file, rule.line)
        for rule in rules
        for message in dict.fromkeys((*_examples(rule), *_signatures(rule), *_fixes(rule, others)))
    ]


def _environment(example: Example) -> Environment:
    environment, _ = parse_described(example.environment, "example")
    return visible(named_devices(environment)[0])


def _examples(rule: Rule) -> Iterator[str]:
    for number, example in enumerate(rule.examples, 1):
        verdict = verdict_of(rule, Facts(_environment(example)))
        if verdict.word != example.verdict:
            open_facts = f" (unknown: {', '.join(verdict.unknown)})" if verdict.unknown else ""
            yield f"example {number} says {example.verdict}, but it is {verdict.word}{open_facts}"


def _signatures(rule: Rule) -> Iterator[str]:
    for signature in rule.errors:
        if re.search(signature.message, ""):
            yield f"the message pattern {signature.message!r} matches anything"


def _fixes(rule: Rule, others: Sequence[Rule]) -> Iterator[str]:
    hits = [_environment(example) for example in rule.examples if example.verdict == "hit"]
    for fix in rule.fixes:
        said = f"fix {fix.kind} {' '.join(f'{name}{spec}' for name, spec in fix.packages) or fix.value}"
        for environment in hits:
            for changed in applied(fix, environment, others):
                if verdict_of(rule, Facts(changed)).word == "hit":
                    yield f"{said} does not clear the rule"
                yield from (f"{said} leads into rule {other.id}" for other in others if _condemns(other, rule, fix, changed))


def _condemns(other: Rule, rule: Rule, fix: FixTemplate, changed: Environment) -> bool:
    """Whether another rule of severity error about a distribution the fix moves certainly holds after the fix."""
    moved = {normalized(name) for name, _ in fix.packages}
    about = {atom[1] for atom in other.packages}
    return (
        other is not rule
        and other.severity == "error"
        and bool(moved & about)
        and verdict_of(other, Facts(changed)).word == "hit"
    )


def applied(fix: FixTemplate, environment: Environment, rules: Sequence[Rule]) -> Iterator[Environment]:
    """The environment after a fix, once for every place in the fix's range that some rule tells apart.

    Nothing is yielded for fixes whose effect cannot be told (a driver, a configuration in free words).
    """
    if fix.kind in ("upgrade", "downgrade", "pin"):
        yield from _moved(fix, environment, rules)
    elif fix.kind == "source-install":
        yield _from_source(fix, environment)
    elif fix.kind == "uninstall":
        gone = {normalized(name) for name, _ in fix.packages}
        yield replace(environment, distributions=tuple(d for d in environment.distributions or () if d.name not in gone))
    elif fix.kind == "launch" and fix.value.split()[0] in ("accelerate", "torchrun", "deepspeed"):
        work = environment.workload or Workload()
        yield replace(environment, workload=replace(work, launcher=fix.value.split()[0], processes=None))
    elif fix.kind == "env-var" and "=" in fix.value:
        name, _, value = fix.value.partition("=")
        yield visible(replace(environment, variables={**(environment.variables or {}), name: value}))


def _moved(fix: FixTemplate, environment: Environment, rules: Sequence[Rule]) -> Iterator[Environment]:
    """All packages of the fix at the lowest release it admits; then each of them, alone, at every other place."""
    places = {normalized(name): _places(normalized(name), spec, rules) for name, spec in fix.packages}
    lowest = {name: found[0] for name, found in places.items() if found}
    for name, found in places.items():
        for version in found:
            yield _with(environment, {**lowest, name: version})


def _places(name: str, spec: str, rules: Sequence[Rule]) -> list[Any]:
    """Stand-ins (comparison keys) for the versions in ``spec`` that the bounds of rules about ``name`` tell apart."""
    ranges = ranges_of(spec)
    bounds = {key for interval in ranges for key in (interval[0], interval[2]) if key}
    for rule in rules:
        for atom in rule.packages:
            if atom[1] == name and atom[2] == "in":
                bounds |= {key for interval in atom[3] for key in (interval[0], interval[2]) if key}
    cells = sorted(cell for bound in bounds for cell in (bound, (*bound, 0)))
    return [cell for cell in cells if contains(ranges, cell)]


def _with(environment: Environment, versions: dict[str, Any]) -> Environment:
    kept = [d for d in environment.distributions or () if d.name not in versions]
    moved = [Distribution(name=name, version=version, source=Source("index")) for name, version in versions.items()]
    return replace(environment, distributions=(*kept, *moved))


def _from_source(fix: FixTemplate, environment: Environment) -> Environment:
    commits = {normalized(name): where.rpartition("@")[2] for name, where in fix.packages}
    return replace(environment, distributions=tuple(
        replace(d, source=Source("vcs", {"commit": commits[d.name]})) if d.name in commits else d
        for d in environment.distributions or ()
    ))  # fmt: skip
