"""Declared metadata of releases: ``releases.csv`` (Python, glibc, yanks), ``requirements.csv`` (with markers and extras)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser

from packaging.markers import InvalidMarker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from scripts.refresh.index import Index, Release
from scripts.refresh.tables import Row

RELEASES = (
    "package",
    "version",
    "uploaded",
    "requires_python",
    "glibc",
    "wheels",
    "yanked",
    "reason",
    "known",
    "source",
    "date",
)
REQUIREMENTS = ("package", "requirement", "releases", "known", "source", "date")
_MANYLINUX = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}


@dataclass(frozen=True)
class Declared:
    """The metadata of one release; requirements are normalized and sorted."""

    release: Row
    requirements: tuple[str, ...]


def declared(index: Index, package: str, release: Release, date: str) -> Declared:
    """Read one release; raises ``UnreadableError``."""
    text = index.metadata(release)
    header = HeaderParser().parsestr(text)
    source = (release.wheels[0] if release.wheels else release.files[0]).filename
    row = {
        "package": package,
        "version": release.version,
        "uploaded": "",
        "requires_python": normal_specifier(header.get("Requires-Python") or ""),
        "glibc": lowest_glibc(release),
        "wheels": wheels(release),
        "known": "declared",
        "source": source,
        "date": date,
        **yank(release),
    }
    return Declared(row, tuple(sorted(set(normal(header.get_all("Requires-Dist") or ())))))


def day(release: Release, uploaded: Mapping[str, str]) -> dict[str, str]:
    """Return the day of a release's first upload; empty if the index does not provide it."""
    return {"uploaded": min((uploaded[file.filename] for file in release.files if file.filename in uploaded), default="")}


def yank(release: Release) -> dict[str, str]:
    return {"yanked": "yes" if release.yanked else "", "reason": release.reason if release.yanked else ""}


def normal(requirements: Iterable[str]) -> Iterable[str]:
    """Normalize requirements; invalid ones are dropped, since installers reject them too."""
    for text in requirements:
        try:
            found = Requirement(" ".join(text.split()))
        except (InvalidRequirement, InvalidMarker):
            continue
        found.name = canonicalize_name(found.name)
        yield str(found)


def normal_specifier(text: str) -> str:
    return ",".join(sorted(part.strip() for part in text.split(",") if part.strip()))


def lowest_glibc(release: Release) -> str:
    """Return the lowest glibc in the tags of Linux x86_64 wheels; empty without wheels, or if one requires none."""
    floors: list[tuple[int, ...]] = []
    for wheel in release.wheels:
        try:
            tags = parse_wheel_filename(wheel.filename)[3]
        except (InvalidWheelFilename, ValueError):
            continue
        platforms = {tag.platform for tag in tags}
        if "any" in platforms:
            return ""
        for platform in platforms:
            found = re.fullmatch(r"manylinux_(\d+)_(\d+)_x86_64", platform)
            old = _MANYLINUX.get(platform.removesuffix("_x86_64"))
            if found:
                floors.append((int(found[1]), int(found[2])))
            elif old:
                floors.append(tuple(map(int, old.split("."))))
    return ".".join(map(str, min(floors))) if floors else ""


_MOST = 99
"""Stands for any later minor release of Python 3: wheels for the stable ABI and wheels without compiled modules."""


def wheels(release: Release) -> str:
    """Return the Pythons that a release has wheels for, by system: ``darwin-arm64:3.9..3.12 linux:3.9..3.13 sdist``.

    A system has its processor where there are wheels for only one. Empty if the release has no wheels or one that every system
    can use. ``3.8..`` has no upper end; ``sdist``: it can be built.
    """
    found: dict[str, dict[str, set[int]]] = {}
    for wheel in release.wheels:
        try:
            tags = parse_wheel_filename(wheel.filename)[3]
        except (InvalidWheelFilename, ValueError):
            continue
        for tag in tags:
            system = next((name for start, name in _SYSTEMS if tag.platform.startswith(start)), None)
            minor = re.fullmatch(r"(?:cp|py)3(\d*)", tag.interpreter)
            if tag.platform == "any":
                return ""
            if system is None or minor is None or tag.abi.endswith("t"):
                continue
            first = int(minor[1] or 0)
            open_ended = tag.abi == "abi3" or tag.interpreter.startswith("py")
            for machine in _MACHINES[system]:
                if tag.platform.endswith((machine, *_FOR_BOTH)):
                    minors = found.setdefault(system, {}).setdefault(machine, set())
                    minors.update(range(first, _MOST + 1) if open_ended else (first,))
    if not found:
        return ""
    runs = []
    for system, machines in sorted(found.items()):
        only = f"-{next(iter(machines))}" if len(machines) < len(_MACHINES[system]) else ""
        runs.append(f"{system}{only}:{'+'.join(_spans(set().union(*machines.values())))}")
    return " ".join((*runs, "sdist") if release.sdist is not None else runs)


_SYSTEMS = (("manylinux", "linux"), ("linux", "linux"), ("musllinux", "linux"), ("win", "windows"), ("macosx", "darwin"))
_MACHINES = {"linux": ("x86_64", "aarch64"), "darwin": ("x86_64", "arm64"), "windows": ("",)}
"""System → how the platform tags for its processors end; those of Windows are not told apart."""
_FOR_BOTH = ("universal2",)


def _spans(minors: set[int]) -> list[str]:
    spans: list[list[int]] = []
    for minor in sorted(minors):
        if spans and minor == spans[-1][1] + 1:
            spans[-1][1] = minor
        else:
            spans.append([minor, minor])
    return [f"3.{a}..{'' if b >= _MOST else f'3.{b}'}" if a != b else f"3.{a}" for a, b in spans]


def folded(found: dict[str, tuple[str, ...]], versions: list[str]) -> dict[str, str]:
    """Map each requirement to the releases that declare it, as runs within ``versions`` (``4.46.0..4.57.6 5.0.0``)."""
    place = {version: number for number, version in enumerate(versions)}
    by_requirement: dict[str, list[int]] = {}
    for version, requirements in found.items():
        for requirement in requirements:
            by_requirement.setdefault(requirement, []).append(place[version])
    return {requirement: _runs(sorted(numbers), versions) for requirement, numbers in sorted(by_requirement.items())}


def unfolded(runs: str, versions: list[str]) -> list[str]:
    """Expand the releases of :func:`folded`; raises ``ValueError`` for one not in ``versions``."""
    found: list[str] = []
    for run in runs.split():
        first, _, last = run.partition("..")
        found += versions[versions.index(first) : versions.index(last or first) + 1]
    return found


def _runs(numbers: list[int], versions: list[str]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(versions[a] if a == b else f"{versions[a]}..{versions[b]}" for a, b in runs)


def ordered(versions: Iterable[str]) -> list[str]:
    return sorted(set(versions), key=Version)
