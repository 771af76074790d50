"""One release of a package as its source describes it: which modules it has, and the record of each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from compat.read.python_source.records import Module

    class Surface(Protocol):
        """What :class:`compat.matrix.surface.world.World` asks a release; tables and source on the spot both answer."""

        @property
        def package(self) -> str: ...
        @property
        def version(self) -> str: ...
        @property
        def tops(self) -> frozenset[str]: ...
        def module(self, name: str) -> Module | None:
            """The record of a module; ``None`` where there is none of that name, or where it was not read."""

        def holds(self, name: str) -> str | None:
            """``source``, ``opaque`` (compiled, left out: anything may be in it), ``folder`` (no ``__init__``) or ``None``."""

        def provided_by_modules(self, package: str) -> dict[str, str]:
            """Where each name comes from that ``__all__`` of a module below ``package`` lists."""


NO_PACKAGES = frozenset(
    (
        "tests", "test", "docs", "examples", "benchmark", "benchmarks", "scripts", "utils", "tools", "data", "src", "build",
        "images", "assets", "research", "evaluation", "tutorials", "csrc", "cmake", "recipes", "templates", "lm_eval_tests",
    )
)  # fmt: skip
"""Top-level folders that packages install by mistake, or several of them: nobody means them by an import."""


class SourceSurface:
    """Modules that were read from source. ``read`` gives the record of a module among ``names``, and is asked once for each.

    ``opaque`` are modules, or whole packages, that are there and were not read.
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
        if name in self._opaque or self._inside_opaque(name):
            return "opaque"
        return "folder" if name in self._folders else None

    def _inside_opaque(self, name: str) -> bool:
        while "." in name:
            name = name.rpartition(".")[0]
            if name in self._opaque:
                return True
        return False

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
