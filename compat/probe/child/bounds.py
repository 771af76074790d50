"""Unit roundoffs, error bounds for the rounding in a product, and rotary embeddings in float64 with their bounds.

**Products.** A dot product of length k that is accumulated with unit roundoff u is off by at most γ·Σ|a||b| with

    γ = λ·√k·u,   with probability at least 1 − 2·exp(−λ²/2) for each of them

where rounding errors are independent and of mean zero (Higham and Mary, "A new approach to probabilistic rounding error
analysis", SIAM J. Sci. Comput. 41, 2019, theorem 3.1; second-order terms are below 1e-4 of it here). Σ|a||b| is at most
‖a‖·‖b‖ (Cauchy and Schwarz). Rounding the result to its own type adds at most u_out·|c|, and rounding both operands to
TF32 first 2·u_tf32·‖a‖·‖b‖.

λ is 8.5: 2·exp(−λ²/2) is 4e-16, so a million checked numbers stay below one false alarm in a thousand million runs.

**Rotary embeddings.**
A pair (a, b) at position p and frequency f is turned by the angle p·f: (a·cos − b·sin, b·cos + a·sin). Half-rotation pairs
element i with i + d/2 (Llama), interleaved rotation 2i with 2i + 1 (GPT-J).

**Turning.** The reference takes its inputs (x, cos, sin) for exact. An implementation that rounds both products and their
sum to a type with unit roundoff u is off by at most (2u + u²)·(|a·cos| + |b·sin|) and u times the result, so

    |error| ≤ 3.01·u·(|a·cos| + |b·sin|) + 2⁻¹²⁶

and the same holds backwards, with −sin.

**Angles.** Frequencies are base^(−2i/d), computed in float32: the exponent, the division and the product with the position are
each rounded, and the power is off by up to 4 units in the last place, which are 8·2⁻²⁴ (powf in the tables of the CUDA
Programming Guide; libraries for CPUs are better). An angle is then off by at most (2i/d·ln(base) + 10)·2⁻²⁴ of itself, and its
cosine by no more than the angle, and by 2 units of its own (cosf and sinf in the same tables), at most 2·2⁻²⁴. At a position
of a million that is up to 0.5; angles in bfloat16 are off by thousands.
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


BASE = 10_000.0
Tables = tuple[torch.Tensor, torch.Tensor]


def frequencies(dim: int, base: float = BASE) -> torch.Tensor:
    return float(base) ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)


def exact_tables(positions: torch.Tensor, dim: int, base: float = BASE) -> Tables:
    """Return cos and sin of every position and frequency in float64: one row per position, d/2 columns."""
    angles = positions.double().cpu()[:, None] * frequencies(dim, base)
    return angles.cos(), angles.sin()


def angle_bound(positions: torch.Tensor, dim: int, base: float = BASE) -> torch.Tensor:
    """Return the largest error of cos and sin with angles computed in float32, by position and frequency."""
    share = torch.arange(0, dim, 2, dtype=torch.float64) / dim * math.log(base) + 10
    return positions.double().cpu()[:, None] * frequencies(dim, base) * share * UNIT[torch.float32] + 2 * UNIT[torch.float32]


def halves(x: torch.Tensor, interleaved: bool) -> Tables:
    """Return the first and the second elements of all pairs."""
    if interleaved:
        return x[..., 0::2], x[..., 1::2]
    half = x.shape[-1] // 2
    return x[..., :half], x[..., half:]


def joined(first: torch.Tensor, second: torch.Tensor, interleaved: bool) -> torch.Tensor:
    return torch.stack((first, second), -1).flatten(-2) if interleaved else torch.cat((first, second), -1)


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool, backward: bool = False) -> Tables:
    """Return ``x`` ([batch, heads, tokens, d]) rotated in float64 on the CPU, and |a·cos| + |b·sin| of every element."""
    c, s = cos.double().cpu(), sin.double().cpu()
    s = -s if backward else s
    a, b = halves(x.detach().double().cpu(), interleaved)
    result = joined(a * c - b * s, b * c + a * s, interleaved)
    size = joined((a * c).abs() + (b * s).abs(), (b * c).abs() + (a * s).abs(), interleaved)
    return result, size


def turning_bound(size: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return 3.01 * UNIT[dtype] * size + 2.0**-126


def checked(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    """Raise :class:`ValueError` unless cos and sin have a row for every token and a column for every pair."""
    wanted = (q.shape[-2], q.shape[-1] // 2)
    for name, table in (("cos", cos), ("sin", sin)):
        if tuple(table.shape) != wanted or k.shape[-2] != wanted[0]:
            raise ValueError(f"{name} of shape {tuple(table.shape)} for {q.shape[-2]} tokens of {wanted[1]} pairs")
