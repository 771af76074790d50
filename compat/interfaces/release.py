"""One release of a package as described by its source: its modules, and the record of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol

from compat.interfaces.source.records import Class, Function, Imported, Module, Value
from compat.records import kept, record


class Surface(Protocol):
    """The interface of a release for :class:`compat.interfaces.world.World`, implemented by tables and by read source."""

    @property
    def package(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def tops(self) -> frozenset[str]: ...
    def module(self, name: str) -> Module | None:
        """Return the record of a module; ``None`` if it does not exist or was not read."""

    def holds(self, name: str) -> str | None:
        """Return ``source``, ``opaque`` (compiled or omitted, so unknown), ``folder`` (no ``__init__``) or ``None``."""

    def had(self, name: str) -> bool:
        """Return whether an older release is known to have a module."""

    def had_method(self, module: str, owner: str, name: str) -> bool:
        """Return whether any known release has a method of this class."""

    def provided_by_modules(self, package: str) -> dict[str, str]:
        """Map each name in ``__all__`` of the modules below ``package`` to its module."""


NO_PACKAGES = frozenset(
    (
        "tests", "test", "docs", "examples", "benchmark", "benchmarks", "scripts", "utils", "tools", "data", "src", "build",
        "images", "assets", "research", "evaluation", "tutorials", "csrc", "cmake", "recipes", "templates", "lm_eval_tests",
        "cli", "cicd", "accelerator", "blackwell", "unsloth_zoo_downloads", "unsloth_compiled_cache",
    )
)  # fmt: skip
"""Top-level folders that packages install by mistake; imports do not refer to them."""


class SourceSurface:
    """Modules read from source. ``read`` returns the record of a module in ``names``, and is called once for each.

    ``opaque`` are modules, or whole packages, that exist but were not read.
    """

    def __init__(
        self, package: str, version: str, names: Iterable[str], read: Callable[[str], Module | None], opaque: Iterable[str] = ()
    ) -> None:
        self.package, self.version = package, version
        self.names = frozenset(names)
        self._read = read
        self._opaque = frozenset(opaque)
        self._folders = {name[:at] for name in (*self.names, *self._opaque) for at, sign in enumerate(name) if sign == "."}
        self.tops = frozenset(name.partition(".")[0] for name in self.names) - NO_PACKAGES
        self._aliases: frozenset[str] | None = None

    @kept
    def module(self, name: str) -> Module | None:
        return self._read(name) if name in self.names else None

    def holds(self, name: str) -> str | None:
        if name in self.names:
            return "source"
        if _among(name, self._opaque):
            return "opaque"
        if name in self._folders:
            return "folder"
        return "opaque" if _among(name, self.aliases) else None

    def had(self, name: str) -> bool:
        return False  # other releases are unknown here

    def had_method(self, module: str, owner: str, name: str) -> bool:
        return False

    @property
    def aliases(self) -> frozenset[str]:
        """Modules made importable without a file, by the package's ``__init__`` or the modules it imports from."""
        if self._aliases is None:
            self._aliases = frozenset()  # in case reading them recurses
            found = [alias for top in self.tops for module in self._begun_with(top) for alias in module.aliases]
            self._aliases = frozenset(found)
        return self._aliases

    def _begun_with(self, top: str) -> Iterator[Module]:
        first = self.module(top)
        if first is None:
            return
        yield first
        taken = {each.module for each in first.definitions.values() if isinstance(each, Imported)}
        yield from filter(None, map(self.module, sorted(taken & self.names)))

    @kept
    def provided_by_modules(self, package: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in sorted(self.names):
            if name.startswith(f"{package}."):
                module = self.module(name)
                for each in (module.all or ()) if module is not None else ():
                    found.setdefault(each, name)
        return found


def _among(name: str, modules: Collection[str]) -> bool:
    """Return whether a name is one of the modules or below one."""
    while name:
        if name in modules:
            return True
        name = name.rpartition(".")[0]
    return False


# --- What a dotted name means in a world of releases.


@record(frozen=True)
class Meaning:
    """``kind`` is module, class, function, method, value, outside, unknown, absent or never (in no known release).

    ``module`` is where it is defined and ``name`` its name there (``Trainer.train`` for a method). ``absent`` is certain;
    ``name`` is then the first missing part, and ``module`` the module or class that lacks it.
    """

    kind: str
    surface: Surface | None = None
    module: str = ""
    name: str = ""
    definition: Class | Function | None = None
    line: int = 0

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}" if self.module and self.name else self.module or self.name


UNKNOWN = Meaning("unknown")


_CONVERTER = re.compile(r"convert_(?!slow_tokenizer|graph_to|rope)")


def is_converter(module: str) -> bool:
    """Return whether a module (its last name) is one of thousands of programs that convert checkpoints (in no table)."""
    return _CONVERTER.match(module) is not None


def absent(surface: Surface, module: str, name: str) -> Meaning:
    return Meaning("absent", surface, module, name)


@record(frozen=True)
class Complaint:
    """Why a call is invalid: ``keyword`` (its name), ``positional`` (the number passed), ``missing`` (a required name)."""

    kind: str
    what: str
    callee: Meaning


# --- Names within one release: a module's own, its re-exports and its lazy names.


_OF_EVERY_MODULE = frozenset((
    "__version__", "__file__", "__path__", "__name__", "__doc__", "__all__", "__spec__", "__dict__", "__loader__",
    "__package__",
))  # fmt: skip
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
        if (
            unsure
            or record.open
            or name in record.unsure
            or any(name.endswith(ending) for ending in _FALLS_BACK.get(self.surface.package, ()))
        ):
            return UNKNOWN
        if record.known is not None and name not in record.known:
            return UNKNOWN if record.partial else Meaning("never", surface, module, name)
        return absent(surface, module, name)

    def _module(self, name: str) -> Meaning | None:
        return None if self.surface.holds(name) is None else Meaning("module", self.surface, name)

    def _defined(self, module: str, name: str, definition: object, depth: int) -> Meaning:
        if isinstance(definition, Imported):
            # resolve a re-export; the name itself exists even if its target is unknown
            if definition.module.partition(".")[0] not in self.surface.tops:
                dotted = definition.module if definition.name is None else f"{definition.module}.{definition.name}"
                return Meaning(OUTSIDE, self.surface, dotted, "", None, definition.line)
            if definition.name is None:
                return self._module(definition.module) or UNKNOWN
            if (definition.module, definition.name) == (module, name):
                return self._module(f"{module}.{name}") or UNKNOWN
            target = self.get(definition.module, definition.name, depth)
            if target.kind in _NOTHING:
                return Meaning(VALUE, self.surface, module, name, None, definition.line)
            return target
        if isinstance(definition, Class):
            return Meaning("class", self.surface, module, name, definition, definition.line)
        if isinstance(definition, Function):
            return Meaning("function", self.surface, module, name, definition, definition.line)
        assert isinstance(definition, Value)
        return Meaning(VALUE, self.surface, module, name, None, definition.line)

    def _provided(self, record: Module, name: str, depth: int) -> tuple[Meaning | None, bool]:
        """Resolve a name from star imports or lazy tables; if not found, also return whether it may still exist."""
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
