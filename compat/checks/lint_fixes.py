"""Lint the fixes of rules: they must clear the rule, trigger no other one, and leave no release in place that theirs refuse."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compat.checks import named_devices
from compat.formats.described import parse_described
from compat.model import Distribution, Environment, Source, Workload, normalized
from compat.records import replace
from compat.rules.evaluate import defaults_of, verdict_of
from compat.rules.facts import Facts, visible
from compat.rules.logic import conjunction, holds
from compat.rules.rule import Example, FixTemplate, Rule
from compat.tables.declared import Package, open_declared
from compat.versions import Key, contains, key_of, ranges_of
from compat.workload.arguments import apply_option
from compat.workload.draft import Draft

OF_IMPORTS = ("ImportError", "ModuleNotFoundError")
"""The exceptions of an import that fails."""
_MOVES = ("upgrade", "downgrade", "pin")
_SETTING = re.compile(r"""(?<![\w.])(?:model\.(?:config\.)?)?(\w+)(?:"?: | ?= ?)("[^"]*"|'[^']*'|[\w.+-]+)""")
_ASKED_BY_NAME = {"flash-attention"}
"""Features that are read from an option with more values than two, of which a fix may name any."""


def environment_of(example: Example) -> Environment:
    environment, _ = parse_described(example.environment, "example")
    return visible(named_devices(environment)[0])


def hits_of(rule: Rule) -> list[Environment]:
    """Return the environments of a rule's examples that it is about."""
    return [environment_of(example) for example in rule.examples if example.verdict == "hit"]


def fixes_of(rule: Rule, about: Mapping[str, Sequence[Rule]]) -> Iterator[str]:
    hits = hits_of(rule)
    for fix in rule.fixes:
        said = f"fix {fix.kind} {' '.join(f'{name}{spec}' for name, spec in fix.packages) or fix.value}"
        for environment in hits:
            if conjunction(holds(each, Facts(environment)) for each in fix.when) is False:
                continue
            others = [each for each in _rivals(rule, fix, environment, about) if each.severity != "info"]
            rivals = [each for each in others if each.severity == "error"]
            if fix.kind in _MOVES and not re.search(r"\bimport\b", fix.text):  # else it says from where
                newest = Facts(_selected(fix, environment, about))
                missing = (each for each in others if any(error.exception in OF_IMPORTS for error in each.errors))
                yield from (f"{said} triggers rule {each.id}" for each in missing if verdict_of(each, newest).word == "hit")
            for changed in applied(fix, environment, about):
                facts = Facts(changed)
                if verdict_of(rule, facts).word == "hit":
                    yield f"{said} does not fix what the rule describes"
                # an error that is a warning as long as the job is unknown is one for those who follow the fix
                yield from (f"{said} triggers rule {other.id}" for other in rivals if verdict_of(other, facts).word == "hit")


def settings_of(rule: Rule) -> Iterator[str]:
    """Yield settings that fix the job, as it is read with them, but do not exempt it."""
    for fix in (each for each in rule.fixes if each.kind == "config"):
        draft = Draft()
        for name, value in _SETTING.findall(fix.value):
            apply_option(draft, name, None if value == "None" else value.strip("\"'"), "")
        said = draft.workload()
        known = {*(said.features or ()), *(said.features_absent or ())} - _ASKED_BY_NAME
        for environment in hits_of(rule) if known else ():
            facts = Facts(environment)
            if conjunction(holds(each, facts.presuming(defaults_of(rule, facts))) for each in fix.when) is False:
                continue
            work = environment.workload or Workload()
            on = {*(work.features or ()), *(said.features or ())}.difference(said.features_absent or ())
            off = {*(work.features_absent or ()), *(said.features_absent or ())}.difference(said.features or ())
            changed = replace(work, features=tuple(on), features_absent=tuple(off))
            if verdict_of(rule, Facts(replace(environment, workload=changed))).word == "hit":
                yield f"{fix.value} does not exempt from the rule: ask for {', '.join(sorted(known))}"


def unpinned(rule: Rule) -> Iterator[str]:
    """Yield examples with a torch that vLLM pins away, unless the rule is about the two: no installer leaves them together."""
    if {"torch", "vllm"} <= {each.name for each in rule.packages}:
        return
    engine = open_declared().package("vllm")
    for number, example in enumerate(rule.examples, 1):
        versions = {each.name: each.version for each in environment_of(example).distributions or () if each.version}
        torch, vllm = versions.get("torch"), versions.get("vllm")
        place = engine.place(vllm) if engine and vllm else None
        if engine is None or place is None or torch is None:
            continue
        for asked, ranges, _, extra in engine.requirements(place, "torch"):
            if extra is None and not contains(ranges, key_of(torch)):
                yield f"example {number}: vllm {vllm} requires torch{asked}, not {torch}"


def left_alone(rule: Rule) -> Iterator[str]:
    """Yield releases that a fix leaves in place but its newest ones refuse: pip then moves them to the newest there is."""
    declared = open_declared()
    for fix in rule.fixes:
        for (name, spec), (mover, moved) in itertools.product(fix.along, fix.packages):
            left, package = declared.package(normalized(name)), declared.package(normalized(mover))
            newest = next((each for each in reversed(_finals(package)) if contains(ranges_of(moved), key_of(each))), None)
            if left is None or package is None or newest is None:
                continue
            for asked, ranges, _, extra in package.requirements(package.place(newest) or 0, normalized(name)):
                inside = (each for each in _finals(left) if contains(ranges_of(spec), key_of(each)))
                refused = next((each for each in inside if not contains(ranges, key_of(each))), None)
                if extra is None and refused is not None:
                    yield f"along leaves {name} {refused}, but {mover} {newest} requires {asked}: narrow the range {spec}"


def _finals(package: Package | None) -> list[str]:
    return [] if package is None else [each for each in package.versions if re.fullmatch(r"[\d.]+", each)]


def _rivals(rule: Rule, fix: FixTemplate, environment: Environment, about: Mapping[str, Sequence[Rule]]) -> Iterator[Rule]:
    """Other rules about a distribution that the fix changes, unless what it leaves alone rules them out."""
    moved = [normalized(name) for name, _ in fix.packages]
    touched = {*moved, *(name for name, _ in fix.along)}
    before = Facts(environment)
    for other in {each.id: each for name in moved for each in about.get(name, ())}.values():
        left = (each for each in other.packages if each.name not in touched)
        if other is not rule and not any(holds(each, before) is False for each in left):
            yield other


def applied(fix: FixTemplate, environment: Environment, about: Mapping[str, Sequence[Rule]]) -> Iterator[Environment]:
    """Yield the environment after a fix, once for each part of the fix's range that the rules distinguish.

    Yields nothing for fixes whose effect is unknown (a driver, a configuration described in text).
    """
    if fix.kind in _MOVES:
        yield from _moved(fix, environment, about)
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


def _moved(fix: FixTemplate, environment: Environment, about: Mapping[str, Sequence[Rule]]) -> Iterator[Environment]:
    """The packages of the fix at the lowest version it allows, with each in turn at every version the rules distinguish."""
    places = {normalized(name): _places(normalized(name), spec, about) for name, spec in fix.packages}
    lowest = {name: found[0] for name, found in places.items() if found}
    there = {each.name for each in environment.distributions or ()}
    lowest |= {name: found[0] for name, spec in fix.along if name in there and (found := _places(name, spec, about))}
    for name, found in places.items():
        for version in found:
            yield _with(environment, {**lowest, name: version})


def _selected(fix: FixTemplate, environment: Environment, about: Mapping[str, Sequence[Rule]]) -> Environment:
    """The packages of the fix at the newest version it allows."""
    places = ((normalized(name), _places(normalized(name), spec, about)) for name, spec in fix.packages)
    return _with(environment, {name: found[-1] for name, found in places if found})


def _places(name: str, spec: str, about: Mapping[str, Sequence[Rule]]) -> list[object]:
    """Comparison keys for the versions in ``spec`` that the bounds of rules about ``name`` distinguish."""
    ranges = ranges_of(spec)
    bounds = {key for interval in ranges for key in (interval[0], interval[2]) if key}
    for rule in about.get(name, ()):
        for each in rule.packages:
            if each.name == name and each.how == "in":
                bounds |= {key for interval in each.ranges for key in (interval[0], interval[2]) if key}
    selected = (_below(interval[2]) for interval in ranges if interval[2])  # by an installer
    cells = sorted((*(cell for bound in bounds for cell in (bound, (*bound, 0))), *selected))
    return [cell for cell in cells if contains(ranges, cell)]


def _below(key: Key) -> Key:
    """A comparison key just below a release."""
    release = list(key[1]) or [0]
    release[-1] = max(release[-1] - 1, 0)
    return key_of(".".join(map(str, (*release, 9999))))


def _with(environment: Environment, versions: dict[str, Any]) -> Environment:
    kept = [d for d in environment.distributions or () if d.name not in versions]
    moved = [Distribution(name=name, version=version, source=Source("index")) for name, version in versions.items()]
    return replace(environment, distributions=(*kept, *moved))


def _from_source(fix: FixTemplate, environment: Environment) -> Environment:
    commits = {normalized(name): where.rpartition("@")[2] for name, where in fix.packages}
    return replace(environment, distributions=tuple(
        replace(d, source=Source("vcs", {"commit": commits[d.name]}), version=fix.version or d.version)
        if d.name in commits else d
        for d in environment.distributions or ()
    ))  # fmt: skip
