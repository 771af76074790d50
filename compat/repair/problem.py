"""The problem: the installed packages, the user's requirements, and the candidate releases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import Version

from compat.model import EMPTY, Environment, Finding, Source
from compat.records import record
from compat.repair.candidates import Release
from compat.repair.target import Need, Target, satisfies

_OF_TORCH = re.compile(
    r"(pytorch-)?triton(-rocm)?|cuda-(bindings|pathfinder|toolkit)"
    r"|nvidia-(cublas|cuda-(cupti|nvrtc|runtime)|cudnn|cufft|cufile|curand|cusolver|cusparse|cusparselt|nccl|nvjitlink|nvshmem|nvtx)"
    r"(-cu\d+)?"
)
"""Packages that torch pins to an exact release: they change with torch, and count as one change with it."""
BESIDE = ("torchvision", "torchaudio")
"""Packages released together with torch, that torch's index also provides for each build."""
FOLLOWING = (*BESIDE, "xformers")
"""Packages of which each release is for one release of torch: which one is right follows from torch, so a downgrade to it costs
no more than an upgrade, and torch does not move for them."""
BUILT_AGAINST_TORCH = frozenset(
    ("apex", "causal-conv1d", "detectron2", "flash-attn", "flash-attn-3", "grouped-gemm", "mamba-ssm", "pytorch3d",
     "torch-cluster", "torch-scatter", "torch-sparse", "torch-spline-conv", "transformer-engine-torch")
)  # fmt: skip
"""torch extensions published as source: an installed one was compiled against the torch installed at that time."""
DOWNGRADE = MAJOR = 5
"""Cost of downgrading a direct requirement, or of changing a major version, relative to a changed package."""
MAJOR_BELOW = 3
"""The latter for a package that only others require: they state what they accept, and the user's code hardly imports it; and
for a move from 0.x on: what is before 1.0 breaks with any release, and going to 1.0 rather says that it does so no longer."""
LEFT = 2
"""The same for a release outside the range that the file states: somebody wrote that on purpose."""
AGED = 2
"""Cost of each year by which a release that a file leaves open is older than the one that installers take, unless advised."""
AGED_BELOW = 1
"""The same for a package that the file does not name: whoever names one without a version wants its newest release."""
FAR_DAYS = 182
"""Days between the upload of a pinned release and that of another one, for each of which the move counts as one more change:
a release of 2024 is rather moved to one of 2025 with a second package than to one of 2026 alone."""
BEHIND = 10
"""Cost of each release behind the newest, relative to an added package, if the newest releases are preferred or installed."""
DAYS_BACK = 365
"""Maximum age of a candidate relative to the installed release, in days between uploads."""
_CALENDAR = 1900
MOST = 1_000
"""Maximum number of candidates of one package: real ones have a few hundred that are not too old, and each may be read."""
_NEAREST, _NEWEST = 500, 100
UNRESOLVED = "unresolvable-pins"
"""The rule of the finding that installers refuse the pins of a file, about all of them: moving any may resolve it."""
OLD = 730
"""Days between uploads after which an added package counts as old, relative to the newest installed release."""


@record(frozen=True)
class Policy:
    """What a plan may contain.

    ``prefer`` is *stay* (close to the installed releases), *upgrade* (close to the newest) or *newest* (packages requested by
    name are as new as possible, whatever that adds). ``any_age``: releases of any age are candidates, ``older``: those of
    packages that are installed only because others require them. ``warnings``: fix warnings like errors. ``allow_source``:
    compiled packages may be built and commits installed, ``allow_commits``: only commits that rules recommend.
    ``contradictions``: fix unmet requirements, too, even those that are a mere warning for what is installed. ``hashed``: only
    releases with known hashes, which commits and builds on an unread index do not have.
    """

    prefer: str = "stay"
    prereleases: bool = False
    any_age: bool = False
    older: bool = False
    allow_source: bool = False
    allow_commits: bool = False
    warnings: bool = False
    contradictions: bool = False
    hashed: bool = False

    def said(self) -> tuple[str, ...]:
        """The policies as printed with a plan."""
        return (
            "pre-releases are considered"
            if self.prereleases
            else "pre-releases are only considered if one is installed or requested",
            "releases of any age are considered"
            if self.any_age
            else f"releases more than {DAYS_BACK} days older than the installed one are considered only for transitive packages"
            if self.older
            else f"releases more than {DAYS_BACK} days older than the installed one are not considered",
            "yanked releases are not considered; unused packages are kept",
            self._of_source,
            *(["only releases with hashes are considered, as the file requires them"] if self.hashed else ()),
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
        """Whether a release that is built locally may be chosen."""
        commit = release.source is not None and release.source.kind == "vcs"
        return self.allow_source or (self.allow_commits and commit)


@record(frozen=True)
class Recommended:
    """The package versions that fix one finding, as recommended by its rule: alternatives, best first.

    ``moving`` are other packages of the finding that have an error of their own: where one of them moves, that may fix it, too.
    """

    statement: str
    alternatives: tuple[tuple[Need, ...], ...]
    moving: frozenset[str] = frozenset()


@record(frozen=True)
class Problem:
    """``current`` are the installed releases; ``asked`` the project's requirements; ``keep`` the user's pins.

    ``ignored`` are rules whose findings are ignored, ``advised`` what their fixes ask for.
    ``direct`` are the packages requested by name: they are not removed, and downgrading them costs more.
    ``given`` are installed in an unknown version (from VCS or a folder) or by conda, ``fixed`` from VCS or a folder in a known
    version; neither changes. ``conda`` are the versions of conda packages. ``recommended`` are the fixes recommended by rules,
    ``violated`` the pairs of packages with an unmet requirement that is an error to be fixed.
    ``alone`` are the packages that no other requires, ``unwanted`` those that the fix of a finding removes. ``unlisted`` are
    installed because others require them, and need no pin. ``unpinned`` are all packages whose version the installer chose:
    neither a downgrade nor a major version is worse for them. ``unnamed`` are those that no file lists: they do not count as
    changed, either, and which release they are follows from others, unless they are ``concerned`` by an error. ``from_part``:
    the file lists only part of what is installed. ``unserved`` are the errors of listed releases that no installer can take on
    the target; ``known`` are the only packages that findings may be about, if others are installed of which nothing is known.
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
    advised: frozenset[Need] = frozenset()
    violated: frozenset[frozenset[str]] = frozenset()
    alone: frozenset[str] = frozenset()
    unwanted: frozenset[str] = frozenset()
    unlisted: frozenset[str] = frozenset()
    unpinned: frozenset[str] = frozenset()
    unnamed: frozenset[str] = frozenset()
    concerned: frozenset[str] = frozenset()
    from_part: bool = False
    unserved: tuple[Finding, ...] = ()
    known: frozenset[str] | None = None

    def candidates(self, name: str, releases: Iterable[Release]) -> tuple[Release, ...]:
        """The releases that may be chosen, oldest first, including the installed one."""
        current = self.current.get(name)
        wanted = [each.specifier for each in (*self.asked, *self.keep) if each.name == name]
        releases = tuple(_dated(releases))
        day = _day(current, releases)
        if current is not None and name in self.fixed:
            return (replace(current, day=day),)
        found = [release for release in releases if self._may(release, current, wanted, day)]
        if current is not None:
            # the default build instead of another one: for a CPU build, a wheel by address, or where hashes tell them apart
            apart = current.key.local == "cpu" or is_wheel(current.source) or self.policy.hashed
            same = {str(current.key), *([] if apart else [current.public])}
            found = [each for each in found if str(each.key) not in same]
            found.append(replace(current, day=day))
        elif not found:  # only pre-releases exist: consider them
            found = [each for each in releases if not each.yanked]
        return tuple(sorted(found, key=lambda each: each.key))

    def considered(self, name: str, found: tuple[Release, ...]) -> tuple[Release, ...]:
        """At most about :data:`MOST` of the candidates of a package: those near the installed one, the newest, what is pinned,
        and some in between, at equal distances."""
        if len(found) <= MOST:
            return found
        current = self.current.get(name)
        place = found.index(current) if current is not None and current in found else len(found) - 1
        first = max(0, min(place - _NEAREST // 2, len(found) - _NEAREST))
        kept = {*range(first, first + _NEAREST), *range(len(found) - _NEWEST, len(found))}
        kept.update(range(0, len(found), -(-len(found) // (MOST - _NEAREST - _NEWEST))))
        wanted = [each.specifier for each in (*self.asked, *self.keep) if each.name == name]
        pinned = (at for at, each in enumerate(found) if any(_pins(specifier, each) for specifier in wanted))
        return tuple(found[at] for at in sorted(kept.union(pinned)))

    @property
    def staying(self) -> frozenset[str]:
        """Packages that must stay: those requested or not required by others, unless the fix of a finding removes them."""
        return (self.direct | self.alone) - self.unwanted

    @property
    def unresolved(self) -> bool:
        """Whether installers refuse what is listed, so that no requirement may stay unmet."""
        return any(each.rule == UNRESOLVED for each in self.unserved)

    @property
    def complete(self) -> bool:
        """Whether unlisted packages are known not to be installed."""
        return self.environment.distributions_complete is True

    @property
    def of_conda(self) -> frozenset[str]:
        """The packages from conda that may change, which bring what they require themselves."""
        copies = (
            copy for copy in self.environment.distributions or () if copy.source is not None and copy.source.kind == "conda"
        )
        return frozenset(copy.name for copy in copies if copy.name in self.current)

    @property
    def installer_adds(self) -> bool:
        """Whether an installer adds what is required and not listed, in the newest releases."""
        return self.from_part or not self.complete

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
        any_age = self.policy.any_age or (self.policy.older and release.name not in self.direct)
        return any_age or not old or self._is_of_installer(release) or self._is_wished(release, current)

    def cost_of_age(self, release: Release, day: str) -> int:
        """What a release costs that is older than the one that the installer chose, uploaded on ``day``; 0 if a finding advises
        it, or its age does not matter."""
        named = release.name not in self.unnamed
        relevant = named or release.name in self.concerned
        if self.policy.any_age or not (release.day and day) or not relevant or self.is_advised(release):
            return 0
        return max(0, _days(release.day, day) // DAYS_BACK) * (AGED if named else AGED_BELOW)

    def is_advised(self, release: Release) -> bool:
        """Whether a finding or the user names it as a release to move to."""
        return any(need.name == release.name and release.meets(need.specifier) for need in (*self.advised, *self.keep))

    def distance(self, release: Release, day: str) -> int:
        """How far, in steps of :data:`FAR_DAYS`, a release is from the pinned one, which was uploaded on ``day``."""
        if self.policy.prefer != "stay" or not (release.day and day):
            return 0
        return abs(_days(release.day, day)) // FAR_DAYS

    def _is_of_installer(self, release: Release) -> bool:
        """Whether an installer may choose it for what the file states, however old it is."""
        stated = (need.specifier for need in self.asked if need.name == release.name)
        return release.name in self.unpinned and all(map(release.meets, stated))

    def _is_wished(self, release: Release, current: Release | None) -> bool:
        """Whether the user wants a package moved, and the release is one of those named."""
        wanted = [need.specifier for need in self.keep if need.name == release.name]
        return current is not None and all(map(release.meets, wanted)) and not all(map(current.meets, wanted))

    def _flavour_fits(self, release: Release, current: Release | None) -> bool:
        """Reject CPU builds on a machine with an accelerator, unless a CPU build is installed."""
        here = None if current is None else current.key.local
        return release.key.local != "cpu" or here == "cpu" or not (self.environment.accelerators or self.environment.driver)

    def _prereleases(self, release: Release, current: Release | None, wanted: list[str]) -> bool:
        if self.policy.prereleases or (current is not None and current.key.is_prerelease):
            return True
        return any(_names_prerelease(specifier) for specifier in wanted)


def family(name: str) -> str:
    """The package that a change of ``name`` is counted for: torch for the packages that it pins."""
    return "torch" if _OF_TORCH.fullmatch(name) else name


def is_wheel(source: Source | None) -> bool:
    """Whether something is installed from the address of a wheel, which was compiled for one release of torch and CUDA."""
    return source is not None and source.kind == "url" and ".whl" in str(source.details.get("url", ""))


def moves_major(before: Version, after: Version) -> bool:
    """Whether the major version changes; calendar versions have none."""
    return before.release[0] != after.release[0] and max(before.release[0], after.release[0]) < _CALENDAR


def cost_of_major(before: Version, after: Version, *, direct: bool) -> int:
    """What changing the major version costs; 0 if it does not change."""
    return (MAJOR if direct and before.release[0] and after.release[0] else MAJOR_BELOW) if moves_major(before, after) else 0


def _day(current: Release | None, releases: Iterable[Release]) -> str:
    """The upload date of the installed release, or of the next one if no index has it; "" if unknown."""
    if current is None or current.day:
        return "" if current is None else current.day
    public = Version(current.public)
    dated = [each for each in releases if each.day]
    return next((each.day for each in dated if each.key >= public), dated[-1].day if dated else "")


def _dated(releases: Iterable[Release]) -> Iterator[Release]:
    """Yield the releases, oldest first; one for which no index gives an upload date has that of the one before it.

    Many mirrors and folders give none, and what is nearest must not depend on where a release is served.
    """
    ordered = sorted(releases, key=lambda each: each.key)
    day = next((each.day for each in ordered if each.day), "")
    for each in ordered:
        day = each.day or day
        yield each if each.day else replace(each, day=day)


def _days(earlier: str, later: str) -> int:
    from datetime import date

    return (date.fromisoformat(later) - date.fromisoformat(earlier)).days


def _pins(specifier: str, release: Release) -> bool:
    """Whether a requirement pins exactly this release, which allows it to be yanked."""
    exact = any(each.operator in ("==", "===") and not each.version.endswith(".*") for each in _parts(specifier))
    return exact and satisfies(release.version, specifier)


def _names_prerelease(specifier: str) -> bool:
    return any(each.prereleases for each in _parts(specifier))


def _parts(specifier: str) -> Iterable[Specifier]:
    try:
        return SpecifierSet(specifier)
    except InvalidSpecifier:
        return ()
