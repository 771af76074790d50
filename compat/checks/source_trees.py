"""Packages that are installed from source: what their code imports at once and other installed releases do not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from compat.interfaces.at_once import importable
from compat.interfaces.code.trees import tree_of
from compat.interfaces.imports import Eager
from compat.interfaces.world import World
from compat.model import Environment, Finding

if TYPE_CHECKING:
    from compat.interfaces.code.releases import Releases
    from compat.interfaces.meaning import Meaning
    from compat.interfaces.release import SourceSurface


TREE = "tree"
"""The key of a source's details that names the folder of its modules."""


def trees_in(environment: Environment, tracked: Mapping[str, str]) -> dict[str, SourceSurface]:
    """The source of each package that was not installed as a release, as far as its folder is known."""
    found: dict[str, SourceSurface] = {}
    for copy in environment.distributions or ():
        root = copy.source.details.get(TREE) if copy.source is not None else None
        if isinstance(root, str):
            tops = tuple(top for top, package in tracked.items() if package == copy.name)
            surface = tree_of(copy.name, f"{copy.version or ''} (source)".strip(), root, tops)
            if surface is not None:
                found[copy.name] = surface
    return found


def of_trees(trees: Mapping[str, SourceSurface], installed: Mapping[str, str], releases: Releases) -> Iterator[Finding]:
    """Names that a source tree imports as soon as it is imported, and an installed release certainly does not have."""
    surfaces = [table.surface(version) for name, version in installed.items() if (table := releases.table(name)) is not None]
    world = World([*trees.values(), *(each for each in surfaces if each is not None)])
    here = importable((*installed, *trees))
    for package, tree in trees.items():
        eager = Eager(tree).run(sorted(tree.tops))
        for (module, name), asks in eager.outside.items():
            if not asks <= here:
                continue
            meaning = world.imported(module, name if name != "*" else None)
            if meaning.kind == "absent" and meaning.surface is not None:
                yield _finding(package, tree, module, name, meaning, eager)


def _finding(package: str, tree: SourceSurface, module: str, name: str | None, meaning: Meaning, eager: Eager) -> Finding:
    assert meaning.surface is not None
    other, there = meaning.surface.package, meaning.surface.version
    what = f"{module}.{name}" if name else module
    place = _place(tree, module, name, eager)
    return Finding(
        rule=f"surface-{package}-{other}", origin="surface", verdict="hit", severity="error", effect="crash",
        confidence="confirmed",
        title=f"{package} {tree.version} imports {what}, which {other} {there} does not have",
        why=f"{place} is run as soon as {package} is imported.",
        packages={package: tree.version.partition(" ")[0] or None, other: there.partition(" ")[0]}, facts=("install",),
        evidence=(f"{package} {place}", f"{other} {there} {meaning.module} has no {meaning.name}"),
        here=f"{package} {tree.version}, {other} {there}",
    )  # fmt: skip


def _place(tree: SourceSurface, module: str, name: str | None, eager: Eager) -> str:
    for each in eager.modules:
        record = tree.module(each)
        if record is None:
            continue
        for imported in record.imports:
            if (imported.module, imported.name) == (module, name) and not imported.flags:
                return f"{record.path}:{imported.line}"
    return module
