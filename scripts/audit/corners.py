"""``python -m scripts.audit.corners [RULE…]``: fixes that help in a rule's example but not at the ends of its ranges.

The packages that a fix leaves alone are set to their first and last release inside the rule's range, in every combination;
what the fix moves gets the newest release it allows. Printed is each error that concerns a moved package then. A finding about
declared requirements is not one: the installer moves those packages, too.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator

from compat.api.public import check
from compat.formats.described import parse_described
from compat.model import Distribution, Environment, Finding, Source, normalized
from compat.records import replace
from compat.rules.facts import Facts
from compat.rules.loader import load_folder
from compat.rules.logic import conjunction, holds
from compat.rules.rule import FixTemplate, Rule
from compat.versions import Ranges, contains, ranges_of
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
        hits = (parse_described(each.environment, "example")[0] for each in rule.examples if each.verdict == "hit")
        environment = next((each for each in hits if _fits(fix, each)), None)
        if environment is None:
            return
        newest = {normalized(name): self._ends(name, ranges_of(spec))[-1:] for name, spec in (*fix.packages, *fix.along)}
        moved = {name: release for name, releases in newest.items() for release in releases}
        beside = {name: self._ends(name, ranges) for name, ranges in rule.ranges.items() if name not in moved}
        beside = {name: releases for name, releases in beside.items() if releases}
        for corner in itertools.product(*beside.values()):
            kept = dict(zip(beside, corner))
            if not _fits(fix, _with(environment, kept)):
                continue
            after = _with(environment, kept | moved)
            for each in check(after).findings:
                certain = each.verdict == "hit" and each.severity == "error" and each.origin != "metadata"
                if certain and (each.rule == rule.id or moved.keys() & each.packages.keys()):
                    yield kept, each

    def _ends(self, name: str, ranges: Ranges) -> list[str]:
        """Return the first and the last release in the ranges; one or none if there are no more."""
        releases = [text for text, key in ordered(self._sources.versions(name), ranges) if contains(ranges, key)]
        return list(dict.fromkeys([*releases[:1], *releases[-1:]]))


def _fits(fix: FixTemplate, environment: Environment) -> bool:
    return conjunction(holds(each, Facts(environment)) for each in fix.when) is not False


def _with(environment: Environment, pins: dict[str, str]) -> Environment:
    kept = [each for each in environment.distributions or () if each.name not in pins]
    added = [Distribution(name=name, version=version, source=Source("index")) for name, version in pins.items()]
    return replace(environment, distributions=(*kept, *added))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.audit.corners", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="only these (default: all)")
    words = parser.parse_args(arguments)
    corners, found = Corners(Sources()), 0
    for rule in load_folder(str(ROOT / "matrix" / "rules")):
        for fix in rule.fixes if not words.rules or rule.id in words.rules else ():
            for beside, error in corners.errors(rule, fix) if fix.kind in _MOVING else ():
                packages = ", ".join(name + spec for name, spec in fix.packages)
                others = ", ".join(f"{name} {version}" for name, version in beside.items()) or "nothing else"
                print(f"{rule.id}: {fix.kind} {packages} beside {others}: {error.rule}", flush=True)
                found += 1
    print(f"{found} errors")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
