"""The example scripts that trl ships, with releases they do not run with: doctor names each crash before it happens.

A script comes from one release of trl and the environment has another, or the environment has releases that trl's metadata allows
and its code does not. ``--help`` is enough: each of them fails before it reads an argument.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from environments import BASE, REPOSITORY, environment, layer, variables

needs_packages = pytest.mark.skipif(
    os.environ.get("COMPAT_REPRODUCE") != "1" or sys.version_info[:2] != (3, 11), reason="COMPAT_REPRODUCE=1, with Python 3.11"
)


def stack(trl: str, transformers: str, peft: str, accelerate: str) -> dict[str, str]:
    return {"trl": trl, "transformers": transformers, "peft": peft, "accelerate": accelerate}


SCRIPTS = [
    # script, the trl it is from, what is installed, the name that the crash and the finding have in common
    ("dpo", "0.15.2", stack("0.15.2", "5.0.0", "0.14.0", "1.4.0"), "MODEL_FOR_VISION_2_SEQ_MAPPING_NAMES"),
    ("dpo", "0.15.2", stack("0.11.4", "5.0.0", "0.13.2", "1.4.0"), "MODEL_FOR_VISION_2_SEQ_MAPPING_NAMES"),
    ("dpo", "0.15.2", stack("0.29.0", "4.57.6", "0.17.1", "1.10.1"), "SIMPLE_CHAT_TEMPLATE"),
    ("dpo", "0.13.0", stack("0.8.6", "5.0.0", "0.13.2", "1.1.1"), "get_module_size_with_ties"),
    ("sft", "0.13.0", stack("0.7.11", "4.41.2", "0.10.0", "0.30.1"), "top_k_top_p_filtering"),
    ("sft", "0.13.0", stack("0.9.6", "4.46.3", "0.13.2", "1.1.1"), "ScriptArguments"),
    ("sft", "0.19.1", stack("0.11.4", "4.46.3", "0.13.2", "1.1.1"), "ScriptArguments"),
    ("sft", "0.23.0", stack("0.23.0", "4.56.1", "0.17.1", "1.4.0"), "Type resolution failed"),
    ("sft", "0.29.0", stack("0.15.2", "4.46.3", "0.14.0", "1.4.0"), "DatasetMixtureConfig"),
    ("kto", "0.24.0", stack("0.11.4", "4.46.3", "0.13.2", "1.1.1"), "DatasetMixtureConfig"),
    ("kto", "0.24.0", stack("0.15.2", "4.49.0", "0.14.0", "1.4.0"), "DatasetMixtureConfig"),
    ("grpo", "0.15.2", stack("0.13.0", "4.49.0", "0.14.0", "1.4.0"), "GRPOConfig"),
    ("grpo", "0.29.0", stack("0.15.2", "4.49.0", "0.14.0", "1.4.0"), "DatasetMixtureConfig"),
]


@needs_packages
@pytest.mark.parametrize(("script", "release", "pins", "name"), SCRIPTS)
def test_doctor_names_the_crash(script: str, release: str, pins: Mapping[str, str], name: str, tmp_path: Path) -> None:
    python, layers = environment(pins)
    path = layer(python, "trl", release) / "trl" / "scripts" / f"{script}.py"
    started = tmp_path / path.name  # from its own folder it would import the other trl
    started.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        [python, started, "--help"], cwd=tmp_path, env=variables(layers, tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode, "the script runs"
    assert re.search(name, done.stderr), done.stderr[-2000:]
    assert name in named(pins, started)


def named(pins: Mapping[str, str], script: Path) -> str:
    """What doctor says of these releases and the command, on a machine without GPUs."""
    base = dict(pin.split("==") for pin in BASE if "==" in pin)
    copies = [{"name": name, "version": version} for name, version in {**base, **pins}.items()]
    described = script.with_name("environment.json")
    described.write_text(json.dumps({"python": "3.11", "os": "linux", "distributions": copies}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "compat", "doctor", "--environment", described, "--gpu", "none", "--format", "json",
         "--", "python", script], cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    loud = [each for each in json.loads(done.stdout)["findings"] if each["verdict"] == "hit" and each["severity"] != "info"]
    return "\n".join(each["title"] + each["why"] for each in loud)
