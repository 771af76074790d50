"""Container images and the GPU lists of rocminfo, rocm-smi and llama.cpp in pasted text."""

from __future__ import annotations

import pytest

from compat.api.diagnosis import environment_in
from compat.model import Environment

ERROR = "\n\nRuntimeError: CUDA error: unknown error\n"


def environment(text: str) -> Environment:
    return environment_in(text + ERROR)[0]


def releases(text: str) -> dict[str, str | None]:
    return {each.name: each.version for each in environment(text).distributions or ()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker run --gpus all vllm/vllm-openai:v0.8.5 --model x", {"vllm": "0.8.5", "torch": "2.6.0"}),
        ("services:\n  a:\n    image: vllm/vllm-openai:v0.11.0\n", {"vllm": "0.11.0", "torch": "2.8.0"}),
        ("image `lmsysorg/sglang:v0.4.6.post1-cu124`", {"sglang": "0.4.6.post1", "torch": "2.6.0"}),
        (
            "docker run ghcr.io/huggingface/text-generation-inference:2.0.2 --model-id x",
            {"text-generation-server": "2.0.2"},
        ),
        ("docker run openmmlab/lmdeploy:v0.9.2-cu12", {"lmdeploy": "0.9.2"}),
        ("see https://hub.example/r/vllm/vllm-openai:v0.8.5", {}),
        ("vllm/vllm-openai:latest does not start", {}),
        ("vllm/vllm-openai:v0.8.4 works, vllm/vllm-openai:v0.8.5 does not", {}),
        ("the file src/model/config.py:12 says so", {}),
    ],
)
def test_the_releases_in_an_image(text: str, expected: dict[str, str]) -> None:
    assert releases(text) == expected


def test_a_list_states_more_than_an_image() -> None:
    text = "docker run vllm/vllm-openai:v0.8.5\n\n```\nvllm                      0.8.5.post1\ntorch                     2.7.0+cu128\n```\n"
    assert releases(text) == {"vllm": "0.8.5.post1", "torch": "2.7.0+cu128"}


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        (
            (
                "ggml_cuda_init: found 2 CUDA devices:\n"
                "  Device 0: NVIDIA GeForce RTX 5070 Ti, compute capability 12.0, VMM: yes\n"
                "  Device 1: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes\n"
            ),
            [("NVIDIA GeForce RTX 5070 Ti", "12.0", None), ("NVIDIA GeForce RTX 3090", "8.6", None)],
        ),
        (
            "  Device 0: AMD Radeon RX 7900 XTX, gfx1100 (0x1100), VMM: no, Wave Size: 32\n",
            [("AMD Radeon RX 7900 XTX", None, "gfx1100")],
        ),
        (
            (
                "Agent 1\n  Name:                    AMD Ryzen 9 7950X\n  Marketing Name:          AMD Ryzen 9 7950X\n"
                "Agent 2\n  Name:                    gfx1100\n  Uuid:                    GPU-8f1e\n"
                "  Marketing Name:          AMD Radeon RX 7900 XTX\n"
            ),
            [("AMD Radeon RX 7900 XTX", None, "gfx1100")],
        ),
        (
            "GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X\nGPU[0]\t\t: GFX Version: \t\tgfx942\n",
            [("AMD Instinct MI300X", None, "gfx942")],
        ),
    ],
)
def test_gpus_that_programs_list(text: str, devices: list[tuple[str, str | None, str | None]]) -> None:
    found = environment(text).accelerators or ()
    assert [(each.name, each.compute_capability, each.gfx) for each in found] == devices
