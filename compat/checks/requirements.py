"""Declared requirements that an environment violates, and missing requirements of installed packages.

A violated requirement is a warning: a source install, an override or a known fix may violate a pin on purpose. It is an error
if the package then fails to import, or is compiled for the exact release it pins, and in a file that an installer has yet to
resolve, as it refuses such pins. Extras count if they are requested; one that
nobody mentions raises a question if several of its pins are installed.
"""

from __future__ import annotations

from compat.checks.fix_commands import moved_to
from compat.model import Distribution, Environment, Finding, Fix, is_release, normalized, of_no_index
from compat.records import cached, record, replace
from compat.rules.facts import Facts
from compat.versions import Ranges, contains, is_version, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from compat.markers import Comparison, Marker
    from compat.tables.declared import Declared, Package, Requirement


REFUSED_AT_IMPORT = {
    "transformers": frozenset((
        "tokenizers", "huggingface-hub", "safetensors", "regex", "tqdm", "filelock", "pyyaml", "numpy", "packaging", "requests",
    )),
}  # fmt: skip
"""Packages whose versions transformers checks at import (dependency_versions_check)."""
SPECIFICATION = "https://packaging.python.org/en/latest/specifications/core-metadata/#requires-dist-multiple-use"


EXTENSIONS_OF_TORCH = frozenset(("torchvision", "torchaudio", "torchtext"))
"""Packages compiled for the torch that they require: with another one their operators are missing."""
MAY_BE_ERRORS = EXTENSIONS_OF_TORCH.union(REFUSED_AT_IMPORT)
"""The distributions whose violated requirements may be errors, and not only warnings."""
_BUILDS_DIFFER = ("torch", "torchvision", "torchaudio")
CUDA_LIBRARIES = ("nvidia-", "cuda-")
"""Prefixes of the packages with the CUDA libraries that torch requires."""
_OF_THE_BUILD = (*CUDA_LIBRARIES, "pytorch-triton")
"""Prefixes of packages whose pins differ between builds of torch: a build for another CUDA pins another version."""
_OF_CUDA_BUILDS = ("triton",)
"""Packages that every CUDA build of a release pins alike; builds for CPUs, ROCm and Intel GPUs do not require them."""


def judge(
    facts: Facts, declared: Declared, about: frozenset[str] | None = None, asking: Collection[str] | None = None
) -> Iterator[Finding]:  # fmt: skip
    """Check the METADATA of installed distributions; for others, the requirements in the tables of tracked packages.

    ``about`` limits the findings to requirements of or for these distributions, ``asking`` to the requirements of these.
    """
    for copy in facts.environment.distributions or ():
        if asking is not None and copy.name not in asking:
            continue
        asked = None if about is None or copy.name in about else about
        if copy.requires is not None:
            yield from _of_metadata(copy, copy.requires, facts, declared, asked)
            continue
        for other, requirements, package in _installed_of_asked(copy, facts, declared, asked):
            wrong = _violated(copy, other, requirements, facts)
            verdict = _verdict(copy, other.name)
            if wrong is None:
                partial = not facts.environment.distributions_complete and "extras" not in copy.extra
                if partial and not all(contains(each[1], key_of(other.version or "")) for each in requirements):
                    yield from _of_likely_extra(copy, other, requirements, facts, package)
            elif verdict == "hit":
                yield _finding(copy, other, wrong, package)
            elif verdict == "possible":
                finding = _finding(copy, other, wrong, package)
                yield replace(finding, verdict="possible", missing=("build",), unknown=("build.torch",))


def moved_along(releases: Collection[str], facts: Facts, declared: Declared) -> Iterator[tuple[str, str]]:
    """Yield the installed packages that certainly move along with these releases, which refuse them, and what is required."""
    for copy in facts.environment.distributions or ():
        for other, requirements, _ in _installed_of_asked(copy, facts, declared) if copy.name in releases else ():
            wrong = _violated(copy, other, requirements, facts)
            if wrong is not None and _verdict(copy, other.name) == "hit":
                yield other.name, wrong[0]


def _installed_of_asked(
    copy: Distribution, facts: Facts, declared: Declared, about: frozenset[str] | None = None
) -> Iterator[tuple[Distribution, tuple[Requirement, ...], Package]]:
    """Yield the installed packages that a release in the tables requires, if they have one comparable version."""
    if copy.name not in declared or copy.version is None or not is_release(copy):
        return
    package = declared.package(copy.name)
    place = None if package is None else package.place(copy.version)
    if package is None or place is None:
        return
    for name in package.asks:
        found = facts.package(name) if about is None or name in about else None
        if not isinstance(found, list) or len(found) != 1:
            continue
        other = found[0]
        if other.version is None or not is_version(other.version) or _has_unstated_version(other):
            continue
        if key_of(other.version)[5] != _FINAL_DEV:  # a build from the main branch is between releases
            continue
        if requirements := package.requirements(place, name):
            yield other, requirements, package


def _has_unstated_version(copy: Distribution) -> bool:
    """Whether installers learn the version only from a build; an archive states it in its file name."""
    return of_no_index(copy) and copy.source is not None and copy.source.kind != "url"


def _violated(
    copy: Distribution, other: Distribution, requirements: tuple[Requirement, ...], facts: Facts
) -> Requirement | None:  # fmt: skip
    """The first of the requirements that apply which the other distribution violates."""
    key, extras = key_of(other.version or ""), copy.extra.get("extras", ())
    for each in requirements:
        if (each[3] is None or each[3] in extras) and not contains(each[1], key) and applies(each, facts.environment):
            return each
    return None


def _verdict(copy: Distribution, name: str) -> str:
    """``hit`` if every build of a release has the requirement in the tables, which hold that of the default build."""
    if copy.name not in _BUILDS_DIFFER:
        return "hit"
    from compat.checks.torch_build import index_label

    label = (copy.version or "").partition("+")[2] or index_label(copy)
    if copy.name == "torch" and name in _OF_CUDA_BUILDS and label and not label.startswith("cu"):
        return "clear"
    if name.startswith(_OF_THE_BUILD):
        return "clear" if label else "possible"
    return "hit"


# --- Requirements of extras that were not requested explicitly.
#
# Presence shows no extra: pandas next to datasets does not mean datasets[vision]. Two packages in exactly the releases that an
# extra pins do (sglang[srt]), unless the list is complete: a lock file would say so, and other packages pin the same releases
# (ray[llm] and vllm). A feature with the name of an extra does not: accelerate[deepspeed] caps what the tests of accelerate run
# with.


_REQUESTED = 0.7
"""The likelihood that an extra was requested if several packages are installed as it pins them."""
_ENOUGH_PINS = 2


def _of_likely_extra(
    copy: Distribution, other: Distribution, requirements: tuple[Requirement, ...], facts: Facts, package: Package
) -> Iterator[Finding]:
    likely = [
        (each, pinned[:_ENOUGH_PINS]) for each in requirements
        if each[3] is not None and applies(each, facts.environment)
        and len(pinned := _installed_as_pinned(each[3], copy, facts, package)) >= _ENOUGH_PINS
    ]  # fmt: skip
    key = key_of(other.version or "")
    if not likely or any(contains(each[1], key) for each, _ in likely):
        return  # variants for other hardware share most pins: what meets one of them is meant to
    wrong, pinned = likely[0]
    asking = f"{copy.name}[{wrong[3]}]"
    finding = _finding(copy, other, wrong, package)
    yield replace(
        finding, verdict="possible", missing=("install",), unknown=(f"distributions.{copy.name}.source",),
        likelihood=_REQUESTED, title=finding.title.replace(copy.name, asking, 1),
        why=f"{asking} declares it in its metadata, and {' and '.join(pinned)} are installed in the versions it pins.",
    )  # fmt: skip


def _installed_as_pinned(extra: str, copy: Distribution, facts: Facts, package: Package) -> list[str]:
    """The packages that are installed in exactly the release that an extra pins."""
    place = package.place(copy.version or "")
    if place is None:
        return []
    installed = {each.name: each.version for each in facts.environment.distributions or ()}
    return [
        name for name in package.asks
        if (version := installed.get(name)) is not None and is_version(version) and any(
            each[3] == extra and _is_pin(each[0]) and contains(each[1], key_of(version))
            for each in package.requirements(place, name)
        )
    ]  # fmt: skip


def _is_pin(specifier: str) -> bool:
    return specifier.startswith("==") and "*" not in specifier and "," not in specifier


# --- Requirements from installed METADATA: those of the installed build, and of packages that are not in the tables.


def _of_metadata(
    copy: Distribution, lines: tuple[str, ...], facts: Facts, declared: Declared, asked: frozenset[str] | None = None
) -> Iterator[Finding]:  # fmt: skip
    """Yield findings for missing or violated requirements, limited to those for the distributions in ``asked``."""
    for name, specifier, marker in _taken_apart(lines):
        if asked is not None and name not in asked:
            continue
        found = facts.package(name)
        other = found[0] if isinstance(found, list) and len(found) == 1 else None
        if isinstance(found, list) and (other is None or other.version is None or not is_version(other.version)):
            continue
        ranges = _ranges(specifier)
        if other is not None and (ranges is None or contains(ranges, key_of(other.version or ""))):
            continue
        if marker and not _marked(marker, facts.environment):
            continue
        if other is None:
            yield _missing(copy, name, specifier)
        else:
            from compat.checks.torch_build import image_of

            published = image_of(copy) or is_release(copy)  # an image has releases of the index
            package = declared.package(copy.name) if copy.name in declared and published else None
            yield _finding(copy, other, (specifier, ranges or (), None, None), package)


@cached
def _taken_apart(lines: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Split ``torch[opt] (>=2.0); python_version < "3.12"`` into name, specifier set and marker; no set for a direct URL."""
    found = []
    for line in lines:
        written, _, marker = line.partition(";")
        requirement = written.strip() if "@" not in written else written.partition("@")[0].strip()
        rest = requirement.lstrip(_LETTERS)
        name = requirement[: len(requirement) - len(rest)]
        if rest:
            rest = rest.lstrip()
            if rest.startswith("["):
                rest = rest.partition("]")[2].strip()
            rest = rest.strip("()").replace(" ", "")
        found.append((normalized(name), rest, marker.strip()))
    return found


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


@cached
def _ranges(specifier: str) -> Ranges | None:
    """The ranges of a specifier set; ``None`` if it is empty or cannot be expressed as ranges."""
    try:
        return ranges_of(specifier) if specifier else None
    except ValueError:
        return None


def _marked(marker: str, environment: Environment) -> bool:
    from compat.markers import parse

    try:
        return _holds(parse(marker), environment) is True
    except ValueError:
        return False


def _missing(copy: Distribution, name: str, specifier: str) -> Finding:
    requirement = name + specifier
    return Finding(
        rule=f"requires-{copy.name}-{name}", origin="metadata", severity="warning",
        title=f"{copy.name} {copy.version} requires {requirement}, which is not installed",
        why=f"{copy.name} declares it in its metadata; code that needs it fails with ModuleNotFoundError.",
        packages={copy.name: copy.version, name: None},
        fixes=(Fix("pin", name, specifier or None, f"what {copy.name} requires", f'pip install "{requirement}"'),),
        evidence=(SPECIFICATION,), here=f"{copy.name} {copy.version}, no {name}",
    )  # fmt: skip


_FINAL_DEV = key_of("1")[5]


def applies(requirement: Requirement, environment: Environment) -> bool:
    """Whether the marker of a requirement holds by what is known."""
    marker = requirement[2]
    return marker is None or _holds(marker, environment) is True


def may_apply(requirement: Requirement, environment: Environment) -> bool:
    """Whether no known fact contradicts the marker of a requirement."""
    marker = requirement[2]
    return marker is None or _holds(marker, environment) is not False


def unmet_markers(copy: Distribution, name: str, environment: Environment) -> tuple[str, ...]:
    """The markers under which an installed release requires a distribution, if the environment contradicts all of them."""
    from compat.markers import written
    from compat.tables.declared import open_declared

    package = open_declared().package(copy.name)
    place = None if package is None else package.place(copy.version or "")
    asked = () if package is None or place is None else [each for each in package.requirements(place, name) if each[3] is None]
    if any(may_apply(each, environment) for each in asked):
        return ()
    return tuple(written(each[2]) for each in asked if each[2] is not None)


def _holds(marker: Marker, environment: Environment) -> bool | None:
    """Whether a marker holds; ``None`` if it depends on unknown facts."""
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
        # packages with a machine marker for Linux are built for x86_64
        "platform_machine": environment.machine or ("x86_64" if environment.os == "linux" else None),
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }.get(name)
    if known is None:
        return None
    answers = {"==": known == text, "!=": known != text}
    if operator in ("in", "not in") and is_left:
        return bool((known in text) == (operator == "in"))
    return answers.get(operator)


def _finding(copy: Distribution, other: Distribution, requirement: Requirement, package: Package | None) -> Finding:
    specifier, _, _, of_extra = requirement
    refused = of_extra is None and other.name in REFUSED_AT_IMPORT.get(copy.name, ())
    # a lower bound is that of a wheel for every torch since (torchvision 0.29): whether it loads in an older one is open
    compiled = other.name == "torch" and copy.name in EXTENSIONS_OF_TORCH and specifier.startswith("==")
    asking = copy.name if of_extra is None else f"{copy.name}[{of_extra}]"
    why = f"{asking} declares it in its metadata. Another requirement or a manual upgrade has overridden it."
    if refused:
        why = f"{asking} declares it in its metadata, checks the version at import, and raises ImportError."
    elif compiled:
        why = f"{asking} is compiled for that torch; another one cannot load its operators (operator does not exist)."
    return Finding(
        rule=f"requires-{copy.name}-{other.name}", origin="metadata",
        severity="error" if refused or compiled else "warning", effect="crash" if refused or compiled else "install",
        title=f"{copy.name} {copy.version} requires {other.name}{specifier}, but {other.version} is installed",
        why=why, packages={copy.name: copy.version, other.name: other.version},
        fixes=tuple(_fixes(copy, other, requirement, package)), evidence=(SPECIFICATION,),
        here=f"{copy.name} {copy.version}, {other.name} {other.version}",
    )  # fmt: skip


def as_override_remark(finding: Finding, names: Collection[str]) -> Finding:
    """A violated requirement that the project itself replaces (``names``, as in ``Listing.overridden``): only a remark."""
    if finding.origin != "metadata" or finding.severity != "warning" or not any(name in names for name in finding.packages):
        return finding
    asking = next(iter(finding.packages))
    return replace(finding, severity="info", why=f"{asking} declares it in its metadata, and the project overrides it.")


def refused_by_installers(finding: Finding) -> Finding:
    """A violated requirement as what it is in a file that an installer resolves: an error, as it takes none of the two pins.

    So is a pin for another Python, and one to a release without a file for this Python and system.
    """
    if finding.rule.startswith(("python-", "wheels-")) and finding.verdict == "hit":
        return replace(finding, severity="error")
    pins = [version for version in finding.packages.values() if version is not None]
    if finding.origin != "metadata" or finding.severity != "warning" or finding.verdict != "hit" or len(pins) != 2:
        return finding
    why = "No installer accepts both pins: pip fails with ResolutionImpossible, uv with unsatisfiable requirements."
    title = finding.title.replace(" is installed", " is pinned")
    return replace(finding, severity="error", effect="install", title=title, why=why)


def _fixes(copy: Distribution, other: Distribution, requirement: Requirement, package: Package | None) -> Iterator[Fix]:
    key = key_of(other.version or "0")
    specifier, ranges, _, extra = requirement
    lower = [each[0] for each in ranges if each[0] is not None]
    kind = "upgrade" if lower and all(bound > key for bound in lower) else "downgrade"
    wanted = f"{other.name}{specifier}"
    yield Fix(kind, other.name, specifier, f"what {copy.name} requires", f'pip install "{wanted}"')
    place = None if package is None else package.place(copy.version or "")
    if package is None or place is None:
        return
    accepting = package.accepting(place, other.name, extra, lambda accepted: contains(accepted, key))
    if accepting is not None:
        text = f"the nearest release that accepts {other.name} {other.version}"
        yield moved_to(copy.name, copy.version or "0", accepting, text)


# --- Requirements between the distributions of an environment, met or not: for graphs and explanations.


@record(frozen=True)
class Requires:
    """One distribution requires another, in a version of ``specifier`` ("" for any).

    ``met`` is ``None`` if there is no version to compare; ``extra`` is the extra that has the requirement.
    """

    asking: str
    asked: str
    specifier: str
    met: bool | None
    extra: str | None = None


def requires_among(
    environment: Environment, names: Collection[str], asked: Collection[str] | None = None
) -> tuple[Requires, ...]:
    """The known requirements between those of the named distributions that are in the environment; ``asked``: only on these."""
    from compat.tables.declared import open_declared

    names = frozenset(names)
    copies = {copy.name: copy for copy in environment.distributions or () if copy.name in names}
    every = frozenset(copies if asked is None else copies.keys() & asked)
    found = []
    for copy in copies.values():
        wanted = every - {copy.name}
        for name, specifier, ranges, extra in asked_of(copy, wanted, environment, open_declared()):
            version = copies[name].version
            comparable = version is not None and is_version(version) and ranges is not None
            met = contains(ranges or (), key_of(version or "")) if comparable else None
            found.append(Requires(copy.name, name, specifier, True if not specifier else met, extra))
    return tuple(dict.fromkeys(found))


def asked_of(
    copy: Distribution, names: frozenset[str] | None, environment: Environment, declared: Declared
) -> Iterator[tuple[str, str, Ranges | None, str | None]]:
    """Yield (name, specifier, ranges, extra) for each requirement that applies, from METADATA or else from the tables.

    ``names`` limits them to those on these distributions (``None``: no limit).
    """
    if copy.requires is not None:
        for name, specifier, marker in _taken_apart(copy.requires):
            if (names is None or name in names) and "extra" not in marker and (not marker or _marked(marker, environment)):
                yield name, specifier, _ranges(specifier), None
        return
    package = declared.package(copy.name) if is_release(copy) else None
    asked = () if package is None else package.asks
    listed = [name for name in asked if names is None or name in names]
    place = package.place(copy.version or "") if package is not None and listed else None
    if package is None or place is None:
        return
    extras = copy.extra.get("extras", ())
    for name in listed if names is None else sorted(listed):
        for requirement in package.requirements(place, name):
            specifier, ranges, _, extra = requirement
            if (extra is None or extra in extras) and applies(requirement, environment):
                yield name, specifier, ranges, extra
