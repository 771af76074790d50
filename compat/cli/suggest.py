"""``compat suggest``: a complete set of pins for a task, a GPU and the given packages."""

from __future__ import annotations

from compat.api.case import Case
from compat.api.commands import Options
from compat.api.planning import planning
from compat.api.targets import apply_options
from compat.checks import named_devices
from compat.errors import InputError, Undecided
from compat.model import Distribution, Environment, Report, Source
from compat.output.stream import emit, emit_json
from compat.records import replace
from compat.redact import excerpt
from compat.repair.plan import Plan, reason_of
from compat.repair.problem import Policy
from compat.repair.source_builds import COMPILED, EVERYWHERE
from compat.repair.subject import infer_platform
from compat.repair.target import Need, Target
from compat.rules.compiled import open_matrix
from compat.tables.stacks import open_stacks

ROCM = ("torch", "torchvision", "torchaudio", "triton", "pytorch-triton-rocm")
"""Packages that torch's own index has for ROCm: they are installed first, and the rest must match them."""
_FOR_TASK = {
    "sft": ("trl",), "grpo": ("trl",), "dpo": ("trl",), "orpo": ("trl",), "kto": ("trl",), "reward": ("trl",),
    "ppo": ("trl",), "train": ("transformers", "accelerate"), "serve": ("vllm",), "inference": ("transformers",),
}  # fmt: skip
"""What a task is done with where nothing is named."""
_PYTHON = "3.12"


def run(options: Options) -> int:
    """Print pins as a requirements file; returns 1 if no compatible set exists, 3 if that is unknown."""
    if options.flag("list"):
        return _listed(options)

    matrix = open_matrix(options.values.get("rules", ()))
    environment, told = _environment(options)
    texts = options.all("with") or list(_FOR_TASK.get((options.one("task") or "").lower(), ()))
    if not texts:
        task = options.one("task")
        if task is not None:
            known = ", ".join(_FOR_TASK)
            raise InputError(f"--task: no packages are known for {excerpt(task, 40)!r}; pass {known}, or --with trl,vllm")
        raise InputError("nothing to suggest: pass --task, or --with trl,vllm")
    asked = _asked(texts, Target(environment))
    amd = any(each.vendor == "amd" for each in environment.accelerators or ())
    if amd or environment.accelerators == ():
        _refuse_cuda(asked, "ROCm" if amd else "the CPU")
    if amd:
        environment = replace(environment, distributions=tuple(Distribution(name, source=Source("url")) for name in ROCM))
    case = Case(environment, direct=frozenset(need.name for need in asked), asked=asked, told=told)
    with planning(options, matrix, Policy(prefer="newest", prereleases=options.flag("pre")), case) as (_, planner):
        plan = planner.plan(explained=False)
    return _show(options, case, plan)


def _listed(options: Options) -> int:
    """Print the recorded combinations for the given task, GPU and packages; returns 1 if there are none."""
    task, named = options.one("task"), {*options.all("with")}
    gpu = (options.one("gpu") or "").partition(":")[0].lower()
    found = [
        each for each in open_stacks()
        if (task is None or each.task == task.lower()) and gpu in ("", each.gpu.lower()) and named <= {*each.stack.split(",")}
    ]  # fmt: skip
    if options.one("format") == "json":
        emit_json({"stacks": [each.to_json() for each in found]})
    else:
        from compat.output.plan import shown_stacks

        emit(shown_stacks(found))
    return 0 if found else 1


def _asked(texts: list[str], target: Target) -> tuple[Need, ...]:
    """Return the requested requirements, each with extras named after other requested packages (``trl[vllm]``)."""
    found = []
    for text in texts:
        needs = target.needs((text,))
        if len(needs) != 1:
            raise InputError(f"--with {text!r}: expected a package, or a requirement such as vllm>=0.8")
        found.append(needs[0])
    names = [need.name for need in found]
    extras = ((*need.extras, *(name for name in names if name != need.name)) for need in found)
    return tuple(need._replace(extras=tuple(dict.fromkeys(each))) for need, each in zip(found, extras))


def _refuse_cuda(asked: tuple[Need, ...], platform: str) -> None:
    """Raise :class:`InputError` if a requested package only has wheels for CUDA."""
    built = [need.name for need in asked if need.name in COMPILED - EVERYWHERE]
    if built:
        raise InputError(f"{', '.join(built)}: the index only has wheels for CUDA; use an image or a build for {platform}")


def _environment(options: Options) -> tuple[Environment, tuple[str, ...]]:
    """Return the environment that the pins are for, and its description."""
    environment, _ = named_devices(apply_options(Environment(), options))
    origin = "" if environment.python else " (assumed)"
    environment = replace(environment, python=environment.python or _PYTHON, distributions=(), distributions_complete=True)
    environment, told = infer_platform(environment)
    return environment, (f"Python {environment.python}{origin}", *told)


def _show(options: Options, case: Case, plan: Plan) -> int:
    unread = {**plan.unread, **plan.narrowed}
    if unread and not plan.stands:  # unreadable input is not a contradiction
        name, why = next(iter(unread.items()))
        raise Undecided(f"{name} could not be read: {reason_of(name, why)}")
    code = 0 if plan.stands and not plan.left else 1
    if options.one("format") == "json":
        emit_json({**Report(case.environment, exit=code).to_json(), "plan": {**plan.to_json(), "target": list(case.told)}})
    else:
        from compat.output.plan import shown_pins

        emit(shown_pins(plan, case.told))
    return code
