"""Plans for torch from conda's channel ``pytorch``: that channel ended, so a newer release comes from conda-forge."""

from __future__ import annotations

from compat.api.case import Case
from compat.checks.conda_torch import CHANNEL, LAST
from compat.formats.edit.changes import Change
from compat.model import Distribution, Source
from compat.records import replace
from compat.repair.plan import Plan
from compat.repair.problem import BESIDE
from compat.versions import key_of

_FORGE = "conda-forge"
_EDITED = ("environment.yml", "shell", "dockerfile")
"""Kinds of files whose conda packages are edited."""
_OF_CHANNEL = ("pytorch-cuda", "pytorch-mutex", "torchtriton")
"""Packages of the channel that only its own builds of torch take."""


def from_conda_forge(plan: Plan, case: Case) -> Plan:
    """The plan that takes torch and its companions from conda-forge, if it is past the end of the channel; refused for a file
    that pins every build."""
    copies = {copy.name: copy for copy in case.environment.distributions or () if copy.source and copy.source.kind == "conda"}
    torch = next((each for each in plan.changes if each.name == "torch" and each.name in copies), None)
    if torch is None or torch.after is None or key_of(torch.after) <= key_of(LAST) or not _is_of_channel(copies["torch"]):
        return plan
    if case.listing is None or case.listing.kind not in _EDITED or (case.whole and case.listing.complete):
        refused = f"conda's channel pytorch ended with {LAST}, and this file pins every build: take pytorch from {_FORGE}"
        return replace(plan, refused=plan.refused or refused)
    why = f"conda's channel pytorch ended with {LAST}: torch {torch.after} is from {_FORGE}"
    moved = tuple(_moved(each) if each.name in copies else each for each in plan.changes)
    gone = (_gone(copies[name], why) for name in _OF_CHANNEL if name in copies)
    told = f"from {_FORGE}, unchecked: what is pinned to another CUDA release than its build has to move by hand"
    changes = tuple(sorted((*moved, *gone), key=lambda each: each.name))
    return replace(plan, changes=changes, assumed={**plan.assumed, f"torch {torch.after}": told})


def _is_of_channel(copy: Distribution) -> bool:
    details = copy.source.details if copy.source is not None else {}
    return str(details.get("channel") or CHANNEL).rpartition("/")[2] == CHANNEL


def _moved(change: Change) -> Change:
    """A conda package of the plan, from conda-forge; its builds of torch for CUDA are preferred to those for the CPU."""
    if change.after is None or change.name not in ("torch", *BESIDE):
        return change
    variant = {"variant": "cuda*"} if change.name == "torch" else {}
    return replace(change, source=Source("conda", {"channel": _FORGE, **variant}))


def _gone(copy: Distribution, why: str) -> Change:
    before = copy.version or (copy.specifier or "").removeprefix("==").removesuffix(".*")
    return Change(copy.name, before, None, why=why, before_source=copy.source)
