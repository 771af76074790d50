"""Which releases show a name, where others may have it from compiled code or from a base in another package.

The tables cannot say that a release lacks such a name. An error can: then the releases that show it are those to move to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from packaging.version import Version

from compat.checks.code import releases
from compat.diagnosis.class_homes import OF_TORCH, homes, in_full, with_module
from compat.diagnosis.named import Named
from compat.interfaces.needs import Need
from compat.interfaces.source.records import Class
from compat.interfaces.table import tracked
from compat.records import replace

_CONFIGURATIONS = ("PreTrainedConfig", "PretrainedConfig")
"""The names of the base class of transformers' configurations, from 5.0 on and before."""
_LOOP = "generation_defaults"
"""What the names of the method end with that lists the defaults of generation for that class."""


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


def of_configuration(name: str) -> Named | None:
    """Look up an attribute that transformers' base class gives the configuration of every model, under both names of the base.

    From 4.37 to 4.57, a loop sets the defaults of generation: those that the base had set itself before.
    """
    package, known = "transformers", releases()
    table = known.table(package)

    def classes(version: str, *names: str) -> list[Class]:
        world = known.world(package, version)
        found = (world.imported(package, each).definition for each in names) if world is not None else ()
        return [each for each in found if isinstance(each, Class)]

    def own(version: str) -> bool:
        return any(has_member(each, name) for each in classes(version, *_CONFIGURATIONS))

    def has(version: str) -> bool:
        by_loop = any(method.endswith(_LOOP) for each in classes(version, *_CONFIGURATIONS) for method in each.methods)
        generates = by_loop and table is not None and own(table.versions[0])
        return own(version) or (generates and any(has_member(each, name) for each in classes(version, "GenerationConfig")))

    found = where_shown(package, f"{_CONFIGURATIONS[-1]}.{name}", has)
    return None if found is None else replace(found, partly=False)


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


def of_older(function: str, keyword: str, modules: Sequence[str]) -> Named | None:
    """Look up an argument that all releases in the tables take: the release that refused it is from before them."""
    function, modules = with_module(in_full(function), modules)
    top, _, method = function.partition(".")
    for module in homes(top, modules, OF_TORCH):
        package = tracked()[module.partition(".")[0]]
        table = releases().table(package)
        versions = table.versions if table is not None else ()
        if versions and all(_takes(package, version, module, function, keyword) for version in versions):
            doubt = " All releases that were analyzed take it, so the one that was running is older, or it is another copy."
            span = f"from {versions[0]} or earlier on"
            what = f"{module}.{top}{f'.{method}' if method not in ('', '__init__') else ''}({keyword}=)"
            return Named(
                what, package, f">={versions[0]}", span, "", None, (), leans=False, read=versions, doubt=doubt, older=True
            )
    return None


def of_older_method(owner: str, name: str, modules: Sequence[str]) -> Named | None:
    """Look up a method that a class has in all releases in the tables: the release without it is from before them."""
    for module in homes(owner, modules):
        package = tracked()[module.partition(".")[0]]
        table = releases().table(package)
        versions = table.versions if table is not None else ()
        if versions and all(_has_method(package, version, module, owner, name) for version in versions):
            doubt = " All releases that were analyzed have it, so the one that was running is older, or it is another class."
            span = f"from {versions[0]} or earlier on"
            return Named(
                f"{owner}.{name}", package, f">={versions[0]}", span, "", None, (), leans=False, read=versions, doubt=doubt,
                older=True,
            )  # fmt: skip
    return None


def _has_method(package: str, version: str, module: str, owner: str, name: str) -> bool:
    world = releases().world(package, version)
    found = None if world is None else world.imported(module, owner)
    return world is not None and found is not None and found.kind == "class" and world.member(found, name).kind == "method"


def _takes(package: str, version: str, module: str, function: str, keyword: str) -> bool:
    """Whether a release names the argument in the signature of a function, a class or a method of it."""
    top, _, method = function.partition(".")
    world = releases().world(package, version)
    found = None if world is None else world.imported(module, top)
    if world is None or found is None:
        return False
    if method not in ("", "__init__"):
        found = world.member(found, method) if found.kind == "class" else None
    callee = None if found is None else world.callee(found)
    return callee is not None and keyword in (*callee[0].positional, *callee[0].keyword_only)
