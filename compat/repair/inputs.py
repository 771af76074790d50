"""What is to be repaired: which lines somebody asked for, what is installed and what that needs, as a problem."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping

from compat.errors import InputError
from compat.model import Distribution, Environment, Source, normalized, of_no_index
from compat.records import replace
from compat.repair.candidates import Release, parsed
from compat.repair.problem import Policy, Problem
from compat.repair.relaxation import Needs
from compat.repair.target import Need, Target

_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[^\]]*\])?\s*(?:==|@)")
_ASKED = re.compile(r"#\s*(?:via\s+)?(?:-r |.*\((?:pyproject\.toml|setup\.py|setup\.cfg)\))")
_VIA = re.compile(r"#(\s+via)?(?:\s+([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?)?\s*")


def asked_for(text: str) -> frozenset[str]:
    """The normalised names that the comments (``# via -r requirements.in``) say are asked for; empty where none says so.

    ``uv export`` names the projects themselves: those that ask and are not listed.
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


# --- What installed distributions declare, from their METADATA: what an index would have to be asked for otherwise.


_LARGEST = 4 << 20


def needs_of_installed(folders: Iterable[str], current: Mapping[str, Release], target: Target) -> dict[Release, Needs]:
    """The needs of installed releases by their metadata; one that cannot be read is left to the index."""
    from email.parser import HeaderParser

    found: dict[Release, Needs] = {}
    for folder in folders:
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


# --- What is to be repaired, as a problem.


def problem_of(
    environment: Environment, *, asked: Iterable[Need] = (), keep: Iterable[str] = (), direct: Iterable[str] = (),
    policy: Policy, ignored: frozenset[str] = frozenset(), concerned: Collection[str] = (),
    listed: Collection[str] | None = None,
) -> Problem:  # fmt: skip
    """The problem of an environment; :class:`InputError` where its Python is not known or a pin is no requirement.

    Distributions without a known version, those of which two copies are there, and those of conda stay as they are; of conda's
    may move what ``concerned`` names. ``listed`` is what a file lists whose other packages the installer chooses.
    """
    target = Target(environment)
    current: dict[str, Release] = {}
    twice = set()
    for copy in environment.distributions or ():
        if is_given(copy) and copy.name not in concerned:
            continue
        if copy.name in current:
            twice.add(copy.name)
        elif copy.version is not None and parsed(copy.version) is not None:
            current[copy.name] = Release(copy.name, copy.version, source=copy.source if of_no_index(copy) else None)
    for name in twice:
        current.pop(name, None)
    pins = tuple(kept(text, target, current) for text in keep)
    given = frozenset(copy.name for copy in environment.distributions or () if is_given(copy) and copy.name not in current)
    conda = {
        copy.name: copy.version for copy in environment.distributions or ()
        if copy.name in given and copy.version is not None and parsed(copy.version) is not None
    }  # fmt: skip
    loose = frozenset() if listed is None else frozenset(current) - {*listed, *concerned, *(need.name for need in pins)}
    return Problem(
        environment, target, current, tuple(asked), pins, frozenset(direct), policy, ignored, given, conda, loose=loose
    )


UNBUILT = Source("index", {"build": True})
"""Where a package comes from that has no wheel: it is installed, in an unknown version, with unknown requirements."""


def is_given(copy: Distribution) -> bool:
    """Whether no package index moves it: it is conda's, or its version is unknown (a repository, a folder, a build)."""
    kind = None if copy.source is None else copy.source.kind
    return kind == "conda" or (copy.version is None and (kind in ("vcs", "url", "directory") or copy.source == UNBUILT))


def kept(text: str, target: Target, current: dict[str, Release]) -> Need:
    """``torch`` (as it is) or ``torch==2.5.1`` (any specifier) as a requirement."""
    found = target.needs((text,))
    if len(found) != 1:
        raise InputError(f"--keep {text!r}: expected a package, or a requirement such as torch==2.5.1")
    need = found[0]
    if need.specifier:
        return need
    if need.name not in current:
        raise InputError(f"--keep {text!r}: {need.name} is not among the packages; pass a version, such as {need.name}==1.0")
    return replace(need, specifier=f"=={current[need.name].version}")


def roots(needs: Mapping[Release, Needs], current: Iterable[str]) -> frozenset[str]:
    """The installed packages that no other one asks for: most likely those that the user did."""
    wanted = {(need.name, extra) for found in needs.values() for need in found.get("", ()) for extra in need.extras}
    asked = {
        need.name for release, found in needs.items() for extra, each in found.items()
        if not extra or (release.name, extra) in wanted for need in each if need.name != release.name
    }  # fmt: skip
    return frozenset(name for name in current if name not in asked)
