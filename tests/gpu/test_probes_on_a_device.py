"""The probes on an accelerator; skipped without one."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from compat.probe.request import COULD_NOT_RUN, FAILED, GROUPS, PASSED, ProbeReport
from tests.probe.conftest import needs

pytestmark = pytest.mark.gpu
Here = Callable[..., ProbeReport]


@pytest.fixture
def here() -> Here:
    """Runs probes on this machine as ``compat probe`` does; skips where torch finds no accelerator."""
    needs("torch")
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no accelerator")
    from compat.api.machine import read_machine
    from compat.api.probe import probe
    from compat.probe.request import Request
    from compat.rules.compiled import open_matrix

    environment = read_machine(sys.executable, open_matrix(())).environment

    def run(*groups: str, **more: object) -> ProbeReport:
        values = {"python": sys.executable, "device": "cuda:0", "only": groups, "limit": 600.0, **more}
        return probe(Request(**values), environment)

    return run


@pytest.mark.parametrize("group", [group.name for group in GROUPS])
def test_a_healthy_device_fails_no_probe(here: Here, group: str) -> None:
    report = here(group)
    assert report.results
    assert [(each.probe, each.why) for each in report.results if each.status == FAILED] == []


def test_a_quick_run_is_complete(here: Here) -> None:
    report = here(depth="quick")
    ran = {each.probe for each in report.results if each.status == PASSED}
    assert {"matmul/bf16", "rotary/triton-half", "rotary/triton-interleaved", "triton/run", "health/matmul-rate"} <= ran


def test_the_device_does_what_the_cpu_cannot(here: Here) -> None:
    results = {each.probe: each for each in here("matmul", "triton", "health").results}
    assert results["matmul/fp32-tf32"].status in (PASSED, COULD_NOT_RUN)
    assert results["triton/ptxas"].status == PASSED
    assert results["health/copy-rate"].measured["gb_s"] > 0


def test_the_rotary_kernel_reaches_nine_tenths_of_the_copys_bandwidth(here: Here) -> None:
    needs("triton")
    import statistics

    from benchmarks.probe import TOKENS, _rotary_bytes, _rotary_seconds
    from compat.probe.child import health
    from compat.probe.child.triton_kernels import rotate

    shares = []
    for _ in range(5):  # in turn, so that both see the same clocks
        copy = health.measured_gb_s("cuda:0", 2**30)
        seconds = _rotary_seconds("cuda:0", rotate, own_type=False, tokens=TOKENS[-1])
        shares.append(_rotary_bytes(TOKENS[-1]) / seconds / 1e9 / copy)
    assert statistics.median(shares) >= 0.9


def test_its_time_grows_as_the_tokens_do(here: Here) -> None:
    needs("triton")
    from benchmarks.probe import TOKENS, _rotary_seconds
    from compat.probe.child.triton_kernels import rotate

    few, many = (_rotary_seconds("cuda:0", rotate, own_type=False, tokens=tokens) for tokens in (TOKENS[-2], TOKENS[-1]))
    assert many / few < 2.2
