"""What every release of a package needs of the others: each distinct need with the releases that have it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compat.interfaces.imports import Eager
from compat.interfaces.needs import Consumer, Place, direct_needs, packages_of
from compat.interfaces.source.records import AVAILABLE, BRANCH, FUNCTION, Module
from scripts.surface.mined import Mined, modules_of
from scripts.surface.packages import AROUND, BESIDE, TRACKED, USERS, tops_of

if TYPE_CHECKING:
    from compat.interfaces.needs import Need

_PASSED_OVER = re.compile(
    r"(^|[._])(tests?|testing|test_utils|testing_utils|prototype|benchmarks?|examples?|conftest|third_party|vendored?|npu|mlu|musa)([._]|$)"
)
_AT_IMPORT_ONLY = re.compile(
    r"^(transformers\.models\.|diffusers\.(models|pipelines|modular_pipelines|schedulers)\.|vllm\.model_executor\.|vllm\.v1\.attention"
    r"|sglang\.srt\.(models|layers)|timm\.|torch\.|torchvision\.|numpy\.)"
)
"""Thousands of near-copies whose calls all go to torch: only what runs when they are imported is read."""
_OF_A_DEVICE = re.compile(r"torch\.(xpu|mps|mtia|hpu|npu|mlu|musa)\b")
"""What is used in a function only where there is such a device; without one, it never runs."""
_BASE_ONLY = frozenset(
    (
        "numpy", "pyarrow", "pydantic", "fastapi", "starlette", "openai", "safetensors", "triton", "setuptools", "packaging",
        "typing-extensions", "importlib-metadata", "sentencepiece", "einops", "httpx", "requests", "urllib3", "anyio",
        "uvicorn", "click", "nvidia-ml-py",
    )
)  # fmt: skip
"""Packages that need nothing of the others."""

CONSUMERS = tuple(package for package in (*TRACKED, *BESIDE, *AROUND, *USERS) if package not in _BASE_ONLY)
PACKAGE_OF = {top: package for package in (*AROUND, *BESIDE, *TRACKED) for top in tops_of(package)}


def passed_over(module: str) -> bool:
    return bool(_PASSED_OVER.search(module))


def needs_of(mined: Mined, package: str) -> dict[Need, int]:
    """Each need with the releases, a bit each, that have it."""
    found: dict[Need, int] = defaultdict(int)
    own = frozenset(tops_of(package))
    sources: dict[str, dict[tuple[int, str], int]] = defaultdict(lambda: defaultdict(int))
    releases = mined.releases(package)
    for at, release in enumerate(releases):
        for name, source in modules_of(release).items():
            if name.partition(".")[0] in own and not passed_over(name):
                sources[name][source] |= 1 << at
    for kept in sources.values():
        for source, mask in kept.items():
            module = mined.record(*source)
            if module is not None:
                for need, _ in _direct(module, own):
                    found[need] |= mask
    for at, release in enumerate(releases):
        surface = mined.surface(release)
        consumer = Consumer(surface)
        for name in surface.names:
            if name in sources and not _AT_IMPORT_ONLY.search(name):
                for need, _ in _chained(consumer, surface.module(name)):
                    found[need] |= 1 << at
    return {need: mask for need, mask in found.items() if _is_tracked(need, package)}


def _direct(module: Module, own: frozenset[str]) -> Iterator[tuple[Need, Place]]:
    at_import_only = _AT_IMPORT_ONLY.search(module.name) is not None
    for need, place in direct_needs(module, own):
        if at_import(need, place) or not (at_import_only or _OF_A_DEVICE.match(need.target)) or need.kind == "import":
            yield need, place


def at_import(need: Need, place: Place) -> bool:
    return need.kind in ("import", "attribute") and not place.flags & (FUNCTION | BRANCH)


def _chained(consumer: Consumer, module: Module | None) -> Iterable[tuple[Need, Place]]:
    return consumer.inherited_needs(module) if module is not None else ()


def _is_tracked(need: Need, package: str) -> bool:
    targets = {PACKAGE_OF.get(top) for top in packages_of(need)} - {None, package}
    return bool(targets)


@dataclass(frozen=True)
class Occurrence:
    """A need where it is written. ``tier`` is E1, E2 or R1; ``asks`` the packages it is run for."""

    need: Need
    path: str
    scope: str
    tier: str
    asks: tuple[str, ...]


def occurrences_of(mined: Mined, package: str, wanted: dict[Need, int]) -> dict[Occurrence, dict[int, int]]:
    """Where the wanted needs are written: the releases by line. ``wanted`` says in which releases each matters."""
    found: dict[Occurrence, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    own = frozenset(tops_of(package))
    for at, release in enumerate(mined.releases(package)):
        bit = 1 << at
        if not any(mask & bit for mask in wanted.values()):
            continue
        surface = mined.surface(release)
        roots = [top for top in tops_of(package) if surface.holds(top) == "source"]
        eager = Eager(surface).run(roots)
        consumer = Consumer(surface)
        for name in surface.names:
            module = surface.module(name) if name.partition(".")[0] in own and not passed_over(name) else None
            if module is None:
                continue
            chained = () if _AT_IMPORT_ONLY.search(name) else _chained(consumer, module)
            for need, place in (*_direct(module, surface.tops), *chained):
                if wanted.get(need, 0) & bit:
                    found[_occurrence(need, module, place, eager)][place.line] |= bit
    return {occurrence: dict(lines) for occurrence, lines in found.items()}


def _occurrence(need: Need, module: Module, place: Place, eager: Eager) -> Occurrence:
    if not at_import(need, place):
        return Occurrence(need, module.path, place.scope, "R1", ())
    assert not place.flags & ~AVAILABLE
    reached = eager.modules.get(module.name)
    asks = frozenset(place.asks) | (reached or frozenset())
    return Occurrence(need, module.path, place.scope, "E2" if reached is None else "E1", tuple(sorted(asks)))
