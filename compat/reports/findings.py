"""What the readers of one pasted text found, each with its rank; :mod:`compat.reports.pasted` decides between them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from compat.model import EMPTY, Accelerator, Source, Workload, normalized
from compat.reports.words import is_version, version_at

SAID, LISTED, WRITTEN, HINTED = range(4)
"""Ranks of facts: what a program reports about itself, a list of packages, a person's words, an inference."""

PHYSICAL, VISIBLE, ONE_KIND, BY_HAND = range(4)
"""Ranks of devices: all of the machine, those that one process sees, one kind without a number, a person's words."""

_MOST = 5000
"""Distributions of one text; more are ignored."""


class Fact(NamedTuple):
    """One statement of a fact of the environment."""

    value: str
    rank: int


class Package(NamedTuple):
    """One statement about a distribution."""

    version: str | None
    rank: int
    source: Source | None
    extra: Mapping[str, Any]
    specifier: str | None = None


class Devices(NamedTuple):
    """One statement about accelerators; ``counted``: there are exactly these."""

    devices: tuple[Accelerator, ...]
    rank: int
    counted: bool = True


class Findings:
    """The collection that the readers fill; ``used`` has the numbers of the lines that are read."""

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

    def say(self, field: str, value: str | None, rank: int = SAID) -> None:
        """A fact by its name in the environment ("python", "driver"); ``None`` is ignored."""
        if value:
            self.values.setdefault(field, []).append(Fact(value, rank))

    def package(
        self,
        name: str,
        version: str | None,
        rank: int = SAID,
        source: Source | None = None,
        extra: Mapping[str, Any] = EMPTY,
        specifier: str | None = None,
    ) -> None:
        """A distribution that is present; an invalid version is dropped."""
        if version is not None and not is_version(version):
            version = None
        if version is None and source is None and not extra and specifier is None:
            return
        name = normalized(name)
        if name in self.packages or len(self.packages) < _MOST:
            self.packages.setdefault(name, []).append(Package(version, rank, source, extra, specifier))

    def accelerators(self, devices: Sequence[Accelerator], rank: int, *, counted: bool = True) -> None:
        """The devices of one statement, in its order."""
        self.devices.append(Devices(tuple(devices), rank, counted))

    def variable(self, name: str, value: str) -> None:
        """An environment variable and its value."""
        self.variables.setdefault(name, []).append(value)

    def note(self, text: str) -> None:
        """A note for the user; repeated ones are dropped."""
        if text not in self.notes:
            self.notes.append(text)


# --- Facts in the words of programs and people: operating system, processor, C library, Python, driver


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


def say_system(found: Findings, text: str, rank: int = SAID) -> bool:
    """Record the system of a platform string ("Linux-5.15.0-x86_64-with-glibc2.35") or name ("Ubuntu 22.04"); false if none."""
    text = text[:300]
    system = system_of(text)
    found.say("os", system, rank)
    found.say("machine", machine_of(text, system), rank)
    lower = text.lower()
    if "microsoft-standard" in lower or "wsl" in lower:
        found.say("platform", "wsl1" if re.search(r"\bwsl ?1\b", lower) else "wsl2", rank)
    elif system == "linux" and "-microsoft" in lower:
        found.say("platform", "wsl1", rank)
    return system is not None


def system_of(text: str) -> str | None:
    """linux, windows or darwin; ``None`` for none or several of them (WSL is linux)."""
    if _LINUX.search(text) is not None and ("wsl" in text.lower() or _WINDOWS.search(text) is None):
        return None if _DARWIN.search(text) else "linux"
    if _WINDOWS.search(text) is not None:
        return "windows" if _LINUX.search(text) is None and _DARWIN.search(text) is None else None
    return "darwin" if _DARWIN.search(text) is not None else None


def machine_of(text: str, system: str | None) -> str | None:
    """The processor's architecture as in wheel tags."""
    match = _MACHINE.search(text)
    if match is None:
        return None
    word = match[1].lower()
    if word == "arm64" and system == "linux":
        return "aarch64"
    return _SPELLED.get(word, word)


def say_glibc(found: Findings, text: str, *, of_platform: bool, python: str | None = None) -> None:
    """Record the C library's version; before Python 3.9, ``platform.platform()`` has the version Python was built with."""
    match = _GLIBC.search(text[:300])
    if match is None or not is_version(match[1]):
        return
    if not of_platform:
        found.say("glibc", match[1])
    elif python is not None and re.match(r"3\.(?:9|\d{2,3})(?:\.|$)", python):
        found.say("glibc", match[1], SAID + 1)


def say_python(found: Findings, text: str, rank: int = SAID) -> str | None:
    """Record the version of ``3.10.12 (main, …) [MSC v.1916 64 bit (AMD64)]`` and the system in its build; the version."""
    version = version_at(text)
    if version is None or not version.startswith(("2.", "3.")) or len(version) > 20:
        return None
    found.say("python", version, rank)
    if "[GCC " in text:
        found.say("os", "linux", HINTED)
    if "(AMD64)]" in text or "[MSC v." in text:
        found.say("os", "windows", rank)
        found.say("machine", "x86_64" if "(AMD64)" in text else "arm64" if "(ARM64)" in text else None, rank)
    return version


def say_driver(found: Findings, value: str, rank: int = SAID) -> None:
    """Record a driver's version ("550.54.15", "driver 550"); numbers of less than three digits mean something else."""
    match = re.match(r"[^\d\n]{0,30}?(\d{3}(?:\.\d{1,3}){0,2})(?![\d.]*\d)", value)
    if match is not None:
        found.say("driver", match[1], rank)
