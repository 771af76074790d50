"""What is to be solved: what is installed, what the user asked for, and which releases may take its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import Version

from compat.model import EMPTY, Environment
from compat.records import record
from compat.repair.candidates import Release
from compat.repair.target import Need, Target, satisfies

_OF_TORCH = re.compile(
    r"(pytorch-)?triton(-rocm)?|cuda-(bindings|pathfinder|toolkit)"
    r"|nvidia-(cublas|cuda-(cupti|nvrtc|runtime)|cudnn|cufft|cufile|curand|cusolver|cusparse|cusparselt|nccl|nvjitlink|nvshmem|nvtx)"
    r"(-cu\d+)?"
)
"""What torch pins to one release each: it moves with torch, and counts as one change with it."""
DOWNGRADE = MAJOR = 5
"""What a direct requirement that goes back, or a major version that moves, weighs beside a changed package."""
BEHIND = 10
"""What each release behind the newest weighs beside a package that is brought in, where the newest are wanted."""
DAYS_BACK = 365
"""How much older than the installed release a candidate may be, in days between uploads."""
_CALENDAR = 1900
OLD = 730
"""How much older than the newest of what is installed something added may be, before it counts as old."""


@record(frozen=True)
class Policy:
    """What may be proposed.

    ``prefer`` is *stay* (close to what is there), *upgrade* (close to the newest) or *newest* (what was asked for by name is as
    new as it can be, whatever it brings in). ``warnings``: they are fixed like errors. ``allow_source``: compiled packages may
    be built and commits installed, ``allow_commits``: the commits alone that rules recommend.
    """

    prefer: str = "stay"
    prereleases: bool = False
    any_age: bool = False
    allow_source: bool = False
    allow_commits: bool = False
    warnings: bool = False

    def said(self) -> tuple[str, ...]:
        """The policies in words, as they are printed with a plan."""
        return (
            "pre-releases are considered"
            if self.prereleases
            else "pre-releases are only considered if one is installed or requested",
            "releases of any age are considered"
            if self.any_age
            else f"releases more than {DAYS_BACK} days older than the installed one are not considered",
            "yanked releases are not considered; unused packages are kept",
            self._of_source,
            "torch, triton and its CUDA libraries count as one change",
        )

    @property
    def _of_source(self) -> str:
        if self.allow_source:
            return "releases are preferred to source builds"
        return (
            "no release fixes it, so commits that rules recommend are considered"
            if self.allow_commits
            else "nothing is built from source"
        )

    def may_build(self, release: Release) -> bool:
        """Whether a release that is built on the machine may be chosen."""
        commit = release.source is not None and release.source.kind == "vcs"
        return self.allow_source or (self.allow_commits and commit)


@record(frozen=True)
class Recommended:
    """The package versions that fix one finding, as its rule recommends them: alternatives, the best one first."""

    statement: str
    alternatives: tuple[tuple[Need, ...], ...]


@record(frozen=True)
class Problem:
    """``current`` is what is installed; ``asked`` what the project requires; ``keep`` the user's pins, as requirements.

    ``ignored`` are rules whose findings the user lives with.
    ``direct`` are the packages that the user asked for by name: they are not removed, and going back costs more.
    ``given`` are installed in an unknown version (from a repository or a folder) or by conda, ``fixed`` from one in a known
    version; neither moves. ``conda`` are the versions of what conda installed. ``recommended`` is what rules of the findings
    say, ``violated`` are the pairs of packages of which one does not meet what the other declares, as an error to be fixed.
    ``alone`` is what no other package asks for, ``unwanted`` what a finding's fix removes. ``loose`` are installed because
    others require them, and no file pins them: whichever release the installer chooses is no change that the user makes.
    """

    environment: Environment
    target: Target
    current: Mapping[str, Release]
    asked: tuple[Need, ...] = ()
    keep: tuple[Need, ...] = ()
    direct: frozenset[str] = frozenset()
    policy: Policy = Policy()
    ignored: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    conda: Mapping[str, str] = EMPTY
    fixed: frozenset[str] = frozenset()
    recommended: tuple[Recommended, ...] = ()
    violated: frozenset[frozenset[str]] = frozenset()
    alone: frozenset[str] = frozenset()
    unwanted: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()

    def candidates(self, name: str, releases: Iterable[Release]) -> tuple[Release, ...]:
        """The releases that may be chosen, oldest first; the installed one is always among them."""
        current = self.current.get(name)
        wanted = [each.specifier for each in (*self.asked, *self.keep) if each.name == name]
        releases = tuple(releases)
        day = _day(current, releases)
        if current is not None and name in self.fixed:
            return (replace(current, day=day),)
        found = [release for release in releases if self._may(release, current, wanted, day)]
        if current is not None:  # another build of the same release is no change, unless what is there is built without CUDA
            same = {str(current.key), *([] if current.key.local == "cpu" else [current.public])}
            found = [each for each in found if str(each.key) not in same]
            found.append(replace(current, day=day))
        elif not found:  # nothing but pre-releases: then they are what there is
            found = [each for each in releases if not each.yanked]
        return tuple(sorted(found, key=lambda each: each.key))

    @property
    def staying(self) -> frozenset[str]:
        """What is not removed: what somebody wants and not only another package, unless a finding's fix is its removal."""
        return (self.direct | self.alone) - self.unwanted

    @property
    def complete(self) -> bool:
        """Whether what is not listed is not installed; otherwise that is unknown."""
        return self.environment.distributions_complete is True

    def _may(self, release: Release, current: Release | None, wanted: list[str], day: str) -> bool:
        if release.built and not self.policy.may_build(release):
            return False
        if release.yanked and not any(_pins(specifier, release) for specifier in wanted):
            return False
        if release.key.is_prerelease and not release.built and not self._prereleases(release, current, wanted):
            return False
        if not self._flavour_fits(release, current):
            return False
        old = bool(release.day and day) and _days(release.day, day) > DAYS_BACK
        return self.policy.any_age or not old or release.name in self.loose

    def _flavour_fits(self, release: Release, current: Release | None) -> bool:
        """A build for processors alone is no release for a machine with an accelerator, unless it is what is there."""
        here = None if current is None else current.key.local
        return release.key.local != "cpu" or here == "cpu" or not (self.environment.accelerators or self.environment.driver)

    def _prereleases(self, release: Release, current: Release | None, wanted: list[str]) -> bool:
        if self.policy.prereleases or (current is not None and current.key.is_prerelease):
            return True
        return any(_names_prerelease(specifier) for specifier in wanted)


def family(name: str) -> str:
    """The package whose change counts for all of its family."""
    return "torch" if _OF_TORCH.fullmatch(name) else name


def moves_major(before: Version, after: Version) -> bool:
    """Whether a major version moves; calendar versions have none."""
    return before.release[0] != after.release[0] and max(before.release[0], after.release[0]) < _CALENDAR


def _day(current: Release | None, releases: Iterable[Release]) -> str:
    """When the installed release was uploaded, or the next one where no index has it; "" where that is not known."""
    if current is None or current.day:
        return "" if current is None else current.day
    public = Version(current.public)
    dated = [each for each in releases if each.day]
    return next((each.day for each in dated if each.key >= public), dated[-1].day if dated else "")


def _days(earlier: str, later: str) -> int:
    from datetime import date

    return (date.fromisoformat(later) - date.fromisoformat(earlier)).days


def _pins(specifier: str, release: Release) -> bool:
    """Whether a requirement names just this release: then it may be yanked."""
    exact = any(each.operator in ("==", "===") and not each.version.endswith(".*") for each in _parts(specifier))
    return exact and satisfies(release.version, specifier)


def _names_prerelease(specifier: str) -> bool:
    return any(each.prereleases for each in _parts(specifier))


def _parts(specifier: str) -> Iterable[Specifier]:
    try:
        return SpecifierSet(specifier)
    except InvalidSpecifier:
        return ()
