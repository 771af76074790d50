"""The smallest kernel that shows whether Triton's code runs."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _add(a, b, target, length, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < length
    tl.store(target + places, tl.load(a + places, mask=inside) + tl.load(b + places, mask=inside), mask=inside)


def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    target = torch.full_like(a, float("nan"))  # an element that is not written shows
    _add[(triton.cdiv(len(a), 1024),)](a, b, target, len(a), BLOCK=1024)
    return target
