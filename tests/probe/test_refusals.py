"""Kernels of other packages that are not there for a reason that is no failure: another interface, an older card, a switch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.probe.conftest import needs

needs("torch")

from compat.probe.child import attention, rotary  # noqa: E402
from compat.probe.child.job import Job, Verdict  # noqa: E402
from compat.probe.child.rotary_kernels import Kernel  # noqa: E402

ON_CUDA = Job({"device": "cuda:0", "results": ""})


def package(monkeypatch: pytest.MonkeyPatch, name: str, **members: object) -> None:
    module = ModuleType(name)
    module.__dict__.update(members)
    module.__spec__ = None if name != "triton" else __spec__
    monkeypatch.setitem(sys.modules, name, module)


def said(probe: Callable[[Job], Verdict]) -> tuple[str, str]:
    verdict = Job.verdict(lambda: probe(ON_CUDA))
    return verdict["status"], verdict["why"]


def turned(*_: object, **__: object) -> None:
    raise ZeroDivisionError("the kernel was called")


def test_xformers_without_its_triton_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    package(monkeypatch, "triton")
    package(monkeypatch, "xformers")
    package(monkeypatch, "xformers.ops")
    assert said(rotary.xformers) == ("could-not-run", "this xformers has no rope_padded")
    package(monkeypatch, "xformers.ops", rope_padded=turned)
    package(monkeypatch, "xformers.ops.fmha.attn_bias", BlockDiagonalCausalWithOffsetPaddedKeysMask=ZeroDivisionError)
    monkeypatch.setattr(rotary.torch.cuda, "get_device_capability", lambda _: (7, 5))
    assert said(rotary.xformers) == (
        "could-not-run",
        "xformers has no Triton kernels below compute capability 8.0",
    )
    monkeypatch.setenv("XFORMERS_FORCE_DISABLE_TRITON", "1")
    assert said(rotary.xformers)[1] == "XFORMERS_FORCE_DISABLE_TRITON disables xformers' Triton kernels"


def test_a_flash_attn_that_has_kernels_of_another_kind_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """flash-attn-4 brings ``flash_attn.cute`` and nothing beside it."""
    package(monkeypatch, "flash_attn")
    status, why = said(lambda job: attention.package(job, attention._flash_attn, "lower-right"))
    assert (status, why) == ("could-not-run", "this flash-attn has no flash_attn_func")


def test_a_kernel_that_refuses_everything_has_not_looked_at_the_length() -> None:
    kernel = Kernel("broken", lambda: turned, cuda=False)
    status, why = said(lambda _: rotary.lengths(Job({"device": "cpu", "results": ""}), kernel))
    assert (status, why) == ("could-not-run", "tables that fit are refused too: ZeroDivisionError: the kernel was called")
