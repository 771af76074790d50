"""``python -m scripts.audit.jobs [RULE…]``: rules that hold for jobs that do not use the package they are about, or that an
engine does.

Installing a package does not use it. Each ``hit`` example is judged again as another job, for which it is known that the
package is not used (vLLM does not generate, unsloth is not imported). Printed are the tasks for which the rule still holds.
That is right if the package is imported all the same; otherwise the rule asks for the feature, or exempts these tasks with
``features_absent``.

A rule that exempts a server by its task is printed if it holds for a script that generates with the same engine: ``inference``
with vLLM, which is to be exempt as well. So is a rule about the server of another engine that holds for that of vLLM.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from compat.checks.lint_fixes import hits_of
from compat.model import Distribution, Environment, Workload
from compat.records import replace
from compat.rules.evaluate import verdict_of
from compat.rules.facts import IMPLIED, Facts
from compat.rules.loader import load_folder
from compat.rules.rule import Rule
from scripts.audit.evidence import ROOT

_USE = {
    "unsloth": "unsloth", "unsloth-zoo": "unsloth", "vllm": "vllm", "deepspeed": "deepspeed", "flash-attn": "flash-attention",
}  # fmt: skip
"""Package → the feature that says that a job uses it."""
_OTHER_ENGINES = ("sglang", "sgl-kernel", "lmdeploy", "llama-cpp-python")
_TASKS = ("sft", "dpo", "grpo", "ppo", "train", "inference", "serve")


def unused(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield each package of a rule with a task for which the rule holds although the job does not use the package."""
    examples = hits_of(rule)
    for name in (each.name for each in rule.packages if each.how != "absent" and each.name in _USE):
        for task in _TASKS:
            if any(verdict_of(rule, Facts(_without(each, _USE[name], task))).word == "hit" for each in examples):
                yield name, task


def generates_otherwise(rule: Rule) -> bool:
    """Whether a rule holds for a script that generates with vLLM, but not for the server of vLLM, in the same environment."""
    return any(
        verdict_of(rule, Facts(_with_vllm(each, "inference"))).word == "hit"
        and verdict_of(rule, Facts(_with_vllm(each, "serve"))).word == "clear"
        for each in hits_of(rule)
    )


def serves_otherwise(rule: Rule) -> bool:
    """Whether a rule about another engine holds for the server of vLLM, which may be installed beside it."""
    names = {each.name for each in rule.packages if each.how != "absent"}
    others = not names.isdisjoint(_OTHER_ENGINES) and "vllm" not in names
    return others and any(verdict_of(rule, Facts(_with_vllm(each, "serve"))).word == "hit" for each in hits_of(rule))


def _with_vllm(environment: Environment, task: str) -> Environment:
    """The environment with a job of this task in which vLLM generates, and unsloth, which patches it, is not imported."""
    work = environment.workload or Workload()
    features = tuple({*(work.features or ()), "vllm"} - {"unsloth"})
    absent = tuple({*(work.features_absent or ()), "unsloth"} - {"vllm"})
    work = replace(work, task=task, trainer=None, features=features, features_absent=absent)
    installed = environment.distributions or ()
    if not any(each.name == "vllm" for each in installed):
        installed = (*installed, Distribution(name="vllm"))
    return replace(environment, workload=work, distributions=installed)


def _without(environment: Environment, feature: str, task: str) -> Environment:
    """The environment with a job of this task that does not have the feature, nor one that implies it."""
    work = environment.workload or Workload()
    features = tuple(name for name in work.features or () if name != feature and feature not in IMPLIED.get(name, ()))
    absent = (*(work.features_absent or ()), feature)
    return replace(environment, workload=replace(work, task=task, trainer=None, features=features, features_absent=absent))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.audit.jobs", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="only these (default: all)")
    wanted = parser.parse_args(arguments).rules
    for rule in load_folder(str(ROOT / "matrix" / "rules")):
        if not wanted or rule.id in wanted:
            found: dict[str, list[str]] = {}
            for name, task in unused(rule):
                found.setdefault(name, []).append(task)
            for name, tasks in found.items():
                print(f"{rule.file}: {rule.id} ({rule.severity}) without the use of {name}: {', '.join(tasks)}")
            if generates_otherwise(rule):
                print(f"{rule.file}: {rule.id} ({rule.severity}) for a script that generates with vLLM, but not for its server")
            if serves_otherwise(rule):
                print(f"{rule.file}: {rule.id} ({rule.severity}) for the server of vLLM, but it is about another engine")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
