"""The problem as clauses, as far as its data was read: a lower bound for the complete problem.

A package whose releases were not read is its installed release or *another* one, which satisfies everything; a release
whose metadata was not read has no requirements. Reading more can only raise the cost, so a cheapest model that depends only
on data that was read is optimal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from functools import cache

from compat.records import record
from compat.repair.candidates import Release
from compat.repair.engine import ERRORS, Clauses, Requires, Statement
from compat.repair.problem import (
    BEHIND,
    BUILT_AGAINST_TORCH,
    DOWNGRADE,
    FOLLOWING,
    LEFT,
    OLD,
    Problem,
    Recommended,
    cost_of_major,
    family,
    is_wheel,
)
from compat.repair.target import Need, satisfies

ABSENT, OTHER = "absent", "another release"
"""Values of a package other than one of its releases."""
Needs = Mapping[str, tuple[Need, ...]]


@record(frozen=True)
class Forbidden:
    """A forbidden combination of releases, by package (:data:`ABSENT`: not installed); ``level`` is the cost of violating it,
    ``weight`` its amount. With ``level`` "" it must not be violated; it does not apply if all of a group in ``unless`` holds.
    """

    together: tuple[tuple[str, frozenset[str]], ...]
    statement: Statement
    level: str
    unless: tuple[tuple[tuple[str, frozenset[str]], ...], ...] = ()
    weight: int = 1


def places(releases: Iterable[Release]) -> dict[str, int]:
    """The position of each version, oldest first; all builds of a release have the same position."""
    numbers: dict[str, int] = {}
    return {each.version: numbers.setdefault(each.public, len(numbers)) for each in releases}


class Relaxation:
    """The clauses of a problem, and the atom of each release."""

    def __init__(
        self,
        problem: Problem,
        opened: Mapping[str, tuple[Release, ...]],
        needs: Mapping[Release, Needs],
        *,
        strict: bool = False,
        unread: Collection[str] = (),
    ) -> None:
        """``strict``: plans with errors are not allowed. ``unread`` are packages of which not all releases were read."""
        self.problem, self.opened, self.needs, self._strict, self._unread = problem, opened, needs, strict, unread
        self.clauses = Clauses()
        self.at: dict[str, dict[str, int]] = {}
        self._release: dict[str, dict[str, Release]] = {}
        self._met: dict[tuple[str, str], int] = {}
        self._extras: dict[tuple[str, str], int] = {}
        self._waiting: list[str] = []
        self._of_conda = problem.of_conda
        self._oldest = self._oldest_day()
        self.forbidden: tuple[Forbidden, ...] = ()
        for name in problem.current:
            self._package(name)
        for need in problem.asked:  # the range of an installed package moves like a pin
            asked = need._replace(specifier="") if need.name in problem.current else need
            self._must(asked, f"the project requires {asked.text}", "asked")
        for need in problem.keep:
            self._must(need, f"you keep {need.text}", "keep")
        self._expand()

    def _oldest_day(self) -> str:
        """The upload date before which an added release counts as old; "" if none does."""
        current = self.problem.current
        read = [each for name, found in self.opened.items() for each in found if not current or each == current.get(name)]
        days = [each.day for each in (*read, *current.values()) if each.day]
        if self.problem.policy.any_age or not days:
            return ""
        return (date.fromisoformat(max(days)) - timedelta(OLD)).isoformat()

    def release(self, name: str, version: str) -> Release | None:
        """The release of a version, ``None`` for :data:`ABSENT` and :data:`OTHER`."""
        return self._release[name].get(version)

    def releases(self, name: str) -> tuple[Release, ...]:
        """The known releases of a package."""
        return tuple(self._release[name].values())

    def chosen(self, true: frozenset[int]) -> dict[str, str]:
        """The value of each package in a model."""
        return {name: next(what for what, atom in atoms.items() if atom in true) for name, atoms in self.at.items()}

    def forbid(self, forbidden: Iterable[Forbidden]) -> None:
        """Add forbidden combinations as costs: an error that no release fixes remains and is counted.

        Packages that are not required are absent; they are only considered if their presence may fix something.
        """
        rules = self.forbidden = tuple(forbidden)
        for each in rules:
            fixing = [name for name, versions in each.together if ABSENT in versions]
            for name in (*fixing, *(name for group in each.unless for name, _ in group)):
                self._package(name)
        self._expand()
        for each in rules:
            if all(name in self.at for name, _ in each.together):
                self._forbid(each)

    def _forbid(self, each: Forbidden) -> None:
        bad = self.clauses.atom()
        literals = [bad]
        for name, versions in each.together:
            here = [atom for what, atom in self.at[name].items() if what in versions]
            if not here:
                return
            others = (atom for what, atom in self.at[name].items() if what not in versions)
            literals += [-here[0]] if len(here) == 1 else others
        literals += [spared for group in each.unless if (spared := self._all(group))]
        self.clauses.add(tuple(literals))
        self.clauses.add((-bad,), each.statement) if each.level == "" else self.clauses.cost(each.level, bad, each.weight)

    def _all(self, group: tuple[tuple[str, frozenset[str]], ...]) -> int:
        """An atom for an exemption holding, which an unread release may satisfy, too; 0 if it cannot hold."""
        places = [
            tuple(atom for what, atom in self.at[name].items() if what in versions or what == OTHER) for name, versions in group
        ]
        return self.clauses.only_if_all(tuple(map(self.clauses.only_if_any, places))) if all(places) else 0

    def _package(self, name: str) -> None:
        if name in self.at:
            return
        current = self.problem.current.get(name)
        opened = self.opened.get(name)
        releases = opened if opened is not None else (() if current is None else (current,))
        whats = [release.version for release in releases]
        if opened is None or name in self._unread:
            whats.append(OTHER)
        if current is None or name not in self.problem.staying:
            whats.append(ABSENT)
        self._release[name] = {release.version: release for release in releases}
        self.at[name] = {what: self.clauses.atom() for what in whats}
        self.clauses.exactly_one(tuple(self.at[name].values()))
        self._price(name, releases, current)
        self._waiting.append(name)

    def _price(self, name: str, releases: tuple[Release, ...], current: Release | None) -> None:
        cost, atoms = self.clauses.cost, self.at[name]
        newest_wanted = self.problem.policy.prefer == "newest"
        place = places(releases)
        newest = max(place.values(), default=-1)
        for what, atom in atoms.items():
            if what == (ABSENT if current is None else current.version):
                continue
            installer = newest_wanted or self.problem.installer_adds  # which takes the newest, whatever that adds
            added = current is None and not installer
            if (what == ABSENT or added) and family(name) == name:
                cost("packages added or removed", atom)
            if current is None:  # adding costs at least one step, so that unneeded packages are not added
                behind = 0 if what == OTHER else newest - place[what]
                level = "release steps of added packages" if family(name) == name else "release steps of dependent packages"
                cost(level, atom, 1 + behind * (BEHIND if installer else 1))
            if what in (ABSENT, OTHER):
                continue
            if current is None:
                old = place[what] < newest and "" < self._release[name][what].day < self._oldest
                cost("old releases added", atom, int(old and family(name) == name))
            else:
                self._price_move(self._release[name][what], atom, current, place)
            if name in self.problem.direct and newest_wanted:
                cost("releases behind the newest", atom, newest - place[what])
            if self._release[name][what].built:
                cost("source installs", atom)
            elif not (release := self._release[name][what]).plain:
                own = None if current is None else current.key.local  # a build for the same CUDA is preferred
                usual = release.source is not None and bool(
                    release.source.details.get("usual")
                )  # then that for which others are
                cost("other builds", atom, 1 + (0 if own in (None, release.key.local) else 1 if usual else 2))

    def _price_move(self, release: Release, atom: int, current: Release, place: Mapping[str, int]) -> None:
        """Add the costs of moving an installed package. Where the installer chose its version, only steps count."""
        cost, name, problem = self.clauses.cost, release.name, self.problem
        here, there = place[current.version], place[release.version]
        steps = abs(there - here) if problem.policy.prefer == "stay" else max(place.values()) - there
        follows = family(name) != name  # its moves cost nothing, but none is made without need
        chosen = name in problem.unpinned  # by the installer: what the user pinned moves less
        steps_of = (
            "release steps of dependent packages"
            if follows
            else "release steps of added packages"
            if chosen
            else "release steps"
        )
        cost(steps_of, atom, steps)
        left = any(need.name == name and not release.meets(need.specifier) for need in problem.asked)
        left |= is_wheel(current.source) and release.source is None  # and nobody names an address without a reason
        cost("changes", atom, LEFT * left)
        day = self._release[name][current.version].day
        if name in problem.unpinned and not left and not follows and name not in FOLLOWING:
            cost("changes", atom, problem.cost_of_age(release, day))
            cost("downgrades", atom, int(there < here and name in problem.direct and not problem.is_advised(release)))
        if follows or (name in problem.unpinned and not left):
            return
        if name not in problem.unpinned and name not in FOLLOWING and name not in BUILT_AGAINST_TORCH:
            cost("changes", atom, problem.distance(release, day))
        newest_wanted = name in problem.direct and problem.policy.prefer == "newest"
        if there < here and name not in FOLLOWING and not newest_wanted:
            cost("changes", atom, DOWNGRADE if name in problem.direct else 1)
            cost("downgrades", atom)
        cost("changes", atom, cost_of_major(current.key, release.key, direct=name in problem.direct))

    def price_changes(self) -> None:
        """Add the cost of changing installed packages whose version the user chose: once for each family.

        An extension that is compiled against torch has to be installed again if that moves, in whichever release.
        """
        members: dict[str, list[int]] = {}
        for name, current in self.problem.current.items():
            if name in self.problem.unpinned:
                continue
            members.setdefault(family(name), []).append(self.at[name][current.version])
        moved = {name: self.clauses.atom() for name in members}
        torch = self.problem.current.get("torch")
        torch_moves = moved.get("torch") or (-self.at["torch"][torch.version] if torch is not None else 0)
        for name, stays in members.items():
            free = (torch_moves,) if name in BUILT_AGAINST_TORCH and torch_moves else ()
            for atom in stays:
                self.clauses.add((atom, moved[name], *free))
            self.clauses.cost("changes", moved[name])

    def recommend(self) -> None:
        """Add the costs of not taking a recommended fix of a finding, or not its best one."""
        for each in self.problem.recommended:
            none_so_far = tuple(-self.at[name][self.problem.current[name].version] for name in sorted(each.moving))
            for alternative in each.alternatives:
                met = tuple(self._met_by(need.name, need.specifier) for need in alternative)
                none_so_far = (*none_so_far, self.clauses.only_if_all(met))
                missed = self.clauses.atom()
                self.clauses.add((*none_so_far, missed))
                self.clauses.cost("better recommended fixes", missed)
            if not self._is_about_unpinned(each):
                self.clauses.cost("recommended fixes not taken", missed)

    def _is_about_unpinned(self, recommended: Recommended) -> bool:
        """Whether a fix only moves unpinned packages: moving a pinned one instead is not worth it."""
        return all(need.name in self.problem.unpinned for alternative in recommended.alternatives for need in alternative)

    def _expand(self) -> None:
        while self._waiting:
            name = self._waiting.pop()
            for version, release in self._release[name].items():
                self._require(release, (-self.at[name][version],), self.needs.get(release, {}).get("", ()), "")

    def _require(self, release: Release, where: tuple[int, ...], needs: tuple[Need, ...], extra: str) -> None:
        asking = f"{release.name}[{extra}]" if extra else release.name
        here = release == self.problem.current.get(release.name)
        if release.name in self._of_conda:
            needs = tuple(need for need in needs if need.name in self.problem.current)
        for need in needs:
            if need.name == release.name and not need.specifier:
                self._wants(where, need)
                continue
            statement = Requires(asking, release, need)
            if need.name in self.problem.given:
                stays = self.problem.conda.get(need.name, "")
                if stays and not satisfies(stays, need.specifier) and not here:
                    self.clauses.add(where, statement)
                continue
            broken = self._tolerated(release, need, where) if here else ()
            self.clauses.add((*where, self._met_by(need.name, need.specifier), *broken), statement)
            if need.extras:
                self._wants(where, need)

    def _tolerated(self, release: Release, need: Need, where: tuple[int, ...]) -> tuple[int, ...]:
        """An atom that allows an installed pair to stay although the requirement of the installed ``release`` is unmet.

        It costs nothing, as in what is installed today, unless it is an error to be fixed. An unlisted package only counts as
        missing if the list is complete.
        """
        other = self.problem.current.get(need.name)
        if self.problem.unresolved or (other is not None and satisfies(other.version, need.specifier)):
            return ()
        self._package(need.name)
        wrong = frozenset((release.name, need.name)) in self.problem.violated
        if wrong and self._strict:
            return ()
        stays = self.at[need.name].get(ABSENT if other is None else other.version)
        if stays is None:
            return ()
        kept = self.clauses.only_if_all((*(-literal for literal in where), stays))
        if wrong and (other is not None or self.problem.complete):
            self.clauses.cost(ERRORS, kept)
        return (kept,)

    def _wants(self, where: tuple[int, ...], need: Need) -> None:
        for extra in need.extras:
            self.clauses.add((*where, self._extra(need.name, extra)))

    def _extra(self, name: str, extra: str) -> int:
        """An atom for an extra being requested; its requirements depend on the release."""
        if name in self.problem.given and name not in self.problem.current:
            return self._true()
        self._package(name)
        if (name, extra) not in self._extras:
            atom = self._extras[name, extra] = self.clauses.atom()
            for version, release in self._release[name].items():
                added = self.needs.get(release, {}).get(extra, ())
                self._require(release, (-atom, -self.at[name][version]), added, extra)
        return self._extras[name, extra]

    def _met_by(self, name: str, specifier: str) -> int:
        """An atom for a package being installed in a version that satisfies a specifier."""
        known = self._met.get((name, specifier))
        if known is not None:
            return known
        if name in self.problem.given and name not in self.problem.current:
            return self._true()
        self._package(name)
        if (name, specifier) not in self._met:
            atoms = self.at[name]
            fitting = [atoms[version] for version in _fitting(specifier, tuple(self._release[name]))]
            fitting += [atoms[OTHER]] if OTHER in atoms else []
            self._met[name, specifier] = self.clauses.only_if_any(tuple(fitting)) if fitting else self._false()
        return self._met[name, specifier]

    def _true(self) -> int:
        atom = self.clauses.atom()
        self.clauses.add((atom,))
        return atom

    def _false(self) -> int:
        atom = self.clauses.atom()
        self.clauses.add((-atom,))
        return atom

    def _must(self, need: Need, text: str, kind: str) -> None:
        self.clauses.add((self._met_by(need.name, need.specifier),), Statement(kind, text))
        self._wants((), need)


@cache
def _fitting(specifier: str, versions: tuple[str, ...]) -> tuple[str, ...]:
    """The versions that satisfy a specifier; every relaxation of a problem has mostly the same ones."""
    return tuple(version for version in versions if satisfies(version, specifier))
