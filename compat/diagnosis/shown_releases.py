"""Which releases show a name, where others may have it from compiled code or from a base in another package.

The tables cannot say that a release lacks such a name. An error can: then the releases that show it are those to move to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from packaging.version import Version

from compat.checks.code import releases
from compat.diagnosis.named import Named
from compat.interfaces.needs import Need
from compat.interfaces.source.records import Class
from compat.interfaces.table import tracked


def shown_in(module: str, name: str) -> Named | None:
    """Look up a name in a module that takes names from compiled code: the releases whose source or stubs show it.

    Others may have it as well, but the error says that one of them does not. ``None`` unless they are all newer or all older.
    """
    package, known = tracked()[module.partition(".")[0]], releases()
    need = Need("import", module, name)
    return where_shown(package, f"{module}.{name}", lambda version: known.answer(package, version, need).met is True)


def of_inherited(module: str, owner: str, name: str) -> Named | None:
    """Look up a member of a class or of its known bases, although a base in another package may have it as well."""
    package, known = tracked()[module.partition(".")[0]], releases()

    def has(version: str) -> bool:
        world = known.world(package, version)
        found = None if world is None else world.imported(module, owner)
        classes = world.bases(found)[0] if world is not None and found is not None and found.kind == "class" else []
        return any(has_member(each.definition, name) for each in classes if isinstance(each.definition, Class))

    return where_shown(package, f"{owner}.{name}", has)


def has_member(made: Class, member: str) -> bool:
    return member in (*made.methods, *made.attributes, *made.instance, *dict(made.fields))


def where_shown(package: str, what: str, shows: Callable[[str], bool]) -> Named | None:
    """Return the releases that show a name; the others do not, or may have it from elsewhere.

    ``None`` unless it came or went once: the newest and the oldest release are asked, and those between them by halves.
    """
    table = releases().table(package)
    versions = [each for each in (table.versions if table is not None else ()) if not Version(each).is_prerelease]
    if not versions or (new := shows(versions[-1])) == shows(versions[0]):
        return None
    at = bisect_left(versions, 1, key=lambda version: shows(version) == new)
    older, newer = versions[at - 1], versions[at]
    specifier, span = (f">={newer}", f"at least from {newer} on") if new else (f"<={older}", f"at least up to {older}")
    why = f"{older if new else newer} does not show it"
    lacks = tuple(versions[:at] if new else versions[at:])
    return Named(what, package, specifier, span, why, None, lacks, leans=False, read=tuple(versions), partly=True)
