"""Declared requirements that an environment violates, and those of extras, which installers forget once they are done.

A violated requirement is a warning: a source install, an override or a known fix may violate a pin on purpose. It is an error
only where the package itself refuses to be imported then.
"""

from __future__ import annotations

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
_NOT_FOR_USERS = ("dev", "test", "doc", "quality", "lint", "ci", "bench", "example", "notebook", "release", "style", "all")
_PURPOSE = ("vcs", "directory", "image", "nightly", "url")
_SPEC = "https://packaging.python.org/en/latest/specifications/core-metadata/#requires-dist-multiple-use"


def judge(facts: Facts, declared: Declared) -> Iterator[Finding]:
    """Findings about what the followed releases declare of each other."""
    for copy in facts.environment.distributions or ():
        if copy.name not in declared or copy.version is None or not is_version(copy.version):
            continue
        package = declared.package(copy.name)
        if package is None or (copy.source is not None and copy.source.kind in _PURPOSE):
            continue
        asked = _asked(package, copy.version, facts.environment)
        for name, requirements in asked.items():
            yield from _violated(copy, name, requirements, facts, declared)


def _asked(package: Package, version: str, environment: Environment) -> dict[str, list[Requirement]]:
    """What a release asks for here, by distribution; the same release is met in many selections of a lock."""
    place = version, environment.python, environment.os, environment.machine
    if place not in package.asked:
        found: dict[str, list[Requirement]] = {}
        for requirement in package.requirements(version):
            if requirement.ranges is not None and _applies(requirement, environment):
                found.setdefault(requirement.name, []).append(requirement)
        package.asked[place] = found
    return package.asked[place]


def _violated(
    copy: Distribution, name: str, requirements: list[Requirement], facts: Facts, declared: Declared
) -> Iterator[Finding]:
    found = facts.package(name)
    if not found or found == ABSENT or len(found) != 1:
        return
    other: Distribution = found[0]  # type: ignore[assignment]
    if other.version is None or not is_version(other.version) or (other.source is not None and other.source.kind in _PURPOSE):
        return
    key = key_of(other.version)
    if key[5] != _FINAL_DEV:  # a build from the main branch stands between releases
        return
    core = [each for each in requirements if each.extra is None]
    wrong = [each for each in core if not contains(each.ranges or (), key)]
    if wrong:
        yield _finding(copy, other, wrong[0], declared)
    elif not core and not any(contains(each.ranges or (), key) for each in requirements):
        yield _finding(copy, other, requirements[0], declared)


_FINAL_DEV = key_of("1")[5]


def _applies(requirement: Requirement, environment: Environment) -> bool:
    if requirement.extra is not None and any(word in requirement.extra.lower() for word in _NOT_FOR_USERS):
        return False
    return requirement.marker is None or _holds(requirement.marker, environment) is True


def _holds(text: str, environment: Environment) -> bool | None:
    """Whether a marker holds; ``None`` where what it asks is not known."""
    from compat.markers import comparisons, parse

    try:
        marker = parse(text)
    except ValueError:
        return None
    answers = {comparison: _compared(comparison, environment) for comparison in comparisons(marker)}
    return _kleene(marker, answers)


def _kleene(marker: Marker, answers: dict[Comparison, bool | None]) -> bool | None:
    form = marker[0]
    if form == "is":
        return answers[marker[1]]
    parts = [_kleene(each, answers) for each in marker[1:]]
    if form == "and":
        return False if False in parts else None if None in parts else True
    return True if True in parts else None if None in parts else False


def _compared(comparison: Comparison, environment: Environment) -> bool | None:
    from compat.markers import version_holds

    (is_left, left), operator, (is_right, right) = comparison
    if is_left == is_right:
        return None
    name, text = (left, right) if is_left else (right, left)
    if name in ("python_version", "python_full_version"):
        if environment.python is None or not is_left:
            return None
        numbers = tuple(int(part) for part in environment.python.split(".") if part.isdigit())
        return version_holds(numbers[:2] if name == "python_version" else numbers, operator, text)
    known = {
        "sys_platform": {"linux": "linux", "windows": "win32", "darwin": "darwin"}.get(environment.os or ""),
        "platform_system": {"linux": "Linux", "windows": "Windows", "darwin": "Darwin"}.get(environment.os or ""),
        "os_name": {"linux": "posix", "windows": "nt", "darwin": "posix"}.get(environment.os or ""),
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


def _finding(copy: Distribution, other: Distribution, requirement: Requirement, declared: Declared) -> Finding:
    refused = requirement.extra is None and other.name in REFUSED_AT_IMPORT.get(copy.name, ())
    extra = f"[{requirement.extra}]" if requirement.extra else ""
    wanted = f"{other.name}{requirement.specifier}"
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
            if requirement.extra
            else "Another requirement or an upgrade by hand has overruled it."
        ),
        packages={copy.name: copy.version, other.name: other.version},
        fixes=tuple(_fixes(copy, other, requirement, declared)),
        evidence=(_SPEC,),
        here=f"{copy.name} {copy.version}, {other.name} {other.version}",
    )


def _fixes(copy: Distribution, other: Distribution, requirement: Requirement, declared: Declared) -> Iterator[Fix]:
    key = key_of(other.version or "0")
    lower = [each[0] for each in requirement.ranges or () if each[0] is not None]
    kind = "upgrade" if lower and all(bound > key for bound in lower) else "downgrade"
    wanted = f"{other.name}{requirement.specifier}"
    yield Fix(kind, other.name, requirement.specifier, f"what {copy.name} asks for", f'pip install "{wanted}"')
    accepting = _accepting(copy, other, requirement, declared)
    if accepting is not None:
        newer = key_of(accepting) > key_of(copy.version or "0")
        spec = f">={accepting}" if newer else f"<={accepting}"
        text = f"the nearest release that takes {other.name} {other.version}"
        yield Fix("upgrade" if newer else "downgrade", copy.name, spec, text, f'pip install "{copy.name}=={accepting}"')


def _accepting(copy: Distribution, other: Distribution, requirement: Requirement, declared: Declared) -> str | None:
    """The nearest release of the asking package that accepts what is there; later ones first."""
    package = declared.package(copy.name)
    if package is None:
        return None
    here, key = key_of(copy.version or "0"), key_of(other.version or "0")
    good = package.accepting(other.name, requirement.extra, lambda ranges: contains(ranges, key))
    later = next((each for each in good if key_of(each) > here), None)
    earlier = next((each for each in reversed(good) if key_of(each) < here), None)
    return later or earlier
