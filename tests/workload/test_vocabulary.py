"""The words that describe a job, in the spellings that people use."""

from __future__ import annotations

from pathlib import Path

import pytest

import compat
from compat.formats.described import parse_described
from compat.workload.vocabulary import of_features, recognised


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("sleep_mode", "vllm-sleep"),
        ("device_map-auto", "device-map"),
        ("LoRA", "peft"),
        ("ZeRO", "deepspeed"),
        ("speculative decoding", "vllm-speculative"),
        ("Flash-Attention-2", "flash-attention"),
    ],
)
def test_features_in_other_words(written: str, word: str) -> None:
    assert recognised("features", written) == (word, None)


def test_precision_and_quantization_among_the_features() -> None:
    assert of_features(("fsdp", "int8", "bfloat16")) == {"quantization": "8bit", "precision": "bf16"}
    assert of_features(("fsdp", "none")) == {}


def test_a_description_with_a_quantization_among_its_features() -> None:
    workload = parse_described({"workload": {"features": ["fsdp", "4bit"]}}, "x")[0].workload
    assert workload is not None
    assert workload.quantization == "4bit"
    stated = parse_described({"workload": {"features": ["4bit"], "quantization": "8bit"}}, "x")[0].workload
    assert stated is not None
    assert stated.quantization == "8bit"


def test_an_option_with_a_quantization_among_its_features(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.6.0\n")
    workload = compat.check(path, features=["4bit"]).environment.workload
    assert workload is not None
    assert workload.quantization == "4bit"
