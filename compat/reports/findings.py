"""Facts that the readers found in one pasted text, each with its rank; :mod:`compat.reports.pasted` resolves conflicts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compat.model import EMPTY, Accelerator, Source, Workload, normalized
from compat.reports.words import is_version, version_at

SAID, LISTED, WRITTEN, HINTED = range(4)
"""Ranks of facts: reported by the program itself, in a package list, written by hand, inferred."""

PHYSICAL, VISIBLE, ONE_KIND, BY_HAND = range(4)
"""Ranks of devices: all devices of the machine, those visible to one process, one kind without a count, written by hand."""

_MOST = 5000
"""Maximum number of distributions per text; more are ignored."""


class Fact(NamedTuple):
    """One statement of a fact of the environment."""

    value: str
    rank: int


class Package(NamedTuple):
    """One statement about a distribution."""

    version: str | None
    rank: int
    source: Source | None
    extra: Mapping[str, object]
    specifier: str | None = None


class Devices(NamedTuple):
    """One statement about accelerators; ``counted``: there are exactly these."""

    devices: tuple[Accelerator, ...]
    rank: int
    counted: bool = True


class Findings:
    """The facts collected by the readers; ``used`` holds the numbers of the consumed lines."""

    def __init__(self) -> None:
        self.values: dict[str, list[Fact]] = {}
        self.packages: dict[str, list[Package]] = {}
        self.devices: list[Devices] = []
        self.device_counts: list[int] = []
        self.variables: dict[str, list[str]] = {}
        self.whole_lists: list[frozenset[str]] = []
        self.workloads: list[Workload] = []
        self.notes: list[str] = []
        self.used: set[int] = set()

    def record(self, field: str, value: str | None, rank: int = SAID) -> None:
        """Record a fact by its name in the environment ("python", "driver"); ``None`` is ignored."""
        if value:
            self.values.setdefault(field, []).append(Fact(value, rank))

    def package(
        self,
        name: str,
        version: str | None,
        rank: int = SAID,
        source: Source | None = None,
        extra: Mapping[str, object] = EMPTY,
        specifier: str | None = None,
    ) -> None:
        """Record an installed distribution; an invalid version is dropped."""
        if version is not None and not is_version(version):
            version = None
        if version is None and source is None and not extra and specifier is None:
            return
        name = normalized(name)
        if name in self.packages or len(self.packages) < _MOST:
            self.packages.setdefault(name, []).append(Package(version, rank, source, extra, specifier))

    def accelerators(self, devices: Sequence[Accelerator], rank: int, *, counted: bool = True) -> None:
        """Record the devices of one statement, in order."""
        self.devices.append(Devices(tuple(devices), rank, counted))

    def variable(self, name: str, value: str) -> None:
        """Record an environment variable and its value."""
        self.variables.setdefault(name, []).append(value)

    def note(self, text: str) -> None:
        """Add a note for the user; duplicates are dropped."""
        if text not in self.notes:
            self.notes.append(text)


# --- Facts in program output and hand-written text: operating system, processor, C library, Python, driver


_LINUX = re.compile(
    r"\b(?:linux|ubuntu|debian|centos|fedora|rhel|red ?hat|rocky|alma|almalinux|arch|manjaro|suse|opensuse|nixos|"
    r"amazon linux|alibaba|alinux|tencentos|openeuler|kylin|anolis|mint|pop!?_?os|gentoo|kali|colab|kaggle|wsl2?|slurm)\b",
    re.IGNORECASE,
)
_WINDOWS = re.compile(r"\b(?:windows|win ?1[01]|win32|win64|microsoft windows)\b", re.IGNORECASE)
_DARWIN = re.compile(r"\b(?:mac ?os ?x?|macos|osx|darwin|macbook|mac (?:mini|studio|pro))\b", re.IGNORECASE)
_MACHINE = re.compile(r"(?<![A-Za-z\d])(x86_64|x86-64|amd64|aarch64|arm64|ppc64le|s390x|riscv64)(?![A-Za-z\d])", re.IGNORECASE)
_GLIBC = re.compile(r"glibc[ -]?(\d{1,2}\.\d{1,3})", re.IGNORECASE)
_SPELLED = {"x86-64": "x86_64", "amd64": "x86_64"}


def record_system(found: Findings, text: str, rank: int = SAID) -> bool:
    """Record the system in a platform string ("Linux-5.15.0-x86_64-with-glibc2.35") or name; return whether one was found."""
    text = text[:300]
    system = system_of(text)
    found.record("os", system, rank)
    found.record("machine", machine_of(text, system), rank)
    lower = text.lower()
    if "microsoft-standard" in lower or "wsl" in lower:
        found.record("platform", "wsl1" if re.search(r"\bwsl ?1\b", lower) else "wsl2", rank)
    elif system == "linux" and "-microsoft" in lower:
        found.record("platform", "wsl1", rank)
    return system is not None


def system_of(text: str) -> str | None:
    """Return linux, windows or darwin; ``None`` if the text names none or several (WSL is linux)."""
    if _LINUX.search(text) is not None and ("wsl" in text.lower() or _WINDOWS.search(text) is None):
        return None if _DARWIN.search(text) else "linux"
    if _WINDOWS.search(text) is not None:
        return "windows" if _LINUX.search(text) is None and _DARWIN.search(text) is None else None
    return "darwin" if _DARWIN.search(text) is not None else None


def machine_of(text: str, system: str | None) -> str | None:
    """Return the processor architecture as spelled in wheel tags, or ``None``."""
    match = _MACHINE.search(text)
    if match is None:
        return None
    word = match[1].lower()
    if word == "arm64" and system == "linux":
        return "aarch64"
    return _SPELLED.get(word, word)


def record_glibc(found: Findings, text: str, *, of_platform: bool, python: str | None = None) -> None:
    """Record the glibc version; before Python 3.9, ``platform.platform()`` reports the version Python was built with."""
    match = _GLIBC.search(text[:300])
    if match is None or not is_version(match[1]):
        return
    if not of_platform:
        found.record("glibc", match[1])
    elif python is not None and re.match(r"3\.(?:9|\d{2,3})(?:\.|$)", python):
        found.record("glibc", match[1], SAID + 1)


def record_python(found: Findings, text: str, rank: int = SAID) -> str | None:
    """Record and return the version in ``3.10.12 (main, …) [MSC v.1916 64 bit (AMD64)]``; record the system of its build."""
    version = version_at(text)
    if version is None or not version.startswith(("2.", "3.")) or len(version) > 20:
        return None
    found.record("python", version, rank)
    if "[GCC " in text:
        found.record("os", "linux", HINTED)
    if "(AMD64)]" in text or "[MSC v." in text:
        found.record("os", "windows", rank)
        found.record("machine", "x86_64" if "(AMD64)" in text else "arm64" if "(ARM64)" in text else None, rank)
    return version


def record_driver(found: Findings, value: str, rank: int = SAID) -> None:
    """Record a driver version ("550.54.15", "driver 550"); numbers with fewer than three digits are not driver versions."""
    match = re.match(r"[^\d\n]{0,30}?(\d{3}(?:\.\d{1,3}){0,2})(?![\d.]*\d)", value)
    if match is not None:
        found.record("driver", match[1], rank)
