"""The releases of the store as surfaces."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from compat.interfaces.release import SourceSurface
from compat.interfaces.source.module import FORM
from compat.interfaces.source.records import Imported, Module, Value, unpack_module
from compat.records import replace
from compat.versions import key_of
from scripts.surface.compiled import FILLED, LIBRARIES, LISTED, Bound, Strings, bound, filled
from scripts.surface.extract import places_of
from scripts.surface.store import Release, Store

KEPT = 6000
"""Records held at once; neighbouring releases share most of theirs."""


class Mined:
    """Reads records from the store, without their uses unless requested, and caches the latest."""

    def __init__(self, store: Store, *, uses: bool = True) -> None:
        self.store, self._uses = store, uses
        self._kept: OrderedDict[tuple[int, str], Module | None] = OrderedDict()
        self._bound: dict[str, dict[tuple[str, str], Bound]] = {}

    def releases(self, package: str) -> list[Release]:
        """The releases of a package, oldest first."""
        return sorted(self.store.releases(package), key=lambda release: key_of(release.version))

    def record(self, source: int, place: str) -> Module | None:
        key = source, place
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        body = self.store.record(FORM, source, place)
        module = None if body is None else unpack_module(body, uses=self._uses)
        if module is not None and place.endswith("?"):
            module = replace(module, open=True)  # a stub shows which names exist, not which are missing
        self._kept[key] = module
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return module

    def surface(self, release: Release) -> SourceSurface:
        places = modules_of(release)
        read = self._reader(release, places)
        return SourceSurface(release.package, release.version, places, read, release.opaque)

    def _reader(self, release: Release, places: dict[str, tuple[int, str]]) -> Callable[[str], Module | None]:
        stubs = stubs_of(release)
        compiled = FILLED.get(release.package, {})

        def read(name: str) -> Module | None:
            module = self.record(*places[name])
            if module is not None and name in compiled:
                return self._filled(module, release, places)
            stub = self.record(*stubs[name]) if name in stubs else None
            return module if module is None or stub is None else with_stub(module, stub)

        return read

    def _filled(self, module: Module, release: Release, places: dict[str, tuple[int, str]]) -> Module:
        """Return a module with the names that compiled code gives it; as it is if the stubs or the libraries were not read."""
        compiled = {stub: each for (version, stub), each in self.bound(release.package).items() if version == release.version}
        stubs = FILLED[release.package][module.name]
        if not compiled.keys() >= {*stubs}:
            return module
        stars = {star: compiled[star].public for star in module.stars if star in compiled}
        for star in module.stars:
            record = self.record(*places[star]) if star in places and star not in stars else None
            if record is not None and record.all is not None:
                stars[star] = Bound(frozenset(record.all))
        return filled(module, [compiled[stub] for stub in stubs], stars)

    def bound(self, package: str) -> dict[tuple[str, str], Bound]:
        """Return what compiled code binds, by release and stub."""
        if package not in self._bound:
            releases = self.releases(package)
            libraries = [self._strings(release) for release in releases]
            found = self._bound[package] = {}
            for stub in dict.fromkeys(stub for stubs in FILLED[package].values() for stub in stubs):
                places = [modules_of(release).get(stub) for release in releases]
                records = [None if place is None else self.record(*place) for place in places]
                for release, each in zip(releases, bound(records, libraries)):
                    if each is not None:
                        found[release.version, stub] = each
        return self._bound[package]

    def _strings(self, release: Release) -> Strings | None:
        kept = [source for path, source in release.members.items() if path.removesuffix(LISTED) in LIBRARIES]
        return Strings(b"\n".join(map(self.store.body, kept)).decode()) if kept else None


def stubs_of(release: Release) -> dict[str, tuple[int, str]]:
    """Return the source and place of each stub whose module also exists."""
    places = {place: source for source, place in places_of(release)}
    return {
        place[:-1].rstrip("/"): (source, place)
        for place, source in places.items()
        if place.endswith("?") and place[:-1] in places
    }


def with_stub(module: Module, stub: Module) -> Module:
    """Return a module with the names that only its stub declares, if its source leaves its names open."""
    named = given_by_stub(module, stub)
    return replace(module, definitions={**dict.fromkeys(named, Value(0)), **module.definitions}) if named else module


def given_by_stub(module: Module, stub: Module) -> list[str]:
    """Return public stub names missing from the module's source, if that imports names from unreadable modules."""
    if not (module.open or module.stars) or stub.problem is not None:
        return []
    return [
        name
        for name, each in stub.definitions.items()
        if not name.startswith("_") and name not in module.definitions and name not in module.lazy
        and (not isinstance(each, Imported) or name in (stub.all or ()))
    ]  # fmt: skip


def modules_of(release: Release) -> dict[str, tuple[int, str]]:
    """Return the source and place of each module; a stub only counts without a module."""
    found: dict[str, tuple[int, str]] = {}
    for source, place in places_of(release):
        name = place.rstrip("/?")
        if name not in found or not place.endswith("?"):
            found[name] = source, place
    return found
