"""Unknown facts: the likelihood that they make a rule hold, and the values they can have.

Reporting that everything might be wrong is useless. Each unknown fact lowers the likelihood of a finding, by how often the
fact has the value that rules require; for an open release, by the share of allowed releases that are bad. A package that is
not listed has likelihood 0.
"""

from __future__ import annotations

import itertools

from compat.model import Accelerator, Distribution, Source
from compat.records import cached
from compat.rules.facts import ABSENT, SHARDING, Facts, family_of, has_more, number_key
from compat.rules.logic import by_root, holds
from compat.rules.rule import (
    KINDS,
    AnyOf,
    Condition,
    HasCode,
    HasDevices,
    HasFeature,
    HasPackage,
    HasVariable,
    InRange,
    InstalledFrom,
    IsOneOf,
)
from compat.versions import EVERY, Ranges, contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from compat.tables.declared import Package
    from compat.versions import Key

    Pins: TypeAlias = tuple[tuple[str, str], ...]


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
    "glibc": 0.2,
    "os": 0.5,
    "machine": 0.5,
    "platform": 0.3,
    "build.torch": 0.7,
    "build.vllm": 0.6,
    "build.flash-attn": 0.5,
    "build.sgl-kernel": 0.6,
    "build.sglang-kernel": 0.6,
    "variables": 0.1,
}
_OTHER = 0.3
_BUILT = 0.5
"""The likelihood that an installed distribution was built or installed in the way that a rule requires."""
_NEWEST = 0.8
"""The likelihood of a bad release if the newest allowed release is bad, because installers select it."""
_NOT_NEWEST = 0.3
"""How much less likely a bad release is where an installer will select the newest one, and that is not bad."""
_PYTHONS = {"3.8": 1, "3.9": 2, "3.10": 5, "3.11": 5, "3.12": 5, "3.13": 2, "3.14": 1}
"""Relative frequency of Python versions, for environments of unknown version."""
_HEAD = key_of("99999")
"""Stands for the newest commit of a repository, which comes after every release."""
_OLD_HEAD = 0.02
"""The likelihood that the newest commit of a repository is still what a rule says of certain releases."""
_REVISIONS = frozenset(("commit", "requested_revision"))
_NEWER_PYTHON = 0.5
_PLATFORMS = {
    ("linux", "x86_64"): 8, ("linux", "aarch64"): 1, ("windows", "AMD64"): 1, ("darwin", "arm64"): 1,
}  # fmt: skip
"""Relative frequency of the platforms that jobs run on; the others are rare."""
_RARE_PLATFORM = 0.1
_SYSTEMS = {"linux": 0.8, "windows": 0.1, "darwin": 0.1}
"""Relative frequency of the systems that jobs run on."""
_AMD, _NVIDIA, _SEVERAL = 0.1, 0.7, 0.45
"""How likely GPUs that nobody named are AMD's, are NVIDIA's, are several."""
_OF_AMD = {"HIP_VISIBLE_DEVICES": 0.9, "HSA_OVERRIDE_GFX_VERSION": 0.9, "ROCR_VISIBLE_DEVICES": 0.5}
"""Variables that are set for AMD's GPUs; Slurm sets the last one for those of others as well."""
_TASKS = {
    "train": 0.5, "inference": 0.5, "serve": 0.5, "import": 0.5,
    "sft": 0.45, "lora": 0.4, "grpo": 0.3, "qlora": 0.3, "dpo": 0.2, **dict.fromkeys(KINDS, 0.5),
}  # fmt: skip
"""How common each task is among those that a package is used for; the others are rare."""
_RARE_TASK = 0.1
_FEATURES = {
    "default-precision": 0.5, "peft": 0.5, "gradient-accumulation": 0.5, "gradient-checkpointing": 0.4, "device-map": 0.3,
    "unsloth": 0.3, "vllm": 0.3, "deepspeed": 0.25, "zero-3": 0.25, "zero-2": 0.25, "fsdp": 0.25, "torch-compile": 0.25,
}  # fmt: skip
"""How common each feature is in training scripts and configurations; the others are rare."""
_RARE_FEATURE = 0.15
_COMMON_FAMILIES = (
    "llama",
    "qwen",
    "mistral",
    "mixtral",
    "gemma",
    "phi",
    "deepseek",
    "gpt-oss",
    "glm",
    "internvl",
    "llava",
    "whisper",
    "t5",
    "bert",
)
"""How the names of the families begin that most jobs are about."""
_RARE_VARIANTS = ("gemma-3n", "qwen3-next")
"""Families with such a name that few jobs are about."""
_RARE_FAMILY = 0.03
_OF_IMAGES = ("qwen2-vl", "qwen2.5-vl", "qwen3-vl")
"""Families that every second multimodal job is about."""
_MULTIMODAL = 0.5
_SINGLE_MODEL = 0.05
"""The likelihood that a model is one of a few checkpoints that are named in full."""


def of_paths(unknown: Iterable[str]) -> float:
    """The likelihood (0 to 1) for unknown facts (paths as in ``Finding.unknown``), based only on their kind."""
    result = 1.0
    for path in unknown:
        result *= _FACTS.get(path, _FACTS.get(".".join(path.split(".")[:2]), _FACTS.get(path.partition(".")[0], _OTHER)))
    return result


def frequency(python: tuple[int, ...], os: str, machine: str) -> float:
    """The relative frequency of an interpreter on a platform, for contexts of which a file does not say which one it is for."""
    interpreter = _PYTHONS.get(".".join(map(str, python[:2])), _NEWER_PYTHON)
    return interpreter * _PLATFORMS.get((os, machine), _RARE_PLATFORM)


def of_conditions(unsettled: Iterable[Condition], facts: Facts) -> float:
    """The likelihood (0 to 1) that all of these undecided conditions hold."""
    result = 1.0
    for condition in unsettled:
        result *= _of_condition(condition, facts)
    return result


def _of_models(words: Collection[str], facts: Facts) -> float:
    """The likelihood that an unknown model is one of these: checkpoints named in full, or families."""
    if all("/" in word for word in words):
        return _SINGLE_MODEL
    if facts.feature("multimodal"):
        return _MULTIMODAL if any(word.startswith(_OF_IMAGES) for word in words) else _RARE_FAMILY
    often = _FACTS["workload.model"]
    common = any(word.startswith(_COMMON_FAMILIES) and word not in _RARE_VARIANTS for word in words)
    return often if common else min(often, _RARE_FAMILY * len(words))


def _of_condition(condition: Condition, facts: Facts) -> float:
    if isinstance(condition, AnyOf):
        return max(_of_condition(each, facts) for each in condition.conditions if holds(each, facts) is None)
    if isinstance(condition, HasFeature):
        often = _FEATURES.get(condition.name, _RARE_FEATURE)
        return often if condition.on else 1 - often
    if isinstance(condition, HasVariable):
        return _FACTS["variables"]
    if isinstance(condition, HasDevices):
        return _of_devices(condition, facts)
    if isinstance(condition, InRange) and condition.path == "python":
        fitting = (often for python, often in _PYTHONS.items() if contains(condition.ranges, key_of(f"{python}.9")))
        return sum(fitting) / sum(_PYTHONS.values())
    if isinstance(condition, IsOneOf) and condition.path == "workload.task":
        return min(_FACTS[condition.path], sum(_TASKS.get(task, _RARE_TASK) for task in condition.words))
    if isinstance(condition, IsOneOf) and condition.path == "os":
        return sum(_SYSTEMS.get(system, 0.0) for system in condition.words)
    if isinstance(condition, IsOneOf) and condition.path == "workload.model":
        return _of_models(condition.words, facts)
    if isinstance(condition, (IsOneOf, InRange)):
        return of_paths((condition.path,))
    copies = facts.package(condition.name)
    if not isinstance(copies, list):
        return 0.0
    if not isinstance(condition, HasPackage):
        return _BUILT
    return sum(_of_release(copy, condition.ranges, facts) for copy in copies) / len(copies)


def _of_devices(wanted: HasDevices, facts: Facts) -> float:
    if wanted.gfx is not None or (wanted.vendors is not None and "nvidia" not in wanted.vendors):
        told = [often for name, often in _OF_AMD.items() if facts.variable(name)[1]]
        return max(told, default=_AMD) * (_FACTS["accelerators"] if told and wanted.gfx is not None else 1)
    if (wanted.capability, wanted.names, wanted.memory_mib) != (None, None, None):
        return _FACTS["accelerators"]
    return _NVIDIA if contains(wanted.count, number_key(1)) else _SEVERAL


def _of_release(copy: Distribution, bad: Ranges, facts: Facts) -> float:
    """The likelihood that an open release is bad: high if the newest possible one is, otherwise the share of bad ones.

    Where an installer is going to select the release, it takes the newest that goes with the pinned ones: an older one is rare.
    """
    if copy.version is not None:
        return float(contains(bad, key_of(copy.version)))
    if copy.source is not None and copy.source.kind == "vcs" and not _REVISIONS.intersection(copy.source.details):
        return _NEWEST if contains(bad, _HEAD) else _OLD_HEAD
    return _likelihood(copy.name, copy.specifier, _related(copy.name, facts), bad, copy.source is None)


@cached  # a file with hundreds of selections needs the same ones for each
def _likelihood(name: str, specifier: str | None, pins: Pins, bad: Ranges, of_index: bool) -> float:
    keys = _possible(name, specifier, pins)
    if not keys:
        return _OTHER
    if contains(bad, keys[-1]):
        return _NEWEST
    share = sum(contains(bad, key) for key in keys) / len(keys)
    return share if of_index else share * _NOT_NEWEST


def _related(name: str, facts: Facts) -> Pins:
    """The pinned distributions that a distribution requires in some release, or that require it."""
    from compat.tables.declared import open_declared

    known, declared = facts.related, open_declared()
    if name not in known:
        mine = declared.package(name)
        asked = () if mine is None else mine.asks
        known[name] = tuple(
            (other, version) for other, version in facts.pins().items()
            if other in asked or ((theirs := declared.package(other)) is not None and name in theirs.asks)
        )  # fmt: skip
    return known[name]


@cached
def _possible(name: str, specifier: str | None, pins: Pins) -> list[Key]:
    """The published releases that an open requirement and the pinned distributions allow, oldest first.

    If the requirement cannot be parsed, or the pins allow no release at all, they do not count.
    """
    admitted = _admitted_by(name, specifier)
    return [key for key in admitted if _goes_with(name, key, pins)] or list(admitted)


def _goes_with(name: str, key: Key, pins: Pins) -> bool:
    """Whether a release and the pinned distributions accept each other, by what they require without extras and markers."""
    from compat.tables.declared import open_declared

    mine = open_declared().package(name)
    place = None if mine is None else _published(name)[key]
    for other, version in pins:
        if mine is not None and place is not None and other in mine.asks and not _accepts(mine, place, other, key_of(version)):
            return False
        theirs = open_declared().package(other)
        if theirs is not None and name in theirs.asks:
            pinned = theirs.place(version)
            if pinned is not None and not _accepts(theirs, pinned, name, key):
                return False
    return True


def _accepts(package: Package, place: int, name: str, key: Key) -> bool:
    always = (ranges for _, ranges, marker, extra in package.requirements(place, name) if marker is None and extra is None)
    return all(contains(ranges, key) for ranges in always)


def _admitted_by(name: str, specifier: str | None) -> Collection[Key]:
    """The published releases that a specifier allows, oldest first; all of them if it cannot be parsed."""
    try:
        admitted = EVERY if specifier is None else ranges_of(specifier)
    except ValueError:
        admitted = EVERY
    return [key for key in _published(name) if contains(admitted, key)]


@cached
def _published(name: str) -> Mapping[Key, int]:
    """The places of the releases of a distribution that are not yanked, oldest first."""
    from compat.tables.declared import open_declared

    package = open_declared().package(name)
    known = () if package is None else package.releases
    return {key_of(release.version): place for place, release in enumerate(known) if release.yanked is None}


# --- The values that unknown facts can have.
#
# Kleene's logic is imprecise only if a rule uses one unknown fact in several conditions ("trl below 0.16 … unless trl is
# 0.15.2"). For each such fact a few representative values are enough: one for each position relative to the bounds and words
# that the rule mentions. The rule holds if and only if it holds for all of them, and is clear if and only if it holds for none.


LIMIT = 20_000
"""The maximum number of combinations; beyond it the verdict stays "possible", which is never wrong, only less precise."""

OTHER = "(another)"
_NUMBERS = ("workload.processes", "workload.batch_size")


def completions(conditions: Sequence[Condition], facts: Facts) -> Iterator[Facts]:
    """Yield the facts completed in every possible way, for each unknown fact that the conditions use more than once.

    ``conditions`` are the undecided ones of a rule. Yields nothing if no fact is used twice, or if there are more than
    :data:`LIMIT` combinations.
    """
    asked = by_root(conditions)
    choices = {root: _stand_ins(root, about, facts) for root, about in asked.items() if len(about) > 1}
    total = 1
    for stand_ins in choices.values():
        total *= len(stand_ins)
    if not choices or total > LIMIT:
        return
    for combination in itertools.product(*choices.values()):
        yield facts.completed(dict(zip(choices, combination)))


def _stand_ins(root: str, conditions: list[Condition], facts: Facts) -> list[Any]:
    if root.startswith("distributions."):
        return _distributions(root[14:], conditions, facts)
    if root == "workload.features":
        return _features(sorted({each.name for each in conditions if isinstance(each, HasFeature)}), facts)
    if root.startswith("variables."):
        values = (value for each in conditions if isinstance(each, HasVariable) for value in each.values)
        return [None, OTHER, *dict.fromkeys(values)]
    if root == "accelerators":
        return _accelerators([each for each in conditions if isinstance(each, HasDevices)], facts)
    words = [word for each in conditions if isinstance(each, IsOneOf) for word in each.words]
    if words:
        return [OTHER, *dict.fromkeys(word for word in words if _may_be(root, word, facts))]
    ranges = [each.ranges for each in conditions if isinstance(each, InRange)]
    return _numbers(ranges) if root in _NUMBERS else _cells(ranges)


def _may_be(root: str, value: str, facts: Facts) -> bool:
    """Whether a fact can have this value; a model name without a recognized family rules out all recognizable families."""
    return root != "workload.model" or facts.value(root) is None or family_of(value) is not None


def _numbers(ranges: list[Ranges]) -> list[int]:
    bounds = {int(key[1][0]) for each in ranges for interval in each for key in (interval[0], interval[2]) if key}
    return sorted({1, *(max(1, bound + step) for bound in bounds for step in (-1, 0, 1))})


def _cells(ranges: Iterable[Ranges]) -> list[object]:
    """A version key for every position relative to the bounds: below all of them, at each one, and just above each one."""
    bounds = sorted({key for each in ranges for interval in each for key in (interval[0], interval[2]) if key})
    return [(-1,), *(cell for bound in bounds for cell in (bound, (*bound, 0)))]


def _distributions(name: str, conditions: list[Condition], facts: Facts) -> list[object]:
    known = facts.package(name)
    if isinstance(known, list) and len(known) > 1:
        return [[copy] for each in known for copy in _copies(name, [each.version], [each.source], conditions)]
    versions = _cells(each.ranges for each in conditions if isinstance(each, HasPackage))
    if isinstance(known, list):
        versions = [known[0].version] if known[0].version is not None else versions
        return [[copy] for copy in _copies(name, versions, [known[0].source], conditions)]
    return [ABSENT, *([copy] for copy in _copies(name, versions, [None], conditions))]


def _copies(
    name: str, versions: Sequence[Any], sources: Sequence[Source | None], conditions: list[Condition]
) -> Iterator[Distribution]:
    kinds: list[str] = [
        OTHER,
        *dict.fromkeys(kind for each in conditions if isinstance(each, InstalledFrom) for kind in each.kinds),
    ]
    detectors = [each.detector for each in conditions if isinstance(each, HasCode)]
    for version, source in itertools.product(versions, sources):
        given = [source.kind] if source else kinds
        details = source.details if source else {}
        for kind, found in itertools.product(given, itertools.product((True, False), repeat=len(detectors))):
            if kind in ("index", "conda") and any(found):
                continue  # a release never contains the code of a commit
            contains = {**dict(zip(detectors, found)), **details.get("contains", {})}
            yield Distribution(name=name, version=version, source=Source(kind, {**details, "contains": contains}))


def _features(names: list[str], facts: Facts) -> list[dict[str, bool]]:
    open_names = [name for name in names if facts.feature(name) is None]
    found = []
    for combination in itertools.product((True, False), repeat=len(open_names)):
        answer = dict(zip(open_names, combination))
        if sum(answer.get(name, False) for name in SHARDING) <= 1 + (answer.get("fsdp", False) and answer.get("fsdp2", False)):
            found.append(answer)
    return found


def _accelerators(conditions: list[HasDevices], facts: Facts) -> list[tuple[Accelerator, ...]]:
    known = facts.accelerators()
    if known is not None:
        return _completed(known, conditions, _highest_count(conditions))
    kinds = _devices(conditions, Accelerator())
    found: list[tuple[Accelerator, ...]] = []
    for count in range(_highest_count(conditions) + 2):
        found += itertools.islice(itertools.combinations_with_replacement(kinds, count), LIMIT)
    return found


def _completed(known: tuple[Accelerator, ...], conditions: list[HasDevices], highest: int) -> list[tuple[Accelerator, ...]]:
    """Known devices with their unknown properties filled in; one that has :func:`has_more` occurs any number of times."""
    options: list[list[tuple[Accelerator, ...]]] = []
    size = 1
    for device in known:
        numbers = range(1, highest + 2) if has_more(device) else (1,)
        size *= len(numbers)
        if size > LIMIT:
            return [known]
        kinds = _devices(conditions, device)
        options.append([(kind,) * number for kind in kinds for number in numbers])
        size *= len(kinds)
    return [tuple(itertools.chain(*choice)) for choice in itertools.product(*options)] if size <= LIMIT else [known]


def _highest_count(conditions: list[HasDevices]) -> int:
    return max((int(key[1][0]) for each in conditions for i in each.count for key in (i[0], i[2]) if key), default=1)


def _devices(conditions: list[HasDevices], known: Accelerator) -> list[Accelerator]:
    """One device for every combination of unknown properties that the conditions distinguish."""
    ways: list[list[Any]] = [
        ["nvidia", "amd", OTHER, *(vendor for each in conditions for vendor in each.vendors or ())],
        list(_cells(each.capability for each in conditions if each.capability)),
        [OTHER, *(name for each in conditions for name in each.names or ())],
        [OTHER, *(gfx for each in conditions for gfx in each.gfx or ())],
        list(_cells(each.memory_mib for each in conditions if each.memory_mib)),
    ]
    for position, value in enumerate((known.vendor, known.compute_capability, known.name, known.gfx, known.memory_mib)):
        if value is not None:
            ways[position] = [value]
    return [
        Accelerator(vendor=vendor, compute_capability=capability, name=name, gfx=gfx, memory_mib=memory)
        for vendor, capability, name, gfx, memory in itertools.product(*map(dict.fromkeys, ways))
    ]
