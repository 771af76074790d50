"""Attention in float64, and how far rounding can take another implementation from it.

With scores s = q·k·scale and probabilities p = softmax(s), o = Σ p·v. Let Δ be the largest error of a score of a row. Every
probability is then off by at most a factor exp(2Δ); rounding p and v·p to a short type and adding up in float32 add the
rest:

    |error of o| ≤ (exp(2Δ) − 1 + 3·u + γ)·Σ p·|v| + 2·u·|o|
    Δ = u_s·max|s| + γ_d·scale·‖q‖·max‖k‖,   γ as in :mod:`rounding`

where u is the unit roundoff of the inputs' type, and u_s as well: kernels may round scores to the inputs' type (torch's own
implementation did so up to 2.4). Kernels scale before or after the product, which Δ covers by its second u_s.
"""

from __future__ import annotations

import math

import torch

from .rounding import UNIT, gamma


def masked(queries: int, keys: int, causal: str) -> torch.Tensor:
    """True where a query may look: ``"upper-left"`` counts both from their beginning, ``"lower-right"`` from their end."""
    everything = torch.ones(queries, keys, dtype=torch.bool)
    if not causal:
        return everything
    return everything.tril(0 if causal == "upper-left" else keys - queries)


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The output for queries, keys and values of [batch, heads, tokens, d] (fewer heads of keys serve groups of queries), and
    the bound of its elements. ``mask`` is True where a query may look, and broadcasts over batch and heads."""
    dtype = q.dtype
    q, k, v = (x.detach().double().cpu() for x in (q, k, v))
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scale = 1 / math.sqrt(q.shape[-1])
    scores = (q @ k.transpose(-1, -2) * scale).masked_fill(~mask, float("-inf"))
    p = scores.softmax(-1)
    out, weight = p @ v, p @ v.abs()
    u, short = UNIT[dtype], UNIT[torch.float32] if dtype != torch.float64 else UNIT[torch.float64]
    largest = scores.masked_fill(~mask, 0).abs().amax(-1, keepdim=True)
    sizes = q.norm(dim=-1, keepdim=True) * k.norm(dim=-1).amax(-1)[..., None, None] * scale
    delta = 2 * u * largest + gamma(q.shape[-1], short) * sizes
    bound = (torch.expm1(2 * delta) + 3 * u + gamma(k.shape[-2], short)) * weight + 2 * u * out.abs() + 1e-30
    return out, bound
