"""Unit roundoffs, and error bounds for the rounding in a product.

A dot product of length k that is accumulated with unit roundoff u is off by at most γ·Σ|a||b| with

    γ = λ·√k·u,   with probability at least 1 − 2·exp(−λ²/2) for each of them

where rounding errors are independent and of mean zero (Higham and Mary, "A new approach to probabilistic rounding error
analysis", SIAM J. Sci. Comput. 41, 2019, theorem 3.1; second-order terms are below 1e-4 of it here). Σ|a||b| is at most
‖a‖·‖b‖ (Cauchy and Schwarz). Rounding the result to its own type adds at most u_out·|c|, and rounding both operands to
TF32 first 2·u_tf32·‖a‖·‖b‖.

λ is 8.5: 2·exp(−λ²/2) is 4e-16, so a million checked numbers stay below one false alarm in a thousand million runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

LAMBDA = 8.5
UNIT = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}
"""Unit roundoff of each type: half the distance from 1 to the next number."""
TF32 = 2.0**-10
"""What one operand loses to TF32, which keeps ten bits behind the first; hardware may truncate instead of rounding."""
EXACT = {torch.float64: 2**53, torch.float32: 2**24, torch.float16: 2**11, torch.bfloat16: 2**8}
"""Each type represents every whole number up to this one."""


def accumulated_in(dtype: torch.dtype) -> float:
    """Return the unit roundoff for accumulating products of this type: float32's for short types, as the probes require."""
    return UNIT[torch.float64] if dtype == torch.float64 else UNIT[torch.float32]


def gamma(length: int, unit: float) -> float:
    """Return λ·√k·u: see the module's docstring."""
    return LAMBDA * math.sqrt(length) * unit


@dataclass(frozen=True)
class Wrong:
    """An element whose error exceeds the rounding bound; ``bound`` is the largest error allowed."""

    at: tuple[int, ...]
    got: float
    exact: float
    bound: float

    @property
    def error(self) -> float:
        return abs(self.got - self.exact)


def compared(result: torch.Tensor, exact: torch.Tensor, bound: torch.Tensor) -> tuple[float, Wrong | None]:
    """Return the largest error as a fraction of its bound; if any exceeds its bound (or is NaN), that of the first such one.

    ``exact`` and ``bound`` are float64 on the CPU, ``result`` is of any type and on any device.
    """
    found = result.detach().double().cpu()
    share = (found - exact).abs() / bound
    beyond = ~(share <= 1)
    if not bool(beyond.any()):
        return float(share.max()), None
    at = tuple(beyond.nonzero()[0].tolist())
    return float(share[at]), Wrong(at, float(found[at]), float(exact[at]), float(bound.expand_as(exact)[at]))


def short_name(dtype: torch.dtype) -> str:
    """Return ``bfloat16`` for ``torch.bfloat16``."""
    return str(dtype).partition(".")[2]
