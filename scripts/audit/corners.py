"""``python -m scripts.audit.corners [RULE…] [--beside NAME]``: fixes that only help in a rule's example.

The packages that a fix leaves alone are set to their first and last release inside the rule's range, in every combination,
and each of them in turn to the last release of every series between; what the fix moves gets the newest release it allows.
Printed is each error that concerns a moved package then. A finding about declared requirements is not one: the installer moves
those packages, too. ``--beside torch`` instead tries each fix of a rule that does not name torch beside every series of it
(2.4, 2.5, …), as nearly every environment has one. It takes minutes.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping

from packaging.version import Version

from compat.api.public import check
from compat.formats.described import parse_described
from compat.model import Distribution, Environment, Finding, Source, normalized
from compat.records import replace
from compat.rules.facts import Facts
from compat.rules.loader import load_folder
from compat.rules.logic import conjunction, holds
from compat.rules.rule import FixTemplate, Rule
from compat.versions import EVERY, Ranges, contains, ranges_of
from scripts.audit.bounds import ordered
from scripts.audit.evidence import ROOT
from scripts.audit.sources import Sources

_MOVING = ("upgrade", "downgrade", "pin")


class Corners:
    """The environments that a fix may meet at the ends of a rule's ranges."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def errors(self, rule: Rule, fix: FixTemplate) -> Iterator[tuple[dict[str, str], Finding]]:
        """Return the errors that a fix leads into, each with the releases of the packages beside it."""
        environment, moved = _example(rule, fix), self._moved(fix)
        if environment is None:
            return
        beside = {name: ranges for name, ranges in rule.ranges.items() if name not in moved}
        for kept in self._corners(beside):
            if not suits(fix, with_pins(environment, kept)):
                continue
            after = with_pins(environment, kept | moved)
            for each in check(after).findings:
                if _certain(each) and (each.rule == rule.id or moved.keys() & each.packages.keys()):
                    yield kept, each

    def errors_beside(self, rule: Rule, fix: FixTemplate, name: str) -> Iterator[tuple[dict[str, str], Finding]]:
        """Return the errors that a fix leads into beside a series of a package that the rule does not name.

        Left out are series with which the rule's packages have another error already, and those that the installer would move.
        """
        environment, moved = _example(rule, fix), self._moved(fix)
        if environment is None or name in rule.ranges or name in moved:
            return
        for version in self._series(name):
            before = with_pins(environment, {name: version})
            hits = {each.rule: each for each in check(before).findings if each.verdict == "hit"}
            broken = any(
                _certain(each) and rule.ranges.keys() & each.packages.keys() for each in hits.values() if each.rule != rule.id
            )
            if rule.id not in hits or broken or not suits(fix, before):
                continue
            after = [each for each in check(with_pins(before, moved)).findings if moved.keys() & each.packages.keys()]
            if not any(each.origin == "metadata" and name in each.packages for each in after):
                yield from (({name: version}, each) for each in after if _certain(each) and each.rule != rule.id)

    def _corners(self, beside: Mapping[str, Ranges]) -> list[dict[str, str]]:
        """Return the ends of the ranges in every combination, and each series of one package beside the ends of the others."""
        ends = {name: releases for name, ranges in beside.items() if (releases := self._ends(name, ranges))}
        found = [dict(zip(ends, corner)) for corner in itertools.product(*ends.values())]
        for name in ends:
            others = {other: releases for other, releases in ends.items() if other != name}
            for version, corner in itertools.product(self._series(name, beside[name]), itertools.product(*others.values())):
                kept = {name: version, **dict(zip(others, corner))}
                if kept not in found:
                    found.append(kept)
        return found

    def _moved(self, fix: FixTemplate) -> dict[str, str]:
        """Return the newest release of each package that the fix moves."""
        newest = {normalized(name): self._ends(name, ranges_of(spec))[-1:] for name, spec in (*fix.packages, *fix.along)}
        return {name: release for name, releases in newest.items() for release in releases}

    def _series(self, name: str, ranges: Ranges = EVERY) -> list[str]:
        """Return the last release of each minor series in the ranges."""
        return list({Version(text).release[:2]: text for text in self._within(name, ranges)}.values())

    def _ends(self, name: str, ranges: Ranges) -> list[str]:
        """Return the first and the last release in the ranges; one or none if there are no more."""
        releases = self._within(name, ranges)
        return list(dict.fromkeys([*releases[:1], *releases[-1:]]))

    def _within(self, name: str, ranges: Ranges) -> list[str]:
        return [text for text, key in ordered(self._sources.versions(name), ranges) if contains(ranges, key)]


def _example(rule: Rule, fix: FixTemplate) -> Environment | None:
    """Return the first example that the rule hits and the fix is for."""
    hits = (parse_described(each.environment, "example")[0] for each in rule.examples if each.verdict == "hit")
    return next((each for each in hits if suits(fix, each)), None)


def _certain(finding: Finding) -> bool:
    return finding.verdict == "hit" and finding.severity == "error" and finding.origin != "metadata"


def suits(fix: FixTemplate, environment: Environment) -> bool:
    """Whether a fix is for an environment, as far as that is known."""
    return conjunction(holds(each, Facts(environment)) for each in fix.when) is not False


def with_pins(environment: Environment, pins: Mapping[str, str]) -> Environment:
    """Return the environment with these releases in the place of its own."""
    kept = [each for each in environment.distributions or () if each.name not in pins]
    added = [Distribution(name=name, version=version, source=Source("index")) for name, version in pins.items()]
    return replace(environment, distributions=(*kept, *added))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.audit.corners", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="only these (default: all)")
    parser.add_argument("--beside", metavar="NAME", help="beside every series of this package, where a rule does not name it")
    words = parser.parse_args(arguments)
    corners, found = Corners(Sources()), 0
    for rule in load_folder(str(ROOT / "matrix" / "rules")):
        for fix in rule.fixes if not words.rules or rule.id in words.rules else ():
            if fix.kind not in _MOVING:
                continue
            for beside, error in corners.errors_beside(rule, fix, words.beside) if words.beside else corners.errors(rule, fix):
                packages = ", ".join(name + spec for name, spec in fix.packages)
                others = ", ".join(f"{name} {version}" for name, version in beside.items()) or "nothing else"
                print(f"{rule.id}: {fix.kind} {packages} beside {others}: {error.rule}", flush=True)
                found += 1
    print(f"{found} errors")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
