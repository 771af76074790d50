"""Matrix products of every type the device has, checked against exact arithmetic; and the same bits every time.

For each type, shape and layout: a product of whole numbers, which has to be exact to the last bit; one of real numbers,
which has to lie within the bound of :mod:`freivalds`; one of positive whole numbers whose partial sums need float32, which
has to be off by no more than the rounding of its result (so that sums kept in a short type are seen); and the first again,
which has to give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from .freivalds import Wrong, wrong_integer, wrong_real
from .job import Job, NotHere, Probe, Verdict, failed, passed
from .matrices import integers, laid_out, pieces, reals, shapes
from .rounding import UNIT

REPEATS = 4
_SPLIT = 2
"""Roundings to the result's type that are allowed on the way to it: its own, and one of a sum of two parts."""


def probes(job: Job) -> Iterator[Probe]:
    """One probe a type; TF32 is asked for where the hardware has it, and has to be absent where it is not."""
    yield "fp32", partial(product, job, torch.float32)
    if not job.quick:
        yield "fp64", partial(product, job, torch.float64)
        yield "fp32-tf32", partial(_tf32, job)
    yield "bf16", partial(_short, job, torch.bfloat16)
    yield "fp16", partial(_short, job, torch.float16)
    from . import compiled, fp8

    if job.on_cuda or not job.quick:
        yield "fp8", partial(fp8.product, job)
    if not job.quick and (job.on_cuda or job.thorough):
        yield from compiled.probes(job)


def product(job: Job, dtype: torch.dtype, *, tf32: bool = False) -> Verdict:
    """The checks above for one type; the first wrong number fails it."""
    generator = torch.Generator().manual_seed(job.seed)
    worst, products = 0.0, 0
    with precision(tf32=tf32):
        for layout, batch, m, k, n in shapes(job.depth):
            name = f"{layout} {m}×{k}×{n}" + (f" in a batch of {batch}" if batch > 1 else "")
            limit = 2**10 if tf32 else 0
            exact = laid_out(integers(dtype, batch, m, k, n, generator, limit), layout, dtype, job.device)
            wrong = whole_numbers(exact, generator)
            share, beyond = (0.0, None) if wrong else real_numbers(
                laid_out(reals(batch, m, k, n, generator), layout, dtype, job.device), generator, tf32=tf32
            )  # fmt: skip
            products += 2 + REPEATS
            worst = max(worst, share)
            if wrong or beyond:
                return _failed(name, wrong or beyond or {}, "whole numbers" if wrong else "real numbers")
        if UNIT[dtype] > UNIT[torch.float32]:
            short = _sums(dtype, job, generator)
            if short:
                return short
    measured = {"products": products, "wrong_elements": 0, "residual_of_bound": round(worst, 4)}
    return passed(measured, {"wrong_elements": 0, "residual_of_bound": 1})


def whole_numbers(pair: tuple[torch.Tensor, torch.Tensor], generator: torch.Generator) -> Wrong | None:
    """Exact to the bit, and the same bits when it is done again."""
    a, b = pair
    first = multiplied(a, b)
    for one in pieces(a, b, first):
        wrong = wrong_integer(*one, generator)
        if wrong:
            return wrong
    for _ in range(REPEATS - 1):
        again = multiplied(a, b)
        if not torch.equal(first, again):
            where = (first != again).nonzero()[0].tolist()
            return {"row": where[-2], "column": where[-1], "got": float(again[tuple(where)]),
                    "exact": float(first[tuple(where)]), "bound": 0.0, "repeat": True}  # fmt: skip
    return None


def real_numbers(
    pair: tuple[torch.Tensor, torch.Tensor], generator: torch.Generator, *, tf32: bool = False
) -> tuple[float, Wrong | None]:
    """The largest share of the bound, and what is beyond it."""
    a, b = pair
    result, worst = multiplied(a, b), 0.0
    for one in pieces(a, b, result):
        share, wrong = wrong_real(*one, generator, tf32=tf32, split=_SPLIT)
        if wrong:
            return share, wrong
        worst = max(worst, share)
    return worst, None


def multiplied(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product under test; it has to be of the type, the shape and on the device that were asked for."""
    result = torch.matmul(a, b)
    shape = (*a.shape[:-1], b.shape[-1])
    if result.device != a.device or result.dtype != a.dtype or tuple(result.shape) != shape:
        raise ArithmeticError(
            f"a product of {a.dtype} on {a.device} of shape {shape} came back as {result.dtype} on {result.device} "
            f"of shape {tuple(result.shape)}"
        )
    return result


def _sums(dtype: torch.dtype, job: Job, generator: torch.Generator) -> Verdict | None:
    """Positive whole numbers: sums of thousands, which float32 holds exactly and a short type does not."""
    m, k, n = 48, 1024, 56
    pair = (torch.randint(1, 8, (1, m, k), generator=generator), torch.randint(1, 8, (1, k, n), generator=generator))
    a, b = laid_out(pair, "aligned", dtype, job.device)
    result = multiplied(a, b)[0].cpu().double()
    exact = (pair[0][0].double()) @ pair[1][0].double()
    share = (result - exact).abs() / (_SPLIT * UNIT[dtype] * exact)
    if bool((share <= 1).all()):
        return None
    row, column = (~(share <= 1)).nonzero()[0].tolist()
    wrong = {"row": row, "column": column, "got": float(result[row, column]), "exact": float(exact[row, column]),
             "bound": _SPLIT * UNIT[dtype] * float(exact[row, column])}  # fmt: skip
    return _failed(f"aligned {m}×{k}×{n}", wrong, "positive whole numbers: its sums are kept in a type that is too short")


def _failed(name: str, wrong: Wrong, kind: str) -> Verdict:
    if wrong.get("repeat"):
        place = f"[{wrong['row']}, {wrong['column']}]"
        why = (f"{name}: the same product came out differently when it was repeated: element {place} is "
               f"{_number(wrong['exact'])}, then {_number(wrong['got'])}")  # fmt: skip
    else:
        why = (f"{name}, {kind}: element [{wrong['row']}, {wrong['column']}] is {_number(wrong['got'])}; "
               f"exact arithmetic gives {_number(wrong['exact'])}, and rounding explains {wrong['bound']:.3g}")  # fmt: skip
    error = abs(wrong["got"] - wrong["exact"])
    return failed(why, {"got": wrong["got"], "exact": wrong["exact"], "error": error}, {"error": wrong["bound"]})


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:.17g}"


def _tf32(job: Job) -> Verdict:
    if not job.on_cuda:
        raise NotHere("no accelerator: TF32 is a mode of tensor cores")
    if torch.version.hip is None and torch.cuda.get_device_capability(job.device) < (8, 0):
        raise NotHere("this device has no TF32: it came with compute capability 8.0")
    return product(job, torch.float32, tf32=True)


def _short(job: Job, dtype: torch.dtype) -> Verdict:
    try:
        torch.matmul(torch.ones(2, 2, dtype=dtype, device=job.device), torch.ones(2, 2, dtype=dtype, device=job.device))
    except RuntimeError as problem:
        if "not implemented for" in str(problem):
            raise NotHere(f"this torch multiplies no {dtype} on {job.device}: {problem}") from None
        raise
    return product(job, dtype)


@contextmanager
def precision(*, tf32: bool) -> Iterator[None]:
    """TF32 as asked, and sums of parts in float32, for the time of a check."""
    settings: Any = torch.backends.cuda.matmul
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
