"""The packages that a file installs, and the target of a plan, inferred if it is not stated."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Sequence

from compat.checks.choices import EVERY_CHOICE, Requested, excluded_by
from compat.checks.contexts import Contexts, Platform
from compat.checks.selections import judged_listing
from compat.checks.torch_build import replaced_image_of
from compat.checks.torch_variants import newest_in_channel
from compat.errors import InputError
from compat.formats.listing import ROOT, Listing, key_of_choice
from compat.formats.registry import FORMATS, read_content, read_listings
from compat.formats.requirements.lines import decode
from compat.index import Index
from compat.model import Distribution, Environment, Finding, of_no_index
from compat.records import record, replace
from compat.repair.inputs import asked_for, is_given
from compat.repair.target import Need, Target
from compat.rules.compiled import Matrix
from compat.rules.facts import comparable

GLIBC = "2.35"
"""Default if unknown: that of Ubuntu 22.04, which wheels for accelerators are built for."""
_PYTHON = (3, 12)
"""Default if no pin has a version-specific wheel: the version that most packages have wheels for."""
_OF_CONDA = ("environment.yml", "conda list", "pixi.toml", "described")
"""Kinds of files that uv cannot complete: conda installs the rest, or has done so."""
_NEWEST = "the newest that the pins have wheels for"
_STATED = re.compile(r"--python-version[= ](\d+\.\d+(?:\.\d+)?)|pip-compile with Python (\d+\.\d+)")
_VERSION = re.compile(r"(?:cpython[@-]?)?(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)")
_WHEEL = re.compile(r"-cp3(\d{1,2})-cp3\d{1,2}[a-z]?-[^-/]+\.whl(?:$|[?#])")
_CONFIGURED = re.compile(r"^version(?:_info)? *= *(\d+\.\d+\.\d+)", re.MULTILINE)


@record(frozen=True)
class Installed:
    """The packages a file installs on a target. ``told`` describes the target and how it was determined; if not ``whole``,
    an installer adds packages to the list. ``direct`` is ``None`` if the project's direct requirements are unknown. ``pythons``
    are older Pythons that the pins support as well, newest first, if the Python is inferred, and ``newer`` those that the file
    admits, oldest first; ``selection`` are its extras and groups in words, ``left_out`` those that are not for the target, or
    exclude the requested ones, and ``excluding`` the requested ones that they exclude."""

    environment: Environment
    direct: frozenset[str] | None
    asked: tuple[Need, ...]
    told: tuple[str, ...]
    whole: bool = True
    pythons: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    selection: str = ""
    left_out: frozenset[str] = frozenset()
    excluding: frozenset[str] = frozenset()


def installed_by(
    listing: Listing, known: Environment, matrix: Matrix, index: Callable[[], Index], asked: Requested | None = None,
    preferred: str = "", *, warnings: bool = False,
) -> Installed:  # fmt: skip
    """The environment that a file installs, its direct requirements, and its requirements without a pin.

    Of several selections of extras and groups the one with the most errors is used, or the most findings if ``warnings`` are
    fixed as well, of equals the ``preferred`` one, else the default one: what an edited file installs is that of the selection
    that was fixed.
    :class:`InputError` if the file does not support any known Python.
    """
    asked = asked or Requested()
    known, told = infer_platform(known)
    contexts = Contexts(listing, known, asked)
    if not contexts.platforms:
        raise InputError("does not support any known Python", listing.file)
    python, origin, older, newer = _python(listing, contexts, known, index)
    known = replace(known, python=python)
    contexts = Contexts(listing, known, asked)
    number = _selection(listing, known, matrix, asked, contexts, preferred, warnings=warnings, wheels=not origin)
    place = next((at for at in range(len(contexts.platforms)) if contexts.on_platform(at)), 0)
    chosen = contexts.on_platform(place) & contexts.with_set(number)
    here = [at for at, mask in enumerate(contexts.installed()) if mask & chosen]
    copies = tuple(_once(_plain(listing.entries[at].distribution) for at in here))
    environment = replace(known, distributions=copies, distributions_complete=listing.complete)
    pinned = {copy.name for copy in copies if copy.version is not None}
    extras = {copy.name: tuple(copy.extra.get("extras", ())) for copy in copies}
    wanted = tuple(
        Need(copy.name, "" if copy.version is not None else copy.specifier or "", extras[copy.name]) for copy in copies
        if (extras[copy.name] if copy.version is not None else copy.name not in pinned) and not is_given(copy)
        and not replaced_image_of(copy)
    )  # fmt: skip
    whole = listing.complete or listing.kind in _OF_CONDA
    selection = contexts.sets[number].label
    left_out, excluding = frozenset(map(key_of_choice, contexts.left_out)), frozenset[str]()
    if asked.extras is not None or asked.groups is not None:
        numbers = contexts.sets[number].numbers
        others = excluded_by(listing, numbers)
        left_out |= {key_of_choice(listing.choices[each]) for each in others}
        excluding = frozenset(key_of_choice(listing.choices[each]) for each in numbers & excluded_by(listing, others))
    told = (f"Python {python}{origin}", *told, *([f"with {selection}"] if selection else ()))
    direct = _direct(listing, here)
    return Installed(environment, direct, wanted, told, whole, older, newer, selection, left_out, excluding)


def infer_platform(known: Environment) -> tuple[Environment, tuple[str, ...]]:
    """The environment with its platform, and a description: as stated, else inferred from accelerators or this machine."""
    os_, machine, glibc = known.os, known.machine, known.glibc
    vendors = {each.vendor for each in known.accelerators or ()}
    assumed = ""
    if os_ is None:
        os_ = "darwin" if "apple" in vendors else "linux"
        assumed = "" if "apple" in vendors else " (assumed)"
        if known.accelerators is None and platform.system() == "Darwin":
            os_, assumed = "darwin", " (this machine)"
    machine = machine or ("arm64" if os_ == "darwin" else "AMD64" if os_ == "windows" else "x86_64")
    told = [f"{ {'darwin': 'macOS', 'windows': 'Windows'}.get(os_, 'Linux') } {machine}{assumed}"]
    if os_ == "linux":
        own = "" if known.accelerators else _own_glibc()
        told.append(f"glibc {glibc or own or GLIBC}{'' if glibc else ' (this machine)' if own else ' (assumed)'}")
        glibc = glibc or own or GLIBC
    return replace(known, os=os_, machine=machine, glibc=glibc), (*told, *_computes(known, os_))


def _own_glibc() -> str:
    name, version = platform.libc_ver() if platform.system() == "Linux" else ("", "")
    return version if name == "glibc" and re.fullmatch(r"2\.\d+", version) else ""


def _computes(known: Environment, os_: str) -> Iterable[str]:
    """Describe the compute platform, as far as known."""
    devices = [each.name or each.compute_capability or each.gfx or "any GPU" for each in known.accelerators or ()]
    vendors = {each.vendor for each in known.accelerators or ()}
    if os_ == "darwin":
        yield "Metal"
    elif "amd" in vendors:
        yield f"ROCm ({', '.join(dict.fromkeys(devices))})"
    elif devices:
        driver = f", driver {known.driver}" if known.driver else ""
        yield f"CUDA ({', '.join(dict.fromkeys(devices))}{driver})"
    elif known.accelerators is not None:
        yield "CPU"


# --- The Python version: stated, configured next to the file, or inferred from the wheels of the pins.


def _python(
    listing: Listing, contexts: Contexts, known: Environment, index: Callable[[], Index]
) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    """The Python version and its origin in words; if it is inferred, also older ones that the pins support, and newer ones."""
    if known.python is not None:
        return known.python, "", (), ()
    for copy in (entry.distribution for entry in listing.entries if entry.distribution.name == "python"):
        # conda also installs Python: "python=3.11" is any patch release
        version = copy.version if copy.specifier == f"=={copy.version}.*" else comparable(copy).version
        if version:
            return version, "", (), ()
    minors = sorted({place.python[:2] for place in contexts.platforms}, reverse=True)
    for text, origin in (*_beside(listing.file), *_of_wheels(listing)):
        if tuple(map(int, text.split(".")[:2])) in minors:
            return text, f" ({origin})", (), ()
    supported, has_wheels = _supported(listing, contexts, minors, index)
    needed = _needed_for(listing, supported, index) if len(supported) > 1 else {}
    if needed:  # what only older Pythons need was frozen on one of them
        fewest = max(len(names) for names in needed.values())
        supported = [each for each in supported if len(needed[each]) == fewest]
    best = [each for each in supported if each in has_wheels]
    usual = [each for each in best if each <= _PYTHON]  # jobs are moved to a newer Python late, and for a reason
    chosen = (usual or best)[0] if best else _PYTHON if _PYTHON in supported else supported[0]
    origin = "assumed" if not best else "assumed; the pins have wheels for it" if chosen != best[0] else _NEWEST
    if needed and needed[chosen]:
        first, *others = needed[chosen]
        origin = f"the newest that {first} and {len(others)} more of the pins are for"
    newest, *older = (f"{each[0]}.{each[1]}" for each in (chosen, *(each for each in best or supported if each < chosen)))
    newer = (each for each in reversed(minors) if chosen < each <= _PYTHON)
    return newest, f" ({origin})", tuple(older), tuple(f"{each[0]}.{each[1]}" for each in newer)


def _beside(path: str) -> Iterable[tuple[str, str]]:
    """The Python versions stated in ``.python-version``, ``.venv`` or the file itself, with their origin."""
    folder = os.path.dirname(path)
    for name, pattern in ((".python-version", _VERSION), (os.path.join(".venv", "pyvenv.cfg"), _CONFIGURED), ("", _STATED)):
        try:
            with open(os.path.join(folder, name) if name else path, encoding="utf-8", errors="replace") as file:
                text = file.read(4096)
        except OSError:
            continue
        found = pattern.match(text) if name == ".python-version" else pattern.search(text)
        if found is not None:
            yield next(filter(None, found.groups())), name or "the command it was compiled with"


def _of_wheels(listing: Listing) -> Iterable[tuple[str, str]]:
    """The Python that a wheel is for which the file names by its address, for every Python."""
    for entry in listing.entries:
        source = entry.distribution.source
        any_python = "python" not in (entry.distribution.marker or "")
        url = str(source.details.get("url", "")) if source is not None and any_python else ""
        found = _WHEEL.search(url)
        if found is not None:
            yield f"3.{found[1]}", f"its wheel of {entry.distribution.name}"


def _supported(
    listing: Listing, contexts: Contexts, minors: Sequence[tuple[int, ...]], index: Callable[[], Index]
) -> tuple[list[tuple[int, ...]], set[tuple[int, ...]]]:
    """The Pythons for which the fewest pins lack a file, newest first, and those with a version-specific wheel of a pin."""
    installed = contexts.installed()
    copies = [comparable(entry.distribution) for entry in listing.entries]
    pins = {(each.name, each.version) for each in copies if each.version and not of_no_index(each)}
    files = index().files_of_pins(pins) if pins else {}
    lacking: dict[tuple[int, ...], int] = {}
    attested = set()
    for minor in minors:
        place = next(at for at, each in enumerate(contexts.platforms) if each.python[:2] == minor)
        target = _target(contexts.platforms[place], contexts)
        here = contexts.on_platform(place) & contexts.with_set(0)
        lacking[minor] = 0
        for copy, mask in zip(copies, installed):
            found = files.get((copy.name, copy.version or "")) if mask & here else None
            if not found:
                continue
            fitting = [file for file in found if target.accepts_python(file.requires_python)]
            wheels = [file for file in found if file.kind == "wheel"]
            taken = [file for file in fitting if file.kind == "wheel" and target.takes(file.tags)]
            lacking[minor] += not (taken if wheels else fitting)
            if any(f"cp{minor[0]}{minor[1]}" in file.tags[0].split(".") and "abi3" not in file.tags[1] for file in taken):
                attested.add(minor)
    least = min(lacking.values())
    return [minor for minor in minors if lacking[minor] == least], attested


def _needed_for(
    listing: Listing, minors: Sequence[tuple[int, ...]], index: Callable[[], Index]
) -> dict[tuple[int, ...], list[str]]:
    """The pins that others require only for some of these Pythons (``tomli`` below 3.11), by the Pythons that need them.

    Empty unless the file is a complete list of pins without markers, as ``pip freeze`` prints it, with several of them.
    """
    copies = [entry.distribution for entry in listing.entries]
    pins = {(each.name, each.version) for each in copies if each.version and not of_no_index(each)}
    whole = listing.edges is None and all(each.version and not each.marker for each in copies)
    if not whole or len(pins) < _FROZEN:
        return {}
    files = (
        next((each for each in found or () if each.kind == "wheel"), None) for found in index().files_of_pins(pins).values()
    )
    read = [each.requires for each in index().metadata_many([file for file in files if file is not None]) if each is not None]
    listed = {name for name, _ in pins}
    needed = {}
    for minor in minors:
        target = Target(Environment(python=".".join(map(str, minor)), os="linux", glibc=GLIBC))
        needed[minor] = {need.name for requires in read for need in target.needs_by_extra(requires).get("", ())} & listed
    always = set.intersection(*needed.values())
    found = {minor: sorted(names - always) for minor, names in needed.items()}
    return found if max(map(len, found.values())) >= _SEVERAL else {}


_FROZEN = 20
"""Pins of the shortest file that is taken for all that was installed."""
_SEVERAL = 2
"""A single one of them may be in the file for another reason."""


def _target(place: Platform, contexts: Contexts) -> Target:
    python = ".".join(map(str, place.python[:2]))
    return Target(Environment(python=python, os=place.os, machine=place.machine, glibc=GLIBC))


# --- The selection of extras and groups to plan for.


def _selection(
    listing: Listing, known: Environment, matrix: Matrix, asked: Requested, contexts: Contexts, preferred: str, *,
    warnings: bool, wheels: bool,
) -> int:  # fmt: skip
    """The number of the selection with the most errors; of equals the preferred one, else the first.

    ``warnings`` count as well, and ``wheels`` that are missing, if the Python is stated: for an inferred one, others are tried.
    """
    if len(contexts.sets) < 2:
        return 0
    found, _ = judged_listing(listing, known, matrix, asked)

    def counts(each: Finding) -> bool:
        if each.rule.startswith("wheels-"):
            return wheels
        return each.severity == "error" or (warnings and each.severity == "warning")

    errors = [each for each in found if counts(each) and each.verdict == "hit" and each.selections]

    def holds(error: Finding, at: int) -> bool:
        label = contexts.sets[at].label
        return label in error.selections or label == EVERY_CHOICE

    def rank(at: int) -> tuple[int, bool, int]:
        return sum(holds(each, at) for each in errors), bool(preferred) and contexts.sets[at].label == preferred, -at

    return max(range(len(contexts.sets)), key=rank)


def _once(copies: Iterable[Distribution]) -> Iterable[Distribution]:
    """The copies without those that repeat a pin, which a file may list several times: only one of them is installed."""
    seen = set()
    for copy in copies:
        if copy.version is None or (copy.name, copy.version) not in seen:
            yield copy
        seen.add((copy.name, copy.version))


def _plain(copy: Distribution) -> Distribution:
    copy = comparable(copy)
    newest = newest_in_channel(copy)
    copy = replace(copy, version=newest, specifier=None) if newest else copy
    return replace(copy, marker=None) if copy.marker else copy


# --- Direct requirements of the project.


def _direct(listing: Listing, here: list[int]) -> frozenset[str] | None:
    """Direct requirements: those of the projects or of comments, else all entries of an incomplete list; ``None``: unknown."""
    names = {number: listing.entries[number].distribution.name for number in here}
    if listing.edges is None:
        text = decode(read_content(listing.file), listing.file) if listing.kind == "requirements" else ""
        asked = asked_for(text) & frozenset(names.values())
        return asked or (None if listing.complete else frozenset(names.values()))
    own = {child for parent, child, _, _ in listing.edges if parent == ROOT}
    projects = {number for number in own if _is_project(listing, number)}
    projects |= {  # their extras and groups
        edge.child for edge in listing.edges
        if edge.parent in projects and edge.choice is not None and edge.child >= len(listing.entries)
    }  # fmt: skip
    found = {edge.child for edge in listing.edges if edge.parent in projects} | (own - projects)
    direct = frozenset(names[number] for number in found if number in names)
    if not projects and (stated := _stated_in_source(listing, frozenset(names.values()))):
        return stated  # the lock file at most shows which packages no other one requires
    recorded = (
        direct != frozenset(names.values()) or not listing.complete
    )  # else the lock file does not record who requires what
    return direct if recorded else None


def _stated_in_source(listing: Listing, names: frozenset[str]) -> frozenset[str] | None:
    """The packages that the project states for which a lock file was made; ``None`` if it is not next to it."""
    lock = next((each for each in FORMATS if each.kind == listing.kind), None)
    for source in lock.load().sources if lock is not None else ():
        path = os.path.join(os.path.dirname(listing.file), source)
        if os.path.isfile(path):
            try:
                stated = {entry.distribution.name for each in read_listings(path) for entry in each.entries}
            except InputError:
                return None
            return frozenset(stated & names) or None
    return None


def _is_project(listing: Listing, number: int) -> bool:
    if number >= len(listing.entries):
        return True
    source = listing.entries[number].distribution.source
    return source is not None and source.kind == "directory"
