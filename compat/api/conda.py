"""What ``fix`` does about conda: torch from its channel, which ended, and an environment whose Python is too old."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from compat.api.case import Case
from compat.checks.torch_variants import ELSEWHERE, LAST, is_of_channel
from compat.formats.docker.base_images import LAST_PYTHON
from compat.formats.edit.changes import Change
from compat.formats.listing import Listing
from compat.model import Distribution, Source
from compat.records import replace
from compat.repair.plan import Plan
from compat.repair.problem import BESIDE
from compat.versions import key_of

_FORGE = "conda-forge"
_CUDA_OF_FORGE = "12.9"
"""The CUDA 12 of its builds of torch 2.8 to 2.13 (``.ci_support`` of its pytorch-cpu-feedstock, read on 2026-11-30)."""
_EDITED = ("environment.yml", "pixi.toml", "shell", "dockerfile")
"""Kinds of files whose conda packages are edited."""
_OF_CHANNEL = ("pytorch-cuda", "pytorch-mutex", "torchtriton")
"""Packages of the channel that only its own builds of torch take."""


def from_conda_forge(plan: Plan, case: Case) -> Plan:
    """The plan that takes torch and its companions from conda-forge, if it is past the end of the channel; refused for a file
    that pins every build."""
    copies = {copy.name: copy for copy in case.environment.distributions or () if copy.source and copy.source.kind == "conda"}
    if any(copy.name == "torch" and copy.name not in copies for copy in case.environment.distributions or ()):
        return _beside_a_wheel(plan, copies)
    torch = next((each for each in plan.changes if each.name == "torch" and each.name in copies), None)
    if torch is None or torch.after is None or key_of(torch.after) <= key_of(LAST) or not _is_of_channel(copies["torch"]):
        return plan
    if case.listing is not None and case.listing.kind == "environment.yml" and case.listing.complete and _has_pip(case):
        return _by_pip(plan, torch, copies)
    if case.listing is None or case.listing.kind not in _EDITED or (case.whole and case.listing.complete):
        refused = f"conda's pytorch channel ended with {LAST}, and this file pins every build: take pytorch from {_FORGE}"
        return replace(plan, refused=plan.refused or refused)
    why = f"conda's pytorch channel ended with {LAST}: torch {torch.after} is from {_FORGE}"
    moved = tuple(_moved(each) if each.name in copies else each for each in plan.changes)
    gone = (_gone(copies[name], why) for name in _OF_CHANNEL if name in copies)
    told = f"from {_FORGE}, not checked: it is for CUDA {_CUDA_OF_FORGE}; move what is pinned for another one by hand"
    toolkit = (_on_cuda(each) for each in copies.values() if _is_on_other_cuda(each))
    changes = tuple(sorted((*moved, *gone, *toolkit), key=lambda each: each.name))
    return replace(plan, changes=changes, assumed={**plan.assumed, f"torch {torch.after}": told})


def _beside_a_wheel(plan: Plan, copies: Mapping[str, Distribution]) -> Plan:
    """The plan that takes torchvision and torchaudio by pip, as torch is: conda's would bring conda's torch along."""
    wheels = (each.name for each in plan.changes if each.name in BESIDE and each.source is None)
    return replace(plan, changes=_by_wheels(plan, wheels, copies))


def _by_wheels(plan: Plan, names: Iterable[str], copies: Mapping[str, Distribution]) -> tuple[Change, ...]:
    """The changes of a plan, with wheels in the place of these packages of conda."""
    wheels = copies.keys() & set(names)
    return tuple(
        replace(each, source=Source("index"), before_source=copies[each.name].source)
        if each.name in wheels and each.after
        else each
        for each in plan.changes
    )


def _has_pip(case: Case) -> bool:
    """Whether a conda environment has pip: it lists it, or something that pip installs."""
    copies = case.environment.distributions or ()
    return any(copy.name == "pip" or copy.source is None or copy.source.kind != "conda" for copy in copies)


def _by_pip(plan: Plan, torch: Change, copies: Mapping[str, Distribution]) -> Plan:
    """The plan that takes torch and its companions as wheels, in a file that pins the build of every package.

    conda-forge's builds need others of most of these; wheels bring their own CUDA.
    """
    why = f"torch {torch.after} is installed by pip: conda's pytorch channel ended with {LAST}"
    moved = _by_wheels(plan, ("torch", *BESIDE), copies)
    gone = (_gone(copies[name], why) for name in _OF_CHANNEL if name in copies)
    told = "its wheel, in place of conda's build: remove packages of conda that require pytorch by hand"
    changes = tuple(sorted((*moved, *gone), key=lambda each: each.name))
    return replace(plan, changes=changes, assumed={**plan.assumed, f"torch {torch.after}": told})


def _is_of_channel(copy: Distribution) -> bool:
    """Whether it is, or may be, from the channel ``pytorch``."""
    details = copy.source.details if copy.source is not None else {}
    return is_of_channel(copy) or not details.get("channel")


def _moved(change: Change) -> Change:
    """A conda package of the plan, from conda-forge; its builds of torch for CUDA are preferred to those for the CPU."""
    if change.after is None or change.name not in ("torch", *BESIDE):
        return change
    variant = {"variant": "cuda*"} if change.name == "torch" else {}
    return replace(change, source=Source("conda", {"channel": _FORGE, **variant}))


def _gone(copy: Distribution, why: str) -> Change:
    return Change(copy.name, _pin_of(copy), None, why=why, before_source=copy.source)


def _pin_of(copy: Distribution) -> str:
    return copy.version or (copy.specifier or "").removeprefix("==").removesuffix(".*")


def _is_on_other_cuda(copy: Distribution) -> bool:
    """Whether a package of the CUDA toolkit is of another series of CUDA 12, which those builds exclude."""
    of_toolkit = copy.name == "cuda" or copy.name.startswith("cuda-")
    return of_toolkit and re.fullmatch(r"12\.\d{1,2}", _pin_of(copy)) is not None and _pin_of(copy) != _CUDA_OF_FORGE


def _on_cuda(copy: Distribution) -> Change:
    why = f"{_FORGE}'s builds of torch from {ELSEWHERE} on are for CUDA {_CUDA_OF_FORGE}"
    return Change(copy.name, _pin_of(copy), _CUDA_OF_FORGE, direct=True, why=why, before_source=copy.source)


def newer_pythons_of(listing: Listing, here: str) -> Iterator[tuple[Change, ...]]:
    """The moves of a conda environment to newer Pythons: that of Python, and the builds for the old one that are dropped."""
    copies = [entry.distribution for entry in listing.entries if entry.file is None and listing.kind == "environment.yml"]
    python = next((copy for copy in copies if copy.name == "python"), None)
    if python is None:
        return
    major, minor = map(int, here.split("."))
    old = f"py{major}{minor}"
    built = [copy for copy in copies if copy.source is not None and old in str(copy.source.details.get("build"))]
    kept = [Change(each.name, each.version, each.version, before_source=each.source) for each in built if each != python]
    for newer_minor in range(minor + 1, LAST_PYTHON + 1):
        yield Change("python", _pin_of(python), f"{major}.{newer_minor}", direct=True, before_source=python.source), *kept
