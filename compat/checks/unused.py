"""Errors about packages that the job never imports: they are in its environment, but not its problem, and become warnings.

What a script comes to is read from the files of its environment (:mod:`compat.checks.running`). Where only the task is known,
it is known of some packages that the trainers of trl and the servers do not import them, whatever else is installed.
"""

from __future__ import annotations

import os
import re

from compat.checks.guards import ENGINES
from compat.model import Environment, Finding, Workload
from compat.records import replace
from compat.rules.facts import ADAPTER_TASKS
from compat.rules.rule import LLM_TRAINING, TRAINING, kinds_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_RUNNING = frozenset(("build", "install"))
"""Facts that say nothing about whether a package is used."""
_USED_BY = {"4bit": "bitsandbytes", "8bit": "bitsandbytes", "nf4": "bitsandbytes", "int8": "bitsandbytes"}
_ALWAYS_USED = ("torch", "triton", "numpy", "setuptools", "protobuf")
"""Packages that are reached in ways no import statement shows: from compiled code, or because a part of them is missing."""
_LAUNCHERS = ("accelerate", "deepspeed", "ray")


_OTHER_LIBRARIES = frozenset((
    "setfit", "lightning", "pytorch-lightning", "lightning-utilities", "torchmetrics", "onnxruntime", "onnxruntime-gpu",
    "litellm",
))  # fmt: skip
"""Packages that transformers, trl, peft, accelerate, vLLM and SGLang do not import."""
_OF_TRAINING = frozenset(("peft", "trl", "unsloth", "unsloth-zoo", "liger-kernel", "wandb"))
"""Packages that vLLM and SGLang do not import."""
_QUANTIZERS = {"autoawq": "AWQ", "auto-gptq": "GPTQ", "gptqmodel": "GPTQ or AWQ"}
"""Packages that transformers imports for models that they quantized; where peft does for other models, a rule says so."""
_QUANTIZED = ("awq", "gptq")
OF_LIGHTNING = ("litgpt", "nemo-toolkit")
"""Libraries whose trainers are those of lightning."""


def softened(environment: Environment, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings, with a warning for each error about the import of a package that the job does not come to."""
    errors = [each for each in findings if each.severity == "error" and each.verdict == "hit" and _of_imports(each)]
    workload = environment.workload
    if not errors or workload is None:
        return findings
    if workload.code or workload.program:
        unused = _by_script(environment, errors) or _by_reasons(_of_features(environment), workload, errors)
    else:
        unused = _by_reasons(_of_features(environment) | _of_task(environment, workload), workload, errors)
    return tuple(
        replace(each, severity="warning", why=f"{each.why} {unused[each.rule]}")
        if each in errors and each.rule in unused else each
        for each in findings
    )  # fmt: skip


def _by_script(environment: Environment, errors: list[Finding]) -> Mapping[str, str]:
    """What says, by the rule of an error, that the script does not come to its package."""
    if environment.folders is None or environment.started:  # a script that runs already must not wait for its files to be read
        return {}
    from compat.checks.requirements import CUDA_LIBRARIES
    from compat.checks.running import script_of

    script, workload = script_of(environment), environment.workload
    if script is None or workload is None or script.starts_others():
        return {}
    used = {*_LAUNCHERS, *(workload.features or ()), _USED_BY.get(workload.quantization or "", ""), *_ALWAYS_USED}
    unused: dict[str, str] = {}
    for each in errors:
        for name in each.packages:
            ours = each.packages[name] and name not in used and not name.startswith(CUDA_LIBRARIES)
            tops = script.tops(name) if ours else frozenset()
            if tops and not script.comes_to(tops):
                unused[each.rule] = name
        if (absent := _absent_module(each)) and not script.asks_for(absent):
            unused[each.rule] = absent
    what = os.path.basename(workload.script or "the script")
    return {rule: _unimported(what, name) for rule, name in unused.items()}


def _by_reasons(reasons: Mapping[str, str], workload: Workload, errors: list[Finding]) -> Mapping[str, str]:
    """The reason why the job does not import the package of an error, by the rule of the error."""
    features = workload.features or ()
    return {
        each.rule: reasons[name] for each in errors for name, version in each.packages.items()
        if version and name in reasons and name not in features
    }  # fmt: skip


def _of_task(environment: Environment, workload: Workload) -> dict[str, str]:
    """The reasons why programs for this task do not import packages, by package name."""
    task, installed = workload.task or "", {copy.name for copy in environment.distributions or ()}
    kinds: frozenset[str] = kinds_of(task) if task else frozenset()
    reasons: dict[str, str] = {}
    if LLM_TRAINING in kinds and task not in ADAPTER_TASKS and installed.isdisjoint(OF_LIGHTNING):
        reasons = {name: _unimported("The trainer", name) for name in _OTHER_LIBRARIES}
    elif task == "serve" and not installed.isdisjoint(ENGINES):
        reasons = {name: _unimported("The server", name) for name in (*_OTHER_LIBRARIES, *_OF_TRAINING, *_QUANTIZERS)}
    if (TRAINING in kinds or task == "inference") and workload.quantization not in _QUANTIZED:
        reasons |= {
            name: f"Jobs only import {name} for models quantized with {method}." for name, method in _QUANTIZERS.items()
        }
    return reasons


def _of_features(environment: Environment) -> dict[str, str]:
    """Why a job with known features does not import packages, by their names: trl imports vLLM even if it does not use it."""
    from compat.rules.facts import Facts

    facts = Facts(environment)
    reasons: dict[str, str] = {}
    if facts.feature("unsloth") is False:
        reasons |= {name: _unimported("A job without unsloth", name) for name in ("unsloth", "unsloth-zoo")}
    if facts.feature("vllm") is False and facts.value("workload.task") == "inference":
        reasons["vllm"] = _unimported("Inference without vLLM", "vllm")
    return reasons


def _unimported(what: str, name: str) -> str:
    return f"{what} does not import {name}, directly or indirectly."


def _absent_module(finding: Finding) -> str:
    """The module that a release imports at once without requiring it, if the finding is about that."""
    found = re.search(r"No module named '(\w+)'", finding.title) if finding.origin == "guard" else None
    return found[1] if found is not None else ""


def _of_imports(finding: Finding) -> bool:
    return finding.effect in ("crash", "install") and _NOT_RUNNING.issuperset(finding.facts) and len(finding.packages) > 0
