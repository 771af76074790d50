"""Tracebacks that end before the line with the exception."""

from __future__ import annotations

import pytest

from compat.reports.log.traceback import parse_log

CUT = """Traceback (most recent call last):
  File "/v/lib/python3.12/site-packages/flashinfer/jit/core.py", line 108, in check_cuda_arch
    {}
"""


def test_the_code_that_raises_has_the_message() -> None:
    (error,) = parse_log(CUT.format('raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")'))
    assert (error.exception, error.message) == ("RuntimeError", "FlashInfer requires GPUs with sm75 or higher")


@pytest.mark.parametrize(
    "code",
    [
        'raise RuntimeError(f"{name} requires GPUs with sm75 or higher")',  # not the message yet
        "raise error",
        'raise RuntimeError("too short")'.replace("too short", "short"),
        'raise RuntimeError("the first part of several "',
    ],
)
def test_other_code_does_not(code: str) -> None:
    assert [(error.exception, error.message) for error in parse_log(CUT.format(code))] == [(None, "")]


def test_the_message_of_the_traceback_counts() -> None:
    (error,) = parse_log(CUT.format('raise RuntimeError("a text in the source code")') + "RuntimeError: another text\n")
    assert error.message == "another text"
