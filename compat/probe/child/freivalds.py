"""Whether a matrix is the product of two others, in O(n²): Freivalds' method (1977), twice.

**Whole numbers.** For matrices of whole numbers, all sums small enough to be exact in the type under test, the product has
to be exact to the bit. With random sign columns X, C·X − A·(B·X) is computed in 64-bit integers on the CPU. If C is right it
is zero; if one element of C is off by any amount, that row of it is off by the same amount for every column, so a single
wrong low bit is always seen; any other set of wrong elements escapes a column with probability at most 1/2, and all of
them with at most 2⁻²⁰.

**Real numbers.** Here rounding hides what is smaller than itself. For signs x that are independent of C, Hoeffding's
inequality bounds a row's residual |Σ x_j e_ij| by λ·√(Σ e_ij²) (probability 1 − 2·exp(−λ²/2)), where |e_ij| is at most
γ·‖a_i‖·‖b_j‖ + u_out·|c_ij| (:mod:`rounding`). So, with norms over rows and the whole of B,

    |r_i| ≤ λ·(γ·‖A_i‖·‖B‖_F + u_out·‖C_i‖) + λ·(√k + √n)·2⁻⁵³·λ·(‖A_i‖·‖B‖_F + ‖C_i‖)

whose last term is the rounding of the check itself. An error in one element that is larger than this is always seen.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .rounding import LAMBDA, TF32, UNIT, accumulated_in, gamma

SIGNS = 20
Wrong = dict[str, Any]


def wrong_integer(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, generator: torch.Generator) -> Wrong | None:
    """The first wrong element of ``c = a·b``, all of whole numbers; ``None`` where there is none. 2-D, on the CPU."""
    if not bool(torch.isfinite(c).all()):
        row, column = _first(~torch.isfinite(c))
        return _wrong(row, column, float(c[row, column]), _element(a, b, row, column), 0.0)
    whole = c.double()
    if bool((whole != whole.round()).any()):
        row, column = _first(whole != whole.round())
        return _wrong(row, column, float(whole[row, column]), _element(a, b, row, column), 0.0)
    left, right, product = a.double().long(), b.double().long(), whole.long()
    x = _signs(right.shape[1], generator).long()
    residual = product @ x - left @ (right @ x)
    rows = residual.ne(0).any(dim=1).nonzero()
    if not len(rows):
        return None
    row = int(rows[0])
    exact = left[row] @ right
    different = (product[row] - exact).nonzero()
    column = int(different[0]) if len(different) else 0
    return _wrong(row, column, float(product[row, column]), float(exact[column]), 0.0)


def wrong_real(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, generator: torch.Generator, *, tf32: bool = False, split: int = 1
) -> tuple[float, Wrong | None]:
    """The largest residual as a share of its bound, and the worst element of a row that is beyond it.

    ``split``: how often a result may be rounded to its own type on the way, as sums of parts are where that is allowed.
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
    beyond = ~(share <= 1)  # what is not a number is beyond it
    worst = float("nan") if bool(share.isnan().any()) else float(share.max())
    if not bool(beyond.any()):
        return worst, None
    row = int(torch.where(share.isnan(), torch.full_like(share, float("inf")), share).argmax())
    exact = left[row] @ right
    difference = (product[row] - exact).abs()
    column = int(torch.where(difference.isnan(), torch.full_like(difference, float("inf")), difference).argmax())
    allowed = unit * float(rows[row]) * float(right[:, column].norm()) + split * UNIT[c.dtype] * abs(float(exact[column]))
    return worst, _wrong(row, column, float(product[row, column]), float(exact[column]), allowed)


def _signs(columns: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, 2, (columns, SIGNS), generator=generator).double() * 2 - 1


def _first(mask: torch.Tensor) -> tuple[int, int]:
    row, column = mask.nonzero()[0].tolist()
    return int(row), int(column)


def _element(a: torch.Tensor, b: torch.Tensor, row: int, column: int) -> float:
    return float(a[row].double() @ b[:, column].double())


def _wrong(row: int, column: int, got: float, exact: float, bound: float) -> Wrong:
    return {"row": row, "column": column, "got": got, "exact": exact, "bound": bound}
