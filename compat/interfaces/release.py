"""One release of a package as described by its source: its modules, and the record of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from compat.interfaces.source.records import Imported, Module
from compat.records import record

if TYPE_CHECKING:
    from compat.interfaces.source.records import Class, Function

if TYPE_CHECKING:

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
        self._names = frozenset(names)
        self._read = read
        self._opaque = frozenset(opaque)
        self._kept: dict[str, Module | None] = {}
        self._folders = {name[:at] for name in (*self._names, *self._opaque) for at, sign in enumerate(name) if sign == "."}
        self.tops = frozenset(name.partition(".")[0] for name in self._names) - NO_PACKAGES
        self._listed: dict[str, dict[str, str]] = {}
        self._aliases: frozenset[str] | None = None

    @property
    def names(self) -> frozenset[str]:
        return self._names

    def module(self, name: str) -> Module | None:
        if name not in self._kept:
            self._kept[name] = self._read(name) if name in self._names else None
        return self._kept[name]

    def holds(self, name: str) -> str | None:
        if name in self._names:
            return "source"
        if _among(name, self._opaque):
            return "opaque"
        if name in self._folders:
            return "folder"
        return "opaque" if _among(name, self.aliases) else None

    def had(self, name: str) -> bool:
        return False  # other releases are unknown here

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
        yield from filter(None, map(self.module, sorted(taken & self._names)))

    def provided_by_modules(self, package: str) -> dict[str, str]:
        if package not in self._listed:
            found: dict[str, str] = {}
            for name in sorted(self._names):
                if name.startswith(f"{package}."):
                    module = self.module(name)
                    for each in (module.all or ()) if module is not None else ():
                        found.setdefault(each, name)
            self._listed[package] = found
        return self._listed[package]


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


def absent(surface: Surface, module: str, name: str) -> Meaning:
    return Meaning("absent", surface, module, name)


@record(frozen=True)
class Complaint:
    """Why a call is invalid: ``keyword`` (its name), ``positional`` (the number passed), ``missing`` (a required name)."""

    kind: str
    what: str
    callee: Meaning
