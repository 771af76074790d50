"""What a name or keyword missing from a release is called there: its new name, its old name, or the most similar one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from compat.interfaces.announced import Advice, advised, curated
from compat.interfaces.needs import Need, verdict_on
from compat.interfaces.release import Meaning
from compat.interfaces.source.records import Class
from compat.interfaces.world import World
from compat.records import record
from compat.versions import key_of

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
    newer = key_of(lacks) > key_of(has)
    if need.kind in ("import", "attribute"):
        found = _elsewhere(table, lacking, need)
        return found if not newer or (found is not None and found.stated) else _announced(package, lacking, need) or found
    if not need.keywords:
        return None
    keyword = need.keywords[0]
    advice = _of_keyword(package, having, need) if newer else None
    announced = (advice.new.lstrip("-"),) if advice is not None and advice.new is not None else ()
    stated = (*_stated_new(table, having, need), *announced, *_stated_old(table, having, need))
    candidates = [Renamed(name, stated=True) for name in stated if name.isidentifier()]
    names = taken(lacking, need)
    for each in (*candidates, *(Renamed(name, stated=False) for name in alike(keyword, names - taken(having, need)))):
        if each.name != keyword and verdict_on(lacking, need._replace(keywords=(each.name,))).met is not False:
            return each
    return None


def advice_on(releases: Releases, package: str, need: Need, has: str) -> Advice | None:
    """Return what the package says of a name or keyword that it removed after release ``has``, ``None`` if nothing."""
    having = releases.world(package, has)
    if need.kind in ("import", "attribute"):
        return advised(package, _last(need))
    return _of_keyword(package, having, need) if having is not None and need.keywords else None


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


def _of_keyword(package: str, having: World, need: Need) -> Advice | None:
    owners = {owner.name.partition(".")[0] for owner in _owners(having, need)}
    return advised(package, need.keywords[0], owners) if owners else None


def _last(need: Need) -> str:
    return (need.name if need.kind == "import" else None) or need.target.rpartition(".")[2]


def _announced(package: str, lacking: World, need: Need) -> Renamed | None:
    """Return what the package's warnings, or the curated table, name instead of a name that it removed."""
    dotted = f"{need.target}.{need.name}" if need.kind == "import" and need.name else need.target
    known = curated(package, dotted)
    if known is not None:
        return Renamed(known, stated=True)
    advice = advised(package, _last(need))
    new = advice.new if advice is not None else None
    if new is None or not new.isidentifier():
        return None
    homes = dict.fromkeys((dotted.rpartition(".")[0], dotted.partition(".")[0]))
    found = next((home for home in homes if lacking.imported(home, new).kind in ("class", "function")), None)
    return None if found is None else Renamed(f"{found}.{new}", stated=True)


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
