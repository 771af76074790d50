"""The contexts in which a file can be installed, as bit masks.

A context is an interpreter, a platform and a set of choices (extras, groups). Each release in a lock file is installed in some
of them: one traversal of the lock's graph that propagates sets of contexts finds all installable selections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import or_

from compat.checks.choices import ChoiceSet, Requested, choice_sets, pair_set, unconflicted_pairs, vendor_of
from compat.formats.listing import Choice, Edge, Listing
from compat.markers import OF_SYSTEM, SYSTEMS, Comparison, Marker, combined, parse, version_holds
from compat.model import Accelerator, Environment, normalized
from compat.records import record

Below = dict[int, list[tuple[int, int]]]
"""For every node the nodes below it, and the contexts in which they are."""


_MINORS = tuple((3, minor) for minor in range(8, 16))
"""Minor Python versions to check if the target's version is unknown."""
_LATE_PATCH = 99
_WALKS = 9
"""The limit on traversals until no more extras become active; real lock files need at most three."""
_PLATFORMS = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("darwin", "x86_64"), ("windows", "AMD64"))
_USUAL = ("linux", "x86_64")
"""The platform that is assumed for a named GPU: on every other one, the wheels of most packages are for the CPU alone."""
_ON_ARM = ("5.3", "6.2", "7.2", "8.7", "10.1", "11.0", "12.1")
"""Capabilities of GPUs that only exist beside an Arm processor: Jetson modules and GB10."""
_SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}


@record(frozen=True)
class Platform:
    """An interpreter (a final release) on a platform."""

    python: tuple[int, ...]
    os: str
    machine: str


class Contexts:
    """The contexts of one listing: ``platforms`` × ``sets``; number ``p * len(sets) + s`` is platform ``p`` with set ``s``."""

    def __init__(self, listing: Listing, known: Environment, asked: Requested) -> None:
        self.listing = listing
        self.notes: list[str] = []
        self.platforms = self._fitting(_platforms(listing, known))
        self._unreadable: set[str] = set()
        self._extras: dict[int, int] = {}
        self._masks: dict[int, int] | None = None
        if listing.conflicts and listing.edges is not None:
            self._use_possible(asked)
        else:
            self._use(choice_sets(listing, asked))
        self.left_out: tuple[Choice, ...] = ()
        """The extras and groups for GPUs of another vendor than the target's, which are not installed there."""
        if asked.extras is None and asked.groups is None and known.accelerators and len(self.sets) > 1:
            self._leave_out_other_vendors(known.accelerators)

    def _use(self, sets: list[ChoiceSet]) -> None:
        self.sets = sets
        self._row = (1 << len(sets)) - 1
        self.all = (1 << (len(sets) * len(self.platforms))) - 1
        self._by_text: dict[str, int] = {}
        self._by_comparison: dict[Comparison, int] = {}
        self._by_choice = [self._with_choice(number) for number in range(len(self.listing.choices))]
        self._active = list(self._by_choice)
        self.all = self._made_for()

    def _use_possible(self, asked: Requested) -> None:
        """Use only sets of choices that uv installs: no two choices of a declared conflict are active."""
        from compat.checks.choices import extras_requested, has_namesakes

        listing = self.listing
        self._extras = extras_requested(listing)
        pairs = unconflicted_pairs(listing, asked) if self._extras or has_namesakes(listing) else []
        if pairs:
            self._use([pair_set(pair, listing) for pair in pairs])
            possible = self._sets_of(self.all & ~self._refused())
            pairs = [pair for at, pair in enumerate(pairs) if not possible >> at & 1]
        self._use(choice_sets(listing, asked, pairs))
        possible = self.all & ~self._refused(note=len(self.sets) == 1)
        left = [each for at, each in enumerate(self.sets) if self._sets_of(possible) >> at & 1]
        if 0 < len(left) < len(self.sets):
            self._use(left)
            possible = self.all & ~self._refused()
        self.all = possible or self.all

    def _leave_out_other_vendors(self, devices: Iterable[Accelerator]) -> None:
        """Drop the optional sets of choices with builds for another vendor's GPUs, if others have builds for the target's."""
        vendors = {each.vendor for each in devices}
        own = other = 0
        for entry, mask in zip(self.listing.entries, self.installed()):
            vendor = vendor_of(entry.distribution) if mask else None
            if vendor in vendors:
                own |= mask
            elif vendor is not None:
                other |= mask
        bad = self._sets_of(other)
        if not bad or bad & 1 or not self._sets_of(own) & ~bad or None in vendors:
            return
        sets, choices = [each for at, each in enumerate(self.sets) if not bad >> at & 1], self.listing.choices
        left = frozenset[int]().union(*(each.numbers for each in sets))
        dropped = frozenset[int]().union(*(each.numbers for each in self.sets)) - left
        self.left_out = tuple(choices[number] for number in sorted(dropped))
        self._use(sets)
        if self._masks is not None:
            self.all = self.all & ~self._refused() or self.all
        if dropped:
            named = ", ".join(each.label for each in self.left_out)
            self.notes.append(f"{self.listing.file}: not checked, as it has builds for another vendor's GPUs: {named}")

    def _refused(self, *, note: bool = False) -> int:
        """The contexts that uv refuses to install."""
        from compat.checks.choices import refusals

        self._masks = self._reached()
        refused = 0
        for mask, conflict in refusals(self.listing, self._by_choice, self._active, self._masks):
            refused |= mask
            if note and not self.all & ~mask:
                labels = ", ".join(self.listing.choices[number].label for number in conflict)
                self.notes.append(f"{self.listing.file}: uv does not install these together (declared conflicts): {labels}")
                note = False
        return refused

    def _fitting(self, platforms: list[Platform]) -> list[Platform]:
        """The platforms whose Python satisfies the file's requires-python; all platforms if none does."""
        required = self.listing.requires_python
        if not required:
            return platforms
        fitting = [platform for platform in platforms if _fits(platform.python, required)]
        if not fitting:
            self.notes.append(f"{self.listing.file} requires Python {required}, which the target does not have")
        return fitting or platforms

    def _made_for(self) -> int:
        """The contexts that the file is for: those it declares, or in which it installs anything."""
        if not self.listing.environments:
            markers = {entry.distribution.marker for entry in self.listing.entries}
            if self.listing.edges is not None or None in markers:
                return self.all
            return reduce(or_, map(self.where, markers), 0) or self.all
        alive = 0
        for text in self.listing.environments:
            alive |= self._holding(text, self._platform_only)
        note = f"{self.listing.file} does not support the target's platform"
        if not alive and note not in self.notes:
            self.notes.append(note)
        return alive or self.all

    def _platform_only(self, comparison: Comparison) -> int:
        """The contexts of a comparison, ignoring extras: uv records them in environments but ignores them when it installs."""
        return self.all if _is_choice(comparison) else self._meaning(comparison)

    def installed(self) -> list[int]:
        """For each entry, the contexts in which it is installed."""
        entries = self.listing.entries
        if self.listing.edges is None:
            return [self.all & self.where(entry.distribution.marker) for entry in entries]
        masks = self._reached() if self._masks is None else self._masks
        return [masks.get(number, 0) & self.all for number in range(len(entries))]

    def _reached(self) -> dict[int, int]:
        """For each node, the contexts in which it is installed.

        Markers on extras are evaluated again as long as the traversal finds more requested extras.
        """
        always: dict[int, list[int]] = {}
        below: Below = {}
        changing: list[Edge] = []
        for edge in self.listing.edges or ():
            parent, child, marker, choice = edge
            if marker is None and choice is None:
                if parent in always:
                    always[parent].append(child)
                else:
                    always[parent] = [child]
            elif self._extras and marker is not None and "extra" in marker:
                changing.append(edge)
            elif mask := self._of_edge(edge):
                below.setdefault(parent, []).append((child, mask))
        masks = _spread(always, self._with(below, changing), self.all)
        for _ in range(_WALKS):
            if not self._activate(masks) or not changing:
                break
            masks = _spread(always, self._with(below, changing), self.all)
        return masks

    def _of_edge(self, edge: Edge) -> int:
        """The contexts in which an edge applies, assuming that the extra it leads to is active."""
        _, child, marker, choice = edge
        extra = self._extras.get(child)
        if extra is None or marker is None:
            mask = self.where(marker) & self.all
        else:
            before, self._active[extra] = self._active[extra], self.all
            mask = self._holding(marker, self._compared) & self.all
            self._active[extra] = before
        return mask if choice is None else mask & self._by_choice[choice]

    def _with(self, below: Below, changing: list[Edge]) -> Below:
        if not changing:
            return below
        more: Below = {}
        for edge in changing:
            if mask := self._of_edge(edge):
                more.setdefault(edge[0], []).append((edge[1], mask))
        return {**below, **{parent: [*below.get(parent, ()), *children] for parent, children in more.items()}}

    def _activate(self, masks: dict[int, int]) -> bool:
        """Mark extras as active where their nodes are installed; return whether anything changed."""
        news = False
        for node, extra in self._extras.items():
            more = self._active[extra] | masks.get(node, 0)
            news = news or more != self._active[extra]
            self._active[extra] = more
        if news:
            self._by_text = {text: mask for text, mask in self._by_text.items() if "extra" not in text}
            self._by_comparison = {each: mask for each, mask in self._by_comparison.items() if not _is_choice(each)}
        return news

    def where(self, text: str | None) -> int:
        """The contexts in which a marker holds; all of them if it cannot be parsed."""
        if text is None:
            return self.all
        found = self._by_text.get(text)
        if found is None:
            found = self._by_text[text] = self._holding(text, self._meaning)
        return found

    def _holding(self, text: str, meaning: Callable[[Comparison], int]) -> int:
        try:
            return combined(_parsed(text), meaning)
        except ValueError as problem:
            if text not in self._unreadable:
                self._unreadable.add(text)
                self.notes.append(f"{self.listing.file}: the marker {text!r} {problem}; it is assumed to hold")
            return self.all

    def with_set(self, number: int) -> int:
        """The contexts of one set of choices."""
        result = 0
        for platform in range(len(self.platforms)):
            result |= 1 << (platform * len(self.sets) + number)
        return result & self.all

    def on_platform(self, number: int) -> int:
        """The contexts of one platform."""
        return (self._row << (number * len(self.sets))) & self.all

    def platforms_of(self, mask: int) -> list[Platform]:
        """The platforms that occur in a set of contexts."""
        return [platform for at, platform in enumerate(self.platforms) if mask >> (at * len(self.sets)) & self._row]

    def sets_of(self, mask: int) -> Iterator[int]:
        """Yield the numbers of the sets of choices that occur in a set of contexts."""
        left = self._sets_of(mask & self.all)
        while left:
            yield (left & -left).bit_length() - 1
            left &= left - 1

    def _sets_of(self, mask: int) -> int:
        """The sets of choices that occur in a set of contexts, as a bit mask."""
        result = 0
        for at in range(len(self.platforms)):
            result |= mask >> (at * len(self.sets)) & self._row
        return result

    def _with_choice(self, number: int) -> int:
        row = sum(1 << at for at, chosen in enumerate(self.sets) if number in chosen.numbers)
        return self._on_platforms(lambda platform: True) // self._row * row if row else 0

    def _on_platforms(self, holds: Callable[[Platform], bool]) -> int:
        result = 0
        for at, platform in enumerate(self.platforms):
            if holds(platform):
                result |= self._row << (at * len(self.sets))
        return result

    def _meaning(self, comparison: Comparison) -> int:
        found = self._by_comparison.get(comparison)
        if found is None:
            found = self._by_comparison[comparison] = self._compared(comparison)
        return found

    def _compared(self, comparison: Comparison) -> int:
        (left_is_variable, left), operator, (right_is_variable, right) = comparison
        variable, text = (left, right) if left_is_variable else (right, left)
        if left_is_variable and right_is_variable:
            return self.all
        if variable in _OF_CHOICES:
            chosen = self._chosen(variable, text)
            return chosen if operator in ("==", "in") else self.all & ~chosen
        if variable in ("platform_release", "platform_version"):
            return self.all  # the target's kernel is unknown
        if not left_is_variable:
            operator = _MIRRORED.get(operator, operator)
        return self._on_platforms(lambda platform: _holds(platform, variable, operator, text, in_text=left_is_variable))

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
                result |= self._active[number]
        if kind and not result and not any(choice.kind == kind for choice in self.listing.choices):
            return self.all if kind == "package" else 0
        return result


_OF_CHOICES = ("extra", "extras", "dependency_groups")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PARSED: dict[str, Marker] = {}


def _parsed(text: str) -> Marker:
    found = _PARSED.get(text)
    if found is None:
        found = _PARSED[text] = parse(text)
    return found


def _is_choice(comparison: Comparison) -> bool:
    left, _, right = comparison
    return (left[1] if left[0] else right[1]) in _OF_CHOICES


def _decoded(text: str) -> tuple[str, str, str]:
    """Decode uv's encoding of a choice: ``extra-5-mypkg-gpu`` is the extra ``gpu`` of ``mypkg`` (a name of five letters)."""
    kind, _, rest = text.partition("-")
    size, _, rest = rest.partition("-")
    if kind not in ("extra", "group", "project") or not size.isdecimal() or len(size) > 4 or len(rest) < int(size):
        return "", "", ""
    owner, name = rest[: int(size)], rest[int(size) + 1 :]
    return "package" if kind == "project" else kind, owner, name


def _holds(platform: Platform, variable: str, operator: str, text: str, *, in_text: bool) -> bool:
    if variable in ("python_version", "python_full_version", "implementation_version") and "in" not in operator:
        release = platform.python[:2] if variable == "python_version" else platform.python
        return version_holds(release, operator, text) is not False
    value = _value(platform, variable)
    if operator in ("in", "not in"):
        return ((value in text) if in_text else (text in value)) == (operator == "in")
    if operator in ("==", "==="):
        return value == text
    return value != text if operator == "!=" else True


def _value(platform: Platform, variable: str) -> str:
    if variable == "platform_machine":
        return platform.machine
    if variable in ("implementation_name", "platform_python_implementation"):
        return "cpython" if variable == "implementation_name" else "CPython"
    if variable.startswith(("python_", "implementation_")):
        return ".".join(map(str, platform.python[:2] if variable == "python_version" else platform.python))
    names = SYSTEMS.get(platform.os, (platform.os, platform.os, "posix"))
    return names[OF_SYSTEM.index(variable)]


def _platforms(listing: Listing, known: Environment) -> list[Platform]:
    pythons = _pythons(listing, known.python or _only_python(listing.requires_python or ""))
    systems = [
        (os, machine)
        for os, machine in _PLATFORMS
        if known.os in (None, os) and (known.machine is None or _plain(known.machine) == _plain(machine))
    ]
    if known.accelerators and any(device.vendor in ("nvidia", "amd") for device in known.accelerators):
        systems = [each for each in systems if each[0] != "darwin"] or systems
        if not any(device.compute_capability in _ON_ARM for device in known.accelerators):
            systems = [each for each in systems if each == _USUAL] or systems  # which ``compat fix`` assumes, too
    if not systems:
        systems = [(known.os or "linux", known.machine or "x86_64")]
    return [Platform(python, os, machine) for python in pythons for os, machine in systems]


def _only_python(required: str) -> str | None:
    """Return the Python that a file requires, if it is one release or one minor version (``==3.10.12``, ``==3.7.*``)."""
    version = required.strip().removeprefix("==").removesuffix(".*").strip()
    plain = version.isascii() and all(part.isdecimal() for part in version.split(".")) and 1 <= version.count(".") <= 2
    return version if plain and required.strip().startswith("==") and len(version) < 12 else None


def _plain(machine: str) -> str:
    return _SAME_MACHINE.get(machine.lower(), machine.lower())


def _pythons(listing: Listing, known: str | None) -> list[tuple[int, ...]]:
    """The Python releases to check: on both sides of each patch release that a marker compares with."""
    patches: dict[tuple[int, ...], set[int]] = {}
    texts = [edge[2] for edge in listing.edges or ()] + [entry.distribution.marker for entry in listing.entries]
    for text in {text for text in texts if text and "python_full_version" in text}:
        for word in text.replace('"', "'").split("'"):
            parts = word.removesuffix(".*").split(".")
            if len(parts) == 3 and all(part.isascii() and part.isdecimal() and len(part) < 5 for part in parts):
                major, minor, patch = map(int, parts)
                patches.setdefault((major, minor), set()).update(at for at in (patch - 1, patch, patch + 1) if at >= 0)
    for part in (listing.requires_python or "").replace(" ", "").split(","):
        last = part[2:].split(".") if part.startswith("<=") else []
        if len(last) in (2, 3) and all(each.isascii() and each.isdecimal() and len(each) < 5 for each in last):
            patches.setdefault((int(last[0]), int(last[1])), set()).add(int(last[2]) if last[2:] else 0)
    if known is not None:
        from compat.versions import key_of

        release: tuple[int, ...] = key_of(known)[1]
        written = known.count(".") + 1
        if min(written, len(release)) < 3:
            release = (*release, 0, 0)[: max(2, written)]
        if len(release) > 2:
            return [release]
        return [(*release, patch) for patch in sorted(patches.get(release, set()) | {_LATE_PATCH})]
    return [(*minor, patch) for minor in _MINORS for patch in sorted(patches.get(minor, set()) | {_LATE_PATCH})]


def _fits(python: tuple[int, ...], required: str) -> bool:
    for part in required.split(","):
        part = part.strip()
        operator = part[: len(part) - len(part.lstrip("=<>!~"))]
        if operator and version_holds(python, operator, part[len(operator) :].strip()) is False:
            return False
    return True


def _spread(always: dict[int, list[int]], below: Below, everything: int) -> dict[int, int]:
    """Propagate contexts from the root: a node is installed in the contexts of its parents where the edge applies."""
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
    return masks
