"""The input for verifying a plan with uv: pins, overrides, and packages that uv cannot resolve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from compat.model import EMPTY
from compat.records import record
from compat.repair.candidates import Release
from compat.repair.problem import Problem
from compat.repair.relaxation import Needs
from compat.repair.target import Need, satisfies


@record(frozen=True)
class Question:
    """``pins`` are versions by name, ``loose`` the pins that override the requirements of other packages.

    ``indexes`` are additional indexes that pins come from.
    ``without`` are packages that uv does not resolve: no index has a wheel, or they are missing or possibly missing already.
    ``requires`` are the requirements of releases that uv does not resolve.
    """

    pins: Mapping[str, str] = EMPTY
    loose: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    requires: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The lines of the requirements file."""
        return [*(f"{name}=={version}" for name, version in sorted(self.pins.items())), *sorted(set(self.requires))]

    def overrides(self) -> list[str]:
        """The lines of the overrides file; a marker that is never true excludes a package."""
        kept = [f"{name}=={self.pins[name]}" for name in sorted((self.loose & set(self.pins)) - self.without)]
        return [*kept, *(f"{name} ; python_version < '0'" for name in sorted(self.without))]


class Served(Protocol):
    """Knows whether indexes provide a wheel of a release; ``None`` if the package was not read."""

    def serves(self, release: Release) -> bool | None: ...


def question(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs], index: Served) -> Question:
    """The question for a plan: its releases are pinned, and requirements that remain unmet are excluded."""
    conda = problem.of_conda & chosen.keys()
    gone = {name for name, release in chosen.items() if _elsewhere(release, index)} | conda
    broken = list(unmet(problem, chosen, needs))
    missing = {name for name in broken if name not in chosen}
    asking = [(name, need) for name in gone for need in needs.get(chosen[name], EMPTY).get("", ())]
    wanted = [need for name, need in asking if name not in conda or need.name in chosen]
    return Question(
        {name: release.version for name, release in chosen.items() if name not in gone},
        frozenset(name for name in broken if name in chosen) - gone, frozenset(gone | missing),
        tuple(need.text for need in wanted if need.name not in broken),
        tuple(sorted({url for name, release in chosen.items() if name not in gone and (url := _index_of(release))})),
    )  # fmt: skip


def _elsewhere(release: Release, index: Served) -> bool:
    """Whether no index available to uv provides it: it is built locally, or its index was not read."""
    return release.built or index.serves(release) is False or (release.source is not None and index.serves(release) is not True)


def _index_of(release: Release) -> str:
    return "" if release.source is None else str(release.source.details.get("url", ""))


def brought_along(
    problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs], opened: Mapping[str, tuple[Release, ...]]
) -> frozenset[str]:
    """Changes an installer makes by itself: unlisted packages, and packages added in their newest acceptable release.

    Of a file that lists a package without a pin, the installer adds that one, too.
    """
    wanted: dict[str, list[str]] = {name: [] for name in chosen if name not in problem.current}
    asked = {each.name for each in (*problem.keep, *(() if problem.current else problem.asked))}
    for need in problem.asked:
        if need.name in wanted:
            wanted[need.name].append(need.specifier)
    for name, extra in _active(problem, chosen, needs):
        for need in needs.get(chosen[name], EMPTY).get(extra, ()):
            if need.name in wanted:
                wanted[need.name].append(need.specifier)
    found = set()
    for name, specifiers in wanted.items():
        plain = [each for each in opened.get(name, ()) if each.plain]
        fitting = [each.version for each in plain if all(satisfies(each.version, text) for text in specifiers)]
        if specifiers and name not in asked and (problem.unlisted or (fitting and fitting[-1] == chosen[name].version)):
            found.add(name)
    return frozenset(found) | problem.unlisted


def partial(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs]) -> bool:
    """Whether a listed package already requires an unlisted one, so that more is installed than listed."""
    listed = [needs.get(release, EMPTY).get("", ()) for release in problem.current.values()]
    return not problem.complete and any(need.name not in problem.current for found in listed for need in found)


def unmet(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs]) -> Iterator[str]:
    """Packages that do not satisfy a requirement of another package or of the user."""
    for name, extra in _active(problem, chosen, needs):
        for need in needs.get(chosen[name], EMPTY).get(extra, ()):
            other = chosen.get(need.name)
            if other is None or not satisfies(other.version, need.specifier):
                yield need.name


def _active(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs]) -> Iterable[tuple[str, str]]:
    """The (package, extra) pairs that are requested, with ``""`` for the package without extras."""
    found = dict.fromkeys((name, "") for name in chosen)
    waiting = list(found)
    asked: list[Need] = [*problem.asked, *problem.keep]
    while waiting or asked:
        if not asked:
            name, extra = waiting.pop()
            asked += needs.get(chosen[name], EMPTY).get(extra, ())
            continue
        need = asked.pop()
        new = [(need.name, extra) for extra in need.extras if need.name in chosen and (need.name, extra) not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return found
