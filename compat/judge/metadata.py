"""Declared requirements that an environment violates, and those of extras, which installers forget once they are done.

A violated requirement is a warning: a source install, an override or a known fix may violate a pin on purpose. It is an error
only where the package itself refuses to be imported then.
"""

from __future__ import annotations

from compat.environment import of_no_index
from compat.judge.facts import ABSENT
from compat.report import Finding, Fix
from compat.versions import contains, is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.environment import Distribution, Environment
    from compat.judge.facts import Facts
    from compat.markers import Comparison, Marker
    from compat.matrix.declared import Declared, Package, Requirement

REFUSED_AT_IMPORT = {
    "transformers": frozenset(
        (
            "tokenizers",
            "huggingface-hub",
            "safetensors",
            "regex",
            "tqdm",
            "filelock",
            "pyyaml",
            "numpy",
            "packaging",
            "requests",
        )
    ),
}
"""What transformers' dependency_versions_check compares when it is imported."""
_SPEC = "https://packaging.python.org/en/latest/specifications/core-metadata/#requires-dist-multiple-use"


def judge(facts: Facts, declared: Declared) -> Iterator[Finding]:
    """Findings about what the followed releases declare of each other."""
    copies = {copy.name for copy in facts.environment.distributions or ()}
    for copy in facts.environment.distributions or ():
        if copy.name not in declared or copy.version is None or of_no_index(copy):
            continue
        package = declared.package(copy.name)
        place = None if package is None else package.place(copy.version)
        if package is None or place is None:
            continue
        for name in package.asks:
            if name in copies and (requirements := package.requirements(place, name)):
                yield from _violated(copy, name, requirements, facts, package, declared)


def _violated(
    copy: Distribution, name: str, requirements: tuple[Requirement, ...], facts: Facts, package: Package, declared: Declared
) -> Iterator[Finding]:
    found = facts.package(name)
    if not found or found == ABSENT or len(found) != 1:
        return
    other: Distribution = found[0]  # type: ignore[assignment]
    if other.version is None or not is_version(other.version) or of_no_index(other):
        return
    key = key_of(other.version)
    if key[5] != _FINAL_DEV:  # a build from the main branch stands between releases
        return
    core = [each for each in requirements if each[3] is None and _applies(each, facts.environment)]
    wrong = next((each for each in core if not contains(each[1], key)), None)
    if wrong is not None:
        yield _finding(copy, other, wrong, package)
    elif not core:
        extras = [each for each in requirements if each[3] is not None and _applies(each, facts.environment)]
        refusing = () if any(contains(each[1], key) for each in extras) else extras
        used = next((each for each in refusing if _may_be_used(each[3] or "", copy, facts, package, declared)), None)
        if used is not None:
            yield _finding(copy, other, used, package)


def _may_be_used(extra: str, copy: Distribution, facts: Facts, package: Package, declared: Declared) -> bool:
    """Whether an extra can have been asked for: all that it adds may be there, and not all of it for other reasons."""
    place = package.place(copy.version or "")
    added = () if place is None else package.extra(place, extra)
    if any(facts.package(name) == ABSENT for name in added):
        return False
    always = {name for each in facts.environment.distributions or () for name in declared.always(each)}
    return not always.issuperset(added)


_FINAL_DEV = key_of("1")[5]


def _applies(requirement: Requirement, environment: Environment) -> bool:
    marker = requirement[2]
    return marker is None or _holds(marker, environment) is True


def _holds(marker: Marker, environment: Environment) -> bool | None:
    """Whether a marker holds; ``None`` where what it asks is not known."""
    form = marker[0]
    if form == "is":
        return _compared(marker[1], environment)
    parts = [_holds(each, environment) for each in marker[1:]]
    if form == "and":
        return False if False in parts else None if None in parts else True
    return True if True in parts else None if None in parts else False


def _compared(comparison: Comparison, environment: Environment) -> bool | None:
    from compat.markers import OF_SYSTEM, SYSTEMS, version_holds

    (is_left, left), operator, (is_right, right) = comparison
    if is_left == is_right:
        return None
    name, text = (left, right) if is_left else (right, left)
    if name in ("python_version", "python_full_version"):
        if environment.python is None or not is_left:
            return None
        numbers = tuple(int(part) for part in environment.python.split(".") if part.isdecimal())
        return version_holds(numbers[:2] if name == "python_version" else numbers, operator, text)
    known = {
        **dict(zip(OF_SYSTEM, SYSTEMS.get(environment.os or "", ()))),
        "platform_machine": environment.machine,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }.get(name)
    if known is None:
        return None
    answers = {"==": known == text, "!=": known != text}
    if operator in ("in", "not in") and is_left:
        return bool((known in text) == (operator == "in"))
    return answers.get(operator)


def _finding(copy: Distribution, other: Distribution, requirement: Requirement, package: Package) -> Finding:
    specifier, _, _, of_extra = requirement
    refused = of_extra is None and other.name in REFUSED_AT_IMPORT.get(copy.name, ())
    extra = f"[{of_extra}]" if of_extra else ""
    wanted = f"{other.name}{specifier}"
    return Finding(
        rule=f"requires-{copy.name}-{other.name}",
        origin="metadata",
        verdict="hit",
        severity="error" if refused else "warning",
        effect="crash" if refused else "install",
        confidence="confirmed",
        title=f"{copy.name} {copy.version} asks for {wanted}, and {other.version} is there",
        why=f"{copy.name}{extra} declares it. "
        + (
            "It compares the versions when it is imported, and raises ImportError."
            if refused
            else "Installers do not look at extras again once they are done."
            if of_extra
            else "Another requirement or an upgrade by hand has overruled it."
        ),
        packages={copy.name: copy.version, other.name: other.version},
        fixes=tuple(_fixes(copy, other, requirement, package)),
        evidence=(_SPEC,),
        here=f"{copy.name} {copy.version}, {other.name} {other.version}",
    )


def _fixes(copy: Distribution, other: Distribution, requirement: Requirement, package: Package) -> Iterator[Fix]:
    key = key_of(other.version or "0")
    specifier, ranges, _, extra = requirement
    lower = [each[0] for each in ranges if each[0] is not None]
    kind = "upgrade" if lower and all(bound > key for bound in lower) else "downgrade"
    wanted = f"{other.name}{specifier}"
    yield Fix(kind, other.name, specifier, f"what {copy.name} asks for", f'pip install "{wanted}"')
    place = package.place(copy.version or "")
    accepting = None if place is None else package.accepting(
        place, other.name, extra, lambda accepted: contains(accepted, key)
    )  # fmt: skip
    if accepting is not None:
        newer = key_of(accepting) > key_of(copy.version or "0")
        spec = f">={accepting}" if newer else f"<={accepting}"
        text = f"the nearest release that takes {other.name} {other.version}"
        yield Fix("upgrade" if newer else "downgrade", copy.name, spec, text, f'pip install "{copy.name}=={accepting}"')
