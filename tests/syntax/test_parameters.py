"""``${…}`` with known and unknown variables."""

from __future__ import annotations

import pytest

from compat.syntax.shell_commands import parameter

KNOWN = {"CUDA": "12.4.1", "EMPTY": "", "PATH": "/opt/conda/bin"}


@pytest.mark.parametrize(
    ("inside", "value"),
    [
        ("CUDA", "12.4.1"), ("NONE", None), ("EMPTY", ""),
        ("NONE:-x", "x"), ("EMPTY:-x", "x"), ("EMPTY-x", ""), ("CUDA:-x", "12.4.1"), ("NONE-x", "x"),
        ("CUDA:+x", "x"), ("EMPTY:+x", ""), ("EMPTY+x", "x"), ("NONE:+x", None), ("CUDA:?no", "12.4.1"),
        ("CUDA%.*", "12.4"), ("CUDA%%.*", "12"), ("CUDA#*.", "4.1"), ("PATH##*/", "bin"), ("PATH#/opt", "/conda/bin"),
        ("CUDA//./", "1241"), ("CUDA/./-", "12-4.1"), ("CUDA:0:4", "12.4"), ("CUDA:3", "4.1"),
        ("CUDA^^", None), ("CUDA:x:y", None), ("!CUDA", None), ("1A", None), ("", None),
    ],
)  # fmt: skip
def test_forms(inside: str, value: str | None) -> None:
    assert parameter(inside, KNOWN) == value
