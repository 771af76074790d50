"""The likelihood that unknown facts make a rule hold: 0 for packages that are not listed.

Reporting that everything might be wrong is useless. Each unknown fact lowers the likelihood of a finding, by how often the
fact has the value that rules require; for an open release, by the share of allowed releases that are bad.
"""

from __future__ import annotations

from compat.rules.facts import Facts, number_key
from compat.rules.logic import holds
from compat.versions import EVERY, Ranges, contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from compat.model import Distribution
    from compat.rules.conditions import Atom
    from compat.versions import Key


_FACTS = {
    "workload.task": 0.5,
    "workload.trainer": 0.4,
    "workload.model": 0.25,
    "workload.launcher": 0.5,
    "workload.processes": 0.6,
    "workload.precision": 0.5,
    "workload.quantization": 0.4,
    "workload.batch_size": 0.6,
    "workload.features": 0.25,
    "accelerators": 0.2,
    "driver": 0.4,
    "cuda_toolkit": 0.4,
    "python": 0.25,
    "glibc": 0.3,
    "os": 0.5,
    "machine": 0.5,
    "platform": 0.3,
    "build.torch": 0.7,
    "variables": 0.1,
}
_OTHER = 0.3
_BUILT = 0.5
"""The likelihood that an installed distribution was built or installed in the way that a rule requires."""
_NEWEST = 0.8
"""The likelihood of a bad release if the newest allowed release is bad, because installers select it."""
_PYTHONS = {"3.8": 1, "3.9": 2, "3.10": 5, "3.11": 5, "3.12": 5, "3.13": 2, "3.14": 1}
"""Relative frequency of Python versions, for environments of unknown version."""
_AMD, _SEVERAL = 0.1, 0.45
_TASKS = frozenset(("sft", "dpo", "grpo", "train", "lora", "qlora", "inference", "serve", "import"))
"""Common tasks; all others are rare."""
_RARE_TASK = 0.2


def of_paths(unknown: Iterable[str]) -> float:
    """The likelihood (0 to 1) for unknown facts (paths as in ``Finding.unknown``), based only on their kind."""
    result = 1.0
    for path in unknown:
        result *= _FACTS.get(path, _FACTS.get(".".join(path.split(".")[:2]), _FACTS.get(path.partition(".")[0], _OTHER)))
    return result


def of_atoms(unsettled: Iterable[Atom], facts: Facts) -> float:
    """The likelihood (0 to 1) that all of these undecided conditions hold."""
    result = 1.0
    for atom in unsettled:
        result *= _of_atom(atom, facts)
    return result


def _of_atom(atom: Atom, facts: Facts) -> float:
    form, name = atom[0], atom[1]
    if form == "any":
        return max(_of_atom(each, facts) for each in name if holds(each, facts) is None)
    if form == "feature":
        return _FACTS["workload.features"]
    if form == "variable":
        return _FACTS["variables"]
    if form == "accelerators":
        return _of_devices(atom)
    if form == "range" and name == "python":
        return sum(often for python, often in _PYTHONS.items() if contains(atom[2], key_of(f"{python}.9"))) / sum(
            _PYTHONS.values()
        )
    if name == "workload.task" and _TASKS.isdisjoint(atom[2]):
        return _RARE_TASK
    if form not in ("package", "source", "code"):
        return of_paths((name,))
    copies = facts.package(name)
    if not isinstance(copies, list):
        return 0.0
    return _BUILT if form != "package" else sum(_of_release(copy, atom[3]) for copy in copies) / len(copies)


def _of_devices(atom: Atom) -> float:
    _, count, (vendors, capability, names, gfx, memory) = atom
    if gfx is not None or (vendors is not None and "nvidia" not in vendors):
        return _AMD
    several = not contains(count, number_key(1)) and (capability, names, memory) == (None, None, None)
    return _SEVERAL if several else _FACTS["accelerators"]


def _of_release(copy: Distribution, bad: Ranges) -> float:
    """The likelihood that an open release is bad: high if the newest allowed one is, otherwise the share of bad ones."""
    if copy.version is not None:
        return float(contains(bad, key_of(copy.version)))
    asked = copy.name, copy.specifier, bad
    if asked not in _shares:
        _shares[asked] = _share(*asked)
    return _shares[asked]


_shares: dict[tuple[str, str | None, Ranges], float] = {}
"""Cached results: a file with hundreds of selections needs the same ones for each."""


def _share(name: str, specifier: str | None, bad: Ranges) -> float:
    if (name, specifier) not in _admitted:
        _admitted[name, specifier] = _admitted_by(name, specifier)
    keys = _admitted[name, specifier]
    if not keys:
        return _OTHER
    return _NEWEST if contains(bad, keys[-1]) else sum(contains(bad, key) for key in keys) / len(keys)


_admitted: dict[tuple[str, str | None], list[Key]] = {}


def _admitted_by(name: str, specifier: str | None) -> list[Key]:
    """The published releases that a specifier allows, oldest first; all releases if it cannot be parsed."""
    try:
        admitted = EVERY if specifier is None else ranges_of(specifier)
    except ValueError:
        admitted = EVERY
    return [key for key in _published(name) if contains(admitted, key)]


def _published(name: str) -> list[Key]:
    """The releases of a distribution that are not yanked, oldest first."""
    from compat.tables.declared import open_declared

    if name not in _releases:
        package = open_declared().package(name)
        known = () if package is None else package.releases
        _releases[name] = [key_of(release.version) for release in known if release.yanked is None]
    return _releases[name]


_releases: dict[str, list[Key]] = {}
