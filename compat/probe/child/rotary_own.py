"""Our own rotary embeddings: in eager torch, and by a Triton kernel where there is one."""

from __future__ import annotations

import torch

from .rotary_reference import BASE, Tables, halves, joined


def tables(positions: torch.Tensor, dim: int, base: float = BASE) -> Tables:
    """cos and sin as training frameworks compute them: angles in float32, whatever the model's type."""
    exponents = torch.arange(0, dim, 2, dtype=torch.float32, device=positions.device) / dim
    angles = positions.float()[:, None] * (1.0 / base**exponents)
    return angles.cos(), angles.sin()


def checked(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    """Raises :class:`ValueError` unless cos and sin have a row for every token and a column for every pair."""
    wanted = (q.shape[-2], q.shape[-1] // 2)
    for name, table in (("cos", cos), ("sin", sin)):
        if tuple(table.shape) != wanted or k.shape[-2] != wanted[0]:
            raise ValueError(f"{name} of shape {tuple(table.shape)} for {q.shape[-2]} tokens of {wanted[1]} pairs")


def eager(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Tables:
    """Queries and keys ([batch, heads, tokens, d]) turned; the arithmetic is float32's, the result has the input's type."""
    checked(q, k, cos, sin)
    return _turned(q, cos, sin, interleaved), _turned(k, cos, sin, interleaved)


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> torch.Tensor:
    a, b = halves(x.float(), interleaved)
    c, s = cos.float(), sin.float()
    return joined(a * c - b * s, b * c + a * s, interleaved).to(x.dtype)
