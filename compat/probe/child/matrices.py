"""Test matrices in shapes and layouts that kernels treat differently, and checks of their products.

Products are checked in O(n²) by Freivalds' method (1977):

**Whole numbers.** For matrices of whole numbers, all sums small enough to be exact in the type under test, the product has
to be exact to the bit. With random sign columns X, C·X − A·(B·X) is computed in 64-bit integers on the CPU. If C is right it
is zero; if one element of C is off by any amount, that row of it is off by the same amount for every column, so a single
wrong low bit is always seen; any other set of wrong elements escapes a column with probability at most 1/2, and all of
them with at most 2⁻²⁰.

**Real numbers.** Here rounding hides what is smaller than itself. For signs x that are independent of C, Hoeffding's
inequality bounds a row's residual |Σ x_j e_ij| by λ·√(Σ e_ij²) (probability 1 − 2·exp(−λ²/2)), where |e_ij| is at most
γ·‖a_i‖·‖b_j‖ + u_out·|c_ij| (:mod:`bounds`). So, with norms over rows and the whole of B,

    |r_i| ≤ λ·(γ·‖A_i‖·‖B‖_F + u_out·‖C_i‖) + λ·(√k + √n)·2⁻⁵³·λ·(‖A_i‖·‖B‖_F + ‖C_i‖)

whose last term is the rounding of the check itself. An error in one element that is larger than this is always seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from .bounds import EXACT, LAMBDA, TF32, UNIT, Wrong, accumulated_in, gamma

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
SHAPES = {"quick": QUICK, "normal": NORMAL, "thorough": THOROUGH}
"""By the depth of a job: layout, matrices of a batch, rows, inner dimension, columns."""


def integers(dtype: torch.dtype, batch: int, m: int, k: int, n: int, generator: torch.Generator, limit: int = 0) -> Pair:
    """Return integer matrices whose product is exact in ``dtype`` for any order of summation.

    Where the type has room, one side has entries of many bits, all odd: arithmetic that keeps fewer (TF32) cannot hold them.
    ``limit`` caps the entries, for types under test that are narrower than ``dtype``.
    """
    most = EXACT[dtype]
    room = max(most // k, 1)
    wide = min(room, limit or room)
    if wide < 8:  # no room: signs only, at most as many per row as the type can count
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
    """Return entries of both signs and of different magnitudes along the inner dimension."""
    scale = torch.rand(k, generator=generator, dtype=torch.float64) + 0.5
    left = torch.randn((batch, m, k), generator=generator, dtype=torch.float64) * scale
    return left, torch.randn((batch, k, n), generator=generator, dtype=torch.float64)


def laid_out(pair: Pair, layout: str, dtype: torch.dtype, device: str) -> Pair:
    """Return the matrices in the type and the layout under test, on the device."""
    left, right = (each.to(dtype).to(device) for each in pair)
    if layout == "transposed":
        return left.transpose(-1, -2).contiguous().transpose(-1, -2), right.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "strided":  # windows of larger matrices
        larger = [torch.nn.functional.pad(each, (2, 3, 1, 2)) for each in (left, right)]
        return larger[0][..., 1:-2, 2:-3], larger[1][..., 1:-2, 2:-3]
    return left, right


def pieces(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Return the products of a batch one by one, on the CPU."""
    for index in range(a.shape[0]):
        yield a[index].cpu(), b[index].cpu(), c[index].cpu()


def _odd(shape: tuple[int, ...], below: int, generator: torch.Generator) -> torch.Tensor:
    half = max(below // 2, 1)
    signs = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return (torch.randint(0, half, shape, generator=generator) * 2 + 1) * signs


# --- Freivalds' check


SIGNS = 20


def wrong_integer(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, generator: torch.Generator) -> Wrong | None:
    """Return the first wrong element of ``c = a·b``, all 2-D integer matrices on the CPU; ``None`` if it is correct."""
    product = c.double()
    broken = ~torch.isfinite(c)
    broken = broken if bool(broken.any()) else product != product.round()
    if bool(broken.any()):
        row, column = broken.nonzero()[0].tolist()
        return Wrong((row, column), float(product[row, column]), float(a[row].double() @ b[:, column].double()), 0.0)
    left, right, whole = a.double().long(), b.double().long(), product.long()
    x = _signs(right.shape[1], generator).long()
    rows = (whole @ x - left @ (right @ x)).ne(0).any(dim=1).nonzero()
    if not len(rows):
        return None
    row = int(rows[0])
    exact = left[row] @ right
    different = (whole[row] - exact).nonzero()
    column = int(different[0]) if len(different) else 0
    return Wrong((row, column), float(whole[row, column]), float(exact[column]), 0.0)


def wrong_real(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, generator: torch.Generator, *, tf32: bool = False, split: int = 1
) -> tuple[float, Wrong | None]:
    """Return the largest residual of a row as a fraction of its bound, and the worst element of the worst row beyond it.

    ``split``: how many times a result may be rounded to its own type, as sums of parts are where that is allowed.
    """
    left, right, product = a.double(), b.double(), c.double()
    x = _signs(right.shape[1], generator)
    residual = (product @ x - left @ (right @ x)).abs().amax(dim=1)
    unit = gamma(a.shape[1], accumulated_in(c.dtype)) + (2 * TF32 if tf32 else 0.0)
    rows, whole, of_c = left.norm(dim=1), right.norm(), product.norm(dim=1)
    bound = LAMBDA * (unit * rows * whole + split * UNIT[c.dtype] * of_c)
    checking = LAMBDA**2 * (math.sqrt(a.shape[1]) + math.sqrt(right.shape[1])) * UNIT[torch.float64]
    bound = bound + checking * (rows * whole + of_c) + 1e-300
    share = residual / bound
    beyond = ~(share <= 1)  # NaN exceeds any bound
    worst = float("nan") if bool(share.isnan().any()) else float(share.max())
    if not bool(beyond.any()):
        return worst, None
    row = int(torch.where(share.isnan(), torch.full_like(share, float("inf")), share).argmax())
    exact = left[row] @ right
    difference = (product[row] - exact).abs()
    column = int(torch.where(difference.isnan(), torch.full_like(difference, float("inf")), difference).argmax())
    allowed = unit * float(rows[row]) * float(right[:, column].norm()) + split * UNIT[c.dtype] * abs(float(exact[column]))
    return worst, Wrong((row, column), float(product[row, column]), float(exact[column]), allowed)


def _signs(columns: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, 2, (columns, SIGNS), generator=generator).double() * 2 - 1
