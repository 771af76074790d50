"""Errors about wheels that hold for every release a requirement admits: ``torch<2.6`` on a GPU that none has code for."""

from __future__ import annotations

from compat.checks import builds
from compat.model import Distribution, Environment, Finding, of_no_index
from compat.records import replace
from compat.rules.facts import Facts
from compat.tables.declared import open_declared
from compat.versions import contains, is_final, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def judge(environment: Environment) -> Iterator[Finding]:
    """Yield the errors about wheels and the machine that a bounded requirement cannot avoid, whichever release is selected.

    They are questions where they are for a pin. A requirement that admits the newest release is left out: later ones may be
    better.
    """
    listed = environment.distributions or ()
    for copy in listed:
        if copy.version is not None or not copy.specifier or copy.name not in builds.NAMES or of_no_index(copy):
            continue
        if sum(each.name == copy.name for each in listed) > 1:
            continue  # their requirements together may admit less
        common: dict[str, Finding] | None = None
        for version in reversed(_admitted(copy, environment)):
            found = _errors(copy, version, environment)
            common = (
                found
                if common is None
                else {rule: _weaker(each, found[rule]) for rule, each in common.items() if rule in found}
            )
            if not common:
                break
        stated = f"every release that {copy.name}{copy.specifier} admits"
        for each in (common or {}).values():
            yield replace(each, packages={**each.packages, copy.name: None}, here=f"{stated}; the newest: {each.here}")


def _admitted(copy: Distribution, environment: Environment) -> list[str]:
    """The final releases that a requirement and the Python accept, oldest first; none if the newest of all is among them."""
    package = open_declared().package(copy.name)
    published = (each.version for each in (package.releases if package else ()) if each.is_offered(environment.python))
    offered = [version for version in published if is_final(key_of(version))]
    ranges = ranges_of(copy.specifier or "")
    admitted = [version for version in offered if contains(ranges, key_of(version))]
    return [] if not admitted or admitted[-1] == offered[-1] else admitted


def _errors(copy: Distribution, version: str, environment: Environment) -> dict[str, Finding]:
    """The errors about the wheels of one release of a distribution, by rule."""
    others = (each for each in environment.distributions or () if each is not copy)
    one = replace(environment, distributions=(*others, replace(copy, version=version, specifier=None)))
    return {each.rule: each for each in builds.judge(Facts(one)) if each.severity == "error" and copy.name in each.packages}


def _weaker(newer: Finding, older: Finding) -> Finding:
    """The finding for the newer release, as a question if it is one for the other."""
    if older.verdict == "hit" or newer.verdict != "hit":
        return newer
    return replace(newer, verdict="possible", missing=older.missing, unknown=older.unknown, likelihood=older.likelihood)
