"""Rotary embeddings of every implementation that is there, against float64: forwards, backwards, tables and lengths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from . import xformers_rope
from .job import Job, NotHere, Probe, Verdict, failed, missing, passed, said
from .rotary_kernels import COMPILED, EAGER, INSTALLED, TRITON, Apply, Kernel, installed, usable
from .rotary_own import tables as own_tables
from .rotary_reference import angle_bound, exact_tables, turned, turning_bound
from .rounding import UNIT

QUICK = ((1, 4, 2, 33, 64, 0), (2, 8, 8, 16, 128, 1_048_560))
NORMAL = (*QUICK, (1, 8, 2, 65, 128, 7), (1, 2, 1, 17, 256, 4090), (2, 6, 3, 9, 96, 100), (1, 3, 1, 31, 80, 0))
"""Batch, query heads, key heads, tokens, head size, first position."""
POSITIONS = (0, 1, 17, 127, 128, 1034, 1035, 4095, 8193, 65_537, 131_072, 500_001, 999_999, 1_048_575)
SHORT, LONG = 1034, 1035
_HALVES = False  # not interleaved


def probes(job: Job) -> Iterator[Probe]:
    """Our own first; torch.compile where it is not asked to be quick; then what the stack brings."""
    yield from _of(EAGER, job)
    yield from _of(TRITON, job)
    if job.quick:
        return
    if job.on_cuda or job.thorough:
        yield from _of(COMPILED, job)
    for kernel in INSTALLED:
        yield from _of(kernel, job)
    yield "xformers", partial(xformers_rope.check, job)


def _of(kernel: Kernel, job: Job) -> Iterator[Probe]:
    if not installed(kernel):
        yield kernel.name, partial(missing, f"{kernel.name} is not installed")
        return
    for style in kernel.styles:
        yield f"{kernel.name}-{style}", partial(turning, job, kernel, style == "interleaved")
    if kernel.tables is not None:
        yield f"{kernel.name}-angles", partial(angles, job, kernel)
    if kernel.lengths or (kernel.unchecked and job.thorough):
        yield f"{kernel.name}-lengths", partial(lengths, job, kernel)


def turning(job: Job, kernel: Kernel, interleaved: bool) -> Verdict:
    """Outputs and gradients of a kernel for every shape and type, within the bound of :mod:`rotary_reference`."""
    usable(kernel, job)
    apply, worst, count = kernel.load(), 0.0, 0
    generator = torch.Generator().manual_seed(job.seed)
    for dtype in (torch.float32, torch.bfloat16) if job.quick else (torch.float32, torch.bfloat16, torch.float16):
        for batch, q_heads, k_heads, tokens, dim, offset in QUICK if job.quick else NORMAL:
            cos, sin = own_tables(torch.arange(offset, offset + tokens), dim)
            if kernel.own_type:
                cos, sin = cos.to(dtype), sin.to(dtype)
            q, k = (_projected(torch.randn(batch, tokens, heads, dim, generator=generator).to(dtype), job)
                    for heads in (q_heads, k_heads))  # fmt: skip
            name = f"{_short(dtype)}, {q_heads} and {k_heads} heads of {dim}, {tokens} tokens from position {offset}"
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
    """The largest error as a share of its bound, and what to say where it is beyond it."""
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
        share = (result.detach().double().cpu() - exact).abs() / turning_bound(size, source.dtype)
        if not bool((share <= 1).all()):
            at = tuple((~(share <= 1)).nonzero()[0].tolist())
            got, wanted = float(result[at]), float(exact[at])
            bound = float(turning_bound(size, source.dtype)[at])
            why = f"{what}{list(at)} is {got:.6g}; float64 gives {wanted:.6g}, and rounding explains {bound:.2g}"
            return float(share[at]), why
        worst = max(worst, float(share.max()))
    return worst, ""


def angles(job: Job, kernel: Kernel) -> Verdict:
    """cos and sin of positions up to a million, twice from the same object's class: fresh, and where others came before."""
    usable(kernel, job)
    assert kernel.tables is not None
    tables, worst = kernel.tables(), 0.0
    positions = torch.tensor(POSITIONS)
    for dtype in (torch.float32, torch.bfloat16):
        for dim in (64, 128, 256):
            tables(positions[:5].to(job.device), dim, dtype)  # what a cache may have kept
            for part in (positions, positions[5:], positions.flip(0)):
                found = tables(part.to(job.device), dim, dtype)
                exact = exact_tables(part, dim)
                bound = angle_bound(part, dim) + UNIT[dtype]
                for name, got, wanted in zip(("cos", "sin"), found, exact):
                    if tuple(got.shape) != tuple(wanted.shape):
                        return failed(
                            f"{name} of {len(part)} positions has shape {tuple(got.shape)}, not {tuple(wanted.shape)}"
                        )
                    share = (got.double().cpu() - wanted).abs() / bound
                    if not bool((share <= 1).all()):
                        row, column = (~(share <= 1)).nonzero()[0].tolist()
                        why = (f"{name} of position {int(part[row])}, pair {column} of {dim // 2} in {_short(dtype)} is "
                               f"{float(got[row, column]):.6g}; float64 gives {float(wanted[row, column]):.6g}, and angles in "
                               f"float32 explain {float(bound[row, column]):.2g}")  # fmt: skip
                        return failed(why, {"error_of_bound": float(share[row, column])}, {"error_of_bound": 1})
                    worst = max(worst, float(share.max()))
    return passed({"positions": len(POSITIONS), "error_of_bound": round(worst, 4)}, {"error_of_bound": 1})


def lengths(job: Job, kernel: Kernel) -> Verdict:
    """Tables one row shorter or longer than the tokens have to be refused: broadcast or read past the end, they are wrong."""
    usable(kernel, job)
    apply, refused = kernel.load(), {}
    q, k = (_projected(torch.randn(1, LONG, heads, 64), job) for heads in (2, 1))
    _taken(apply, q, k, job)
    tables = [("shorter", SHORT, LONG), ("longer", LONG, SHORT)]
    if not kernel.own_type:  # ours; others broadcast one row on purpose
        tables.append(("one row", 1, LONG))
    for name, rows, tokens in tables:
        cos, sin = (table.to(job.device) for table in own_tables(torch.arange(rows), 64))
        try:
            result = apply(q[:, :, :tokens], k[:, :, :tokens], cos, sin, _HALVES)
        except NotHere:
            raise
        except Exception as refusal:
            refused[name] = said(refusal)[:160]
            continue
        if name == "longer" and kernel.longer:
            exact, size = turned(q[:, :, :tokens], cos[:tokens], sin[:tokens], _HALVES)
            if bool(((result[0].double().cpu() - exact).abs() <= turning_bound(size, q.dtype)).all()):
                refused[name] = "taken as a cache, and its first rows used"
                continue
        why = f"{tokens} tokens with cos and sin of {rows} row{'s' * (rows > 1)} were turned without a word"
        return failed(why, {"rows": rows}, {"rows": tokens})
    return passed({"refused": refused})


def _taken(apply: Apply, q: torch.Tensor, k: torch.Tensor, job: Job) -> None:
    """Raises :class:`NotHere` where tables that fit are refused too: what refuses everything has not looked at the length."""
    cos, sin = (table.to(job.device) for table in own_tables(torch.arange(LONG), 64))
    try:
        apply(q, k, cos, sin, _HALVES)
    except NotHere:
        raise
    except Exception as problem:
        raise NotHere(f"tables that fit are refused too: {said(problem)[:160]}") from problem


def _short(dtype: torch.dtype) -> str:
    return str(dtype).partition(".")[2]
