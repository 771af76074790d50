"""Strings that a command, its configuration files or a script give to a release that does not accept them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from compat.checks.accepted import accepted_in, containers_for, words_of
from compat.checks.fix_commands import nearest_fixes
from compat.checks.interfaces import releases_in
from compat.checks.options import classes_of, finding_of, open_parsers
from compat.interfaces.at_once import place_of
from compat.interfaces.changes import values
from compat.interfaces.table import tracked

if TYPE_CHECKING:
    from compat.model import Environment, Finding, Option, Workload


_ON_TRANSFORMERS = frozenset(("trl", "llamafactory", "sentence-transformers", "setfit", "unsloth"))
"""Packages whose classes extend those of transformers and take their arguments."""


def judge(environment: Environment) -> Iterator[Finding]:
    """Yield an error for each string that the installed release refuses and another release accepts.

    Only what a registry, an enumeration or a list of choices of the installed release lacks is reported, and nothing if the job
    loads plugins, which may register it.
    """
    workload = environment.workload
    assert workload is not None
    given = workload.options or ()
    if any("plugin" in option.name for option in given):
        return
    installed = releases_in(environment, images=True)
    seen: set[tuple[str, str]] = set()
    for option in given:
        if option.value is not None and (option.name, option.value) not in seen:
            seen.add((option.name, option.value))
            yield from _of_value(option, option.value, workload, installed)


def _of_value(option: Option, value: str, workload: Workload, installed: Mapping[str, str]) -> Iterator[Finding]:
    packages = [package for package in dict.fromkeys(_packages_of(option.parser, workload)) if package in installed]
    found = containers_for(value, words_of(option.name)) if packages else []
    package = next((package for package in packages if any(each.package == package for each in found)), None)
    if package is None:
        return
    known, version = accepted_in(value, [each for each in found if each.package == package]), installed[package]
    elsewhere = any(place_of(each.has, version) is not None for each in values().of(value) if each.package == package)
    if known.checked and known.accepting and place_of(known.refusing, version) is not None and not elsewhere:
        written = f"{option.name} {value}" if option.name.startswith("-") else f"{option.name}={value!r}"
        fixes = tuple(nearest_fixes(package, version, known.accepting, known.known, f"accepts {value}"))
        why = "No registry, enumeration or list of choices of this release has the value."
        yield finding_of(option, package, version, f"{package} {version} does not accept {written}", why, fixes)


def _packages_of(parser: str, workload: Workload) -> Iterator[str]:
    """Yield the packages that may check the values of a program's options or of a call's arguments, the nearest first."""
    if parser in (programs := open_parsers()):
        yield programs[parser].package
        return
    classes = classes_of(parser, workload)
    for dotted in (parser,) if classes is None else classes.classes:
        package = tracked().get(dotted.partition(".")[0])
        if package is not None:
            yield package
            yield from ("transformers",) if package in _ON_TRANSFORMERS else ()
