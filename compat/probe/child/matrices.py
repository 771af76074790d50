"""Matrices to multiply: shapes and layouts that kernels treat differently, of whole numbers and of real ones."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .rounding import EXACT

Pair = tuple[torch.Tensor, torch.Tensor]

QUICK = (("aligned", 1, 128, 256, 128), ("ragged", 1, 127, 257, 65), ("transposed", 1, 96, 130, 80), ("batched", 3, 33, 64, 17))
NORMAL = (
    *QUICK,
    ("aligned", 1, 512, 1024, 384),
    ("ragged", 1, 255, 1023, 129),
    ("one row", 1, 1, 777, 513),
    ("one column", 1, 300, 513, 1),
    ("transposed", 1, 320, 515, 257),
    ("strided", 1, 200, 333, 129),
    ("batched", 5, 65, 127, 31),
)
THOROUGH = (*NORMAL, ("aligned", 1, 2048, 4096, 2048), ("ragged", 1, 1999, 4095, 1031), ("batched", 16, 257, 511, 129))
"""Layout, matrices of a batch, rows, inner dimension, columns."""


def shapes(depth: str) -> tuple[tuple[str, int, int, int, int], ...]:
    return {"quick": QUICK, "thorough": THOROUGH}.get(depth, NORMAL)


def integers(dtype: torch.dtype, batch: int, m: int, k: int, n: int, generator: torch.Generator, limit: int = 0) -> Pair:
    """Whole numbers whose product is exact in ``dtype`` whatever the order of its sums.

    Where the type has room, one side has entries of many bits, all odd: arithmetic that keeps fewer (TF32) cannot hold them.
    ``limit`` caps the entries, for types under test that are narrower than ``dtype``.
    """
    most = EXACT[dtype]
    room = max(most // k, 1)
    wide = min(room, limit or room)
    if wide < 8:  # no room: signs, and no more of them in a row than the type can count
        left = torch.randint(-1, 2, (batch, m, k), generator=generator)
        left = left * (left.abs().cumsum(-1) <= most)
        right = torch.randint(0, 2, (batch, k, n), generator=generator) * 2 - 1
        return left, right
    if most > 2**32:  # half the bits on each side
        side = 2 ** ((room.bit_length() - 1) // 2)
        return _odd((batch, m, k), side, generator), _odd((batch, k, n), side, generator)
    many, signs = _odd((batch, m, k), wide, generator), torch.randint(-1, 2, (batch, k, n), generator=generator)
    if torch.randint(0, 2, (1,), generator=generator).item():
        return many, signs
    return torch.randint(-1, 2, (batch, m, k), generator=generator), _odd((batch, k, n), wide, generator)


def reals(batch: int, m: int, k: int, n: int, generator: torch.Generator) -> Pair:
    """Entries of both signs, of different sizes along the inner dimension."""
    scale = torch.rand(k, generator=generator, dtype=torch.float64) + 0.5
    left = torch.randn((batch, m, k), generator=generator, dtype=torch.float64) * scale
    return left, torch.randn((batch, k, n), generator=generator, dtype=torch.float64)


def laid_out(pair: Pair, layout: str, dtype: torch.dtype, device: str) -> Pair:
    """The matrices in the type and the layout under test, on the device."""
    left, right = (each.to(dtype).to(device) for each in pair)
    if layout == "transposed":
        return left.transpose(-1, -2).contiguous().transpose(-1, -2), right.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "strided":
        return _strided(left), _strided(right)
    return left, right


def _strided(matrix: torch.Tensor) -> torch.Tensor:
    """The same matrix as a window of a larger one."""
    *batch, rows, columns = matrix.shape
    larger = torch.zeros((*batch, rows + 3, columns + 5), dtype=matrix.dtype, device=matrix.device)
    larger[..., 1 : rows + 1, 2 : columns + 2] = matrix
    return larger[..., 1 : rows + 1, 2 : columns + 2]


def pieces(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """The products of a batch one by one, on the CPU."""
    for index in range(a.shape[0]):
        yield a[index].cpu(), b[index].cpu(), c[index].cpu()


def _odd(shape: tuple[int, ...], below: int, generator: torch.Generator) -> torch.Tensor:
    half = max(below // 2, 1)
    signs = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return (torch.randint(0, half, shape, generator=generator) * 2 + 1) * signs
