"""Strings that a job gives to a release that does not accept them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks import given_values
from compat.model import Distribution, Environment, Finding, Source
from compat.records import replace
from compat.workload.command import from_command

STACK = {
    "vllm": "0.9.1",
    "transformers": "4.52.0",
    "trl": "0.15.0",
    "peft": "0.10.0",
    "sglang": "0.4.3",
    "llamafactory": "0.9.2",
}


def found(command: str, folder: Path, **releases: str) -> list[Finding]:
    workload = from_command(command.split(), str(folder), {}).workload
    distributions = tuple(Distribution(name, version) for name, version in {**STACK, **releases}.items())
    environment = Environment(distributions=distributions, workload=workload)
    return list(given_values.judge(environment)) if workload.options else []


def titles(command: str, folder: Path, **releases: str) -> list[str]:
    return [each.title for each in found(command, folder, **releases)]


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("vllm serve x --tool-call-parser qwen3_coder", "vllm 0.9.1 does not accept --tool-call-parser qwen3_coder"),
        ("vllm serve x --quantization=mxfp4", "vllm 0.9.1 does not accept --quantization mxfp4"),
        (
            "python -m sglang.launch_server --model x --attention-backend fa3",
            "sglang 0.4.3 does not accept --attention-backend fa3",
        ),
        ("trl sft --optim stable_adamw", "transformers 4.52.0 does not accept --optim stable_adamw"),
    ],
)
def test_options_of_programs(command: str, title: str, tmp_path: Path) -> None:
    assert titles(command, tmp_path) == [title]


@pytest.mark.parametrize(("value", "plugin"), [("bitsandbytes", "vllm-bnb-plugin"), ("gguf", "vllm-gguf-plugin")])
def test_a_value_that_a_plugin_registers(value: str, plugin: str, tmp_path: Path) -> None:
    (finding,) = found(f"vllm serve x --quantization {value}", tmp_path, vllm="0.30.0")
    assert finding.fixes[0].command == f"pip install {plugin}"
    assert not titles(f"vllm serve x --quantization {value}", tmp_path, **{"vllm": "0.30.0", plugin: "0.0.3"})


def test_the_nearest_release_that_accepts_it_is_the_fix(tmp_path: Path) -> None:
    (finding,) = found("vllm serve x --tool-call-parser qwen3_coder", tmp_path)
    assert (finding.verdict, finding.severity, [fix.spec for fix in finding.fixes]) == ("hit", "error", [">=0.10.0"])
    assert not titles("vllm serve x --tool-call-parser qwen3_coder", tmp_path, vllm="0.10.0")
    assert not titles("vllm serve x --tool-call-parser qwen3_coder", tmp_path, vllm="999.0")


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve x --tool-call-parser hermes --dtype bfloat16 --kv-cache-dtype fp8",
        "vllm serve x --tool-call-parser my_own_parser",
        "vllm serve x --tool-call-parser qwen3_coder --tool-parser-plugin parser.py",  # which may register it
        "vllm serve x --tool-call-parser $PARSER",
        "vllm serve x --chat-template qwen3_coder",  # something else
        "vllm serve x --enable-auto-tool-choice --port 8000",
    ],
)
def test_what_is_accepted_or_not_known_is_not_reported(command: str, tmp_path: Path) -> None:
    assert titles(command, tmp_path) == []


def test_the_release_in_an_image_counts(tmp_path: Path) -> None:
    workload = from_command(["vllm", "serve", "x", "--tool-call-parser", "qwen3_coder"], str(tmp_path), {}).workload
    for source, number in ((Source("image", {}), 1), (Source("vcs", {}), 0)):
        environment = Environment(distributions=(Distribution("vllm", "0.9.1", source=source),), workload=workload)
        assert len(list(given_values.judge(environment))) == number


SCRIPT = """
from peft import LoraConfig
from transformers import AutoModelForCausalLM, TrainingArguments

ATTENTION = "flash_attention_3"
model = AutoModelForCausalLM.from_pretrained("x", attn_implementation=ATTENTION, torch_dtype="auto")
args = TrainingArguments(output_dir="x", optim="adamw_torch", lr_scheduler_type="cosine_with_min_lr")
if args.optim:
    lora = LoraConfig(init_lora_weights="pissa")
config = LoraConfig(init_lora_weights="corda", bias="none", task_type="CAUSAL_LM")
"""


def test_arguments_in_a_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    findings = found(f"python {script}", tmp_path)
    assert [(each.title, each.here) for each in findings] == [
        (
            "transformers 4.52.0 does not accept attn_implementation='flash_attention_3'",
            f"attn_implementation: {script}:6",
        ),
        ("peft 0.10.0 does not accept init_lora_weights='corda'", f"init_lora_weights: {script}:10"),
    ]


def test_keys_of_a_configuration_file(tmp_path: Path) -> None:
    config = tmp_path / "sft.yaml"
    config.write_text("stage: sft\nlr_scheduler_type: cosine_with_min_lr\noptim: stable_adamw\n")
    (finding,) = found(f"llamafactory-cli train {config}", tmp_path)
    assert finding.title == "transformers 4.52.0 does not accept optim='stable_adamw'"
    assert finding.location is not None
    assert finding.location.line == 3


def test_a_job_without_options_has_no_findings() -> None:
    environment = Environment(distributions=(Distribution("vllm", "0.9.1"),))
    assert environment.workload is None
    workload = from_command(["python", "-c", "pass"], "", {}).workload
    assert list(given_values.judge(replace(environment, workload=workload))) == []
