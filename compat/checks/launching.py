"""Launch options and arguments that no release accepts together: more processes on a node than GPUs, fp16 with bf16."""

from __future__ import annotations

from compat.model import Finding, Fix
from compat.rules.facts import ABSENT, has_more

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.model import Workload
    from compat.rules.facts import Facts


_DEVICE = "https://pytorch.org/docs/stable/elastic/run.html"
_PARALLEL = "https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html"
_PRECISION = "https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments"
_ACROSS_NODES = (
    "nnodes", "node-rank", "headless", "data-parallel-address", "data-parallel-size-local", "data-parallel-start-rank", "dpa",
    "dpl", "dpr", "data-parallel-backend", "data-parallel-hybrid-lb", "data-parallel-rank",
)  # fmt: skip
"""How options of vLLM begin that say that it runs on several nodes."""
_LARGEST = 2_000_000
"""The size of a script in bytes up to which it is looked through."""
_ONE_EACH = ("torchrun", "accelerate", "deepspeed")
"""Launchers of processes that each use the GPU of their number on the node."""


def judge(facts: Facts) -> Iterator[Finding]:
    """Yield errors about what is stated in full: the processes, the nodes and the GPUs, or both precisions."""
    work = facts.workload
    if work.processes and work.processes > 1:
        yield from _too_many(facts, work, work.processes)
    if work.code or work.script:
        place = _of_both(work)
        if place is not None:
            yield Finding(
                rule="launch-fp16-and-bf16", origin="surface",
                title="fp16 and bf16 are both on, and the training arguments accept only one of them",
                why="TrainingArguments, of which the configurations of trl are made, raises ValueError: At most one of fp16 "
                "and bf16 can be True, but not both.",
                packages={}, facts=("workload",),
                fixes=(Fix("config", text="keep bf16 on GPUs since Ampere (compute capability 8.0), otherwise fp16"),),
                evidence=(_PRECISION,), here=place,
            )  # fmt: skip


def _too_many(facts: Facts, work: Workload, processes: int) -> Iterator[Finding]:
    devices = facts.accelerators()
    server = work.task == "serve" and work.launcher == "python"
    nodes = work.nodes
    spread = any(option.name.lstrip("-").replace("_", "-").startswith(_ACROSS_NODES) for option in work.options or ())
    if nodes is None and server and not spread and "vllm" in (work.features or ()) and facts.package("ray") == ABSENT:
        nodes = 1  # without Ray, vLLM starts its workers on this machine
    known = devices and not any(map(has_more, devices)) and all(device.vendor in ("nvidia", "amd") for device in devices)
    if not devices or not known or not nodes or processes % nodes or not (server or work.launcher in _ONE_EACH):
        return
    if work.task is None and work.launcher == "torchrun":
        return  # a program of unknown purpose may not use GPUs
    each, there = processes // nodes, len(devices)
    if each <= there:
        return
    what = "workers" if server else "processes"
    on = "" if nodes == 1 else f" on each of {nodes} nodes"
    why = f"The process with local rank {there} asks for cuda:{there}: CUDA error: invalid device ordinal, or a hang in NCCL."
    if server:
        why = "The sizes of tensor, pipeline and data parallelism are multiplied; the server needs a GPU for each worker."
    yield Finding(
        rule="launch-more-processes-than-gpus", origin="surface",
        title=f"{each} {what} are started{on}, but there {'is one GPU' if there == 1 else f'are {there} GPUs'}", why=why,
        packages={}, facts=("accelerators", "workload"),
        fixes=(Fix("launch", text=_advice(work, there, server=server)),), evidence=(_PARALLEL if server else _DEVICE,),
        here=f"{processes} {what}{f' on {nodes} nodes' if nodes > 1 else ''}, {there} GPU{'s' if there > 1 else ''}",
    )  # fmt: skip


def _advice(work: Workload, there: int, *, server: bool) -> str:
    if server:
        return f"make the product of the parallel sizes at most {there}, or give the server more GPUs"
    option = {"torchrun": "--nproc_per_node", "accelerate": "--num_processes", "deepspeed": "--num_gpus"}[work.launcher or ""]
    each = there * (work.nodes or 1) if work.launcher == "accelerate" else there
    return f"{option} {each}" + (", or state the number of nodes" if work.nodes == 1 else "")


def _of_both(work: Workload) -> str | None:
    """Where one call of training arguments turns both on."""
    import ast

    from compat.errors import InputError
    from compat.files import content_of
    from compat.syntax.python import syntax_tree

    for path in work.code or (work.script or "",):
        if not path.endswith(".py"):
            continue
        try:
            text = content_of(path, _LARGEST)
            if b"fp16" not in text or b"bf16" not in text or (b"transformers" not in text and b"trl" not in text):
                continue
            tree = syntax_tree(text)
        except (OSError, InputError, SyntaxError, ValueError, RecursionError):
            continue
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and _name(call.func).endswith(("Arguments", "Config")):
                on = {each.arg for each in call.keywords if isinstance(each.value, ast.Constant) and each.value.value is True}
                if {"fp16", "bf16"} <= on:
                    return f"{path}:{call.lineno}"
    return None


def _name(function: object) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))
