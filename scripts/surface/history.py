"""What a package's modules held, release by release: every statement of their records with the releases in which it holds.

A set of releases is an integer, a bit a release, the oldest first. Lines are left out: they change with every release.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

from compat.interfaces.source.records import Class, Function, Imported, Module
from compat.records import values_of
from scripts.surface.compiled import FILLED
from scripts.surface.mined import Mined, given_by_stub, modules_of, stubs_of
from scripts.surface.store import Release

Statements = dict[str, dict[Hashable, dict[Hashable, int]]]
"""Section → what the statement is about → what it says → the releases. The sections are those of ``statements_of``."""


class ModuleHistory:
    """``mask``: the releases that have the module; ``read`` those of them in which its source could be read."""

    def __init__(self) -> None:
        self.mask = self.read = 0
        self.is_package = False
        self.statements: Statements = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))

    def add(self, module: Module | None, mask: int) -> None:
        """Add what a module holds in these releases; ``None`` if it could not be read."""
        self.mask |= mask
        if module is None or module.problem is not None:
            return
        self.read |= mask
        self.is_package = self.is_package or module.is_package
        for section, about, says in statements_of(module):
            self.statements[section][about][says] |= mask


class PackageHistory:
    """``opaque`` are modules of which nothing was read, with the releases that have them."""

    def __init__(self, package: str, releases: list[Release]) -> None:
        self.package = package
        self.versions = tuple(release.version for release in releases)
        self.uploaded = tuple(release.uploaded for release in releases)
        self.modules: dict[str, ModuleHistory] = defaultdict(ModuleHistory)
        self.opaque: dict[str, int] = defaultdict(int)


def history_of(mined: Mined, package: str) -> PackageHistory:
    releases = mined.releases(package)
    history = PackageHistory(package, releases)
    sources: dict[str, dict[tuple[int, str], int]] = defaultdict(lambda: defaultdict(int))
    stubs: dict[str, dict[tuple[tuple[int, str], tuple[int, str]], int]] = defaultdict(lambda: defaultdict(int))
    for at, release in enumerate(releases):
        for name, source in modules_of(release).items():
            if name in FILLED.get(package, ()):
                history.modules[name].add(mined.surface(release).module(name), 1 << at)
            else:
                sources[name][source] |= 1 << at
        for name, source in stubs_of(release).items():
            stubs[name][modules_of(release)[name], source] |= 1 << at
        for name in (*release.opaque, *mined.surface(release).aliases):
            history.opaque[name] |= 1 << at
    for name, found in sources.items():
        kept = history.modules[name]
        for source, mask in found.items():
            kept.add(mined.record(*source), mask)
        for (source, stub), mask in stubs[name].items():
            module, typed = mined.record(*source), mined.record(*stub)
            for each in given_by_stub(module, typed) if module is not None and typed is not None else ():
                kept.statements["define"][each]["v",] |= mask
    return history


def statements_of(module: Module) -> Iterable[tuple[str, Hashable, Hashable]]:
    """A record as (section, about, says)."""
    for name, definition in module.definitions.items():
        if isinstance(definition, Class):
            yield "define", name, ("c", definition.bases, definition.decorators, definition.dynamic)
            yield from _of_class(name, definition)
        elif isinstance(definition, Function):
            yield "define", name, ("f", values_of(definition.signature))
        elif isinstance(definition, Imported):
            yield "define", name, ("i", definition.module, definition.name)
        else:
            yield "define", name, ("v",)
    for name, place in module.lazy.items():
        yield "lazy", name, place
    yield from (("star", star, None) for star in module.stars)
    if module.all is not None:
        yield "all", None, module.all
    yield from ((kind, None, None) for kind in ("listed", "open") if getattr(module, kind))
    yield from (("open", name, None) for name in sorted(module.unsure))
    if module.getter:
        yield "getter", module.getter, None
    yield from (("gives", key, None) for key in module.gives)
    yield from (("wrapper", name, taken) for name, taken in module.wrappers.items())
    for rename in module.renames:
        yield "rename", (rename.owner, rename.old), (rename.new, rename.until)


def _of_class(name: str, made: Class) -> Iterable[tuple[str, Hashable, Hashable]]:
    for method, function in made.methods.items():
        yield "method", (name, method), values_of(function.signature)
    for field, default in made.fields:
        yield "field", (name, field), default
    for attribute in sorted({*made.attributes} - {field for field, _ in made.fields}):
        yield "attribute", (name, attribute), None
    for attribute in made.instance:
        yield "instance", (name, attribute), None
    for attribute, place in made.made.items():
        yield "made", (name, attribute), place
    for call in made.self_calls:
        yield "call", (name, call.method), (call.positional, call.keywords, call.star, call.double_star, call.flags)
