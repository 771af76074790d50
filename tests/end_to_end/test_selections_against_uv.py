"""What ``compat`` takes to be installed from a uv.lock is what ``uv export --frozen`` writes for the same choices.

Real locks, and locks written for this, for several interpreters, platforms, extras and groups. Versions are compared, and
for what comes from no index the URL, the commit or the folder.
"""

from __future__ import annotations

import os.path
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from compat.checks.choices import Requested
from compat.checks.contexts import Contexts
from compat.formats.listing import Listing
from compat.formats.locks.uv import UvLock
from compat.model import Distribution, Environment, normalized
from compat.syntax.toml import parse_text
from tests.conftest import ROOT
from tests.end_to_end.uv_projects import PROJECTS, write_project

UV = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
LOCKS = sorted((ROOT / ".." / "shared" / "corpus" / "files" / "uv.lock").glob("*"))
PYTHONS = ("3.10.3", "3.10.14", "3.11.9", "3.12.4", "3.13.14")
MOST = 4
"""Extras that are tried alone; private-gpt has fifty."""

pytestmark = pytest.mark.skipif(UV is None, reason="needs uv")

Selection = set[tuple[str, str]]
"""(name, version), or what stands for the version where it is not fetched from an index."""


class Platform(NamedTuple):
    """One platform in the words of ``compat`` and in those of markers."""

    os: str
    machine: str
    sys_platform: str
    platform_system: str


PLATFORMS = (
    Platform("linux", "x86_64", "linux", "Linux"),
    Platform("linux", "aarch64", "linux", "Linux"),
    Platform("darwin", "arm64", "darwin", "Darwin"),
    Platform("windows", "AMD64", "win32", "Windows"),
)


class ChoiceSet(NamedTuple):
    """Extras and groups of the root project; ``groups`` ``None``: what uv installs if nothing is said."""

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = ()


class Project:
    """A folder with a lock, and with as much of its pyproject.toml as uv asks for where there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        text = (folder / "uv.lock").read_text(encoding="utf-8")
        (self.listing,) = UvLock().read("uv.lock", text)
        self.lock = lock = parse_text(text, "uv.lock")
        self.root = next(each for each in lock["package"] if "." in each["source"].values())
        self.name = str(self.root["name"])
        self.requires_python = str(lock["requires-python"])
        self.conflicts = [{(each.get("extra"), each.get("group")) for each in clash if each["package"] == self.name}
                          for clash in lock.get("conflicts", ())]  # fmt: skip
        self.extras, self.groups = _choices(self.root)
        if not (folder / "pyproject.toml").exists():
            (folder / "pyproject.toml").write_text(self._pyproject(self.root), encoding="utf-8")

    def _pyproject(self, package: dict[str, Any]) -> str:
        lines = ["[project]", f'name = "{package["name"]}"', 'version = "0"', f'requires-python = "{self.requires_python}"']
        extras, groups = _choices(package)
        lines += ["[project.optional-dependencies]", *(f'"{extra}" = []' for extra in extras)]
        return "\n".join([*lines, "[dependency-groups]", *(f'"{group}" = []' for group in groups), ""])

    def write_members(self) -> None:
        """Writes as much of a workspace as uv asks for."""
        members = set(self.lock.get("manifest", {}).get("members", ())) - {self.name}
        folders = {each["source"]["editable"]: each for each in self.lock["package"] if each["name"] in members}
        for place, package in folders.items():
            (self.folder / place).mkdir(parents=True)
            (self.folder / place / "pyproject.toml").write_text(self._pyproject(package), encoding="utf-8")
        text = self._pyproject(self.root) + f"[tool.uv.workspace]\nmembers = {sorted(folders)}\n"
        (self.folder / "pyproject.toml").write_text(text, encoding="utf-8")

    def selections(self) -> Iterator[ChoiceSet]:
        """Nothing, the defaults, some extras and every group alone, and as much as goes together."""
        yield ChoiceSet()
        yield ChoiceSet(groups=None)
        step = max(1, len(self.extras) // MOST)
        yield from (ChoiceSet((extra,)) for extra in self.extras[::step][:MOST])
        yield from (ChoiceSet((), (group,)) for group in self.groups[:MOST])
        for names in ((self.extras, self.groups), (self.extras[::-1], self.groups[::-1])):
            yield self._together(*names)

    def _together(self, extras: Iterable[str], groups: Iterable[str]) -> ChoiceSet:
        chosen: set[tuple[str | None, str | None]] = set()
        for each in [*((extra, None) for extra in extras), *((None, group) for group in groups)]:
            if not any(each in clash and len(clash & chosen) > 0 for clash in self.conflicts):
                chosen.add(each)
        return ChoiceSet(
            tuple(sorted(extra for extra, _ in chosen if extra)), tuple(sorted(group for _, group in chosen if group))
        )

    def exported(self, chosen: ChoiceSet, packages: Iterable[str] = ()) -> list[str] | None:
        """The lines of ``uv export`` that ask for something; ``None`` where a dependency's extra conflicts with what is chosen."""
        assert UV is not None
        words = [UV, "export", "--frozen", "--offline", "--no-config", "--no-hashes", "--no-annotate", "--no-header"]
        words += [word for package in packages for word in ("--package", package)]
        words += [word for extra in chosen.extras for word in ("--extra", extra)]
        words += [] if chosen.groups is None else ["--no-default-groups"]
        words += [word for group in chosen.groups or () for word in ("--group", group)]
        done = subprocess.run(
            words, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "UV_PYTHON_DOWNLOADS": "never"},
        )  # fmt: skip
        if "are incompatible with the declared conflicts" in done.stderr:
            return None
        assert done.returncode == 0, done.stderr
        return [line.strip() for line in done.stdout.splitlines() if line.strip()]

    def selected(self, chosen: ChoiceSet, python: str, platform: Platform) -> Selection | None:
        """The same, as ``compat`` works it out; ``None`` where it says that the lock is not made for the platform."""
        extras = tuple(f"{self.name}[{extra}]" if _several(self.listing) else extra for extra in chosen.extras)
        groups = chosen.groups
        if groups is not None:
            groups = tuple(f"{self.name}[{each}]" if _several(self.listing) else each for each in groups) or ("none",)
        known = Environment(python=python, os=platform.os, machine=platform.machine)
        contexts = Contexts(self.listing, known, Requested(extras, groups))
        installed = contexts.installed()
        if contexts.notes:
            assert contexts.notes == ["uv.lock does not support the target's platform"]
            return None
        return {
            identity
            for entry, mask in zip(self.listing.entries, installed)
            if mask and (identity := _identity(entry.distribution)) is not None
        }


def _choices(package: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The extras and the groups of a package of a lock."""
    metadata = package.get("metadata", {})
    extras = {*package.get("optional-dependencies", ()), *metadata.get("provides-extras", ())}
    return sorted(extras), sorted({*package.get("dev-dependencies", ()), *metadata.get("requires-dev", ())})


def _several(listing: Listing) -> bool:
    return any(choice.package is not None for choice in listing.choices)


def _identity(distribution: Distribution) -> tuple[str, str] | None:
    source = distribution.source
    assert source is not None
    if source.kind == "directory":
        folder = str(source.details["path"])
        return None if source.details.get("virtual") else ("", os.path.normpath(folder))
    if source.kind in ("vcs", "url"):
        return distribution.name, str(source.details["commit" if source.kind == "vcs" else "url"])
    return distribution.name, str(distribution.version)


def _evaluated(lines: Iterable[str], python: str, platform: Platform) -> Selection:
    """What is installed from the lines of an export by one interpreter."""
    environment = {
        "python_version": ".".join(python.split(".")[:2]), "python_full_version": python, "implementation_version": python,
        "implementation_name": "cpython", "platform_python_implementation": "CPython", "platform_machine": platform.machine,
        "sys_platform": platform.sys_platform, "platform_system": platform.platform_system, "platform_release": "",
        "platform_version": "", "os_name": "nt" if platform.os == "windows" else "posix", "extra": "",
    }  # fmt: skip
    found = set()
    for line in lines:
        folder, _, marker = line.removeprefix("-e ").partition(" ; ")
        if folder.startswith("."):
            asked = Requirement(f"folder ; {marker}" if marker else "folder")
            identity = ("", os.path.normpath(folder))
        else:
            asked = Requirement(line)
            identity = (normalized(asked.name), _place(asked))
        if asked.marker is None or asked.marker.evaluate(environment):
            found.add(identity)
    return found


def _place(asked: Requirement) -> str:
    if asked.url is None:
        return str(asked.specifier).removeprefix("==")
    return asked.url.partition("#")[0].rpartition("@")[2] if asked.url.startswith("git+") else asked.url


def _compare(project: Project) -> int:
    """The number of selections that were found to be the same."""
    pythons = [python for python in PYTHONS if python in SpecifierSet(project.requires_python)]
    compared = 0
    for chosen in dict.fromkeys(project.selections()):
        lines = project.exported(chosen)
        if lines is None:
            continue
        for python in {pythons[0], pythons[-1]}:
            for platform in PLATFORMS:
                wanted = _evaluated(lines, python, platform)
                found = project.selected(chosen, python, platform)
                assert found == (wanted if found is not None else None), (chosen, python, platform)
                assert found is not None or all(name == "" for name, _ in wanted), "uv has something for this platform"
                compared += found is not None
    return compared


@pytest.mark.skipif(not LOCKS, reason="needs the corpus")
@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_real_locks_install_what_uv_installs(path: Path, tmp_path: Path) -> None:
    shutil.copyfile(path, tmp_path / "uv.lock")
    assert _compare(Project(tmp_path)) >= 2 * len(PLATFORMS)


@pytest.mark.parametrize("name", PROJECTS)
def test_forks_extras_conflicts_and_members_install_what_uv_installs(name: str, tmp_path: Path) -> None:
    assert UV is not None
    write_project(name, tmp_path, UV, sys.executable)
    project = Project(tmp_path)
    listed = [entry.distribution.name for entry in project.listing.entries]
    assert len(listed) > len(set(listed)), "some are listed in several versions"
    assert _compare(project) > 4 * len(PLATFORMS)


@pytest.mark.parametrize("name", ["conflicts", "members that conflict"])
def test_uv_refuses_no_set_of_choices_that_is_tried(name: str, tmp_path: Path) -> None:
    assert UV is not None
    write_project(name, tmp_path, UV, sys.executable)
    _none_is_refused(Project(tmp_path))


@pytest.mark.parametrize("path", [path for path in LOCKS if "\nconflicts = " in path.read_text()], ids=lambda path: path.name)
def test_uv_refuses_no_set_of_a_real_lock(path: Path, tmp_path: Path) -> None:
    shutil.copyfile(path, tmp_path / "uv.lock")
    project = Project(tmp_path)
    project.write_members()
    _none_is_refused(project)


def _none_is_refused(project: Project) -> None:
    choices = project.listing.choices
    for each in Contexts(project.listing, Environment(), Requested()).sets:
        chosen = [choices[number] for number in sorted(each.numbers)]
        extras, groups = ({choice.name for choice in chosen if choice.kind == kind} for kind in ("extra", "group"))
        packages = [choice.name for choice in chosen if choice.kind == "package"]
        assert project.exported(ChoiceSet(tuple(extras), tuple(groups)), packages) is not None, each.label
