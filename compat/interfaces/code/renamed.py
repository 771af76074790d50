"""What a name or keyword missing from a release is called there: its new name, its old name, or the most similar one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from compat.interfaces.needs import Need, verdict_on
from compat.interfaces.release import Meaning
from compat.interfaces.source.records import Class
from compat.interfaces.world import World
from compat.records import record

if TYPE_CHECKING:
    from compat.interfaces.code.releases import Releases
    from compat.interfaces.table import Table


_LIKE = 0.78
"""Minimum :mod:`difflib` similarity for one name to be suggested for another."""


@record(frozen=True)
class Renamed:
    """``name`` in the other release; ``stated``: stated by the package or the same name elsewhere, otherwise only similar."""

    name: str
    stated: bool


def in_other_release(releases: Releases, package: str, need: Need, has: str, lacks: str) -> Renamed | None:
    """Return the name in release ``lacks`` for a need that release ``has`` meets; ``None`` if unknown."""
    having, lacking, table = releases.world(package, has), releases.world(package, lacks), releases.table(package)
    if having is None or lacking is None or table is None:
        return None
    if need.kind in ("import", "attribute"):
        return _elsewhere(table, lacking, need)
    if not need.keywords:
        return None
    keyword = need.keywords[0]
    candidates = [Renamed(name, stated=True) for name in (*_stated_new(table, having, need), *_stated_old(table, having, need))]
    names = taken(lacking, need)
    for each in (*candidates, *(Renamed(name, stated=False) for name in alike(keyword, names - taken(having, need)))):
        if each.name != keyword and verdict_on(lacking, need._replace(keywords=(each.name,))).met is not False:
            return each
    return None


def nearest(releases: Releases, package: str, need: Need) -> str | None:
    """Return the most similar name in any release for a name that no release has; ``None`` if there is none."""
    table = releases.table(package)
    if table is None:
        return None
    if need.kind == "import" and need.name:
        return next(alike(need.name, table.names_in(need.target)), None)
    if need.kind == "attribute":
        module, _, name = need.target.rpartition(".")
        return next(alike(name, table.names_in(module)), None)
    if need.keywords:
        names: set[str] = set()
        for version in table.versions:
            world = releases.world(package, version)
            names |= taken(world, need) if world is not None else set()
        return next(alike(need.keywords[0], names), None)
    return None


def alike(name: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the most similar names, best first."""
    import difflib

    yield from difflib.get_close_matches(name, sorted(each for each in names if each != name), 3, _LIKE)


def _owners(world: World, need: Need) -> Iterator[Meaning]:
    """Yield the functions and classes that a call refers to, including base classes."""
    _, target, name, bases, *_ = need
    found = world.find(bases[0] if bases else target)
    if found.kind == "class":
        yield from (each for each in world.bases(found)[0] if isinstance(each.definition, Class))
    elif found.kind == "function":
        yield found
    if name and found.kind == "class":
        member = world.member(found, name)
        if member.kind == "method":
            yield member


def _stated_new(table: Table, having: World, need: Need) -> Iterator[str]:
    for owner in _owners(having, need):
        for new, _, _ in table.renames(owner.module, owner.name.partition(".")[0], need.keywords[0]):
            if new:
                yield new


def _stated_old(table: Table, having: World, need: Need) -> Iterator[str]:
    """Yield the former names of a keyword, as documented by any release that accepted both."""
    for owner in _owners(having, need):
        for row in table.block(owner.module).get("rename", ()):
            if row[0][0] == owner.name.partition(".")[0] and any(says[0] == need.keywords[0] for says in row[2::2]):
                yield row[0][1]


def taken(world: World, need: Need) -> set[str]:
    """Return the parameter names that the callee accepts."""
    _, target, name, bases, *_ = need
    found = world.find(bases[0] if bases else target)
    if name and name != "__init__" and found.kind == "class":
        found = world.member(found, name)
    callee = world.callee(found)
    if callee is None:
        return set()
    signature = callee[0]
    return {*signature.positional[callee[1] :], *signature.keyword_only}


def _elsewhere(table: Table, lacking: World, need: Need) -> Renamed | None:
    """Return the place in another module where a release defines the same name, or else a similar name."""
    name = need.name if need.kind == "import" else need.target.rpartition(".")[2]
    if not name:
        return None
    homes = [module for module in table.modules() if name in table.names_in(module) and not _is_private(module)]
    for module in sorted(homes, key=lambda each: (each.count("."), len(each))):
        if lacking.imported(module, name).kind in ("class", "function"):
            return Renamed(f"{module}.{name}", stated=True)
    module = need.target if need.kind == "import" else need.target.rpartition(".")[0]
    for each in alike(name, table.names_in(module)):
        if lacking.imported(module, each).kind in ("class", "function"):
            return Renamed(f"{module}.{each}", stated=False)
    return None


def _is_private(module: str) -> bool:
    return any(part.startswith("_") or part in ("tests", "testing") for part in module.split("."))
