"""What is to be repaired, as a problem: an environment, or what a file installs on its target."""

from __future__ import annotations

from collections.abc import Iterable

from compat.environment import Distribution, Environment, of_no_index
from compat.errors import InputError
from compat.judge.choices import Asked
from compat.judge.facts import comparable
from compat.judge.worlds import Worlds
from compat.read.files.listing import ROOT, Listing
from compat.records import replace
from compat.repair.candidates import Release, parsed
from compat.repair.compiled_roots import asked_for
from compat.repair.problem import Policy, Problem
from compat.repair.relaxation import Needs
from compat.repair.target import Need, Target

_DEFAULT = Asked()


def problem_of(
    environment: Environment, *, asked: Iterable[Need] = (), keep: Iterable[str] = (), direct: Iterable[str] = (),
    policy: Policy, ignored: frozenset[str] = frozenset(),
) -> Problem:  # fmt: skip
    """The problem of an environment; :class:`InputError` where its Python is not known or a pin is no requirement.

    Distributions without a known version, and those of which two copies are there, stay as they are.
    """
    target = Target(environment)
    current: dict[str, Release] = {}
    twice = set()
    for copy in environment.distributions or ():
        if copy.name in current:
            twice.add(copy.name)
        elif copy.version is not None and parsed(copy.version) is not None:
            current[copy.name] = Release(copy.name, copy.version, source=copy.source if of_no_index(copy) else None)
    for name in twice:
        current.pop(name, None)
    pins = tuple(kept(text, target, current) for text in keep)
    return Problem(environment, target, current, tuple(asked), pins, frozenset(direct), policy, ignored)


def kept(text: str, target: Target, current: dict[str, Release]) -> Need:
    """``torch`` (as it is) or ``torch==2.5.1`` (any specifier) as a requirement."""
    found = target.needs((text,))
    if len(found) != 1:
        raise InputError(f"--keep {text!r}: expected a package, or a requirement such as torch==2.5.1")
    need = found[0]
    if need.specifier:
        return need
    if need.name not in current:
        raise InputError(f"--keep {text!r}: {need.name} is not there; give a version, such as {need.name}==1.0")
    return replace(need, specifier=f"=={current[need.name].version}")


def roots(needs: dict[Release, Needs], current: Iterable[str]) -> frozenset[str]:
    """The installed packages that no other one asks for: most likely those that the user did."""
    asked = {
        need.name for release, found in needs.items() for each in found.values() for need in each if need.name != release.name
    }  # fmt: skip
    return frozenset(name for name in current if name not in asked)


def installed_by(
    listing: Listing, known: Environment, asked: Asked = _DEFAULT
) -> tuple[Environment, frozenset[str], tuple[Need, ...]]:
    """What a file installs on a target by default: the environment, what is asked for directly, and requirements without a pin.

    The interpreter is the target's, or the oldest one that the file is made for; the platform Linux on x86_64 where nothing
    tells it.
    """
    known = replace(known, os=known.os or "linux", machine=known.machine or "x86_64")
    worlds = Worlds(listing, known, asked)
    if not worlds.places:
        raise InputError("is made for no interpreter that is known", listing.file)
    masks = worlds.installed()
    place = next((at for at in range(len(worlds.places)) if worlds.of_place(at)), 0)
    chosen = worlds.of_place(place) & worlds.of_set(0)
    python = known.python or ".".join(map(str, worlds.places[place].python[:2]))
    here = [number for number, mask in enumerate(masks) if mask & chosen]
    environment = replace(
        known, python=python, distributions=tuple(_plain(listing.entries[number].distribution) for number in here),
        distributions_complete=listing.complete,
    )  # fmt: skip
    pinned = {copy.name for copy in environment.distributions or () if copy.version is not None}
    wanted = tuple(
        Need(copy.name, copy.specifier or "", tuple(copy.extra.get("extras", ())))
        for copy in environment.distributions or () if copy.version is None and copy.name not in pinned
    )  # fmt: skip
    return environment, _direct(listing, here), wanted


def _plain(copy: Distribution) -> Distribution:
    copy = comparable(copy)
    return replace(copy, marker=None) if copy.marker else copy


def _direct(listing: Listing, here: list[int]) -> frozenset[str]:
    """What the project itself asks for: all of a file without a graph, else what its first nodes lead to."""
    names = {number: listing.entries[number].distribution.name for number in here}
    if listing.edges is None:
        if listing.kind != "requirements" or not listing.complete:
            return frozenset(names.values())
        return asked_for(_text_of(listing.file)) & frozenset(names.values())
    own = {child for parent, child, _, _ in listing.edges if parent == ROOT}
    projects = {number for number in own if _is_project(listing, number)}
    found = {child for parent, child, _, _ in listing.edges if parent in projects} | (own - projects)
    return frozenset(names[number] for number in found if number in names)


def _text_of(file: str) -> str:
    from compat.read.files.kinds import read_content
    from compat.read.files.requirements.requirement_lines import decode

    return decode(read_content(file), file)


def _is_project(listing: Listing, number: int) -> bool:
    if number >= len(listing.entries):
        return True
    source = listing.entries[number].distribution.source
    return source is not None and source.kind == "directory"
