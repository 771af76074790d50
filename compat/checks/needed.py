"""What a job needs although nobody listed it: the packages of its features and task, and the torch of a machine.

A description often names the GPU, the driver and the task, and only the packages that its author suspects.
"""

from __future__ import annotations

from compat.model import Environment, Workload
from compat.rules.facts import ADAPTER_TASKS, Facts
from compat.rules.rule import LLM_TRAINING, TRAINING, kinds_of
from compat.tables.declared import open_declared
from compat.versions import is_final, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OF_FEATURES = {
    "deepspeed": "deepspeed", "flash-attention": "flash-attn", "liger": "liger-kernel", "peft": "peft", "unsloth": "unsloth",
    "vllm": "vllm",
}  # fmt: skip
"""Feature → the distribution without which a job does not have it."""
_OF_LAUNCHERS = {"accelerate": "accelerate", "deepspeed": "deepspeed", "ray": "ray"}
"""Launcher → the distribution that it belongs to."""
_USING_TORCH = ("inference", "serve")
"""Tasks besides training that need torch."""
_RECENT = 730
"""The number of days after which half of the installations have the release that first supports new hardware."""
_LAST_FAILING = "is the last release that fails on this machine"


def needed_by(environment: Environment) -> tuple[str, ...]:
    """The distributions that the job of an environment needs and that it does not list."""
    listed = {copy.name for copy in environment.distributions or ()}
    facts, workload = Facts(environment), environment.workload or Workload()
    kinds = kinds_of(workload.task) if workload.task else frozenset[str]()
    needed = [name for feature, name in _OF_FEATURES.items() if facts.feature(feature)]
    if TRAINING in kinds or workload.task in _USING_TORCH:
        needed.append("torch")
    if LLM_TRAINING in kinds:
        needed.append("transformers")
    if workload.task in ADAPTER_TASKS:
        needed.append("peft")
    if workload.launcher in _OF_LAUNCHERS:
        needed.append(_OF_LAUNCHERS[workload.launcher])
    return tuple(name for name in dict.fromkeys(needed) if name not in listed)


def releases_for(environment: Environment, fails: Callable[[str], bool]) -> Iterator[tuple[str, str, float]]:
    """Yield the release of torch that a job on a bare machine may get and that fails there, why that one, and how likely it is.

    It is the newest one, which installers select, or the last one before all that work, if the first of these is recent.
    Machines of AMD are left out: nobody takes the default build for them.
    """
    package = open_declared().package("torch")
    known = any(each.vendor != "amd" for each in environment.accelerators or ()) or environment.driver
    if package is None or not known or "torch" not in needed_by(environment):
        return
    released = [
        each.version for each in package.releases if is_final(key_of(each.version)) and each.is_offered(environment.python)
    ]
    newest = package.day(released[-1]) if released else 0
    later = ""
    for version in reversed(released):
        age = newest - package.day(later) if later else 0
        if age > _RECENT:
            return
        if fails(version):
            yield version, _LAST_FAILING if later else "an installer selects", 0.5 ** (age / _RECENT)
            return
        later = version
