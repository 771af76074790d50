"""Every world a file can be installed in, as the bits of one number.

A world is an interpreter, a platform and a set of choices (extras, groups). A release of a lock file is installed in some
of them: one walk over the lock's graph, with sets of worlds instead of yes and no, finds all installable selections.
"""

from __future__ import annotations

from compat.environment import normalized
from compat.judge.choices import Asked, choice_sets
from compat.markers import combined, parse, version_holds
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from compat.environment import Environment
    from compat.markers import Comparison, Marker
    from compat.read.files.listing import Listing

_MINORS = tuple((3, minor) for minor in range(8, 16))
"""Interpreters that are tried where nothing says which one it is."""
_LATE_PATCH = 99
_PLATFORMS = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("darwin", "x86_64"), ("windows", "AMD64"))
_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "darwin": ("darwin", "Darwin", "posix"),
    "windows": ("win32", "Windows", "nt"),
}
_SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}


@record(frozen=True)
class Place:
    """An interpreter (a final release) on a platform."""

    python: tuple[int, ...]
    os: str
    machine: str


class Worlds:
    """The worlds of one listing: ``places`` × ``sets``; world ``p * len(sets) + s`` is place ``p`` with choices ``s``."""

    def __init__(self, listing: Listing, known: Environment, asked: Asked) -> None:
        self.listing = listing
        self.notes: list[str] = []
        self.sets = choice_sets(listing, asked)
        self.places = self._fitting(_places(listing, known))
        self._row = (1 << len(self.sets)) - 1
        self.all = (1 << (len(self.sets) * len(self.places))) - 1
        self._by_text: dict[str, int] = {}
        self._by_comparison: dict[Comparison, int] = {}
        self._by_choice = [self._with_choice(number) for number in range(len(listing.choices))]
        self.all = self._made_for()

    def _fitting(self, places: list[Place]) -> list[Place]:
        """Only interpreters that the file is made for, unless that leaves none."""
        required = self.listing.requires_python
        if not required:
            return places
        fitting = [place for place in places if _fits(place.python, required)]
        if not fitting:
            self.notes.append(f"{self.listing.file} is made for Python {required}, the target has another one")
        return fitting or places

    def _made_for(self) -> int:
        if not self.listing.environments:
            return self.all
        alive = 0
        for text in self.listing.environments:
            alive |= self.where(text)
        if not alive:
            self.notes.append(f"{self.listing.file} is not made for the target's platform")
        return alive or self.all

    def installed(self) -> list[int]:
        """For every entry the worlds in which it is installed."""
        listing = self.listing
        if listing.edges is None:
            return [self.all & self.where(entry.distribution.marker) for entry in listing.entries]
        always: dict[int, list[int]] = {}
        below: dict[int, list[tuple[int, int]]] = {}
        for parent, child, marker, choice in listing.edges:
            if marker is None and choice is None:
                if parent in always:
                    always[parent].append(child)
                else:
                    always[parent] = [child]
                continue
            mask = self.where(marker) & self.all
            if choice is not None:
                mask &= self._by_choice[choice]
            if mask:
                below.setdefault(parent, []).append((child, mask))
        return _spread(always, below, self.all, len(listing.entries))

    def where(self, text: str | None) -> int:
        """The worlds in which a marker holds; one that cannot be read may hold anywhere."""
        if text is None:
            return self.all
        found = self._by_text.get(text)
        if found is None:
            try:
                found = combined(_parsed(text), self._meaning)
            except ValueError as problem:
                self.notes.append(f"{self.listing.file}: the marker {text!r} {problem}; it is taken to hold")
                found = self.all
            self._by_text[text] = found
        return found

    def of_set(self, number: int) -> int:
        """The worlds with one set of choices."""
        result = 0
        for place in range(len(self.places)):
            result |= 1 << (place * len(self.sets) + number)
        return result & self.all

    def of_place(self, number: int) -> int:
        """The worlds in one place."""
        return (self._row << (number * len(self.sets))) & self.all

    def places_of(self, mask: int) -> list[Place]:
        """The places that occur among some worlds."""
        return [place for at, place in enumerate(self.places) if mask >> (at * len(self.sets)) & self._row]

    def _with_choice(self, number: int) -> int:
        row = sum(1 << at for at, chosen in enumerate(self.sets) if number in chosen.numbers)
        return self._in_places(lambda place: True) // self._row * row if row else 0

    def _in_places(self, holds: Callable[[Place], bool]) -> int:
        result = 0
        for at, place in enumerate(self.places):
            if holds(place):
                result |= self._row << (at * len(self.sets))
        return result

    def _meaning(self, comparison: Comparison) -> int:
        found = self._by_comparison.get(comparison)
        if found is None:
            found = self._by_comparison[comparison] = self._compared(comparison)
        return found

    def _compared(self, comparison: Comparison) -> int:
        (left_is_variable, left), operator, (right_is_variable, right) = comparison
        variable = left if left_is_variable else right
        text = right if left_is_variable else left
        if left_is_variable and right_is_variable:
            return self.all
        if variable in ("extra", "extras", "dependency_groups"):
            chosen = self._chosen(variable, text)
            return chosen if operator in ("==", "in") else self.all & ~chosen
        if variable in ("platform_release", "platform_version"):
            return self.all  # nobody knows the kernel of the target
        if not left_is_variable:
            operator = _MIRRORED.get(operator, operator)
        return self._in_places(lambda place: _holds(place, variable, operator, text, in_text=left_is_variable))

    def _chosen(self, variable: str, text: str) -> int:
        kind, owner, name = _decoded(text) if variable == "extra" else ("", "", "")
        wanted = normalized(text)
        result = 0
        for number, choice in enumerate(self.listing.choices):
            if kind:
                same = choice.kind == kind and choice.name == name and choice.package in (None, owner)
                same = same or (kind == choice.kind == "package" and choice.name == owner)
            else:
                same = choice.kind == ("group" if variable == "dependency_groups" else "extra")
                same = same and normalized(choice.name) == wanted
            if same:
                result |= self._by_choice[number]
        if kind and not result and not any(choice.kind == kind for choice in self.listing.choices):
            return self.all if kind == "package" else 0
        return result


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PARSED: dict[str, Marker] = {}


def _parsed(text: str) -> Marker:
    found = _PARSED.get(text)
    if found is None:
        found = _PARSED[text] = parse(text)
    return found


def _decoded(text: str) -> tuple[str, str, str]:
    """uv's name of a choice in a marker: ``extra-5-mypkg-gpu`` is the extra gpu of mypkg, whose name has five letters."""
    kind, _, rest = text.partition("-")
    size, _, rest = rest.partition("-")
    if kind not in ("extra", "group", "project") or not size.isdigit() or len(size) > 4 or len(rest) < int(size):
        return "", "", ""
    owner, name = rest[: int(size)], rest[int(size) + 1 :]
    return "package" if kind == "project" else kind, owner, name


def _holds(place: Place, variable: str, operator: str, text: str, *, in_text: bool) -> bool:
    if variable in ("python_version", "python_full_version", "implementation_version") and "in" not in operator:
        release = place.python[:2] if variable == "python_version" else place.python
        return version_holds(release, operator, text) is not False
    value = _value(place, variable)
    if operator in ("in", "not in"):
        return ((value in text) if in_text else (text in value)) == (operator == "in")
    if operator in ("==", "==="):
        return value == text
    return value != text if operator == "!=" else True


def _value(place: Place, variable: str) -> str:
    if variable == "platform_machine":
        return place.machine
    if variable in ("implementation_name", "platform_python_implementation"):
        return "cpython" if variable == "implementation_name" else "CPython"
    if variable.startswith(("python_", "implementation_")):
        return ".".join(map(str, place.python[:2] if variable == "python_version" else place.python))
    names = _SYSTEMS.get(place.os, (place.os, place.os, "posix"))
    return names[("sys_platform", "platform_system", "os_name").index(variable)]


def _places(listing: Listing, known: Environment) -> list[Place]:
    pythons = _pythons(listing, known.python)
    platforms = [
        (os, machine)
        for os, machine in _PLATFORMS
        if known.os in (None, os) and (known.machine is None or _plain(known.machine) == _plain(machine))
    ]
    if known.accelerators and any(device.vendor in ("nvidia", "amd") for device in known.accelerators):
        platforms = [each for each in platforms if each[0] != "darwin"] or platforms
    if not platforms:
        platforms = [(known.os or "linux", known.machine or "x86_64")]
    return [Place(python, os, machine) for python in pythons for os, machine in platforms]


def _plain(machine: str) -> str:
    return _SAME_MACHINE.get(machine.lower(), machine.lower())


def _pythons(listing: Listing, known: str | None) -> list[tuple[int, ...]]:
    """Final releases on both sides of every patch release that some marker draws a line at."""
    patches: dict[tuple[int, ...], set[int]] = {}
    texts = [edge[2] for edge in listing.edges or ()] + [entry.distribution.marker for entry in listing.entries]
    for text in {text for text in texts if text and "python_full_version" in text}:
        for word in text.replace('"', "'").split("'"):
            parts = word.removesuffix(".*").split(".")
            if len(parts) == 3 and all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
                major, minor, patch = map(int, parts)
                patches.setdefault((major, minor), set()).update(at for at in (patch - 1, patch, patch + 1) if at >= 0)
    if known is not None:
        release = _release(known)
        if len(release) > 2:
            return [release]
        return [(*release, patch) for patch in sorted(patches.get(release, set()) | {_LATE_PATCH})]
    return [(*minor, patch) for minor in _MINORS for patch in sorted(patches.get(minor, set()) | {_LATE_PATCH})]


def _release(python: str) -> tuple[int, ...]:
    from compat.versions import key_of

    release: tuple[int, ...] = key_of(python)[1]
    return release if python.count(".") > 1 and len(release) > 2 else (*release, 0, 0)[: max(2, python.count(".") + 1)]


def _fits(python: tuple[int, ...], required: str) -> bool:
    for part in required.split(","):
        part = part.strip()
        operator = part[: len(part) - len(part.lstrip("=<>!~"))]
        if operator and version_holds(python, operator, part[len(operator) :].strip()) is False:
            return False
    return True


def _spread(always: dict[int, list[int]], below: dict[int, list[tuple[int, int]]], everything: int, entries: int) -> list[int]:
    """From the root down: a node is in the worlds of its parents, as far as the edge holds there."""
    masks = {-1: everything}
    waiting = [-1]
    while waiting:
        node = waiting.pop()
        mask = masks[node]
        for child in always.get(node, ()):
            known = masks.get(child, 0)
            if known != everything and known | mask != known:
                masks[child] = known | mask
                waiting.append(child)
        for child, edge in below.get(node, ()):
            known = masks.get(child, 0)
            if known | (mask & edge) != known:
                masks[child] = known | (mask & edge)
                waiting.append(child)
    return [masks.get(number, 0) for number in range(entries)]
