"""Matrix products of every type the device supports, checked against exact arithmetic and for reproducible bits.

For each type, shape and layout: a product of integers, which must be bit-exact; one of real numbers,
which must lie within the bound of :mod:`matrices`; one of positive integers whose partial sums need float32, which
must be off by no more than the rounding of its result (which detects accumulation in a short type); and the first again,
which must give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from . import compiled
from .bounds import EXACT, UNIT, Wrong, compared
from .job import Job, NotHere, Probe, Verdict, failed, passed
from .matrices import SHAPES, Pair, integers, laid_out, pieces, reals, wrong_integer, wrong_real

REPEATS = 4
_SPLIT = 2
"""Roundings to the result's type that are allowed on the way to it: its own, and one of a sum of two parts."""
_FP8_SHAPES = ((128, 256, 128), (64, 512, 192), (16, 128, 32))


def probes(job: Job) -> Iterator[Probe]:
    """Return one probe per type; TF32 only on hardware that supports it."""
    yield "fp32", partial(product, job, torch.float32)
    if not job.quick:
        yield "fp64", partial(product, job, torch.float64)
        yield "fp32-tf32", partial(_tf32, job)
    yield "bf16", partial(_short, job, torch.bfloat16)
    yield "fp16", partial(_short, job, torch.float16)
    if job.on_cuda or not job.quick:
        yield "fp8", partial(fp8, job)
    if not job.quick and (job.on_cuda or job.thorough):
        yield from compiled.probes(job)


def product(job: Job, dtype: torch.dtype, *, tf32: bool = False) -> Verdict:
    """Run all checks of one type; the first wrong element fails it."""
    generator = torch.Generator().manual_seed(job.seed)
    worst, products = 0.0, 0
    with precision(tf32=tf32):
        for layout, batch, m, k, n in SHAPES[job.depth]:
            name = f"{layout} {m}×{k}×{n}" + (f" in a batch of {batch}" if batch > 1 else "")
            limit = 2**10 if tf32 else 0
            exact = laid_out(integers(dtype, batch, m, k, n, generator, limit), layout, dtype, job.device)
            wrong, again = whole_numbers(exact, generator)
            if wrong:
                return _failed(name, wrong, "whole numbers", repeated=again)
            inexact = laid_out(reals(batch, m, k, n, generator), layout, dtype, job.device)
            share, wrong = real_numbers(inexact, generator, tf32=tf32)
            if wrong:
                return _failed(name, wrong, "real numbers")
            products += 2 + REPEATS
            worst = max(worst, share)
        if UNIT[dtype] > UNIT[torch.float32]:  # sums in the thousands, exact in float32 but not in a short type
            m, k, n = 48, 1024, 56
            pair = (torch.randint(1, 8, (1, m, k), generator=generator), torch.randint(1, 8, (1, k, n), generator=generator))
            sums = pair[0][0].double() @ pair[1][0].double()
            _, wrong = compared(multiplied(*laid_out(pair, "aligned", dtype, job.device))[0], sums, _SPLIT * UNIT[dtype] * sums)
            if wrong:
                kind = "positive whole numbers: its sums are kept in a type that is too short"
                return _failed(f"aligned {m}×{k}×{n}", wrong, kind)
    measured = {"products": products, "wrong_elements": 0, "residual_of_bound": round(worst, 4)}
    return passed(measured, {"wrong_elements": 0, "residual_of_bound": 1})


def whole_numbers(pair: Pair, generator: torch.Generator) -> tuple[Wrong | None, bool]:
    """The first element that is not exact, or that differs when the product is repeated; and whether it is a repetition's."""
    a, b = pair
    first = multiplied(a, b)
    for one in pieces(a, b, first):
        wrong = wrong_integer(*one, generator)
        if wrong:
            return wrong, False
    for _ in range(REPEATS - 1):
        again = multiplied(a, b)
        if not torch.equal(first, again):
            at = tuple((first != again).nonzero()[0].tolist())
            return Wrong(at[-2:], float(again[at]), float(first[at]), 0.0), True
    return None, False


def real_numbers(pair: Pair, generator: torch.Generator, *, tf32: bool = False) -> tuple[float, Wrong | None]:
    """Return the largest residual as a fraction of its bound, and an element beyond the bound."""
    a, b = pair
    result, worst = multiplied(a, b), 0.0
    for one in pieces(a, b, result):
        share, wrong = wrong_real(*one, generator, tf32=tf32, split=_SPLIT)
        if wrong:
            return share, wrong
        worst = max(worst, share)
    return worst, None


def multiplied(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compute the product under test; raises :class:`ArithmeticError` for an unexpected type, shape or device."""
    result = torch.matmul(a, b)
    shape = (*a.shape[:-1], b.shape[-1])
    if result.device != a.device or result.dtype != a.dtype or tuple(result.shape) != shape:
        raise ArithmeticError(
            f"a product of {a.dtype} on {a.device} of shape {shape} came back as {result.dtype} on {result.device} "
            f"of shape {tuple(result.shape)}"
        )
    return result


def _failed(name: str, wrong: Wrong, kind: str, *, repeated: bool = False) -> Verdict:
    if repeated:
        why = (f"{name}: the same product came out differently when it was repeated: element {list(wrong.at)} is "
               f"{_number(wrong.exact)}, then {_number(wrong.got)}")  # fmt: skip
    else:
        why = (f"{name}, {kind}: element {list(wrong.at)} is {_number(wrong.got)}; "
               f"exact arithmetic gives {_number(wrong.exact)}, and rounding explains {wrong.bound:.3g}")  # fmt: skip
    return failed(why, {"got": wrong.got, "exact": wrong.exact, "error": wrong.error}, {"error": wrong.bound})


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:.17g}"


def _tf32(job: Job) -> Verdict:
    job.needs_accelerator("TF32 is a mode of tensor cores")
    if torch.version.hip is None and torch.cuda.get_device_capability(job.device) < (8, 0):
        raise NotHere("this device does not support TF32, which needs compute capability 8.0")
    return product(job, torch.float32, tf32=True)


def _short(job: Job, dtype: torch.dtype) -> Verdict:
    try:
        torch.matmul(torch.ones(2, 2, dtype=dtype, device=job.device), torch.ones(2, 2, dtype=dtype, device=job.device))
    except RuntimeError as problem:
        if "not implemented for" in str(problem):
            raise NotHere(f"this torch multiplies no {dtype} on {job.device}: {problem}") from None
        raise
    return product(job, dtype)


def fp8(job: Job) -> Verdict:
    """``torch._scaled_mm`` of whole numbers small enough to be exact in e4m3, in the sums and in bf16: exact to the bit."""
    dtype = getattr(torch, "float8_e4m3fn", None)
    multiply: Any = getattr(torch, "_scaled_mm", None)
    if dtype is None or multiply is None:
        raise NotHere("this torch has no fp8")
    job.needs_accelerator("fp8 products are hardware's")
    if torch.version.hip is None and torch.cuda.get_device_capability(job.device) < (8, 9):
        raise NotHere("this device does not support fp8, which needs compute capability 8.9")
    generator = torch.Generator().manual_seed(job.seed)
    one = torch.ones((), device=job.device)
    for m, k, n in _FP8_SHAPES:
        left, right = (each[0] for each in integers(torch.bfloat16, 1, m, k, n, generator))
        a = left.float().to(dtype).to(job.device)
        b = right.float().to(dtype).to(job.device).t().contiguous().t()  # column-major, as the hardware wants it
        result = multiply(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        result = result[0] if isinstance(result, tuple) else result  # torch 2.4 and before also gave the largest value
        wrong = wrong_integer(left, right, result.cpu(), generator)
        if wrong:
            why = f"{m}×{k}×{n}: element {list(wrong.at)} is {wrong.got:g}; exact arithmetic gives {wrong.exact:g}"
            return failed(why, {"error": wrong.error}, {"error": 0})
    bound = {"wrong_elements": 0, "sums_below": EXACT[torch.bfloat16]}
    return passed({"products": len(_FP8_SHAPES), "wrong_elements": 0}, bound)


@contextmanager
def precision(*, tf32: bool) -> Iterator[None]:
    """Set TF32 on or off, and reduction in float32, for the duration of a check."""
    settings = torch.backends.cuda.matmul
    names = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    before = {name: getattr(settings, name) for name in names if hasattr(settings, name)}
    float32 = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        for name in before:
            setattr(settings, name, False)
        yield
    finally:
        torch.set_float32_matmul_precision(float32)
        for name, value in before.items():
            setattr(settings, name, value)
