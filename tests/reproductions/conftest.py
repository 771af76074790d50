"""The reproductions install real releases and take minutes, so they run only where COMPAT_REPRODUCE=1 asks for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for environments.py, in whatever way pytest imports the tests

from environments import Result

FOUNDING = {
    "transformers-dataparallel-drops-data",
    "transformers-dataparallel-scalar-num-items",
    "transformers-rotary-length-padded-prompts",
    "transformers-rotary-length-synced-generation",
    "transformers-rotary-length-without-cache",
    "trl-sft-dataparallel-accuracy",
    "trl-sft-dataparallel-chunked-loss",
    "trl-sft-gather-for-metrics-int",
    "unsloth-grpo-mistral-logits",
}
"""The rules whose bugs are reproduced here; what else `compat` may find in so small an environment is not looked at."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("COMPAT_REPRODUCE") == "1":
        return
    skip = pytest.mark.skip(reason="set COMPAT_REPRODUCE=1 (make reproductions)")
    for item in items:
        if item.get_closest_marker("reproduction"):
            item.add_marker(skip)


@pytest.fixture
def check(compat: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[[str], set[str]]:
    """The founding rules that `compat check` finds to hold in a described environment."""

    def run(environment: str) -> set[str]:
        return _hits(compat("check", "--environment", environment, "--format", "json"))

    return run


@pytest.fixture
def diagnose(compat: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[[Result, str], set[str]]:
    """The founding rules that `compat diagnose` recognises in the traceback of a reproduction."""

    def run(result: Result, environment: str) -> set[str]:
        assert result.traceback, "nothing was raised"
        words = ("diagnose", "-", "--environment", environment, "--format", "json")
        return _hits(compat(*words, stdin=result.traceback))

    return run


def _hits(done: subprocess.CompletedProcess[str]) -> set[str]:
    assert done.returncode in (0, 1), done.stderr
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return {finding["rule"] for finding in findings if finding["verdict"] == "hit"} & FOUNDING
