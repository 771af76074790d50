"""What is made of NVML's answers and of measured rates; the measuring itself needs a device (tests/gpu)."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from compat.api.probe import peak_rates
from compat.tables.hardware import open_peaks
from tests.probe.conftest import needs

needs("torch")

from compat.probe.child import health  # noqa: E402
from compat.probe.child.job import Job  # noqa: E402

HEALTHY: dict[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3", "sm_mhz": 1755, "sm_mhz_most": 1980, "power_limit_mw": 700_000, "power_default_mw": 700_000,
    "ecc_uncorrected": 0, "remapped_rows": (0, 0, 0, 0), "clock_reasons": 0x4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({}, None),
        ({"clock_reasons": 0x1}, None),
        ({"power_limit_mw": 550_000}, None),
        ({"clock_reasons": 0x44}, "too hot (1755 of 1980 MHz)"),
        ({"clock_reasons": 0x80}, "brake signal"),
        ({"ecc_uncorrected": 3}, "3 memory errors"),
        ({"remapped_rows": (1, 1, 1, 0)}, "wait to be remapped"),
        ({"remapped_rows": (1, 1, 0, 1)}, "the card has to be replaced"),
        ({"power_limit_mw": 300_000}, "limited to 300 W of 700 W"),
    ],
)
def test_what_nvml_says_of_a_card(answers: dict[str, Any], words: str | None) -> None:
    verdict = health.judged({**HEALTHY, **answers})
    assert verdict["status"] == ("passed" if words is None else "failed")
    assert words is None or words in verdict["why"]


def test_a_device_that_nvml_does_not_know_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a card, or one that a container shows under another name."""

    class Bindings:
        class NVMLError(Exception):
            pass

        nvmlInit = nvmlShutdown = staticmethod(lambda: None)  # noqa: N815

        @staticmethod
        def nvmlDeviceGetHandleByUUID(uuid: bytes) -> object:  # noqa: N802
            assert uuid == b"GPU-0a1b"
            raise Bindings.NVMLError("Not Found")

    monkeypatch.setattr(health, "load", lambda _: Bindings)
    properties = SimpleNamespace(uuid="0a1b")
    monkeypatch.setattr(health.torch.cuda, "get_device_properties", lambda _: properties)
    verdict = Job.verdict(partial(health.state, Job({"device": "cuda:0", "results": ""})))
    assert (verdict["status"], verdict["why"]) == ("could-not-run", "NVML does not know this device: Not Found")


def test_an_answer_that_a_card_does_not_give_hides_no_other() -> None:
    class Bindings:
        class NVMLError(Exception):
            pass

        @staticmethod
        def nvmlDeviceGetName(handle: object) -> bytes:  # noqa: N802
            return b"NVIDIA T4"

        @staticmethod
        def nvmlDeviceGetTotalEccErrors(*_: object) -> int:  # noqa: N802
            raise Bindings.NVMLError

        @staticmethod
        def nvmlDeviceGetCurrentClocksThrottleReasons(handle: object) -> int:  # noqa: N802
            return 0x40

    found = health.read(Bindings, object())
    assert found == {"name": "NVIDIA T4", "clock_reasons": 0x40}
    assert health.judged(found)["status"] == "failed"


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("NVIDIA H200", "H200 SXM"), ("NVIDIA H200 NVL", None), ("NVIDIA H100 80GB HBM3", "H100 SXM"), ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"), ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", None), ("Tesla V100-SXM2-32GB", "V100 SXM2"),
        ("Tesla T4", "T4"), ("NVIDIA L40S", "L40S"), ("NVIDIA L4", "L4"), ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
    ],
)  # fmt: skip
def test_a_card_is_compared_with_its_own_figures(name: str, card: str | None) -> None:
    found = health.peak_of(name, peak_rates())
    assert (None if found is None else found["name"]) == card


@pytest.mark.parametrize(
    ("rate", "status"), [(800.0, "passed"), (347.0, "passed"), (307.0, "failed"), (float("nan"), "failed")]
)
def test_an_h100_that_runs_at_a_third_of_one(monkeypatch: pytest.MonkeyPatch, rate: float, status: str) -> None:
    monkeypatch.setattr(health.torch.cuda, "get_device_name", lambda device: "NVIDIA H100 80GB HBM3")
    job = Job({"device": "cuda:0", "results": "", "peaks": peak_rates()})
    verdict = health.judged_rate(job, "tflops", rate, health.LEAST_TFLOPS, "TFLOP/s")
    assert verdict["status"] == status
    if rate == 307.0:
        assert verdict["why"] == "this H100 SXM runs at 31% of a H100 SXM: 307 TFLOP/s of 989.4"
        assert "datasheet" in verdict["bound"]["source"]


def test_every_figure_has_a_source_and_could_be_true() -> None:
    rows = open_peaks()
    assert len(rows) >= 20
    for name, pattern, memory, tflops, bandwidth, source in rows:
        assert name
        assert pattern
        assert 0 <= memory <= 300
        assert 10 < tflops < 10_000
        assert 100 < bandwidth < 20_000
        assert source
