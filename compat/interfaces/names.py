"""Names within one release: a module's own, its re-exports and its lazy names. ``World`` resolves those of other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.interfaces.release import UNKNOWN, Meaning, absent
from compat.interfaces.source.records import Class, Function, Imported, Module, Value

if TYPE_CHECKING:
    from compat.interfaces.release import Surface


_OF_EVERY_MODULE = frozenset(
    (
        "__version__",
        "__file__",
        "__path__",
        "__name__",
        "__doc__",
        "__all__",
        "__spec__",
        "__dict__",
        "__loader__",
        "__package__",
    )
)
_DEEPEST = 40
VALUE = "value"
_NOTHING = ("absent", "never", "unknown")
OUTSIDE = "outside"
"""The kind of a meaning whose ``module`` is a dotted name in another package."""
_FALLS_BACK = {"transformers": ("Fast", "ImageProcessor")}
"""Endings for which a package's own lazy module substitutes missing names, so that these are not certainly absent."""
KEPT_ALIVE = {"transformers": ("_fast",)}
"""Endings of modules that a package adds to ``sys.modules`` under computed names."""


class Names:
    """Looks up names in one release, with a cache."""

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self._known: dict[tuple[str, str], Meaning] = {}

    def get(self, module: str, name: str, depth: int = 0) -> Meaning:
        """Resolve ``from module import name``."""
        key = module, name
        found = self._known.get(key)
        if found is None:
            if depth > _DEEPEST:
                return UNKNOWN
            self._known[key] = UNKNOWN  # in case of cyclic re-exports
            found = self._known[key] = self._look(module, name, depth + 1)
        return found

    def _look(self, module: str, name: str, depth: int) -> Meaning:
        surface = self.surface
        below = f"{module}.{name}"
        holds = surface.holds(module)
        if holds != "source":
            if holds == "folder":
                return self._module(below) or absent(surface, module, name)
            return UNKNOWN if holds == "opaque" else absent(surface, module, name)
        record = surface.module(module)
        if record is None or record.problem is not None:
            return UNKNOWN
        definition = record.definitions.get(name)
        if definition is not None:
            return self._defined(module, name, definition, depth)
        found, unsure = self._provided(record, name, depth)
        if found is not None:
            return found
        if name in _OF_EVERY_MODULE:
            return Meaning(VALUE, surface, module, name)
        submodule = self._module(below)
        if submodule is not None:
            return submodule
        if unsure or record.open or self._falls_back(name):
            return UNKNOWN
        if record.known is not None and name not in record.known:
            return UNKNOWN if record.partial else Meaning("never", surface, module, name)
        return absent(surface, module, name)

    def _falls_back(self, name: str) -> bool:
        return any(name.endswith(ending) for ending in _FALLS_BACK.get(self.surface.package, ()))

    def _module(self, name: str) -> Meaning | None:
        holds = self.surface.holds(name)
        if holds is None:
            return None
        return Meaning("module", self.surface, name)

    def _defined(self, module: str, name: str, definition: object, depth: int) -> Meaning:
        if isinstance(definition, Imported):
            return self._imported(module, name, definition, depth)
        if isinstance(definition, Class):
            return Meaning("class", self.surface, module, name, definition, definition.line)
        if isinstance(definition, Function):
            return Meaning("function", self.surface, module, name, definition, definition.line)
        assert isinstance(definition, Value)
        return Meaning(VALUE, self.surface, module, name, None, definition.line)

    def _imported(self, module: str, name: str, found: Imported, depth: int) -> Meaning:
        """Resolve a re-export; the name itself exists even if its target is unknown."""
        if found.module.partition(".")[0] not in self.surface.tops:
            dotted = found.module if found.name is None else f"{found.module}.{found.name}"
            return Meaning(OUTSIDE, self.surface, dotted, "", None, found.line)
        if found.name is None:
            return self._module(found.module) or UNKNOWN
        if (found.module, found.name) == (module, name):
            return self._module(f"{module}.{name}") or UNKNOWN
        target = self.get(found.module, found.name, depth)
        if target.kind in _NOTHING:
            return Meaning(VALUE, self.surface, module, name, None, found.line)
        return target

    def _provided(self, record: Module, name: str, depth: int) -> tuple[Meaning | None, bool]:
        """Resolve a name from star imports or lazy tables; if not found, also return whether it may exist nevertheless."""
        unsure = False
        for star in record.stars:
            if star.partition(".")[0] not in self.surface.tops or self.surface.holds(star) != "source":
                unsure = unsure or not (star.partition(".")[0] in self.surface.tops and self.surface.holds(star) is None)
                continue
            if name.startswith("_") and not self._lists(star, name):
                continue
            found = self.get(star, name, depth)
            if found.kind == "unknown" or (found.kind == "module" and not self._lists(star, name)):
                unsure = True
            elif found.kind not in ("absent", "never"):
                return found, False
        if record.listed:
            place = self.surface.provided_by_modules(record.name).get(name)
            if place is not None:
                return self._known_or_value(self.get(place, name, depth), record.name, name), False
        if name in record.lazy:
            module, _, last = record.lazy[name].rpartition(".")
            if module and self.surface.holds(module) == "source":
                return self._known_or_value(self.get(module, last, depth), record.name, name), False
            return self._module(f"{record.name}.{name}") or Meaning(VALUE, self.surface, record.name, name), False
        return self._from_getter(record, name, unsure=unsure) if record.getter else (None, unsure)

    def _from_getter(self, record: Module, name: str, *, unsure: bool) -> tuple[Meaning | None, bool]:
        """Resolve a name from a ``__getattr__`` created by a function of another module."""
        made_by = self.surface.module(record.getter)
        if made_by is None or made_by.problem is not None:
            return None, True
        given = f"{record.name}:{name}" in made_by.gives
        return (Meaning(VALUE, self.surface, record.name, name), False) if given else (None, unsure)

    def _lists(self, module: str, name: str) -> bool:
        record = self.surface.module(module)
        return record is not None and record.all is not None and name in record.all

    def _known_or_value(self, found: Meaning, module: str, name: str) -> Meaning:
        return found if found.kind not in _NOTHING else Meaning(VALUE, self.surface, module, name)
