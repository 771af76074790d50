"""The names that a package binds in compiled code, of which there is no source: stubs list them, libraries hold them as text.

A stub omits names (that of torch 2.1 has no ``float8_e4m3fn``), and the strings of a library may stand for anything. Together
they decide: a name is there if the stub lists it, and missing if the stub does not and no string of the libraries ends in it,
since a name that is bound to a module is such a string. In between, a name is there if a later stub lists it and the string
came with the release; otherwise it is unknown.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from compat.interfaces.source.records import Definition, Imported, Module, Value
from compat.records import replace

LIBRARIES = frozenset(("torch/lib/libtorch_python.so", "torch/lib/libc10.so"))
"""The libraries that bind names in the modules of their package."""
FILLED = {"torch": {"torch._C": ("torch._C",), "torch": ("torch._C._VariableFunctions",)}}
"""The modules whose names are all known by this, with the stubs that list what compiled code or a loop over it adds."""
LISTED = ".names"
"""Ends the path under which the strings of a library are stored."""
NOTHING = frozenset[str]()
_STRING = re.compile(rb"(\0?)([A-Za-z_][A-Za-z0-9_]*)(?=\0)")


def strings_of(library: bytes) -> bytes:
    """Return the identifiers that end a string of a library, one per line, with ``-`` before those that only end a longer one.

    A linker stores ``mul`` as the end of ``addmul``.
    """
    return b"\n".join(sorted({(b"" if whole else b"-") + name for whole, name in _STRING.findall(b"\0" + library)}))


class Strings:
    """The strings of a release's libraries, from :func:`strings_of`."""

    def __init__(self, listed: str) -> None:
        lines = listed.split()
        self.whole = frozenset(line for line in lines if line[0] != "-")
        self._reversed = sorted({line.lstrip("-")[::-1] for line in lines})

    def end_in(self, name: str) -> bool:
        """Return whether a string is this name, or ends in it."""
        at = bisect_left(self._reversed, name[::-1])
        return at < len(self._reversed) and self._reversed[at].startswith(name[::-1])


@dataclass(frozen=True)
class Bound:
    """The names that a stub stands for in one release, and those that may be there as well."""

    names: frozenset[str]
    unsure: frozenset[str] = NOTHING

    @property
    def public(self) -> Bound:
        """What a star import takes, of a module without ``__all__``."""
        return Bound(*(frozenset(name for name in each if not name.startswith("_")) for each in (self.names, self.unsure)))


def bound(stubs: Sequence[Module | None], libraries: Sequence[Strings | None]) -> list[Bound | None]:
    """Return the names bound in each release, oldest first, by its stub and its libraries; ``None`` where one was not read."""
    listed = [NOTHING if stub is None else frozenset(_defined(stub)) for stub in stubs]
    ever = NOTHING.union(*listed)
    strings = [NOTHING if each is None else frozenset(filter(each.end_in, ever)) for each in libraries]
    later = [*accumulate(reversed(listed), lambda one, other: one | other)][::-1]
    unseen = ever - NOTHING.union(*(names & there for names, there in zip(listed, strings)))
    """Names that other builds bind (for XPU, MPS) or other libraries: no string says whether they are there."""
    found: list[Bound | None] = []
    lacked = NOTHING
    for names, there, after, stub, library in zip(listed, strings, later, stubs, libraries):
        if stub is None or library is None:
            found.append(None)
            continue
        came = lacked & there & library.whole & after - unseen
        found.append(Bound(names | came, (there | unseen) - names - came))
        lacked |= ever - there
    return found


def _defined(stub: Module) -> Iterable[str]:
    return (name for name, each in stub.definitions.items() if not isinstance(each, Imported) and not name.startswith("__"))


def filled(module: Module, given: Iterable[Bound], stars: Mapping[str, Bound]) -> Module:
    """Return a module with the names that compiled code adds and those of its star imports. No other names can be there.

    A star import that is not in ``stars`` stays one.
    """
    names: dict[str, Definition] = {name: Value(0) for each in given for name in each.names}
    for star, each in stars.items():
        names |= {name: Imported(0, star, name) for name in each.names}
    names |= module.definitions
    unsure = NOTHING.union(*(each.unsure for each in (*given, *stars.values()))).difference(names)
    others = tuple(star for star in module.stars if star not in stars)
    return replace(module, definitions=names, stars=others, open=False, unsure=unsure)
