"""Construction of a problem: the requested packages, the installed ones and their requirements."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping

from compat.errors import InputError
from compat.model import Distribution, Environment, Finding, Source, normalized, of_no_index
from compat.repair.candidates import Release, parse_version
from compat.repair.problem import Policy, Problem
from compat.repair.relaxation import Needs
from compat.repair.target import Need, Target

_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[^\]]*\])?\s*(?:==|@)")
_ASKED = re.compile(r"#\s*(?:via\s+)?(?:-r |.*\((?:pyproject\.toml|setup\.py|setup\.cfg)\))")
_VIA = re.compile(r"#(\s+via)?(?:\s+([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?)?\s*")


def asked_for(text: str) -> frozenset[str]:
    """The normalised names requested directly, according to comments (``# via -r requirements.in``); empty if there are none.

    In the output of ``uv export`` these are the packages required by a project, which is itself not listed.
    """
    found, listed = set(), set()
    asking: list[tuple[str, str]] = []
    name, via = None, False
    for line in text.splitlines():
        start = _NAME.match(line)
        if start is not None:
            name, via = normalized(start[1]), False
            listed.add(name)
        comment = line[line.find(" #") + 1 :] if " #" in line else ""  # those of the tools are indented
        who = _VIA.fullmatch(comment)
        via = who is not None and (via or bool(who[1]))
        if name is not None and _ASKED.match(comment):
            found.add(name)
            via = True
        elif name is not None and via and who is not None and who[2]:
            asking.append((name, normalized(who[2])))
        elif not line.strip():
            name = None
    return frozenset(found | {name for name, who in asking if "uv export" in text and who not in listed})


# --- Requirements of installed distributions, from their METADATA, to avoid index requests.


_LARGEST = 4 << 20


def needs_of_installed(folders: Iterable[str], current: Mapping[str, Release], target: Target) -> dict[Release, Needs]:
    """The requirements of installed releases from their metadata; unreadable ones are left to the index."""
    found: dict[Release, Needs] = {}
    for folder in folders:
        from email.parser import HeaderParser  # most plans are for a file, and have no folder

        try:
            names = [name for name in os.listdir(folder) if name.endswith(".dist-info")]
        except OSError:
            continue
        for name in names:
            release = current.get(normalized(name.partition("-")[0]))
            if release is None or release in found:
                continue
            text = _read(os.path.join(folder, name, "METADATA"))
            if text is not None:
                header = HeaderParser().parsestr(text)
                found[release] = target.needs_by_extra(header.get_all("Requires-Dist") or ())
    return found


def _read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return None


# --- The problem.


def problem_of(
    environment: Environment, *, asked: Iterable[Need] = (), keep: Iterable[str] = (), direct: Iterable[str] = (),
    policy: Policy, ignored: frozenset[str] = frozenset(), concerned: Collection[str] = (),
    listed: Mapping[str, bool] | None = None, unserved: tuple[Finding, ...] = (),
    known: frozenset[str] | None = None,
) -> Problem:  # fmt: skip
    """The problem for an environment; :class:`InputError` if its Python is unknown or an entry of ``keep`` is invalid.

    Distributions with an unknown version, with two installed copies, or from conda are not changed, except conda packages
    named in ``concerned``. ``listed`` are the packages of an incomplete file and whether it pins them; an installer chooses the
    versions of all others.
    """
    target = Target(environment)
    current: dict[str, Release] = {}
    twice = set()
    for copy in environment.distributions or ():
        if is_given(copy) and copy.name not in concerned:
            continue
        if copy.name in current:
            twice.add(copy.name)
        elif copy.version is not None and parse_version(copy.version) is not None:
            current[copy.name] = Release(copy.name, copy.version, source=copy.source if of_no_index(copy) else None)
    for name in twice:
        current.pop(name, None)
    pins = tuple(kept(text, target, current) for text in keep)
    given = frozenset(copy.name for copy in environment.distributions or () if is_given(copy) and copy.name not in current)
    conda = {
        copy.name: copy.version for copy in environment.distributions or ()
        if copy.name in given and copy.version is not None and parse_version(copy.version) is not None
    }  # fmt: skip
    kept_names = {need.name for need in pins}
    unpinned = frozenset(name for name in current if listed is not None and not listed.get(name)) - kept_names
    unnamed = frozenset(name for name in unpinned if listed is not None and name not in listed)
    return Problem(
        environment, target, current, tuple(asked), pins, frozenset(direct), policy, ignored, given, conda,
        unlisted=unnamed - frozenset(concerned), unpinned=unpinned, unnamed=unnamed,
        from_part=listed is not None, unserved=unserved, known=known,
    )  # fmt: skip


UNBUILT = Source("index", {"build": True})
"""Source of a package without a wheel: it is installed in an unknown version, with unknown requirements."""


def is_given(copy: Distribution) -> bool:
    """Whether it cannot be changed from a package index: it is from conda, or its version is unknown (VCS, image, build)."""
    kind = None if copy.source is None else copy.source.kind
    unknown = kind in ("vcs", "url", "directory", "image") or copy.source == UNBUILT
    return kind == "conda" or (copy.version is None and unknown)


def kept(text: str, target: Target, current: dict[str, Release]) -> Need:
    """Parse ``torch`` (its current version) or ``torch==2.5.1`` (any specifier); :class:`InputError` if it is invalid."""
    found = target.needs((text,))
    if len(found) != 1:
        raise InputError(f"--keep {text!r}: expected a package, or a requirement such as torch==2.5.1")
    need = found[0]
    if need.specifier:
        return need
    if need.name not in current:
        raise InputError(f"--keep {text!r}: {need.name} is not among the packages; pass a version, such as {need.name}==1.0")
    return need._replace(specifier=f"=={current[need.name].version}")


def roots(needs: Mapping[Release, Needs], current: Iterable[str]) -> frozenset[str]:
    """The installed packages that no other package requires: most likely those the user requested."""
    wanted = {(need.name, extra) for found in needs.values() for need in found.get("", ()) for extra in need.extras}
    asked = {
        need.name for release, found in needs.items() for extra, each in found.items()
        if not extra or (release.name, extra) in wanted for need in each if need.name != release.name
    }  # fmt: skip
    return frozenset(name for name in current if name not in asked)
