"""``compat suggest``: a full set of pins from nothing, for a task, a GPU and the packages that are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.commands.given import stated
from compat.commands.repairing import Case, needed, planning
from compat.errors import InputError, Undecided
from compat.matrix.compiled import open_matrix
from compat.show.output import emit

if TYPE_CHECKING:
    from compat.environment import Environment
    from compat.options import Words
    from compat.repair.plan import Plan

_FOR_TASK = {
    "sft": ("trl",), "grpo": ("trl",), "dpo": ("trl",), "orpo": ("trl",), "kto": ("trl",), "reward": ("trl",),
    "ppo": ("trl",), "train": ("transformers", "accelerate"), "serve": ("vllm",), "inference": ("transformers",),
}  # fmt: skip
"""What a task is done with where nothing is named."""
_PYTHON = "3.12"


def run(words: Words) -> int:
    """Prints pins in the form of a requirements file; 1 where nothing holds together, 3 where that is not known."""
    needed()
    from compat.repair.problem import Policy
    from compat.repair.target import Target

    matrix = open_matrix(words.values.get("rules", ()))
    environment = _environment(words)
    texts = words.all("with") or list(_FOR_TASK.get((words.one("task") or "").lower(), ()))
    if not texts:
        raise InputError("say what for: --task, or --with trl,vllm")
    target = Target(environment)
    asked = []
    for text in texts:
        found = target.needs((text,))
        if len(found) != 1:
            raise InputError(f"--with {text!r}: expected a package, or a requirement such as vllm>=0.8")
        asked.append(found[0])
    case = Case(environment, direct=frozenset(need.name for need in asked), asked=tuple(asked))
    with planning(words, case, matrix, Policy(prefer="newest", prereleases=words.flag("pre"))) as planner:
        plan = planner.plan(explained=False)
    return _told(words, environment, plan)


def _environment(words: Words) -> Environment:
    from compat.environment import Environment
    from compat.judge import named_devices
    from compat.records import replace

    environment = stated(Environment(), words)
    environment = replace(
        environment, python=environment.python or _PYTHON, os=environment.os or "linux",
        machine=environment.machine or "x86_64", distributions=(), distributions_complete=True,
    )  # fmt: skip
    return named_devices(environment)[0]


def _told(words: Words, environment: Environment, plan: Plan) -> int:
    from compat.report import Report

    if plan.unread and not plan.stands:  # what could not be read is no contradiction
        name, why = next(iter(plan.unread.items()))
        raise Undecided(f"{name} could not be read: {why}")
    code = 0 if plan.stands and not plan.left else 1
    if words.one("format") == "json":
        from compat.show.json import dumped

        emit(dumped({**Report(environment, exit=code).to_json(), "plan": plan.to_json()}))
    else:
        from compat.show.plan import shown_pins

        emit(shown_pins(plan, environment))
    return code
