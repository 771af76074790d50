"""The founding cases through the real command: what must be found, and which neighbours must stay clear."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from compat.rules.loader import load_file
from tests.conftest import RULES

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., str]

TWO = [{"name": "NVIDIA A100-SXM4-80GB"}] * 2
ONE = TWO[:1]
SCALAR, DROPS = "transformers-dataparallel-scalar-num-items", "transformers-dataparallel-drops-data"
ACCURACY, GATHER = "trl-sft-dataparallel-accuracy", "trl-sft-gather-for-metrics-int"
CHUNKED, PADDED = "trl-sft-dataparallel-chunked-loss", "transformers-rotary-length-padded-prompts"
MISTRAL = "unsloth-grpo-mistral-logits"
DEVICE, BELOW = "trl-grpo-vllm-second-device", "trl-grpo-vllm-below-0-7-2"
ROTARY, NO_CACHE = "transformers-rotary-length-synced-generation", "transformers-rotary-length-without-cache"


FOUNDING = {rule.id for name in ("transformers", "trl", "unsloth") for rule in load_file(str(RULES / f"{name}.toml"))}
"""What else the matrix may find or ask about so small an environment is not looked at here."""


def verdicts(run: Run, path: str) -> dict[str, str]:
    done = run("check", "--all", "--environment", path, "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    expected = any(f["verdict"] == "hit" and f["severity"] == "error" for f in report["findings"])
    assert done.returncode == report["exit"] == int(expected)
    return {finding["rule"]: finding["verdict"] for finding in report["findings"] if finding["rule"] in FOUNDING}


def python(**more: Any) -> dict[str, Any]:
    return {"accelerators": TWO, "workload": {"launcher": "python", **more}}


@pytest.mark.parametrize("version", ["4.46.2", "4.46.3", "4.50.0", "4.50.1", "4.50.2", "4.50.3"])
def test_scalar_num_items_hits(compat: Run, described: Write, version: str) -> None:
    assert verdicts(compat, described({"transformers": version}, **python())) == {SCALAR: "hit"}


@pytest.mark.parametrize("version", ["4.46.1", "4.47.0", "4.47.1", "4.48.0", "4.48.3", "4.49.0", "4.57.1", "5.23.0"])
def test_scalar_num_items_stays_clear_in_other_releases(compat: Run, described: Write, version: str) -> None:
    assert not {SCALAR, DROPS} & set(verdicts(compat, described({"transformers": version}, **python())))


@pytest.mark.parametrize("version", ["4.46.2", "4.50.3", "4.51.0", "4.56.2"])
@pytest.mark.parametrize(
    "where",
    [
        {"accelerators": TWO, "workload": {"launcher": "torchrun"}},
        {"accelerators": TWO, "workload": {"launcher": "accelerate"}},
        {"accelerators": ONE, "workload": {"launcher": "python"}},
        {"accelerators": TWO, "workload": {"launcher": "python"}, "variables": {"CUDA_VISIBLE_DEVICES": "1"}},
        {"accelerators": [], "workload": {"launcher": "python"}},
    ],
)
def test_dataparallel_needs_plain_python_and_two_visible_gpus(
    compat: Run, described: Write, version: str, where: dict[str, Any]
) -> None:
    found = verdicts(compat, described({"transformers": version, "trl": "0.17.0"}, **where))
    assert not {SCALAR, DROPS, ACCURACY} & set(found)


@pytest.mark.parametrize("version", ["4.51.0", "4.51.3", "4.52.4", "4.53.3", "4.55.4", "4.56.2"])
@pytest.mark.parametrize(
    ("trl", "rule"), [("0.15.0", ACCURACY), ("0.17.0", ACCURACY), ("1.6.0", ACCURACY), ("1.7.0", CHUNKED), ("1.14.2", CHUNKED)]
)
def test_sft_under_dataparallel_hits(compat: Run, described: Write, version: str, trl: str, rule: str) -> None:
    path = described({"transformers": version, "trl": trl}, **python(task="sft", batch_size=2))
    assert verdicts(compat, path) == {DROPS: "hit", rule: "hit"}


@pytest.mark.parametrize(("version", "trl"), [("4.49.0", "0.17.0"), ("4.57.1", "0.24.0")])
def test_sft_under_dataparallel_stays_clear(compat: Run, described: Write, version: str, trl: str) -> None:
    assert verdicts(compat, described({"transformers": version, "trl": trl}, **python(task="sft", batch_size=2))) == {}


@pytest.mark.parametrize(("version", "trl"), [("4.56.2", "1.15.0"), ("4.57.6", "1.16.0")])
def test_sft_under_dataparallel_is_refused_since_trl_1_15(compat: Run, described: Write, version: str, trl: str) -> None:
    path = described({"transformers": version, "trl": trl}, **python(task="sft", batch_size=2))
    assert verdicts(compat, path) == {"trl-1-15-refuses-dataparallel": "hit"}


@pytest.mark.parametrize("version", ["4.51.0", "4.53.3", "4.56.2"])
def test_silent_loss_hits_with_any_trainer(compat: Run, described: Write, version: str) -> None:
    path = described({"transformers": version}, distributions_complete=True, **python())
    report = json.loads(compat("check", "--environment", path, "--format", "json").stdout)
    (finding,) = report["findings"]
    assert (finding["rule"], finding["verdict"], finding["effect"]) == (DROPS, "hit", "wrong-result")
    # whether trl is there as well nobody has said
    assert verdicts(compat, described({"transformers": version}, **python())) == {
        DROPS: "hit",
        ACCURACY: "possible",
        CHUNKED: "possible",
    }


BAD_COMMIT, FIRST_BAD, FIXED = (
    "e3244d2d096f",
    "5858ceab7ed38f771fffb7f944454cff59f868d0",
    "2ee6fd369f36c4538a08444cf0a7925354a39938",
)


@pytest.mark.parametrize("commit", [BAD_COMMIT, FIRST_BAD, "844a9c665ff05ca290816500faffe0b110a632ca"])
@pytest.mark.parametrize("work", [{"launcher": "accelerate", "processes": 2}, {"launcher": "torchrun", "processes": 1}])
def test_gather_for_metrics_hits_in_the_bad_week(compat: Run, described: Write, commit: str, work: dict[str, Any]) -> None:
    source = {"trl": {"kind": "vcs", "url": "https://github.com/huggingface/trl.git", "commit": commit}}
    assert verdicts(compat, described({"trl": "0.16.0.dev0"}, sources=source, workload={"task": "sft", **work})) == {
        GATHER: "hit"
    }


@pytest.mark.parametrize(
    ("version", "source"),
    [
        ("0.15.2", "index"),
        ("0.16.0", "index"),
        ("0.16.0", None),
        ("0.16.0.dev0", {"kind": "vcs", "commit": FIXED}),
        ("0.16.0.dev0", {"kind": "vcs", "commit": "69ad852e5654a77f1695eb4c608906fe0c7e8624"}),
    ],
)
def test_gather_for_metrics_stays_clear(compat: Run, described: Write, version: str, source: Any) -> None:
    sources = {"trl": source} if source else {}
    path = described({"trl": version}, sources=sources, workload={"task": "sft", "launcher": "accelerate", "processes": 2})
    assert verdicts(compat, path) == {}


def test_gather_for_metrics_is_possible_where_the_commit_is_unknown(compat: Run, described: Write) -> None:
    path = described({"trl": "0.16.0.dev0"}, workload={"task": "sft", "launcher": "accelerate", "processes": 2})
    findings = json.loads(compat("check", "--all", "--environment", path, "--format", "json").stdout)["findings"]
    (finding,) = (each for each in findings if each["rule"] == GATHER)
    assert (finding["verdict"], finding["missing"]) == ("possible", ["install"])
    assert finding["unknown"] == ["distributions.trl.source"]


@pytest.mark.parametrize("version", ["2025.2.13", "2025.2.14", "2025.2.15"])
@pytest.mark.parametrize(("model", "verdict"), [("mistral", "hit"), ("unsloth/mistral-7b-v0.3", "hit"), (None, "possible")])
def test_unsloth_mistral_hits(compat: Run, described: Write, version: str, model: str | None, verdict: str) -> None:
    work = {"task": "grpo", **({"model": model} if model else {})}
    path = described({"unsloth": version}, sources={"unsloth": "index"}, workload=work)
    assert verdicts(compat, path) == {MISTRAL: verdict}


@pytest.mark.parametrize(
    ("version", "source", "work"),
    [
        ("2025.2.12", "index", {"task": "grpo", "model": "mistral"}),
        ("2025.3.1", "index", {"task": "grpo", "model": "mistral"}),
        ("2026.10.9", "index", {"task": "grpo", "model": "mistral"}),
        (
            "2025.2.15",
            {"kind": "vcs", "commit": "455517aae97fc152aa59aae3e328c22c25a89151"},
            {"task": "grpo", "model": "mistral"},
        ),
        ("2025.2.15", {"kind": "vcs", "commit": "455517aae9"}, {"task": "grpo", "model": "mistral"}),
        ("2025.2.15", "index", {"task": "grpo", "model": "meta-llama/Llama-3.1-8B"}),
        ("2025.2.15", "index", {"task": "sft", "model": "mistral"}),
    ],
)
def test_unsloth_mistral_stays_clear(compat: Run, described: Write, version: str, source: Any, work: dict[str, Any]) -> None:
    found = verdicts(compat, described({"unsloth": version}, sources={"unsloth": source}, workload=work))
    assert MISTRAL not in found


@pytest.mark.parametrize(
    ("trl", "vllm", "rule"),
    [("0.14.0", "0.6.6.post1", DEVICE), ("0.15.2", "0.6.3", DEVICE), ("0.14.0", "0.7.0", BELOW), ("0.15.1", "0.7.1", BELOW)],
)
def test_grpo_with_old_vllm_hits(compat: Run, described: Write, trl: str, vllm: str, rule: str) -> None:
    path = described({"trl": trl, "vllm": vllm}, accelerators=TWO, workload={"task": "grpo", "features": ["vllm"]})
    assert verdicts(compat, path) == {rule: "hit"}


@pytest.mark.parametrize(
    ("trl", "vllm", "gpus", "work"),
    [
        ("0.15.2", "0.7.2", TWO, {"features": ["vllm"]}),
        ("0.16.0", "0.6.6", TWO, {"features": ["vllm"]}),
        ("0.14.0", "0.6.6", ONE, {"features": ["vllm"]}),
        ("0.14.0", "0.6.6", TWO, {"features": [], "features_complete": True}),
        ("0.14.0", "0.6.6", TWO, {"features_absent": ["vllm"]}),
    ],
)
def test_grpo_with_old_vllm_stays_clear(
    compat: Run, described: Write, trl: str, vllm: str, gpus: Any, work: dict[str, Any]
) -> None:
    path = described({"trl": trl, "vllm": vllm}, accelerators=gpus, workload={"task": "grpo", **work})
    assert verdicts(compat, path) == {}


@pytest.mark.parametrize("version", ["4.46.0", "4.48.1", "4.48.3"])
@pytest.mark.parametrize("sharding", ["zero-3", "fsdp", "fsdp2"])
def test_rotary_length_hits(compat: Run, described: Write, version: str, sharding: str) -> None:
    work = {"task": "grpo", "processes": 2, "features": [sharding, "gradient-checkpointing"]}
    assert verdicts(compat, described({"transformers": version}, workload=work)) == {ROTARY: "hit"}


@pytest.mark.parametrize("version", ["4.50.3", "4.57.6", "5.15.1", "5.17.0"])
def test_rotary_length_without_cache_is_a_warning(compat: Run, described: Write, version: str) -> None:
    work = {"task": "grpo", "processes": 2, "features": ["zero-3", "no-cache"]}
    assert verdicts(compat, described({"transformers": version}, workload=work)) == {NO_CACHE: "hit"}


@pytest.mark.parametrize("version", ["4.48.1", "4.50.3"])
@pytest.mark.parametrize(
    "features", [["zero-2", "gradient-checkpointing", "no-cache"], ["zero-3", "gradient-checkpointing", "no-cache", "vllm"]]
)
def test_rotary_length_stays_clear(compat: Run, described: Write, version: str, features: list[str]) -> None:
    work = {"task": "grpo", "processes": 2, "features": features}
    assert verdicts(compat, described({"transformers": version}, workload=work)) == {}


@pytest.mark.parametrize("version", ["5.18.0", "5.19.0", "5.23.0"])
@pytest.mark.parametrize(
    ("features", "more", "verdict"),
    [
        (["zero-3", "gradient-checkpointing"], {"features_absent": ["no-cache"]}, {}),
        (["zero-3", "no-cache"], {"features_absent": ["padded-prompts"]}, {}),
        (["zero-3", "no-cache"], {}, {PADDED: "possible"}),
        (["zero-3", "no-cache", "padded-prompts"], {}, {PADDED: "hit"}),
    ],
)
def test_rotary_length_from_5_18_on_depends_on_padding(
    compat: Run, described: Write, version: str, features: list[str], more: dict[str, Any], verdict: dict[str, str]
) -> None:
    """Measured by the reproductions: unpadded prompts are fine from 5.18.0 on, padded ones fail up to 5.23.0."""
    work = {"task": "grpo", "processes": 2, "features": features, **more}
    assert verdicts(compat, described({"transformers": version}, workload=work)) == verdict
