"""Which releases fail with which others, on import or later: the rows without their evidence.

This index is a few kilobytes, small enough for every check to load; the rows of a package are opened only if it reports a
failure. It is generated from the rows when the matrix is built. An optional package that is too old for a release to use counts
as not installed (:func:`least_available`).
"""

from __future__ import annotations

import marshal
import os
import zlib

from compat.files import DATA, read_table
from compat.records import kept
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias, TypedDict

    Failing: TypeAlias = list[tuple[str, int, int, tuple[str, ...]]]
    """For a consumer: (package, its failing releases, consumer releases, required packages), with sets as bit masks."""

    class _Index(TypedDict):
        """The index file: compressed, versions as one text for each package, tiers as :data:`Failing` for each consumer."""

        versions: bytes
        tiers: dict[str, bytes]


AVAILABLE_FROM: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("transformers", "accelerate"): (("4.36.0", "0.21.0"), ("4.45.0", "0.26.0"), ("5.0.0rc0", "1.1.0")),
    ("transformers", "bitsandbytes"): (("5.0.0rc0", "0.46.1"),),
    ("transformers", "hqq"): (("4.46.0", "0.2.1"),),
    ("transformers", "torch"): (("4.52.0", "2.1"), ("5.0.0", "2.2"), ("5.1.0", "2.4"), ("5.15.0", "2.5"), ("5.20.0", "2.6")),
    ("transformers", "torchao"): (("4.50.0", "0.4.0"), ("5.4.0", "0.15.0")),
    ("transformers", "compressed-tensors"): (("5.11.0", "0.15.0"),),
    ("transformers", "kernels"): (("5.0.0rc0", "0.9.0"), ("5.2.0", "0.10.2"), ("5.13.0", "0.15.2"), ("5.15.0", "0.16.0")),
    ("transformers", "mistral-common"): (("5.14.0", "1.11.5"),),
}
"""The least release of a package for which ``is_…_available()`` of the consumer holds, since releases of it: below, its guarded
imports are passed over. From ``transformers/utils/import_utils.py``, 4.26 to 5.24."""


def least_available(consumer: str, version: str, package: str) -> str | None:
    """The least release of a package that this release of the consumer uses; ``None`` if it uses every one."""
    steps = AVAILABLE_FROM.get((consumer, package), ())
    return next((least for since, least in reversed(steps) if key_of(since) <= key_of(version)), None)


_NAME = "at_once.bin"
TIERS = ("E1", "E2", "R1")
REACHED = "E2 reached"
"""The part of E2 about modules of the applications in :data:`ENTRIES` that any use of them runs, whatever else is installed."""
ENTRIES: dict[str, tuple[str, ...]] = {
    "unsloth": (), "unsloth-zoo": (), "llmcompressor": (), "optimum": (), "sentence-transformers": (), "auto-gptq": (),
    "autoawq": (),
    "axolotl": ("axolotl.cli.train",),
    "llamafactory": ("llamafactory.train.tuner",),
    "ms-swift": ("swift.llm.sft", "swift.llm.train.sft", "swift.pipelines.train.sft"),
    "verl": ("verl.trainer.main_ppo",),
    "openrlhf": ("openrlhf.cli.train_sft",),
    "sglang": ("sglang.srt.server", "sglang.srt.entrypoints.http_server"),
    "lighteval": ("lighteval.main_accelerate", "lighteval.pipeline"),
    "lm-eval": ("lm_eval.__main__", "lm_eval.evaluator"),
    "vllm": ("vllm.entrypoints.llm",),
    "nemo-toolkit": ("nemo.core.classes.common",),
    "basicsr": ("basicsr.data.degradations",),
}  # fmt: skip
"""Packages whose imports are followed into other packages, and the modules besides themselves that any use of them runs.

Following the imports of all packages would be too slow. Of modules that moved, every place is listed.
"""
JOB = "E2 of jobs"
"""The part of E2 about modules of the libraries in :data:`JOBS` that almost every job runs, whatever else is installed."""
JOBS: dict[str, tuple[str, ...]] = {
    "transformers": ("transformers.modeling_utils",),
    "diffusers": ("diffusers.models.modeling_utils", "diffusers.pipelines.pipeline_utils"),
    "fms-hf-tuning": ("tuning.sft_trainer",),
    "fschat": ("fastchat.model.model_adapter",),
    "instructlab-training": ("instructlab.training.model",),
    "litgpt": ("litgpt.finetune.full", "litgpt.finetune.lora", "litgpt.pretrain", "litgpt.generate.base"),
    "mergekit": ("mergekit.config",),
    "torchtune": ("torchtune.modules", "torchtune.training"),
}
"""Libraries that load their parts lazily, and the modules that loading any model, or any command of theirs, imports."""
MAIN = "main"
"""The part of E2 and R1 about the packages in :data:`MAINS`: releases with which all of these modules fail."""
MAINS: dict[str, tuple[str, ...]] = {
    "trl": ("trl.trainer.sft_trainer", "trl.trainer.dpo_trainer", "trl.trainer.reward_trainer"),
}  # fmt: skip
"""The main trainer modules of packages whose trainers are imported one by one. If all of them fail, either on import or when
their trainer is created, almost every job that uses the package fails."""
SERVERS: dict[str, tuple[str, ...]] = {"vllm": ("vllm.entrypoints.openai.api_server",)}
"""The modules that serving runs besides."""


class AtOnce:
    """The opened index; see the module docstring."""

    def __init__(self, content: bytes) -> None:
        opened: _Index = marshal.loads(content)
        self._versions: dict[str, str] = marshal.loads(zlib.decompress(opened["versions"]))
        self._packed = opened["tiers"]

    @property
    def packages(self) -> frozenset[str]:
        return frozenset(self._versions)

    def failing(self, listed: Mapping[str, Iterable[str]], *, tiers: Iterable[str] = ("E1",)) -> frozenset[str]:
        """Return the packages with a listed release that fails with a listed release of another package.

        ``tiers`` as in :mod:`compat.interfaces.rows`: on import of the package (E1), on import of one of its modules (E2), or
        later (R1).
        """
        return frozenset(consumer for consumer, _ in self._pairs(listed, tiers))

    def together(self, listed: Mapping[str, Iterable[str]], *, tiers: Iterable[str]) -> frozenset[str]:
        """Return the packages of :meth:`failing`, with those whose releases they fail with."""
        return frozenset(name for pair in self._pairs(listed, tiers) for name in pair)

    def pairs(self, installed: Mapping[str, str], about: frozenset[str]) -> set[frozenset[str]]:
        """Return the pairs of installed packages, one of them in ``about``, of which one fails to import with the other.

        Of the applications in :data:`ENTRIES` and the libraries in :data:`JOBS`, also those of which such a module fails.
        """
        tiers = ("E1", JOB, REACHED) if not ENTRIES.keys().isdisjoint(installed) else ("E1", JOB)
        listed = {name: (version,) for name, version in installed.items()}
        return set(map(frozenset, self._pairs(listed, tiers, about)))

    def _pairs(
        self, listed: Mapping[str, Iterable[str]], tiers: Iterable[str], about: frozenset[str] | None = None
    ) -> Iterator[tuple[str, str]]:
        """Yield each (consumer, package) of which some listed releases fail together, one of them in ``about``."""
        bits: dict[str, int] = {}

        def are_among(name: str, releases: int) -> int:
            if name not in bits:
                bits[name] = self._bits(name, listed[name]) if name in self._versions and name in listed else 0
            return bits[name] & releases

        tops: set[str] | None = None
        for tier in tiers:
            for consumer in self._tier(tier).keys() & listed.keys():
                packages = listed.keys() if about is None or consumer in about else about
                for package, bad, when, asks in self._of(tier, consumer):
                    if package in packages and are_among(consumer, when) and are_among(package, bad):
                        tops = importable(listed) if tops is None else tops
                        if tops.issuperset(asks):
                            yield consumer, package

    @kept
    def _of(self, tier: str, consumer: str) -> Failing:
        failing: Failing = marshal.loads(self._tier(tier)[consumer])
        return failing

    @kept
    def _tier(self, tier: str) -> dict[str, bytes]:
        by_consumer: dict[str, bytes] = marshal.loads(zlib.decompress(self._packed[tier]))
        return by_consumer

    def _bits(self, package: str, versions: Iterable[str]) -> int:
        known, found = tuple(self._versions[package].split(" ")), 0
        for version in versions:
            found |= bit_of(known, version)
        return found


def importable(names: Iterable[str]) -> set[str]:
    """Return the normalised names, and each name as a module (``-`` as ``_``): both forms occur in ``asks``."""
    found = set(names)
    return found | {name.replace("-", "_") for name in found}


def place_of(known: tuple[str, ...], version: str) -> int | None:
    """Return the index of a version in ``known``, ignoring its local label; ``None`` if it is not listed."""
    version = version.partition("+")[0]
    try:
        return known.index(version)
    except ValueError:
        pass
    try:  # an equivalent spelling
        wanted = key_of(version)
    except ValueError:
        return None
    return next((at for at, each in enumerate(known) if key_of(each) == wanted), None)


def bit_of(known: tuple[str, ...], version: str) -> int:
    """Return the bit of a version in sets of ``known`` releases: one before the oldest has that of :func:`with_older`."""
    at, public = place_of(known, version), version.partition("+")[0]
    plain = public.replace(".", "").isdecimal() and is_version(public)  # "4." is none
    if at is None and known and plain and key_of(public) < key_of(known[0]):
        at = len(known)  # builds from source have versions like 0.1.dev1, whatever their age
    return 0 if at is None else 1 << at


def with_older(lacking: int, known: tuple[str, ...]) -> int:
    """Add a bit behind those of the known releases, for all before the oldest, to a set of releases that lack a name.

    What the oldest known release lacks came later, so that no release before it has it.
    """
    return lacking | (lacking & 1) << len(known)


def open_at_once() -> AtOnce:
    """Open the shipped index."""
    return AtOnce(read_table(os.path.join(DATA, "surface", _NAME)))
