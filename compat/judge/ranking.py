"""Open questions in the order of their likelihood: the likely ones are asked, the rest is folded into one line.

A tool that says that everything might be wrong has said nothing. Each unknown fact makes a finding less likely, by how often
it is as the rule wants it: a package that nobody mentioned is seldom there, unless the workload cannot do without it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.environment import Environment
    from compat.report import Finding

MOST = 3
"""Open questions that are asked at a time."""
LEAST = 0.1
"""Likelihood below which none is asked."""

_FACTS = {
    "workload.task": 0.5,
    "workload.trainer": 0.4,
    "workload.model": 0.25,
    "workload.launcher": 0.5,
    "workload.processes": 0.6,
    "workload.precision": 0.5,
    "workload.quantization": 0.4,
    "workload.batch_size": 0.6,
    "workload.features": 0.3,
    "accelerators": 0.45,
    "driver": 0.4,
    "cuda_toolkit": 0.4,
    "python": 0.5,
    "glibc": 0.3,
    "os": 0.5,
    "machine": 0.5,
    "platform": 0.3,
    "build.torch": 0.7,
}
_OTHER = 0.3
_VERSION = 0.6
"""Of a distribution that is there in an unknown version."""
_UNMENTIONED = 0.15
_BUILT = 0.5
"""A distribution that is there, built or installed in the way that is bad."""
_NEEDED = {
    "serve": ("vllm", "sglang", "transformers", "torch"),
    "inference": ("transformers", "torch", "vllm"),
    "grpo": ("trl", "vllm"),
    "lora": ("peft",),
    "qlora": ("peft", "bitsandbytes"),
    "install": (),
    "import": (),
    "build": ("flash-attn", "torch"),
}
"""What a task hardly goes without."""
_TRAINING = ("transformers", "torch", "accelerate", "trl", "datasets", "peft")
_BY_FEATURE = {
    "vllm": "vllm",
    "peft": "peft",
    "liger": "liger-kernel",
    "deepspeed": "deepspeed",
    "zero-1": "deepspeed",
    "zero-2": "deepspeed",
    "zero-3": "deepspeed",
}


def folded(findings: Sequence[Finding], environment: Environment) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings without unlikely questions, and a note that counts those and says what would settle most of them."""
    questions = [finding for finding in findings if finding.verdict == "possible"]
    if len(questions) < 2 and all(likelihood(finding, environment) >= LEAST for finding in questions):
        return tuple(findings), ()
    order = sorted(questions, key=lambda finding: -likelihood(finding, environment))
    asked = _distinct([finding for finding in order if likelihood(finding, environment) >= LEAST])[:MOST]
    left = [finding for finding in questions if finding not in asked]
    if not left:
        return tuple(findings), ()
    kept = tuple(finding for finding in findings if finding.verdict != "possible" or finding in asked)
    return kept, (_said(left),)


def _distinct(questions: list[Finding]) -> list[Finding]:
    """The likeliest of those that the same facts would settle: an answer to it answers the others."""
    first: dict[tuple[str, ...], Finding] = {}
    for finding in questions:
        first.setdefault(finding.unknown, finding)
    return list(first.values())


def likelihood(finding: Finding, environment: Environment) -> float:
    """Between 0 and 1: how likely the unknown facts are as the rule wants them."""
    result = 1.0 if finding.severity == "error" else 0.8
    needed = _expected(environment)
    there = {each.name for each in environment.distributions or ()}
    for path in finding.unknown:
        root, _, name = path.partition(".")
        if root == "distributions":
            result *= _of_distribution(name, finding, there, needed)
        elif path.startswith("workload.features"):
            result *= _FACTS["workload.features"]
        else:
            result *= _FACTS.get(path, _FACTS.get(root, _OTHER))
    return result


def _of_distribution(name: str, finding: Finding, there: set[str], needed: set[str]) -> float:
    """How likely one is there in a bad version; one that the finding is not about is one whose presence would mend it."""
    if name.endswith((".source", ".code")):
        return _BUILT
    if name in there:
        return _VERSION
    present = 0.55 if name in needed else _UNMENTIONED
    return present if name in finding.packages else 1 - present


def _expected(environment: Environment) -> set[str]:
    workload = environment.workload
    if workload is None:
        return set()
    task = (workload.task or "").lower()
    found = set(_NEEDED.get(task, _TRAINING if task or workload.trainer else ()))
    if task in ("grpo", "lora", "qlora"):
        found.update(_TRAINING)
    found.update(_BY_FEATURE[feature] for feature in workload.features or () if feature in _BY_FEATURE)
    if workload.launcher in ("accelerate", "deepspeed", "ray"):
        found.add(workload.launcher)
    if workload.quantization:
        found.add("bitsandbytes")
    return found


def _said(left: Sequence[Finding]) -> str:
    facts: dict[str, int] = {}
    for finding in left:
        for path in finding.unknown:
            word = path.removeprefix("workload.").removeprefix("distributions.")
            word = f"the version of {word}" if path.startswith("distributions.") else word
            facts[word] = facts.get(word, 0) + 1
    most = sorted(facts, key=lambda word: (-facts[word], word))[:4]
    count = len(left)
    return (
        f"{count} more {'question is' if count == 1 else 'questions are'} open and unlikely (--all shows "
        f"{'it' if count == 1 else 'them'}); what would settle most: {', '.join(most)}"
    )
