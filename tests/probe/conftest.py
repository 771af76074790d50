"""Probes in real child processes, with a fault in them or without."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.api.probe import probe
from compat.model import Environment
from compat.probe.request import ProbeReport, Request

FAULTS = Path(__file__).parent / "faults"
Probe = Callable[..., ProbeReport]


def needs(*modules: str) -> None:
    """Skips where a module is not installed: ``make test PROBES=0`` leaves torch and trl out."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed (make test PROBES=0)", allow_module_level=True)


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Runs probes on the CPU through the real parent and the real child; ``fault`` breaks one thing in the child."""

    def run(*groups: str, fault: str | None = None, **more: object) -> ProbeReport:
        needs("torch")
        monkeypatch.setenv("OMP_NUM_THREADS", "1")  # threads that wait for one another cost minutes on a busy machine
        if fault is not None:
            monkeypatch.setenv("COMPAT_TEST_FAULT", fault)
            monkeypatch.setenv("PYTHONPATH", f"{FAULTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        values = {"python": sys.executable, "device": "cpu", "only": groups, "limit": 600.0, **more}
        return probe(Request(**values), Environment(accelerators=()))

    return run
