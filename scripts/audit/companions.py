"""``python -m scripts.audit.companions [RULE…]``: upgrades that break what is usually installed beside the packages of a rule.

pip only looks at the packages that it is asked for and at what they require: if the newest release that a fix allows requires
more than is installed, the newest of that is taken that all of these accept, whatever else depends on it. Each upgrade is
applied to the first example that the rule hits, among the releases of :data:`BESIDE` of the same time. Printed are the errors
and the broken requirements that were not there before. What other installed packages require of what moves is part of the
command (:mod:`compat.checks.advice`); an upper bound, or the range of a package in ``along``, mends most of the rest. It
takes some minutes.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping

from packaging.version import Version

from compat.api.public import check
from compat.checks.advice import bounded, reached_from, wanted_by, with_releases
from compat.checks.lint_fixes import hits_of
from compat.checks.requirements import requires_among
from compat.model import Environment, Finding
from compat.records import replace
from compat.rules.evaluate import fix_of, verdict_of
from compat.rules.facts import Facts
from compat.rules.loader import load_folder
from compat.rules.rule import FixTemplate, Rule
from compat.versions import EVERY, Ranges, contains, intersect, key_of, ranges_of
from scripts.audit.corners import suits, with_pins
from scripts.audit.evidence import ROOT

BESIDE = ("transformers", "huggingface-hub", "tokenizers", "accelerate", "numpy", "datasets", "torch", "peft")
_ROUNDS = 12


class Releases:
    """The recorded releases of each package that are neither yanked nor early, oldest first, with the day of their upload."""

    def __init__(self, rows: Iterator[Mapping[str, str]]) -> None:
        self._days: dict[str, dict[str, str]] = {}
        for row in rows:
            if not row["yanked"] and not Version(row["version"]).is_prerelease:
                self._days.setdefault(row["package"], {})[row["version"]] = row["uploaded"]

    def newest(self, name: str, ranges: Ranges = EVERY, until: str = "9") -> str | None:
        """Return the newest release in the ranges that was there on a day."""
        days = self._days.get(name, {})
        fitting = [each for each, day in days.items() if day <= until and contains(ranges, key_of(each))]
        return max(fitting, key=key_of, default=None)

    def last_day(self, environment: Environment) -> str | None:
        """Return the day on which all of an environment's releases were there."""
        copies = environment.distributions or ()
        return max((day for each in copies if (day := self._days.get(each.name, {}).get(each.version or ""))), default=None)


def breaks(rule: Rule, releases: Releases) -> Iterator[tuple[FixTemplate, Finding]]:
    """Return what each upgrade of a rule breaks."""
    environments = hits_of(rule)
    before = next((found for each in environments if (found := _usual(each, releases))), None)
    if before is None or verdict_of(rule, Facts(before)).word != "hit":
        return
    known = {(each.rule, each.title) for each in _broken(before)}
    for fix in rule.fixes:
        if fix.kind != "upgrade" or not suits(fix, before):
            continue
        after = _installed(fix, before, releases)
        yield from ((fix, each) for each in _broken(after) if (each.rule, each.title) not in known and each.rule != rule.id)


def _usual(example: Environment, releases: Releases) -> Environment | None:
    """Return the example with what was usual beside it, without what already contradicts it."""
    day = releases.last_day(example)
    if day is None:
        return None
    own = {each.name for each in example.distributions or ()}
    found = with_pins(
        example, {name: newest for name in BESIDE if name not in own and (newest := releases.newest(name, until=day))}
    )
    for _ in range(_ROUNDS):
        gone = {name for each in _broken(found) for name in each.packages if name not in own}
        found = replace(found, distributions=tuple(each for each in found.distributions or () if each.name not in gone))
    return found


def _installed(fix: FixTemplate, before: Environment, releases: Releases) -> Environment:
    """Return the environment after a fix; what its packages require moves if it must, to the newest release that all accept."""
    wanted = {name: ranges_of(spec) for name, spec in wanted_by(bounded(fix_of(fix, Facts(before)), before)).items()}
    pins = {name: newest for name, ranges in wanted.items() if (newest := releases.newest(name, ranges))}
    for _ in range(_ROUNDS):
        after = with_releases(before, pins)
        asked, refused = dict(wanted), set()
        asking: dict[str, set[str]] = {}
        for each in requires_among(after, reached_from(after, wanted)):
            asked[each.asked] = intersect(asked.get(each.asked, EVERY), ranges_of(each.specifier))
            asking.setdefault(each.asked, set()).add(each.asking)
            if each.met is False:
                refused.add(each.asked)
        settled = {name: newest for name in refused if (newest := releases.newest(name, asked[name]))}
        for name in refused - settled.keys():  # what moved asks for too much: an older release of it
            moved = asking[name] & pins.keys()
            for other in moved - wanted.keys() or moved:
                older = releases.newest(other, intersect(asked.get(other, EVERY), ranges_of(f"<{pins[other]}")))
                settled |= {other: older} if older else {}
        pins |= settled
    return with_releases(before, pins)


def _broken(environment: Environment) -> list[Finding]:
    return [
        each
        for each in check(environment).findings
        if each.verdict == "hit" and (each.severity == "error" or each.origin == "metadata")
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.audit.companions", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="only these (default: all)")
    words = parser.parse_args(arguments)
    with open(ROOT / "matrix" / "facts" / "releases.csv", encoding="utf-8", newline="") as table:
        releases = Releases(csv.DictReader(table))
    found = 0
    for rule in load_folder(str(ROOT / "matrix" / "rules")):
        for fix, finding in breaks(rule, releases) if not words.rules or rule.id in words.rules else ():
            packages = ", ".join(name + spec for name, spec in fix.packages)
            print(f"{rule.id}: upgrade {packages}: {finding.severity} {finding.rule}: {finding.title}", flush=True)
            found += 1
    print(f"{found} broken")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
