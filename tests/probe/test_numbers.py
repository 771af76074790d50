"""The checks of the probes, each held against faults that are as small as it claims to see, and against none."""

from __future__ import annotations

import math

import pytest

from tests.probe.conftest import needs

needs("torch")

import torch  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from compat.probe.child import bounds, rotary_kernels  # noqa: E402
from compat.probe.child.attention import attended, masked  # noqa: E402
from compat.probe.child.bounds import EXACT, UNIT  # noqa: E402
from compat.probe.child.matrices import integers, laid_out, reals, wrong_integer, wrong_real  # noqa: E402

TYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
WORDS = {torch.float64: torch.int64, torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}
few = settings(max_examples=40)
sizes = st.integers(1, 70)


def dice(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@few
@given(st.sampled_from(TYPES), sizes, st.integers(1, 300), sizes, st.integers(0, 2**30), st.data())
def test_any_bit_of_any_element_of_a_product_is_seen(
    dtype: torch.dtype, m: int, k: int, n: int, seed: int, data: st.DataObject
) -> None:
    generator = dice(seed)
    a, b = (each[0].to(dtype) for each in integers(dtype, 1, m, k, n, generator))
    c = torch.matmul(a, b)
    assert wrong_integer(a, b, c, generator) is None
    at, bit = data.draw(st.integers(0, m * n - 1)), data.draw(st.integers(0, 8 * dtype.itemsize - 2))
    bits = c.contiguous().view(WORDS[dtype])
    bits.view(-1)[at] ^= 1 << bit
    changed = bits.view(dtype)
    if torch.equal(changed, torch.matmul(a, b)):  # a zero with a sign
        return
    wrong = wrong_integer(a, b, changed, generator)
    assert wrong is not None
    assert wrong.at == divmod(at, n)


@few
@given(st.sampled_from(TYPES), sizes, st.integers(1, 2000), sizes, st.integers(0, 2**30))
def test_whole_numbers_are_exact_in_their_type(dtype: torch.dtype, m: int, k: int, n: int, seed: int) -> None:
    a, b = integers(dtype, 1, m, k, n, dice(seed))
    assert float((a.abs().double() @ b.abs().double()).max()) <= EXACT[dtype]
    for each in (a, b):
        assert torch.equal(each.to(dtype).long(), each)


@few
@given(st.sampled_from(TYPES), sizes, st.integers(1, 500), sizes, st.integers(0, 2**30))
def test_rounding_is_no_error(dtype: torch.dtype, m: int, k: int, n: int, seed: int) -> None:
    generator = dice(seed)
    a, b = (each[0].to(dtype) for each in reals(1, m, k, n, generator))
    share, wrong = wrong_real(a, b, torch.matmul(a, b), generator)
    assert wrong is None
    assert 0 <= share <= 1


@few
@given(st.sampled_from(TYPES), sizes, st.integers(1, 500), sizes, st.integers(0, 2**30), st.data())
def test_an_error_beyond_the_bound_of_its_row_is_seen_and_named(
    dtype: torch.dtype, m: int, k: int, n: int, seed: int, data: st.DataObject
) -> None:
    generator = dice(seed)
    a, b = (each[0].to(dtype) for each in reals(1, m, k, n, generator))
    c = torch.matmul(a, b).double()
    at = data.draw(st.integers(0, m * n - 1))
    row = divmod(at, n)[0]
    unit = 8.5 * math.sqrt(k) * (UNIT[torch.float64] if dtype == torch.float64 else UNIT[torch.float32])
    c.view(-1)[at] += 40 * (
        unit * float(a[row].double().norm()) * float(b.double().norm()) + UNIT[dtype] * float(c[row].norm()) + 1e-9
    )
    if dtype != torch.float64:
        c = c.to(dtype)
    _, wrong = wrong_real(a, b, c, generator)
    assert wrong is not None
    assert wrong.at == divmod(at, n)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_always_wrong(value: float) -> None:
    generator = dice(0)
    for make, check in ((integers, wrong_integer), (reals, lambda *all_of: wrong_real(*all_of)[1])):
        arguments = (torch.float32, 1, 8, 8, 8, generator) if make is integers else (1, 8, 8, 8, generator)
        a, b = (each[0].float() for each in make(*arguments))
        c = torch.matmul(a, b)
        c[3, 4] = value
        wrong = check(a, b, c, generator)
        assert wrong is not None
        assert wrong.at == (3, 4)


@pytest.mark.parametrize("layout", ["aligned", "transposed", "strided"])
def test_layouts_change_strides_and_no_number(layout: str) -> None:
    pair = integers(torch.float32, 2, 5, 7, 3, dice(1))
    for ours, plain in zip(laid_out(pair, layout, torch.float32, "cpu"), pair, strict=True):
        assert torch.equal(ours.long(), plain)
        assert ours.is_contiguous() == (layout == "aligned")


def test_float32_products_lose_bits_in_tf32() -> None:
    a, b = (each[0].float() for each in integers(torch.float32, 1, 16, 64, 16, dice(2)))
    short = [(each.view(torch.int32) & ~0x1FFF).view(torch.float32) for each in (a, b)]
    assert wrong_integer(a, b, short[0] @ short[1], dice(3)) is not None


@few
@given(st.sampled_from([64, 80, 96, 128, 256]), st.integers(0, 2**20), st.booleans(), st.booleans())
def test_turning_keeps_length_and_turns_back(dim: int, position: int, interleaved: bool, backward: bool) -> None:
    x = torch.randn(1, 1, 1, dim, generator=dice(dim + position), dtype=torch.float64)
    cos, sin = bounds.exact_tables(torch.tensor([position]), dim)
    there, _ = bounds.turned(x, cos, sin, interleaved, backward)
    back, _ = bounds.turned(there, cos, sin, interleaved, not backward)
    assert torch.allclose(there.norm(), x.norm(), rtol=1e-12)
    assert torch.allclose(back, x, rtol=0, atol=1e-12)


@few
@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=20), st.sampled_from([64, 128, 256]))
def test_angles_in_float32_lie_within_their_bound_and_in_bfloat16_do_not(positions: list[int], dim: int) -> None:
    at = torch.tensor(positions)
    exact, bound = bounds.exact_tables(at, dim), bounds.angle_bound(at, dim)
    for got, wanted in zip(rotary_kernels.tables(at, dim), exact, strict=True):
        assert bool(((got.double() - wanted).abs() <= bound).all())
    if max(positions) > 1000:
        angles = at[:, None].bfloat16() * bounds.frequencies(dim).bfloat16()
        assert bool(((angles.double().cos() - exact[0]).abs() > bound).any())


@few
@given(st.integers(1, 9), st.integers(1, 12), st.sampled_from([1, 2, 4]), st.booleans(), st.integers(0, 2**30))
def test_attention_in_float32_lies_within_its_bound(queries: int, keys: int, groups: int, causal: bool, seed: int) -> None:
    generator = dice(seed)
    q = torch.randn(2, 4, queries, 16, generator=generator)
    k, v = (torch.randn(2, 4 // groups, keys, 16, generator=generator) for _ in range(2))
    mask = masked(queries, keys, "upper-left" if causal else "")
    exact, bound = attended(q, k, v, mask)
    again = torch.nn.functional.scaled_dot_product_attention(
        q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1), attn_mask=mask
    )
    assert bool(((again.double() - exact).abs() <= bound).all())
    assert bool(((again.double() + 1e-3 - exact).abs() > bound).any())
