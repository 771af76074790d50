"""Rotary embeddings in float64, and rounding error bounds for other implementations.

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

import torch

from .rounding import UNIT

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
