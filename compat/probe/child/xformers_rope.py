"""xformers' rotary kernel, by its public entry ``xformers.ops.rope_padded``; it computes its own angles."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable

import torch

from .job import Job, NotHere, Verdict, failed, passed
from .rotary_kernels import needed
from .rotary_reference import BASE, angle_bound, exact_tables, halves, joined, turned, turning_bound

CASES = ((4, 2, 33, 64, 0), (8, 8, 16, 128, 1000), (2, 1, 17, 256, 30))
"""Query heads, key heads, tokens, head size, first position."""


def check(job: Job) -> Verdict:
    """Queries, and keys in the cache where it puts them, in both orders of pairs."""
    if not job.on_cuda:
        raise NotHere("no accelerator")
    turn = getattr(needed("xformers.ops", "xformers"), "rope_padded", None)
    if turn is None:
        raise NotHere("this xformers has no rope_padded")
    if os.environ.get("XFORMERS_FORCE_DISABLE_TRITON") == "1":
        raise NotHere("XFORMERS_FORCE_DISABLE_TRITON switches xformers' Triton kernels off")
    if importlib.util.find_spec("triton") is None:
        raise NotHere("triton is not installed")
    if os.environ.get("XFORMERS_ENABLE_TRITON") != "1" and torch.cuda.get_device_capability(job.device) < (8, 0):
        raise NotHere("xformers leaves its Triton kernels out below compute capability 8.0")
    return turned_by(job, turn)


def turned_by(job: Job, turn: Callable[..., torch.Tensor]) -> Verdict:
    """The verdict on a ``rope_padded``, whatever the device."""
    bias = needed("xformers.ops.fmha.attn_bias", "xformers").BlockDiagonalCausalWithOffsetPaddedKeysMask
    generator, worst = torch.Generator().manual_seed(job.seed), 0.0
    for q_heads, k_heads, tokens, dim, offset in CASES:
        for interleaved in (False, True):
            q, k, v = (torch.randn(1, tokens, heads, dim, generator=generator).to(job.device)
                       for heads in (q_heads, k_heads, k_heads))  # fmt: skip
            padding = offset + tokens + 3
            keys, values = (torch.zeros(1, padding, k_heads, dim, device=job.device) for _ in range(2))
            mask = bias.from_seqlens(q_seqlen=[tokens], kv_padding=padding, kv_seqlen=[offset + tokens])
            out = turn(q, k, v, keys, values, mask, theta=BASE, adjacents=interleaved, internal_dtype="f32")
            positions = torch.arange(offset, offset + tokens)
            cos, sin = exact_tables(positions, dim)
            slack = angle_bound(positions, dim)
            for what, got, source in (("queries", out, q), ("keys", keys[:, offset : offset + tokens], k)):
                source = source.transpose(1, 2)
                exact, size = turned(source, cos, sin, interleaved)
                a, b = halves(source.double().cpu().abs(), interleaved)
                bound = turning_bound(size, torch.float32) + joined(slack * (a + b), slack * (a + b), interleaved)
                share = (got.transpose(1, 2).double().cpu() - exact).abs() / bound
                if not bool((share <= 1).all()):
                    at = (~(share <= 1)).nonzero()[0].tolist()
                    why = (f"{what}{at} of {tokens} tokens of {dim} from position {offset} "
                           f"are {float(share[tuple(at)]):.3g} times as far off as rounding explains")  # fmt: skip
                    return failed(why, {"error_of_bound": float(share[tuple(at)])}, {"error_of_bound": 1})
                worst = max(worst, float(share.max()))
    return passed({"cases": 2 * len(CASES), "error_of_bound": round(worst, 4)}, {"error_of_bound": 1})
