"""The precision that is asked for against what the devices can do."""

from __future__ import annotations

from compat.model import Finding, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.checks.builds.stack import Stack


_LACKING = {"bf16": ("8.0", "Ampere"), "fp8": ("8.9", "Ada"), "fp4": ("10.0", "Blackwell"), "tf32": ("8.0", "Ampere")}
_ENGINES = ("vllm", "sglang", "sgl-kernel")


def judge(stack: Stack) -> Iterator[Finding]:
    """A finding for the first device that lacks it; torch emulates bf16 on some older GPUs, engines refuse it."""
    precision = str(stack.facts.value("workload.precision") or "")
    asked = next((name for name in _LACKING if precision.startswith(name)), None)
    if precision.startswith("bfloat16"):
        asked = "bf16"
    if asked is None:
        return
    for device in stack.devices:
        known = stack.tables.capabilities.get(device.compute_capability or "")
        if known is None or known[asked] == "yes":
            continue
        least, architecture = _LACKING[asked]
        engine = next((copy for name in _ENGINES if (copy := stack.one(name)) is not None), None)
        emulated = known[asked] == "emulated" and engine is None
        name = device.name or f"a GPU of compute capability {device.compute_capability}"
        other = {"bf16": "fp16", "fp8": "bf16 or fp16", "fp4": "fp8", "tf32": "fp32"}[asked]
        yield Finding(
            rule=f"precision-{asked}",
            origin="build",
            verdict="hit",
            severity="warning" if emulated else "error",
            effect="slow" if emulated else "crash",
            title=f"{name} has no {asked}: that needs compute capability {least} ({architecture})",
            why="torch emulates it slowly where it can; Trainer, vLLM and most kernels refuse it."
            if emulated
            else "The hardware has no such arithmetic, and libraries refuse to start.",
            confidence="confirmed",
            packages={} if engine is None else {engine.name: engine.version},
            facts=("accelerators", "workload"),
            fixes=(
                Fix(
                    kind="config",
                    text=f"use {other}: fp16=True, bf16=False in the training arguments, --dtype half for vLLM"
                    if asked == "bf16"
                    else f"use {other}",
                    command=None,
                ),
            ),
            evidence=("https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions",),
            here=f"{asked}, {name} ({device.compute_capability})",
        )
        return
