"""What the tests of ``compat fix`` share: a job, its pins, releases on an index of this machine, and made-up rules."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from jsonschema import Draft202012Validator

from tests.conftest import ROOT

Run = Callable[..., "subprocess.CompletedProcess[str]"]
JOB = ("--task", "sft", "--launcher", "python", "--gpu", "A100:2", "--python-version", "3.11")
LINES = "# the job\ntorch==2.6.0\ntransformers==4.51.3  # models\ntrl==0.17.0\naccelerate==1.6.0\ntokenizers==0.21.1\n"


def release(day: str, *requires: str, **more: object) -> dict[str, object]:
    return {"uploaded": f"{day}T00:00:00Z", "requires": list(requires), "requires_python": ">=3.9", **more}


PACKAGES = {
    "torch": {"2.6.0": release("2025-01-29"), "2.7.0": release("2025-04-23")},
    "transformers": {
        "4.51.3": release("2025-04-14", "tokenizers<0.22,>=0.21"),
        "4.55.0": release("2025-08-05", "tokenizers<0.22,>=0.21"),
        "4.57.1": release("2025-10-14", "tokenizers<=0.23,>=0.22"),
        "4.57.3": release("2025-11-25", "tokenizers<=0.23,>=0.22"),
    },
    "tokenizers": {"0.21.1": release("2025-03-13"), "0.22.1": release("2025-09-19")},
    "trl": {
        "0.17.0": release("2025-04-25", "transformers>=4.46.0", "accelerate>=0.34"),
        "0.18.0": release("2025-05-27", "transformers>=4.50.0", "accelerate>=1.4.0"),
        "0.24.0": release("2025-10-16", "transformers>=4.56.1", "accelerate>=1.4.0"),
    },
    "accelerate": {"1.6.0": release("2025-04-01", "torch>=2.0"), "1.11.0": release("2025-10-20", "torch>=2.0")},
}
PLAN = {"transformers": ("4.51.3", "4.57.1"), "tokenizers": ("0.21.1", "0.22.1")}


def planned(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str | None, str | None]]:
    return {each["name"]: (each["from"], each["to"]) for each in json.loads(done.stdout)["plan"]["changes"]}


RULE = """
[[rule]]
id = "{name}"
title = "{name}"
severity = "{severity}"
effect = "crash"
confidence = "reported"
why = "Made up."
packages = {{ {packages} }}
evidence = ["https://github.com/huggingface/trl/issues/1"]
{fix}
[[rule.example]]
hit = {{ packages = {{ {hit} }} }}
[[rule.example]]
clear = {{ packages = {{ {clear} }} }}
"""
CLEAN = ("--gpu", "A100:1", "--python-version", "3.11")


def own(tmp_path: Path, *rules: str) -> tuple[str, str]:
    (tmp_path / "own.toml").write_text("\n".join(rules))
    return "--rules", str(tmp_path / "own.toml")


BAD_TRL = RULE.format(
    name="bad-trl", severity="error", packages='trl = "<0.18"', hit='trl = "0.17.0"', clear='trl = "0.18.0"',
    fix='[[rule.fix]]\nupgrade = { trl = ">=0.18" }',
)  # fmt: skip


Write = Callable[..., str]
REPORT = Draft202012Validator(json.loads((ROOT / "docs" / "schemas" / "report-1.json").read_text()))


def undecided(done: subprocess.CompletedProcess[str]) -> None:
    """Exit code 3, one line, no claim that something cannot be had."""
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stderr.startswith("compat: undecided: ")
    assert done.stderr.count("\n") == 1
    assert "conflict with each other" not in done.stdout


def started(tmp_path: Path, url: str, *words: str) -> subprocess.Popen[str]:
    """``compat fix`` under way, in a session of its own."""
    variables = {
        "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "COMPAT_CACHE_DIR": str(tmp_path / "cache"),
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"), "LANG": "C.UTF-8",
    }  # fmt: skip
    command = [sys.executable, "-m", "compat", "fix", "requirements.txt", *JOB, "--index-url", url, *words]
    return subprocess.Popen(
        command, cwd=tmp_path, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
