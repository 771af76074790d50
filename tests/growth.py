"""How processor time grows with the length of the input: a ratio, so that the speed of the machine does not matter."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

QUICK = 0.004
"""Seconds of processor time under which a ratio says nothing."""


def seconds(call: Callable[[T], object], value: T) -> float:
    """Processor time of one call, in seconds.

    Without the collector: only the longer input may allocate enough to start it, and it searches all that other tests left.
    """
    gc.disable()
    try:
        start = time.process_time()
        call(value)
        return time.process_time() - start
    finally:
        gc.enable()


def growth(call: Callable[[T], object], short: T, long: T, rounds: int = 3) -> float:
    """How many times longer ``long`` takes than ``short``; 0 where both are quick. The best of several: other work disturbs."""
    before = seconds(call, short)
    more = seconds(call, long)
    if more < QUICK:
        return 0.0
    # a disturbed one would hide a quadratic growth, so some are taken on either side of the long one
    once = min([before, *(seconds(call, short) for _ in range(max(rounds, 3)))])
    more = min([more, *(seconds(call, long) for _ in range(rounds - 1))])
    return more / max(once, 1e-5) if more >= QUICK else 0.0


def assert_linear(call: Callable[[T], object], make: Callable[[int], T], length: int, allowed: float = 2.0) -> None:
    """Assert that four times the input takes about four times as long, where a quadratic reader takes sixteen times.

    ``make(n)`` returns an input of about ``n`` characters; ``length`` is that of the longer one. Up to ``allowed`` times the
    linear growth is noise (caches, allocation). A failure is measured again with more rounds before it counts.
    """
    short, long = make(length // 4), make(length)
    call(short)  # what is loaded or compiled by the first call is no part of the growth
    ratio = 0.0
    for rounds in (1, 3, 8):
        gc.collect()
        ratio = growth(call, short, long, rounds)
        if ratio <= 4 * allowed:
            return
    raise AssertionError(f"{ratio:.1f} times as long on an input 4 times as long")
