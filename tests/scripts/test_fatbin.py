"""Fatbins in a stream: found in any pieces, counted by container, told from bytes that look alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.refresh.architectures import in_order, listed, necessary
from scripts.refresh.fatbin import FatbinScan
from tests.scripts.compiled_wheels import fatbin, library


def scanned(content: bytes, size: int = 1 << 18) -> FatbinScan:
    scan = FatbinScan()
    for start in range(0, len(content), size):
        scan.feed(content[start : start + size])
    return scan


CODES = st.lists(st.sampled_from(("75", "80", "90", "90a", "100f", "+80", "+120")), unique=True, max_size=5)


@given(st.lists(CODES, max_size=4), st.integers(1, 90), st.integers(0, 300))
def test_pieces_make_no_difference(fatbins: list[list[str]], size: int, noise: int) -> None:
    content = library(*(fatbin(*codes) for codes in fatbins if codes), noise=noise)
    whole, parts = scanned(content), scanned(content, size)
    assert whole.fatbins == parts.fatbins == sum(map(bool, fatbins))
    assert (whole.code(), whole.ptx()) == (parts.code(), parts.ptx())


@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_bytes_can_be_scanned(content: bytes, size: int) -> None:
    scanned(b"\x50\xed\x55\xba" + content + fatbin("80")[:30], size).code()


def test_code_counts_where_a_twentieth_of_the_fatbins_holds_it() -> None:
    found = scanned(library(*[fatbin("80", "90")] * 39, fatbin("52")))
    assert found.fatbins == 40
    assert found.code() == {"80", "90"}
    assert scanned(library(*[fatbin("80", "90")] * 38, *[fatbin("52")] * 2)).code() == {"52", "80", "90"}


def test_ptx_counts_where_nearly_all_fatbins_hold_it() -> None:
    assert scanned(library(*[fatbin("80", "+80")] * 6, fatbin("80"))).ptx() == {"80"}
    assert scanned(library(*[fatbin("80", "+80")] * 6, *[fatbin("80")] * 2)).ptx() == set()
    assert scanned(library(fatbin("80", "+80"), fatbin("80"))).ptx() == set()


def test_what_is_in_a_payload_is_not_looked_at() -> None:
    hidden = fatbin("80", payload=4000)
    start = hidden.index(b"\xba\x50\xed\x55" * 4)
    inner = fatbin("120")
    assert scanned(hidden[:start] + inner + hidden[start + len(inner) :]).code() == {"80"}


def test_a_container_with_nonsense_in_it_is_none() -> None:
    broken = bytearray(fatbin("80"))
    broken[16:18] = b"\xff\xff"
    found = scanned(bytes(broken) + fatbin("90"))
    assert (found.fatbins, found.code()) == (1, {"90"})


@pytest.mark.parametrize(
    ("codes", "left"),
    [
        ("90 90a", "90"), ("90a", "90a"), ("100a 100f", "100f"), ("100 100a 100f", "100"), ("120a 90 75", "75 90 120a"),
        ("100f 103a", "100f 103a"),
    ],
)  # fmt: skip
def test_suffixes_that_add_no_device_are_left_out(codes: str, left: str) -> None:
    assert in_order(necessary(codes.split())) == left


def test_lists_as_compilers_take_them() -> None:
    assert listed("7.5 8.0+PTX 8.0 9.0a") == ("75 80 90a", "80")
    assert listed("8.0;12.0+PTX;10.0f") == ("80 100f 120", "120")
    assert listed("") == ("", "")
