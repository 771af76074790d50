"""``${…}`` with known and unknown variables."""

from __future__ import annotations

import pytest

from compat.syntax.parameters import expanded, parameter
from tests.growth import assert_linear

KNOWN = {"CUDA": "12.4.1", "EMPTY": "", "PATH": "/opt/conda/bin", "1": "first"}


@pytest.mark.parametrize(
    ("inside", "value"),
    [
        ("CUDA", "12.4.1"), ("NONE", None), ("EMPTY", ""),
        ("NONE:-x", "x"), ("EMPTY:-x", "x"), ("EMPTY-x", ""), ("CUDA:-x", "12.4.1"), ("NONE-x", "x"),
        ("CUDA:+x", "x"), ("EMPTY:+x", ""), ("EMPTY+x", "x"), ("NONE:+x", None), ("CUDA:?no", "12.4.1"),
        ("CUDA%.*", "12.4"), ("CUDA%%.*", "12"), ("CUDA#*.", "4.1"), ("PATH##*/", "bin"), ("PATH#/opt", "/conda/bin"),
        ("CUDA//./", "1241"), ("CUDA/./-", "12-4.1"), ("CUDA:0:4", "12.4"), ("CUDA:3", "4.1"),
        ("CUDA^^", None), ("CUDA:x:y", None), ("!CUDA", None), ("1A", None), ("1:-x", "first"), ("NONE:-${CUDA%.*}", "12.4"), ("CUDA%$EMPTY.1", "12.4"),
        ("NONE:-a ${B}", "a ${B}"), ("CUDA%$NONE", None), ("", None),
    ],
)  # fmt: skip
def test_forms(inside: str, value: str | None) -> None:
    assert parameter(inside, KNOWN) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", "a"), ("$CUDA-${CUDA}.$NONE", "12.4.1-12.4.1.$NONE"), ("$1x$12", "firstxfirst2"), ("$$CUDA $? $", "$$CUDA $? $"),
        ("${NONE:-${ALSO:-${CUDA}}}/${X:-$NONE}", "12.4.1/$NONE"), ("${CUDA", "${CUDA"), ("${NONE:-$(a b)}", "$(a b)"),
    ],
)  # fmt: skip
def test_variables_in_a_text(text: str, value: str) -> None:
    assert expanded(text, KNOWN) == value


def test_nested_defaults_and_doubling_values_end() -> None:
    assert len(expanded("$A" * 10_000, {"A": "a" * 1000})) < 40_000
    assert expanded("${A:-" * 5 + "}" * 5, {}) == ""
    assert 0 < expanded("${A:-" * 20 + "}" * 20, {}).count("${") < 20


@pytest.mark.parametrize("piece", ["$A", "${A}", "${A", "${A:-", "}", "$$", "${A:-$A}"])
def test_a_long_text_takes_linear_time(piece: str) -> None:
    assert_linear(lambda text: expanded(text, {"A": "b"}), lambda length: piece * (length // len(piece)), 400_000)
