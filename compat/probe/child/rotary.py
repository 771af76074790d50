"""Rotary embeddings of every available implementation against float64: outputs, gradients, angles and table lengths."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

import torch

from .bounds import BASE, UNIT, angle_bound, compared, exact_tables, halves, joined, short_name, turned, turning_bound
from .job import Job, NotHere, Probe, Verdict, described, failed, is_installed, missing, needed, passed
from .rotary_kernels import COMPILED, EAGER, INSTALLED, TRITON, Apply, Kernel
from .rotary_kernels import tables as own_tables

QUICK = ((1, 4, 2, 33, 64, 0), (2, 8, 8, 16, 128, 1_048_560))
NORMAL = (*QUICK, (1, 8, 2, 65, 128, 7), (1, 2, 1, 17, 256, 4090), (2, 6, 3, 9, 96, 100), (1, 3, 1, 31, 80, 0))
"""Batch, query heads, key heads, tokens, head size, first position."""
XFORMERS = ((4, 2, 33, 64, 0), (8, 8, 16, 128, 1000), (2, 1, 17, 256, 30))
"""Query heads, key heads, tokens, head size, first position."""
POSITIONS = (0, 1, 17, 127, 128, 1034, 1035, 4095, 8193, 65_537, 131_072, 500_001, 999_999, 1_048_575)
SHORT, LONG = 1034, 1035
_HALVES = False  # not interleaved


def probes(job: Job) -> Iterator[Probe]:
    """Return the probes: our own kernels first, torch.compile unless the job is quick, then the installed implementations."""
    yield from _of(EAGER, job)
    yield from _of(TRITON, job)
    if job.quick:
        return
    if job.on_cuda or job.thorough:
        yield from _of(COMPILED, job)
    for kernel in INSTALLED:
        yield from _of(kernel, job)
    yield "xformers", partial(xformers, job)


def _of(kernel: Kernel, job: Job) -> Iterator[Probe]:
    if kernel.module and not is_installed(kernel.module):
        yield kernel.name, partial(missing, kernel.name)
        return
    for style in kernel.styles:
        yield f"{kernel.name}-{style}", partial(turning, job, kernel, style == "interleaved")
    if kernel.tables is not None:
        yield f"{kernel.name}-angles", partial(angles, job, kernel)
    if kernel.lengths or (kernel.unchecked and job.thorough):
        yield f"{kernel.name}-lengths", partial(lengths, job, kernel)


def turning(job: Job, kernel: Kernel, interleaved: bool) -> Verdict:
    """Test a kernel's outputs and gradients for every shape and type against the bound of :mod:`bounds`."""
    kernel.check_usable(job)
    apply, worst, count = kernel.load(), 0.0, 0
    generator = torch.Generator().manual_seed(job.seed)
    for dtype in (torch.float32, torch.bfloat16) if job.quick else (torch.float32, torch.bfloat16, torch.float16):
        for batch, q_heads, k_heads, tokens, dim, offset in QUICK if job.quick else NORMAL:
            cos, sin = own_tables(torch.arange(offset, offset + tokens), dim)
            if kernel.own_type:
                cos, sin = cos.to(dtype), sin.to(dtype)
            q, k = (_projected(torch.randn(batch, tokens, heads, dim, generator=generator).to(dtype), job)
                    for heads in (q_heads, k_heads))  # fmt: skip
            name = f"{short_name(dtype)}, {q_heads} and {k_heads} heads of {dim}, {tokens} tokens from position {offset}"
            share, why = _compared(apply, q, k, cos.to(job.device), sin.to(job.device), interleaved, kernel.backward)
            worst, count = max(worst, share), count + 1
            if why:
                return failed(f"{name}: {why}", {"error_of_bound": share}, {"error_of_bound": 1})
    return passed({"cases": count, "error_of_bound": round(worst, 4)}, {"error_of_bound": 1})


def _projected(x: torch.Tensor, job: Job) -> torch.Tensor:
    """[batch, tokens, heads, d] as [batch, heads, tokens, d], as a projection leaves it; some kernels take no other layout."""
    return x.to(job.device).transpose(1, 2)


def _compared(
    apply: Apply, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool, backward: bool
) -> tuple[float, str]:
    """Return the largest error as a fraction of its bound, and a description if it exceeds the bound."""
    inputs = [x.clone().requires_grad_(backward) for x in (q, k)]
    results = apply(inputs[0], inputs[1], cos, sin, interleaved)
    pairs = [("queries", results[0], q, False), ("keys", results[1], k, False)]
    for what, result, source, _ in tuple(pairs):
        if result.shape != source.shape or result.device != source.device:
            asked, got_back = (f"{tuple(each.shape)} on {each.device}" for each in (source, result))
            return float("inf"), f"{what} of shape {asked} came back as {got_back}"
    if backward:
        gradients = [torch.flip(x.transpose(1, 2), (1,)).contiguous().transpose(1, 2) for x in (q, k)]
        # some kernels write into the gradients they are given
        torch.autograd.backward(list(results), [g.to(r.dtype).clone() for g, r in zip(gradients, results)])
        for what, leaf, gradient in (("query gradients", inputs[0], gradients[0]), ("key gradients", inputs[1], gradients[1])):
            if leaf.grad is None:
                return float("inf"), f"no {what} came back"
            pairs.append((what, leaf.grad, gradient, True))
    worst = 0.0
    for what, result, source, reverse in pairs:
        exact, size = turned(source, cos, sin, interleaved, reverse)
        share, wrong = compared(result, exact, turning_bound(size, source.dtype))
        if wrong:
            values = f"{wrong.got:.6g}; float64 gives {wrong.exact:.6g}, and rounding explains {wrong.bound:.2g}"
            return share, f"{what}{list(wrong.at)} is {values}"
        worst = max(worst, share)
    return worst, ""


def angles(job: Job, kernel: Kernel) -> Verdict:
    """Test cos and sin of positions up to a million: from a new object, and after it has computed others."""
    kernel.check_usable(job)
    assert kernel.tables is not None
    tables, worst = kernel.tables(), 0.0
    positions = torch.tensor(POSITIONS)
    for dtype in (torch.float32, torch.bfloat16):
        for dim in (64, 128, 256):
            tables(positions[:5].to(job.device), dim, dtype)  # fills a cache, if it has one
            for part in (positions, positions[5:], positions.flip(0)):
                found = tables(part.to(job.device), dim, dtype)
                bound = angle_bound(part, dim) + UNIT[dtype]
                for name, got, wanted in zip(("cos", "sin"), found, exact_tables(part, dim)):
                    shapes = tuple(got.shape), tuple(wanted.shape)
                    if shapes[0] != shapes[1]:
                        return failed(f"{name} of {len(part)} positions has shape {shapes[0]}, not {shapes[1]}")
                    share, wrong = compared(got, wanted, bound)
                    if wrong:
                        row, column = wrong.at
                        why = (f"{name} of position {int(part[row])}, pair {column} of {dim // 2} in {short_name(dtype)} is "
                               f"{wrong.got:.6g}; float64 gives {wrong.exact:.6g}, and angles in "
                               f"float32 explain {wrong.bound:.2g}")  # fmt: skip
                        return failed(why, {"error_of_bound": share}, {"error_of_bound": 1})
                    worst = max(worst, share)
    return passed({"positions": len(POSITIONS), "error_of_bound": round(worst, 4)}, {"error_of_bound": 1})


def lengths(job: Job, kernel: Kernel) -> Verdict:
    """Test that tables one row too short or too long are rejected: broadcasting or reading past the end is wrong."""
    kernel.check_usable(job)
    apply, refused = kernel.load(), {}
    q, k = (_projected(torch.randn(1, LONG, heads, 64), job) for heads in (2, 1))
    # a kernel that rejects valid tables has not checked their length
    try:
        cos, sin = (table.to(job.device) for table in own_tables(torch.arange(LONG), 64))
        apply(q, k, cos, sin, _HALVES)
    except NotHere:
        raise
    except Exception as problem:
        raise NotHere(f"tables that fit are refused too: {described(problem)[:160]}") from problem
    cases = [("shorter", SHORT, LONG), ("longer", LONG, SHORT)]
    if not kernel.own_type:  # ours; others broadcast one row on purpose
        cases.append(("one row", 1, LONG))
    for name, rows, tokens in cases:
        cos, sin = (table.to(job.device) for table in own_tables(torch.arange(rows), 64))
        try:
            result = apply(q[:, :, :tokens], k[:, :, :tokens], cos, sin, _HALVES)
        except NotHere:
            raise
        except Exception as refusal:
            refused[name] = described(refusal)[:160]
            continue
        if name == "longer" and kernel.longer:
            exact, size = turned(q[:, :, :tokens], cos[:tokens], sin[:tokens], _HALVES)
            if compared(result[0], exact, turning_bound(size, q.dtype))[1] is None:
                refused[name] = "taken as a cache, and its first rows used"
                continue
        why = f"{tokens} tokens with cos and sin of {rows} row{'s' * (rows > 1)} were rotated without an error"
        return failed(why, {"rows": rows}, {"rows": tokens})
    return passed({"refused": refused})


def xformers(job: Job) -> Verdict:
    """Test ``xformers.ops.rope_padded``, which computes its own angles: the queries, and the keys it writes to the cache."""
    job.needs_accelerator()
    turn = getattr(needed("xformers.ops", "xformers"), "rope_padded", None)
    if turn is None:
        raise NotHere("this xformers has no rope_padded")
    if os.environ.get("XFORMERS_FORCE_DISABLE_TRITON") == "1":
        raise NotHere("XFORMERS_FORCE_DISABLE_TRITON disables xformers' Triton kernels")
    if not is_installed("triton"):
        raise NotHere("triton is not installed")
    if os.environ.get("XFORMERS_ENABLE_TRITON") != "1" and torch.cuda.get_device_capability(job.device) < (8, 0):
        raise NotHere("xformers has no Triton kernels below compute capability 8.0")
    return rope_padded(job, turn)


def rope_padded(job: Job, turn: Callable[..., torch.Tensor]) -> Verdict:
    """Return the verdict on a ``rope_padded`` in both orders of pairs, on any device."""
    bias = needed("xformers.ops.fmha.attn_bias", "xformers").BlockDiagonalCausalWithOffsetPaddedKeysMask
    generator, worst = torch.Generator().manual_seed(job.seed), 0.0
    for q_heads, k_heads, tokens, dim, offset in XFORMERS:
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
                share, wrong = compared(got.transpose(1, 2), exact, bound)
                if wrong:
                    why = (f"{what}{list(wrong.at)} of {tokens} tokens of {dim} from position {offset} "
                           f"are {share:.3g} times as far off as rounding explains")  # fmt: skip
                    return failed(why, {"error_of_bound": share}, {"error_of_bound": 1})
                worst = max(worst, share)
    return passed({"cases": 2 * len(XFORMERS), "error_of_bound": round(worst, 4)}, {"error_of_bound": 1})
