"""Small package universes in memory, and the cheapest plan for them by trying everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from itertools import product

from packaging.version import Version

from compat.model import Environment
from compat.repair.candidates import Release
from compat.repair.problem import (
    AGED,
    AGED_BELOW,
    BEHIND,
    BUILT_AGAINST_TORCH,
    DAYS_BACK,
    DOWNGRADE,
    FAR_DAYS,
    FOLLOWING,
    LEFT,
    MAJOR,
    MAJOR_BELOW,
    OLD,
    Problem,
    family,
    moves_major,
)
from compat.repair.relaxation import ABSENT, Forbidden
from compat.repair.target import Need, Target, satisfies

TARGET = Target(Environment(python="3.11.9", os="linux", machine="x86_64"))


def days_between(earlier: str, later: str) -> int:
    return (date.fromisoformat(later) - date.fromisoformat(earlier)).days


Requires = Mapping[tuple[str, str], Mapping[str, tuple[Need, ...]]]


def need(text: str) -> Need:
    (found,) = TARGET.needs((text,))
    return found


class MemoryUniverse:
    """Releases by name, and what each of them needs; counts what is read."""

    def __init__(self, releases: Mapping[str, tuple[Release, ...]], requires: Requires) -> None:
        self._releases, self._requires = releases, requires
        self.unknown: dict[str, str] = {}
        self.pages: list[str] = []
        self.metadata: list[Release] = []

    def releases(self, names: Iterable[str]) -> dict[str, tuple[Release, ...] | None]:
        wanted = list(names)
        self.pages += wanted
        return {name: None if name in self.unknown else self._releases.get(name, ()) for name in wanted}

    def stored_needs(self, releases: Iterable[Release]) -> Mapping[Release, Mapping[str, tuple[Need, ...]]]:
        return {}

    def needs(self, releases: Iterable[Release]) -> dict[Release, Mapping[str, tuple[Need, ...]] | None]:
        wanted = list(releases)
        self.metadata += wanted
        return {
            each: None if each.version in self.unknown else self._requires.get((each.name, each.version), {}) for each in wanted
        }


class Places:
    """How far releases are apart; the builds of one release are not."""

    def __init__(self, releases: Iterable[Release]) -> None:
        steps = sorted({each.key.public for each in releases}, key=Version)
        self._found = {each.version: steps.index(each.key.public) for each in releases}
        self.newest = len(steps) - 1

    def index(self, version: str) -> int:
        return self._found[version]


class Everything:
    """Brute force over the same problem: every choice of releases, with its cost."""

    def __init__(self, problem: Problem, universe: MemoryUniverse, forbidden: Iterable[Forbidden]) -> None:
        self.problem, self.forbidden = problem, tuple(forbidden)
        self.releases = {
            name: problem.candidates(name, universe._releases.get(name, ())) for name in {*universe._releases, *problem.current}
        }
        self.requires = universe._requires

    def cheapest(self) -> tuple[int, ...] | None:
        names = sorted(self.releases)
        choices = [
            [*(each.version for each in self.releases[name]), *(() if self._stays(name) else (ABSENT,))] for name in names
        ]
        costs = (self._cost(dict(zip(names, chosen, strict=True))) for chosen in product(*choices))
        return min((cost for cost in costs if cost is not None), default=None)

    def _stays(self, name: str) -> bool:
        return name in self.problem.direct and name in self.problem.current

    def _cost(self, chosen: dict[str, str]) -> tuple[int, ...] | None:
        if not self._works(chosen):
            return None
        levels = dict.fromkeys(("errors left", "warnings left"), 0)
        for each in self.forbidden:
            spared = any(all(chosen.get(name, ABSENT) in versions for name, versions in group) for group in each.unless)
            if not spared and all(chosen.get(name, ABSENT) in versions for name, versions in each.together):
                if each.level == "":
                    return None
                levels[each.level] += 1
        current = {name: release.version for name, release in self.problem.current.items()}
        unpinned = self.problem.unpinned
        changed = {family(name) for name, version in current.items() if chosen[name] != version and name not in unpinned}
        changed -= BUILT_AGAINST_TORCH if "torch" in changed else set()
        ranges = [(each.name, each.specifier) for each in self.problem.asked if each.name in current]
        left = {name for name, specifier in ranges if chosen[name] != ABSENT and not satisfies(chosen[name], specifier)}
        release = {name: {each.version: each for each in releases} for name, releases in self.releases.items()}
        place = {name: Places(releases) for name, releases in self.releases.items()}
        own = [name for name in chosen if family(name) == name]
        stated = {name for name in own if name in left or name not in unpinned}
        added = sum(chosen[name] != ABSENT and name not in current for name in own)
        added *= not self.problem.installer_adds and self.problem.policy.prefer != "newest"
        removed = sum(chosen[name] == ABSENT for name in own if name in current)
        weighed = behind = steps = more_steps = following = back = sources = others = old = 0
        for name, version in chosen.items():
            if version in (ABSENT, current.get(name)):
                continue
            newest = place[name].newest
            here = place[name].index(current[name]) if name in current else newest
            if name in self.problem.direct and self.problem.policy.prefer == "newest":
                behind += newest - place[name].index(version)
            elif name in current and name in stated and name not in FOLLOWING and place[name].index(version) < here:
                weighed += DOWNGRADE if name in self.problem.direct else 1
                back += 1
            if name in current and name in stated and moves_major(Version(current[name]), Version(version)):
                first = "0" in (current[name].partition(".")[0], version.partition(".")[0])
                weighed += MAJOR if name in self.problem.direct and not first else MAJOR_BELOW
            weighed += LEFT * (name in left) + self._distance(name, version)
            if name in own and name in current and name not in stated and name not in FOLLOWING:
                weighed += self._age(release[name][version], release[name][current[name]])
                back += self._goes_back(release[name][version], place[name].index(version) < here)
            near = self.problem.policy.prefer == "stay"
            if name in current:
                moved = abs(place[name].index(version) - here) if near else newest - place[name].index(version)
                following += moved * (name not in own)
                more_steps += moved * (name in own and name in unpinned)
                steps += moved * (name in own and name not in unpinned)
            else:
                weight = BEHIND if self.problem.policy.prefer == "newest" or self.problem.installer_adds else 1
                moved = 1 + weight * (newest - place[name].index(version))
                more_steps += moved * (name in own)
                following += moved * (name not in own)
                old += name in own and place[name].index(version) < newest and self._old(release[name][version].day)
            source = release[name][version].source
            sources += source is not None and source.kind == "vcs"
            labels = [Version(each).local for each in (current.get(name, "0"), version)]
            others += (source is not None and source.kind == "index") * (1 + (labels[0] not in (None, labels[1])))
        return (
            levels["errors left"], self._not_taken(chosen), len(changed) + weighed, back, sources, behind,
            levels["warnings left"], old, added + removed, self._rank(chosen), steps, others, more_steps, following,
        )  # fmt: skip

    def _is_advised(self, release: Release) -> bool:
        told = (*self.problem.advised, *self.problem.keep)
        return any(each.name == release.name and satisfies(release.version, each.specifier) for each in told)

    def _goes_back(self, release: Release, older: bool) -> bool:
        """Whether a release that the installer would not choose is older than the one that it chooses for a name in the file."""
        return older and release.name in self.problem.direct and not self._is_advised(release)

    def _age(self, release: Release, current: Release) -> int:
        """The weight of the years by which an open package is older than the release that the installer chooses."""
        named = release.name not in self.problem.unnamed
        weight = AGED if named else AGED_BELOW if release.name in self.problem.concerned else 0
        if self.problem.policy.any_age or not release.day or not current.day or self._is_advised(release):
            return 0
        return weight * max(0, days_between(release.day, current.day) // DAYS_BACK)

    def _distance(self, name: str, version: str) -> int:
        """Half-years from a pinned release to the one chosen for it."""
        current = self.problem.current.get(name)
        free = {*self.problem.unpinned, *FOLLOWING, *BUILT_AGAINST_TORCH}
        day = next(each.day for each in self.releases[name] if each.version == version)
        if self.problem.policy.prefer != "stay" or current is None or name in free or family(name) != name:
            return 0
        return abs(days_between(current.day, day)) // FAR_DAYS if current.day and day else 0

    def _taken(self, chosen: dict[str, str]) -> list[list[bool]]:
        """For each finding which of its recommended fixes hold; first of all that another of its packages moved."""
        current = {name: release.version for name, release in self.problem.current.items()}
        return [
            [any(chosen[name] != current[name] for name in each.moving)] * bool(each.moving)
            + [
                all(chosen.get(n.name, ABSENT) != ABSENT and satisfies(chosen[n.name], n.specifier) for n in alternative)
                for alternative in each.alternatives
            ]
            for each in self.problem.recommended
        ]

    def _not_taken(self, chosen: dict[str, str]) -> int:
        """How many findings keep none of their fixes, but for those whose fixes only move what nobody pinned."""
        return sum(
            not any(taken) and any(need.name not in self.problem.unpinned for needs in each.alternatives for need in needs)
            for each, taken in zip(self.problem.recommended, self._taken(chosen))
        )

    def _rank(self, chosen: dict[str, str]) -> int:
        """How many better fixes are passed over."""
        ranks = (taken[bool(each.moving) :] for each, taken in zip(self.problem.recommended, self._taken(chosen)))
        moved = (bool(each.moving) and taken[0] for each, taken in zip(self.problem.recommended, self._taken(chosen)))
        return sum(0 if free else taken.index(True) if True in taken else len(taken) for free, taken in zip(moved, ranks))

    def _old(self, day: str) -> bool:
        """Whether something added was uploaded long before the newest of what is installed (of everything, where nothing is)."""
        current = self.problem.current
        days = [
            each.day for name, releases in self.releases.items() for each in releases
            if each.day and (not current or each == current.get(name))
        ]  # fmt: skip
        return bool(day and days) and not self.problem.policy.any_age and days_between(day, max(days)) > OLD

    def _works(self, chosen: dict[str, str]) -> bool:
        """Whether every requirement is met, except between releases that stay as they were installed."""
        current = {name: release.version for name, release in self.problem.current.items()}
        for each in (*self.problem.asked, *self.problem.keep):
            version = chosen.get(each.name, ABSENT)
            moves = each in self.problem.asked and each.name in current
            if version == ABSENT or not (moves or satisfies(version, each.specifier)):
                return False
        for name, extra in self._active(chosen):
            for each in self._of(chosen, name).get(extra, ()):
                version = chosen.get(each.name, ABSENT)
                if each.name == name and not each.specifier:
                    continue
                if version == ABSENT or not satisfies(version, each.specifier):
                    as_installed = chosen[name] == current.get(name) and version == current.get(each.name, ABSENT)
                    if not as_installed:
                        return False
        return True

    def _of(self, chosen: dict[str, str], name: str) -> Mapping[str, tuple[Need, ...]]:
        return self.requires.get((name, chosen[name]), {})

    def _active(self, chosen: dict[str, str]) -> set[tuple[str, str]]:
        """(package, extra) pairs that count, with "" for what a package always needs."""
        active = {(name, "") for name, version in chosen.items() if version != ABSENT}
        waiting = list(active)
        asked = [(each.name, extra) for each in (*self.problem.asked, *self.problem.keep) for extra in each.extras]
        while waiting or asked:
            if asked:
                found = [asked.pop()]
            else:
                name, extra = waiting.pop()
                needs = self._of(chosen, name).get(extra, ())
                found = [(each.name, wanted) for each in needs for wanted in each.extras]
            for pair in found:
                if pair not in active and chosen.get(pair[0], ABSENT) != ABSENT:
                    active.add(pair)
                    waiting.append(pair)
        return active
