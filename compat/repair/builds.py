"""torch builds for other CUDA versions than the default, or for ROCm, and the packages from the same index: torchvision and
torchaudio.

Existing builds are listed in the matrix (``torch_builds.csv``, ``torch_rocm.csv``); their requirements come from torch's own
index. If that cannot be read they are not candidates, as a plan that contains one could not be installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from compat.checks.requirements import CUDA_LIBRARIES
from compat.checks.torch_build import INDEX, cuda_of, label_of, public_version, stack_of
from compat.index import Index
from compat.model import Environment, Source
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.engine import WARNINGS, Statement
from compat.repair.problem import BESIDE
from compat.repair.relaxation import ABSENT, Forbidden, Needs
from compat.repair.target import satisfies
from compat.rules.facts import Facts
from compat.tables.builds import CodeTables, open_code_tables
from compat.tables.declared import Declared
from compat.tables.linked import series_of
from compat.versions import key_of

_NO_GPU = Statement("finding", "the default build of torch installs CUDA libraries that nothing here can use")
_UNKNOWN_CODE = Statement("finding", "it is unknown which GPUs such old torch releases have code for")
_ROCM = Statement("finding", "torch, torchvision and torchaudio must be builds for the same ROCm")
_VERSION = Statement("finding", "torch, torchvision and torchaudio must be builds for the same CUDA")


class Flavours:
    """torch builds for an environment: CUDA builds for NVIDIA GPUs, on Linux also those for ROCm and without an accelerator."""

    def __init__(
        self, environment: Environment, current: Mapping[str, Release], tables: CodeTables, declared: Declared,
        base: IndexUniverse, index: Index, address: str = INDEX, *, hashed: bool = False,
    ) -> None:  # fmt: skip
        """``base`` provides the default builds; ``address`` is a folder with an index for each CUDA version (``…/cu128``).

        ``hashed``: no build is assumed to exist, as its hashes would be unknown.
        """
        self._tables, self._declared, self._base, self._index = tables, declared, base, index
        self._address = address.rstrip("/")
        self._hashed = hashed
        self._current = current
        self._machine = "aarch64" if environment.machine in ("aarch64", "arm64") else "x86_64"
        linux, self._windows = environment.os in (None, "linux"), environment.os == "windows"
        self._processors = linux and environment.accelerators == () and environment.driver is None
        self._rocm = linux and self._machine == "x86_64" and _has_amd(environment)
        self._gfx = {each.gfx for each in environment.accelerators or () if each.gfx}
        self._wanted = self._processors or self._rocm or ((linux or self._windows) and _has_nvidia(environment))
        flavour = stack_of(Facts(environment), tables).flavour
        self._cuda = label_of(flavour.numbered) if flavour.certain and flavour.numbered else ""
        """The label of the installed torch's CUDA, which its index may say instead of its version."""
        self._read: dict[str, IndexUniverse] = {}
        self._of: dict[tuple[str, str], list[tuple[str, bool]]] = {}
        self._unreachable = ""
        self.assumed: dict[Release, str] = {}
        """Builds whose requirements were not read, and what was assumed instead."""
        self.narrowed: dict[str, str] = {}
        """Indexes that could not be read, and why: builds that only they provide were not candidates."""

    def of(self, name: str, releases: Iterable[Release]) -> Iterator[Release]:
        """The builds of a package's releases that the ordinary index does not provide."""
        if name not in ("torch", *BESIDE) or not (self._wanted or (self._cuda and name != "torch")):
            return
        releases = tuple(releases)
        there = {release.version for release in releases}
        known = [each for each in releases if "+" not in each.version or each.source is not None]  # from a pinned index
        for plain, release in {public_version(each.version): each for each in known}.items():
            for label in self._labels(name, plain):
                version = f"{plain}+{label}"
                if version != self._now(name) and version not in there:
                    usual = label == self._default(name, plain)
                    yield Release(name, version, release.day, self._source(label, usual=usual), release.yanked)

    def needs(self, release: Release) -> Needs | None:
        """The requirements of a build; ``None`` if torch's index has none for the target, or cannot be read.

        If it cannot be read and no hashes are needed, those of CPU builds are assumed, of the torchvision and torchaudio for
        the installed torch, and of other builds of the installed release, if that or one of the packages released with it came
        from there; on Windows and for ROCm those of every build, as no other index has any for such a GPU.
        """
        label = release.version.partition("+")[2]
        if not self._unreachable:
            vendor = self._vendor(label)
            there = vendor.releases([release.name])[release.name]
            if there is not None:
                return vendor.needs([release])[release] if release in there else None
            why = vendor.unknown.get(release.name, "the index was not read")
            self._unreachable = why if "cannot be reached" in why else ""  # each further page would take as long to fail
        self.narrowed[f"{self._address}/{'' if self._unreachable else label}".rstrip("/")] = self._unreachable or why
        return self._assumed_needs(release) if self._is_assumed(release) else None

    def lost(self, releases: Iterable[Release]) -> Iterator[Release]:
        """The builds that cannot be read because their server cannot be reached, as became known for another one."""
        return (each for each in releases if self._unreachable and not self._is_assumed(each))

    def _is_assumed(self, release: Release) -> bool:
        label, now = release.version.partition("+")[2], self._now(release.name) or ""
        there_now = {_label(each) for each in map(self._current.get, ("torch", *BESIDE)) if each is not None}
        known = bool(cuda_of(now.partition("+")[2])) or label in there_now
        nowhere_else = label == "cpu" or self._windows or self._rocm
        same = public_version(now) == public_version(release.version) and known
        goes_along = label == self._cuda and self._is_of_installed_torch(release.name, release.version)
        return not self._hashed and (nowhere_else or same or goes_along)

    def _is_of_installed_torch(self, name: str, version: str) -> bool:
        """Whether a torchvision or torchaudio was released together with the installed torch, for each of its builds."""
        torch = self._torch_of(name, public_version(version)) if name in BESIDE else None
        return torch is not None and torch == public_version(self._now("torch") or "")

    def _assumed_needs(self, release: Release) -> Needs | None:
        """The requirements of the default build, without the CUDA libraries unless it is for the same CUDA as this one, and for
        a CPU or ROCm build without triton.

        Of CUDA builds only those of the installed release are assumed to be installable: see :meth:`needs`.
        """
        plain = Release(release.name, public_version(release.version))
        needs = self._base.needs([plain])[plain]
        if needs is None:
            return None
        assumed = "assumed to have the requirements of the default build"
        if self._default(release.name, release.version) == release.version.partition("+")[2]:
            self.assumed[release] = f"{assumed}, which is for the same CUDA"
            return needs
        self.assumed[release] = f"{assumed}, without its CUDA libraries"
        own = (*CUDA_LIBRARIES, *(("triton",) if release.version.endswith("+cpu") or self._rocm else ()))
        return {extra: tuple(each for each in found if not each.name.startswith(own)) for extra, found in needs.items()}

    def origin(self, release: Release) -> Source | None:
        """Where an installed build for a CUDA version comes from, by its label; ``None`` for every other release."""
        label = _label(release) if release.name in ("torch", *BESIDE) else ""
        return self._source(label) if label and release.source is None else None

    def default_index(self, release: Release, before: Source | None) -> str | None:
        """The index that also has the default build of a release, for a target with GPUs, in addition to its current index."""
        wanted = self._wanted and not (self._processors or self._rocm) and release.name in ("torch", *BESIDE)
        label = self._default(release.name, release.version) if wanted else None
        own, _, last = str((before.details if before is not None else {}).get("url", "")).rstrip("/").rpartition("/")
        return f"{own if cuda_of(last) else self._address}/{label}" if label else None

    def served(self, release: Release) -> bool:
        """Whether torch's index was read and provides the build."""
        universe = self._read.get(release.version.partition("+")[2])
        return universe is not None and universe.serves(release) is True

    def hashes(self, release: Release) -> tuple[str, ...]:
        universe = self._read.get(release.version.partition("+")[2])
        return () if universe is None else universe.hashes(release.name, release.version)

    def forbidden(self, known: Mapping[str, tuple[Release, ...]]) -> Iterator[Forbidden]:
        """Builds that nothing is known about, and combinations for different CUDA versions; the installed ones may stay."""
        torches = known.get("torch", ())
        if self._wanted and not self._processors:
            first = min(map(key_of, self._tables.torch))
            old = frozenset(each.version for each in torches if key_of(each.version) < first)
            yield Forbidden((("torch", old - {self._now("torch")}),), _UNKNOWN_CODE, "")
            yield from self._of_unknown_code(known)
        if self._processors:
            default = frozenset(each.version for each in torches if each.source is None and each.version != self._now("torch"))
            yield Forbidden((("torch", default),), _NO_GPU, WARNINGS)
        for name in BESIDE:
            for label in sorted({label for each in (*torches, *known.get(name, ())) if (label := _label(each))}):
                mine = frozenset(each.version for each in torches if self._is(each, label))
                others = frozenset(each.version for each in known.get(name, ()) if self._is(each, label))
                yield from self._apart("torch", mine, name, others, known)
                yield from self._apart(name, others, "torch", mine, known)

    def _of_unknown_code(self, known: Mapping[str, tuple[Release, ...]]) -> Iterator[Forbidden]:
        """The releases of extensions before the first whose code is known: that nothing is found about them says nothing."""
        for name in sorted(self._tables.extensions & known.keys()):
            first = min(map(key_of, self._tables.extension(name)), default=None)
            old = frozenset(each.version for each in known[name] if first is not None and key_of(each.version) < first)
            if old := old - {self._now(name)}:
                why = Statement("finding", f"it is unknown which GPUs such old {name} releases have code for")
                yield Forbidden(((name, old),), why, "")

    def _apart(
        self, one: str, mine: frozenset[str], other: str, same: frozenset[str], known: Mapping[str, tuple[Release, ...]]
    ) -> Iterator[Forbidden]:
        """Combinations of a labelled build of one package with a build of the other for a different CUDA version."""
        labelled = frozenset(version for version in mine if cuda_of(version.partition("+")[2]))
        apart = frozenset(each.version for each in known.get(other, ())) - same
        here = self._now(one), self._now(other)
        if here[0] in labelled and here[1] in apart:  # already installed like this: reported by the check of builds
            both = frozenset((here[0],)), frozenset((here[1],))
            yield from _forbidden(one, labelled - both[0], other, apart)
            yield from _forbidden(one, both[0] & labelled, other, apart - both[1])
        else:
            yield from _forbidden(one, labelled, other, apart)

    def _is(self, release: Release, label: str) -> bool:
        own = _label(release)
        if release.name == "torch" and not own and release.version == self._now("torch"):
            own = self._cuda
        return own == label or (not own and label == self._default(release.name, release.version))

    def _labels(self, name: str, version: str) -> list[str]:
        """The labels of the builds of a release; includes the default only if another build of that release is installed."""
        now = self._now(name)
        if self._processors:
            return ["cpu"]
        if self._rocm:
            rocm = self._tables.rocm_of.get(series_of((version if name == "torch" else self._torch_of(name, version)) or ""))
            return [f"rocm{rocm}"] if rocm and self._gfx <= {*self._tables.rocm.get(rocm, ())} else []
        if not self._wanted:  # no GPU is known: only what goes with the installed torch
            usual = self._cuda == self._default(name, version)
            return [self._cuda] if not usual and self._is_of_installed_torch(name, version) else []
        builds = self._builds(name, version)
        here = now is not None and public_version(now) == version and now != version
        return [label_of(cuda) for cuda, default in builds if cuda and (here or not default)]

    def _default(self, name: str, version: str) -> str | None:
        return next((label_of(cuda) for cuda, default in self._builds(name, public_version(version)) if default and cuda), None)

    def _builds(self, name: str, version: str) -> list[tuple[str, bool]]:
        """(CUDA version, whether it is the default) of the builds of a release; torchvision and torchaudio follow torch."""
        asked = name, version
        if asked not in self._of:
            torch = version if name == "torch" else self._torch_of(name, version)
            builds = self._tables.torch_builds(torch or "")
            default = not self._windows  # there the ordinary index has builds for the CPU
            self._of[asked] = [(each.cuda, each.default and default) for each in builds if each.machine == self._machine]
        return self._of[asked]

    def _torch_of(self, name: str, version: str) -> str | None:
        """The torch version that a release of torchvision or torchaudio requires."""
        package = self._declared.package(name)
        place = None if package is None else package.place(version)
        if package is None or place is None:
            return None
        asked = [str(row[0]) for row in package.requirements(place, "torch")]
        return next((each for each in self._tables.torch if asked and all(satisfies(each, text) for text in asked)), None)

    def _now(self, name: str) -> str | None:
        current = self._current.get(name)
        return None if current is None else current.version

    def _source(self, label: str, *, usual: bool = False) -> Source:
        """torch's index for a label, which is the ``usual`` one of a release if its default build is for the same CUDA."""
        return Source("index", {"url": f"{self._address}/{label}", **({"usual": True} if usual else {})})

    def _vendor(self, label: str) -> IndexUniverse:
        if label not in self._read:
            self._read[label] = IndexUniverse(self._index.beside(f"{self._address}/{label}"), self._base.target)
        return self._read[label]


def unserved(pins: Mapping[str, str], indexes: Iterable[Index]) -> dict[str, str]:
    """The pinned builds of torch, torchvision and torchaudio for one CUDA (or for CPU) that none of these indexes has."""
    builds = {name: pins[name] for name in ("torch", *BESIDE) if cuda_of(pins.get(name, "").partition("+")[2])}
    for index in indexes if builds else ():
        served = index.files_of_pins(builds.items())
        builds = {name: version for name, version in builds.items() if not served[name, version]}
    return builds


def libraries_of_default(name: str, builds: Mapping[str, str]) -> bool:
    """Whether a package is one of the libraries that the default build of torch requires, unlike one of these builds."""
    version, _, label = builds.get("torch", "").partition("+")
    if not label or not name.startswith((*CUDA_LIBRARIES, *(("triton",) if label.startswith(("cpu", "rocm")) else ()))):
        return False
    default = next((each for each in open_code_tables().torch_builds(version) if each.default and each.cuda), None)
    return default is None or label_of(default.cuda) != label


def _forbidden(one: str, mine: frozenset[str], other: str, theirs: frozenset[str]) -> Iterator[Forbidden]:
    theirs = theirs - {ABSENT}
    if mine and theirs:
        why = _ROCM if any("+rocm" in each for each in mine) else _VERSION
        yield Forbidden(((one, mine), (other, theirs)), why, "")


def _label(release: Release) -> str:
    """The label of a build for one CUDA version (or for CPU), else ""."""
    label = release.version.partition("+")[2]
    return label if cuda_of(label) else ""


def _has_amd(environment: Environment) -> bool:
    devices = environment.accelerators or ()
    return bool(devices) and all(each.vendor == "amd" or bool(each.gfx) for each in devices)


def _has_nvidia(environment: Environment) -> bool:
    devices = environment.accelerators or ()
    return environment.driver is not None or any(each.vendor == "nvidia" or each.compute_capability for each in devices)
