"""The measure of growth itself: it tells a quadratic reader from a linear one."""

from __future__ import annotations

import re

import pytest

from compat.model import Accelerator, Environment, Report
from compat.output.terminal import render_text
from compat.rules.evaluate import devices
from compat.rules.facts import Facts
from tests.growth import assert_linear


def test_a_quadratic_pattern_is_found() -> None:
    with pytest.raises(AssertionError, match="times as long on an input 4 times as long"):
        assert_linear(re.compile(r"a+b").search, "a".__mul__, 16_000)


def test_a_linear_pattern_passes() -> None:
    assert_linear(re.compile(r"b").search, "a".__mul__, 8_000_000)


def test_a_machine_with_many_different_devices() -> None:
    def made(length: int) -> Environment:
        return Environment(accelerators=tuple(Accelerator(name=f"A{number}") for number in range(length // 8)))

    assert_linear(lambda environment: devices(Facts(environment)), made, 160_000)
    assert_linear(lambda environment: render_text(Report(environment)), made, 160_000)
