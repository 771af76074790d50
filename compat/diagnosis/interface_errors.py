"""Explain a missing name or rejected call between two packages: their releases are not compatible.

If the tables of published source list the name, they show which releases have it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compat.checks import interfaces as rows
from compat.checks.code import providers, releases
from compat.diagnosis.changed_names import releases_with_name
from compat.diagnosis.failing_lines import own_fault
from compat.diagnosis.foreign_attributes import of_bare_name, of_others, of_reader
from compat.diagnosis.frame_packages import (
    MODELS_OWN,
    called_function,
    calling_package,
    distribution_of_module,
    distribution_of_submodule,
    innermost_packages,
    location_text,
    module_of_frame,
    modules_of,
    package_of,
    version_of,
    written_before,
)
from compat.diagnosis.inexact_names import spelled_otherwise, with_module
from compat.diagnosis.installations import mixed_releases, unloaded_extension
from compat.diagnosis.interface_findings import Sides, lacking_name, mismatch
from compat.diagnosis.missing_names import (
    Named,
    module_of_name,
    modules_of_name,
    of_imported,
    of_older,
    of_older_method,
    of_older_name,
    shown_in,
)
from compat.diagnosis.missing_packages import (
    empty_package,
    none_of_module,
    not_installed,
    optional_import,
    undefined_name,
    without_compiled_part,
    without_metadata,
)
from compat.diagnosis.named_releases import (
    of_attribute,
    of_flags,
    of_keyword,
    of_member,
    of_name,
    of_positional,
)
from compat.diagnosis.overrides import (
    behind_its_peers,
    expected_object,
    left_over,
    of_base,
    of_subclass,
    unused_by_model,
)
from compat.diagnosis.own_code import of_own_class, of_unfinished_object
from compat.diagnosis.python_messages import (
    ATTRIBUTE,
    CALL,
    GLOBAL,
    KEYWORD,
    MEMBER,
    MODULE,
    NAME,
    UNKNOWN_LOCATION,
    Lack,
    lack_in,
)
from compat.diagnosis.python_releases import is_of_release, of_language, of_release
from compat.diagnosis.refused import refused_options, refused_values
from compat.interfaces.needs import Need
from compat.model import Finding
from compat.records import replace
from compat.rules.facts import Facts

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


_OF_A_MODULE = (NAME, MODULE, ATTRIBUTE)


def explain_interface_errors(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return findings for a missing name, a rejected call or unused flags, from the tables of published source if listed."""
    if found := _of_options(error, facts) or unused_by_model(error, facts) or _of_values(error, facts):
        return found
    lack = None if error.exception is None else lack_in(error.message)
    if found := of_language(error, facts):
        return found
    if lack is None:
        return _at_unknown_location(error, facts) or of_bare_name(error, facts) or _of_unnamed_module(error, facts)
    if (
        found := unloaded_extension(lack, error, facts)
        or _between(lack, error, facts)
        or _of_two_releases(lack, error, facts)
        or _of_its_own(lack, error, facts)
    ):
        return found
    sides = _sides(lack, error)
    if (other := of_release(lack, sides.asking, location_text(error), facts)) is not None:
        return [other]
    if is_of_release(lack):
        return []  # another interpreter or another NumPy was running
    known = left_over(lack, modules_of(error)) or _in_tables(lack, error)
    if (known is None or lack.given) and (found := of_subclass(lack, error, facts)):
        return found
    known = known or of_base(lack, modules_of(error), facts)
    known = _changed(known, lack, error, facts)
    if found := _by_other_code(known, lack, error, facts):
        return found
    known = known or _older(lack, error, facts)
    of_a_module = lack.kind in _OF_A_MODULE and not (lack.kind == MODULE and "." not in lack.owner)
    if known is not None and known.package != sides.owner and lack.kind in (MEMBER, KEYWORD, CALL):
        sides = Sides(known.package, _other_side(known.package, sides, error))
    if sides.owner is None or sides.asking is None or not (of_a_module or lack.kind == KEYWORD):
        return lacking_name(known, error, facts, sides.asking)
    if lack.kind == MODULE and lack.owner.partition(".")[0] == sides.asking.replace("-", "_"):
        return []
    return [mismatch(lack, sides, known, error, facts)]


def _of_its_own(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Explain a compiled module that is missing from its own package, unless the installed release is known not to have it."""
    found = without_compiled_part(lack.owner, error, facts) if lack.kind == MODULE else []
    known = _in_tables(lack, error) if found else None
    version = None if known is None else version_of(known.package, facts)
    return [] if known is not None and version is not None and known.lacked_by(version) else found


def _other_side(package: str, sides: Sides, error: RaisedError) -> str | None:
    """Return who uses a package by the error: the caller, or what has called code of the package that only passed it on."""
    caller = calling_package(error)[0]
    passed_on = caller is not None and _distribution(caller) == package
    before = (_distribution(name) for name in reversed(innermost_packages(error))) if passed_on else ()
    using = next((each for each in (sides.asking, sides.owner) if each != package), None)
    return using or next((name for name in before if name not in ("torch", package)), None)


def _by_other_code(known: Named | None, lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return the finding for other classes and names than those in the message, and for a class that no package has."""
    if known is not None:
        return of_own_class(known, lack, error, facts)
    if lack.kind in (NAME, ATTRIBUTE) and (found := spelled_otherwise(lack.owner, lack.name, "in the code", error, facts)):
        return found
    if found := behind_its_peers(lack, error, facts) or expected_object(lack, error, facts):
        return found
    if _older(lack, error, facts) is not None:
        return []
    return (
        of_others(lack, error, facts)
        or of_own_class(None, lack, error, facts)
        or of_reader(lack, error, facts)
        or of_unfinished_object(lack, error, facts)
    )


def _of_options(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return the finding for the first of the refused options that the tables know."""
    involved = [*map(distribution_of_module, modules_of(error)), *(each.name for each in facts.environment.distributions or ())]
    found = (lacking_name(known, error, facts) for known in refused_options(error.message, involved))
    return next(filter(None, found), [])


def _of_values(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return the finding for a refused string that other releases accept."""
    return next((lacking_name(known, error, facts) for known in refused_values(error, facts)), [])


def _changed(tabled: Named | None, lack: Lack, error: RaisedError, facts: Facts) -> Named | None:
    """Return what the tables know, or else what changed inside a package.

    The latter not if the class is more likely that of another package, where it did not change.
    """
    if tabled is not None and not tabled.partly:
        return tabled
    known = releases_with_name(lack, modules_of(error), {each.name for each in facts.environment.distributions or ()})
    if known is not None and _is_of_another(lack, known.package, error):
        known = None
    if known is not None and known.doubt and lack.kind in (NAME, ATTRIBUTE):  # a name of another module, perhaps passed on
        shown = shown_in(lack.owner, lack.name) if tabled is not None else of_older_name(lack.owner, lack.name)
        known = known if shown is None else None
    if known is not None and known.doubt and lack.kind not in _OF_A_MODULE and not error.frames:
        module = module_of_name(lack.owner.partition(".")[0], (), anywhere=False)
        known = known if module is None or distribution_of_module(module) == known.package else None
    return known or tabled


def _is_of_another(lack: Lack, package: str, error: RaisedError) -> bool:
    """Whether the line that failed asks its own object (``self.head_dim``), in a class of another package."""
    own = lack.kind == MEMBER and re.search(rf"\bself\.{lack.name}\b", error.code) is not None
    top = package_of(error.frames[-1]) if own else None
    return top is not None and bool(providers(top)) and distribution_of_module(top) != package


def _older(lack: Lack, error: RaisedError, facts: Facts) -> Named | None:
    """Return a finding for an argument or name that every known release has, unless one of those releases is installed."""
    if lack.kind in (NAME, ATTRIBUTE):
        found = of_older_name(lack.owner, lack.name)
    elif lack.kind == MEMBER:
        found = of_older_method(lack.owner, lack.name, modules_of(error))
    else:
        function = called_function(lack.owner, error) if lack.kind == KEYWORD else None
        found = None if function is None else of_older(function, lack.name, modules_of(error))
    version = None if found is None else version_of(found.package, facts)
    return found if found is not None and (version is None or found.lacked_by(version)) else None


def _at_unknown_location(error: RaisedError, facts: Facts) -> list[Finding]:
    """Explain an import from an unknown location (a bare folder or a lazy module) if the installed release lacks the name."""
    lack = lack_in(error.message.replace(UNKNOWN_LOCATION, "")) if UNKNOWN_LOCATION in error.message else None
    if lack is not None and lack.kind == NAME and distribution_of_submodule(module := f"{lack.owner}.{lack.name}") is not None:
        return not_installed(module, _sides(lack, error).asking, error, facts)
    known = None if lack is None else _known(lack, error)
    if known is not None and (version_of(known.package, facts) or _is_lazy(known.package, known.what.rpartition(".")[0])):
        return lacking_name(known, error, facts) if version_of(known.package, facts) else []
    return empty_package(lack.owner, error, facts) if lack is not None and lack.kind == NAME else []


def _is_lazy(package: str, module: str) -> bool:
    """Whether a module imports its names when they are asked for: Python may not know its location either."""
    table = releases().table(package)
    surface = None if table is None else table.surface(table.versions[-1])
    found = None if surface is None else surface.module(module)
    return found is not None and len(found.lazy) > 0


def _of_unnamed_module(error: RaisedError, facts: Facts) -> list[Finding]:
    """Explain the import of a name that the message gives without its module."""
    found = with_module(error, facts)
    if found is None:
        return []
    whole, sentence = found
    known = explain_interface_errors(whole, facts)
    return [replace(each, why=f"{each.why} {sentence}", confidence="reported") for each in known]


def _of_two_releases(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding if a package cannot import a name from itself, although its release is known to have that name."""
    package = package_of(error.frames[-1]) if error.frames else None
    if package is None or lack.kind != NAME or not lack.owner.startswith(f"{package}."):
        return []
    owner = distribution_of_module(package)
    version, known = version_of(owner, facts), _known(lack, error)
    if version is None or known is None or known.lacked_by(version):
        return []
    return [mixed_releases(owner, version, known.what, error)]


def between_packages(error: RaisedError, facts: Facts) -> list[Finding]:
    """Explain a missing name that no table lists: which package should provide it and which one uses it, by the error."""
    if found := without_metadata(error, facts) or own_fault(error, facts):
        return found
    lack = None if error.exception is None else lack_in(error.message)
    if lack is None or is_of_release(lack) or _known(lack, error) is not None:
        return []  # the tables answer this, or contradict it
    sides = _sides(lack, error)
    if lack.kind == GLOBAL and (found := optional_import(lack.name, error, facts)):
        return found
    if lack.kind == GLOBAL or (
        lack.kind == MODULE and ("." not in lack.owner or distribution_of_submodule(lack.owner) is not None)
    ):
        found = not_installed(lack.owner or lack.name, sides.asking, error, facts)
        return found or ([] if lack.kind == MODULE else undefined_name(lack.name, error, facts))
    if lack.kind == MEMBER and lack.owner == "NoneType":
        return none_of_module(lack.name, error, facts)
    if sides.owner is None or sides.owner == sides.asking or _is_only_guessed(lack, sides.owner, error):
        return []
    return [mismatch(lack, sides, None, error, facts)]


def _is_only_guessed(lack: Lack, owner: str, error: RaisedError) -> bool:
    """Whether only the name of a class, of one word, leads to its owner: packages share names such as ``Version``."""
    packages = {package_of(frame) for frame in error.frames} - {None}
    shared = lack.kind == MEMBER and re.fullmatch(r"[A-Z][a-z]+", lack.owner) is not None
    return shared and owner not in {distribution_of_module(name or "") for name in packages}


def _sides(lack: Lack, error: RaisedError) -> Sides:
    """Return both sides: the failing code is the user of the name; its module, class or call identifies the owner."""
    packages = [_distribution(name) for name in innermost_packages(error)]
    if lack.kind in _OF_A_MODULE:
        owner: str | None = distribution_of_module(lack.owner)
    else:
        owner = _owner_of_class(lack, error)
    if lack.kind in (KEYWORD, CALL):  # the frame of a rejected call is the one that makes it, not the function's own
        caller, decorating = (name and _distribution(name) for name in calling_package(error))
        owner = owner or (decorating if decorating != caller else None)
        return Sides(owner, caller if caller != owner else None)
    return Sides(owner, next((name for name in reversed(packages) if name != owner), None))


def _distribution(package: str) -> str:
    return package if package == MODELS_OWN else distribution_of_module(package)


def _owner_of_class(lack: Lack, error: RaisedError) -> str | None:
    """Find the owner by its dotted name, the tables, or the line that failed (``llguidance.LLMatcher.validate_grammar(``)."""
    top, _, rest = lack.owner.partition(".")
    if lack.kind == GLOBAL:
        return None
    if rest and providers(top):
        return distribution_of_module(top)
    telling = len(top) > 3 and (top[0].isupper() or "_" in top)  # "f" and "forward" exist in every package
    member = f"{lack.owner}.{lack.name}" if lack.kind == MEMBER else lack.owner
    module = (
        next((each for each in modules_of_name(top, modules_of(error)) if not _never_had(each, member)), None)
        if telling
        else None
    )
    if module is not None:
        return distribution_of_module(module)
    called_by = re.search(rf"(?<![\w.])(?P<module>[a-z]\w*)\.(?:\w+\.)*{re.escape(lack.owner)}\(", error.code)
    top = "" if called_by is None else called_by["module"]
    return distribution_of_module(top) if providers(top) else None


def _never_had(module: str, function: str) -> bool:
    """Whether a class certainly does not have the member that a message names, so that it is another class of the name."""
    owner, _, method = function.partition(".")
    table = releases().table(distribution_of_module(module))
    if method in ("", "__init__") or table is None:
        return False
    need = Need("method", f"{module}.{owner}", method)
    return all(releases().answer(table.package, version, need).met is False for version in table.versions[::-12])


def _between(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return what the rows of published source say about the missing name between the installed releases.

    Rows for code that an import does not reach count as well: the error shows that it was reached.
    """
    if lack.kind in (CALL, GLOBAL) or not facts.environment.distributions:
        return []

    name = lack.name or lack.owner.rpartition(".")[2]
    provider = distribution_of_module(lack.owner) if lack.kind in _OF_A_MODULE else None
    return [
        replace(each, verdict="hit", missing=(), unknown=(), here=", ".join(filter(None, (location_text(error), each.here))))
        for each in (*rows.judge(facts), *rows.unreached(facts.environment))
        if re.search(rf"\b{name}\b", f"{each.title} {each.why}") and (provider is None or provider in each.packages)
    ][:2]


def _known(lack: Lack, error: RaisedError) -> Named | None:
    """Return which releases have the name, by the tables of published source; ``None`` if they do not list it."""
    known = _in_tables(lack, error)
    return known if known is not None and not known.partly else releases_with_name(lack, modules_of(error)) or known


def _in_tables(lack: Lack, error: RaisedError) -> Named | None:
    if lack.kind == MODULE:
        return of_name(lack.owner, None)  # None for a top-level module that every release has: it is not installed
    if lack.kind in (NAME, ATTRIBUTE):
        return (of_name if lack.kind == NAME else of_attribute)(lack.owner, lack.name)
    if lack.kind == MEMBER:
        return of_member(
            lack.owner, lack.name, [*written_before(lack.owner, error), *module_of_frame(error), *modules_of(error)]
        )
    if lack.kind == CALL and lack.given:
        return of_positional(lack.owner, lack.given, modules_of(error))
    if lack.kind != KEYWORD:
        return None
    function = called_function(lack.owner, error)
    if function is not None:
        found = of_keyword(function, lack.name, modules_of(error))
        return found or of_imported(function, lack.name, module_of_frame(error))
    return next(of_flags([lack.name]), None) if not error.frames and "_" in lack.name else None
