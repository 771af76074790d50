"""Our own Triton kernels: a sum, the smallest test that Triton's code runs, and rotary embeddings.

The rotary kernel reads and writes every element once, and a token's cos and sin serve all of its heads. One program rotates
one token: the tile of its query heads, then that of its key heads. At 32 heads of 128 in bfloat16 that is 8 KiB in and 8 KiB
out, in loads of 16 bytes; cos and sin add half a kibibyte that the next batch finds in the cache. The rest is a copy, so a
device copy is the reference for its speed (``python -m benchmarks.probe``).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch.autograd.function import FunctionCtx

from .bounds import Tables, checked
from .job import NotHere


@triton.jit
def _add(a, b, target, length, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < length
    tl.store(target + places, tl.load(a + places, mask=inside) + tl.load(b + places, mask=inside), mask=inside)


def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    target = torch.full_like(a, float("nan"))  # an element that is not written shows
    _add[(triton.cdiv(len(a), 1024),)](a, b, target, len(a), BLOCK=1024)
    return target


@triton.jit
def _turn_heads(source, target, cos_row, sin_row, head_stride, target_head_stride,
                HEADS: tl.constexpr, PAIRS: tl.constexpr, BLOCK_HEADS: tl.constexpr, BLOCK_PAIRS: tl.constexpr,
                INTERLEAVED: tl.constexpr):  # fmt: skip
    for first in tl.static_range(0, HEADS, BLOCK_HEADS):
        heads = first + tl.arange(0, BLOCK_HEADS)[:, None]
        if INTERLEAVED:
            columns = tl.arange(0, 2 * BLOCK_PAIRS)[None, :]
            inside = (heads < HEADS) & (columns < 2 * PAIRS)
            both = tl.load(source + heads * head_stride + columns, mask=inside, other=0.0)
            a, b = tl.split(tl.reshape(both, (BLOCK_HEADS, BLOCK_PAIRS, 2)))
            a, b = a.to(tl.float32), b.to(tl.float32)
            turned = tl.join(a * cos_row - b * sin_row, b * cos_row + a * sin_row)
            turned = tl.reshape(turned, (BLOCK_HEADS, 2 * BLOCK_PAIRS))
            tl.store(target + heads * target_head_stride + columns, turned.to(both.dtype), mask=inside)
        else:
            columns = tl.arange(0, BLOCK_PAIRS)[None, :]
            inside = (heads < HEADS) & (columns < PAIRS)
            a_in = tl.load(source + heads * head_stride + columns, mask=inside, other=0.0)
            b_in = tl.load(source + heads * head_stride + columns + PAIRS, mask=inside, other=0.0)
            a, b = a_in.to(tl.float32), b_in.to(tl.float32)
            place = target + heads * target_head_stride + columns
            tl.store(place, (a * cos_row - b * sin_row).to(a_in.dtype), mask=inside)
            tl.store(place + PAIRS, (b * cos_row + a * sin_row).to(a_in.dtype), mask=inside)


@triton.jit
def _turn_tokens(q, k, q_target, k_target, cos, sin, tokens,
                 q_batch, q_head, q_token, k_batch, k_head, k_token,
                 qt_batch, qt_head, qt_token, kt_batch, kt_head, kt_token, cos_stride, sin_stride, sign,
                 Q_HEADS: tl.constexpr, K_HEADS: tl.constexpr, PAIRS: tl.constexpr, BLOCK_Q: tl.constexpr,
                 BLOCK_K: tl.constexpr, BLOCK_PAIRS: tl.constexpr, INTERLEAVED: tl.constexpr):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    batch, token = program // tokens, program % tokens
    pairs = tl.arange(0, BLOCK_PAIRS)[None, :]
    cos_row = tl.load(cos + token * cos_stride + pairs, mask=pairs < PAIRS, other=0.0).to(tl.float32)
    sin_row = tl.load(sin + token * sin_stride + pairs, mask=pairs < PAIRS, other=0.0).to(tl.float32) * sign
    _turn_heads(q + batch * q_batch + token * q_token, q_target + batch * qt_batch + token * qt_token, cos_row, sin_row,
                q_head, qt_head, Q_HEADS, PAIRS, BLOCK_Q, BLOCK_PAIRS, INTERLEAVED)  # fmt: skip
    _turn_heads(k + batch * k_batch + token * k_token, k_target + batch * kt_batch + token * kt_token, cos_row, sin_row,
                k_head, kt_head, K_HEADS, PAIRS, BLOCK_K, BLOCK_PAIRS, INTERLEAVED)  # fmt: skip


def blocks(q_heads: int, k_heads: int, pairs: int) -> dict[str, int]:
    """Return the tile sizes of one program: all heads of a token if they fit into 8,192 elements."""
    block_pairs = triton.next_power_of_2(pairs)
    most = max(8192 // (2 * block_pairs), 1)
    return {
        "BLOCK_PAIRS": block_pairs,
        "BLOCK_Q": min(triton.next_power_of_2(q_heads), most),
        "BLOCK_K": min(triton.next_power_of_2(k_heads), most),
    }


def _launch(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool, sign: float) -> Tables:
    """Launch the kernel. ``sign`` is -1.0 for the backward pass, and not a constexpr, so the kernel is compiled once."""
    q, k = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k))
    q_target, k_target = torch.empty_like(q), torch.empty_like(k)
    batch, q_heads, tokens, dim = q.shape
    k_heads = k.shape[1]
    _turn_tokens[(batch * tokens,)](
        q, k, q_target, k_target, cos, sin, tokens, *q.stride()[:3], *k.stride()[:3], *q_target.stride()[:3],
        *k_target.stride()[:3], cos.stride(0), sin.stride(0), sign, Q_HEADS=q_heads, K_HEADS=k_heads, PAIRS=dim // 2,
        INTERLEAVED=interleaved, num_warps=4, **blocks(q_heads, k_heads, dim // 2),
    )  # fmt: skip
    return q_target, k_target


class _Rotation(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        q: torch.Tensor,
        k: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        interleaved: bool,
    ) -> Tables:
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        return _launch(q, k, cos, sin, interleaved, 1.0)

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        return (*_launch(gradients[0], gradients[1], cos, sin, ctx.interleaved, -1.0), None, None, None)


def rotate(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Tables:
    """Rotate queries and keys ([batch, heads, tokens, d], any strides); raises :class:`ValueError` for mismatched tables."""
    checked(q, k, cos, sin)
    if not hasattr(tl, "split"):  # it refuses a kernel that only names it, in a branch that is not compiled
        raise NotHere("this Triton has no tl.split, which needs 3.0")
    result: Tables = _Rotation.apply(q, k, cos.contiguous(), sin.contiguous(), interleaved)
    return result
