"""Findings about compiled code: compatibility of wheels with the GPU, the driver, the system and each other."""

from __future__ import annotations

from compat.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.rules.facts import Facts


NAMES = frozenset(
    (
        "torch",
        "torchvision",
        "torchaudio",
        "triton",
        "vllm",
        "xformers",
        "bitsandbytes",
        "flash-attn",
        "sgl-kernel",
        "sglang-kernel",
        "flashinfer-python",
        "auto-gptq",
        "autoawq",
    )
)
"""Distributions whose wheels are checked here."""


def judge(facts: Facts) -> Iterator[Finding]:
    """Yield every finding about builds; the tables are opened only if there is something to check."""
    environment = facts.environment
    there = any(each.name in NAMES for each in environment.distributions or ())
    if not there and not (environment.driver and environment.cuda_toolkit) and not environment.accelerators:
        return
    from compat.checks.builds import gpu_code, pairs
    from compat.checks.builds.stack import stack_of
    from compat.tables.builds import open_code_tables

    stack = stack_of(facts, open_code_tables())
    yield from gpu_code.judge(stack)
    if environment.accelerators or environment.driver or environment.variables:
        from compat.checks.builds import drivers

        yield from drivers.judge(stack)
    yield from pairs.judge(stack)
