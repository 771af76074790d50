"""Unit roundoffs, and how far rounding alone can take a product from the exact one.

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
"""What one operand loses to TF32: ten bits are kept behind the first, and hardware may cut instead of round."""
EXACT = {torch.float64: 2**53, torch.float32: 2**24, torch.float16: 2**11, torch.bfloat16: 2**8}
"""Up to here each type holds every whole number."""


def accumulated_in(dtype: torch.dtype) -> float:
    """The unit roundoff of the sums behind a product of this type: float32 for the short ones, which is what is tested."""
    return UNIT[torch.float64] if dtype == torch.float64 else UNIT[torch.float32]


def gamma(length: int, unit: float) -> float:
    """λ·√k·u: see above."""
    return LAMBDA * math.sqrt(length) * unit
