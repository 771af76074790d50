"""What releases without a wheel for the target need, as far as it is known without a build."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compat.index import File, Index
from compat.markers import written
from compat.matrix.declared import Declared, Package
from compat.repair.target import Need, Target


def wheels_for_others(index: Index, sources: Iterable[File]) -> dict[File, File]:
    """For source distributions a wheel of the same release for another machine: installers take it that all say the same."""
    found = {}
    for file in sources:
        wheels = [each for each in index.files(file.name) or () if each.kind == "wheel" and each.version == file.version]
        if wheels:
            found[file] = min(wheels, key=lambda each: each.filename)
    return found


def declared_needs(declared: Declared, name: str, version: str, target: Target) -> Mapping[str, tuple[Need, ...]] | None:
    """What the matrix says that a release requires without extras; ``None`` where it says nothing."""
    package = declared.package(name)
    place = None if package is None else package.place(version)
    if package is None or place is None:
        return None
    texts = [text for each in package.asks for text in _texts(package, place, each)]
    named = {text.split()[0] for text in texts}
    texts += [each for each in package.extra(place, "") if each not in named]
    return target.needs_by_extra(texts) if texts else None


def _texts(package: Package, place: int, name: str) -> Iterable[str]:
    for specifier, _, marker, extra in package.requirements(place, name):
        if extra is None:
            yield f"{name} {specifier}" + (f" ; {written(marker)}" if marker is not None else "")
