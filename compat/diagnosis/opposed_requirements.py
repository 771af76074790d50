"""Two packages of which a resolver says that they require releases of a third one that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from compat.checks.fix_commands import by_pip, moved_to
from compat.diagnosis.frame_packages import version_of
from compat.model import Finding, Fix
from compat.reports.stated import Wanted, wanted_in
from compat.rules.facts import Facts
from compat.tables.declared import open_declared
from compat.versions import Ranges, overlap, ranges_of

RULE = "symptom-opposed-requirements"
_PREFERRED = ("upgrade", "pin", "downgrade", "uninstall")
_FAR = 30
"""Releases between the present one and the nearest that accepts, beyond which it is no help: it only asks for less."""
_MOST = 30
"""Maximum number of requirements compared; resolvers list dozens."""


def opposed_requirements(text: str, facts: Facts) -> Iterator[Finding]:
    """Yield a finding for the first two requirements of different packages that no release meets, with what to move."""
    asked = [each for each in wanted_in(text) if each.by and each.specifier and each.found is None][:_MOST]
    for one, other in combinations(asked, 2):
        if one.name == other.name and one.by != other.by and not overlap(ranges_of(one.specifier), ranges_of(other.specifier)):
            yield _finding(one, other, facts)
            return


def _finding(one: Wanted, other: Wanted, facts: Facts) -> Finding:
    asking = [(each.by or "", each.by_version or version_of(each.by or "", facts)) for each in (one, other)]
    said = [
        f"{' '.join(filter(None, who))} requires {each.name}{each.specifier}"
        for who, each in zip(asking, (one, other), strict=True)
    ]
    fixes = sorted((*_accepting(one, other, facts), *_accepting(other, one, facts)), key=lambda fix: _PREFERRED.index(fix.kind))
    apart = Fix("config", text=f"install {asking[0][0]} and {asking[1][0]} into separate environments")
    return Finding(
        rule=RULE,
        origin="metadata",
        verdict="hit" if all(version for _, version in asking) else "possible",
        effect="install",
        title=f"{said[0]}, and {said[1]}: no release is both",
        why="Both are declared in the metadata of the packages: one of the two has to move to a release that asks for another.",
        packages={**dict(asking), one.name: version_of(one.name, facts)},
        facts=("install",),
        fixes=(*fixes, apart),
        here="the message of the resolver",
    )


def _accepting(asking: Wanted, other: Wanted, facts: Facts) -> Iterator[Fix]:
    """Yield the nearest release of the package that asks whose requirement goes with the other one's."""
    name = asking.by or ""
    package = open_declared().package(name)
    version = asking.by_version or version_of(name, facts)
    place = None if package is None or version is None else package.place(version)
    if package is None or place is None:
        yield by_pip("pin", name, None, f"another release of {name}, for {other.name}{other.specifier}")
        return
    wanted = ranges_of(other.specifier)

    def accepts(ranges: Ranges) -> bool:
        return overlap(ranges, wanted)

    nearest = package.accepting(place, other.name, None, accepts)
    if nearest is None:
        text = f"do without {name}, if that is possible: none of its releases accepts {other.name}{other.specifier}"
        yield Fix("uninstall", name, None, text, f"pip uninstall {name}")
    elif version is not None and abs((package.place(nearest) or 0) - place) <= _FAR:
        yield moved_to(name, version, nearest, f"the nearest release of {name} that accepts {other.name}{other.specifier}")
