"""The name of an image, as it is written in a file: found, and replaced piece by piece."""

from __future__ import annotations

import pytest

from compat.formats.docker.image_names import image_names, with_image

OLD, NEW = "nvidia/cuda:11.7.1-cudnn8-devel-ubuntu20.04", "nvidia/cuda:11.7.1-cudnn8-devel-ubuntu22.04"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"FROM {OLD}\n", f"FROM {NEW}\n"),
        (f"FROM --platform=linux/amd64 \\\n  {OLD} AS base\n", f"FROM --platform=linux/amd64 \\\n  {NEW} AS base\n"),
        (f"ARG BASE={OLD}\nFROM $BASE\n", f"ARG BASE={NEW}\nFROM $BASE\n"),
        (f'ARG BASE="{OLD}"\nFROM "${{BASE}}"\n', f'ARG BASE="{NEW}"\nFROM "${{BASE}}"\n'),
        (
            "ARG CUDA=11.7.1 UBUNTU=20.04\nARG BASE=nvidia/cuda:${CUDA}-cudnn8-devel-ubuntu${UBUNTU}\nFROM ${BASE} AS base\n",
            "ARG CUDA=11.7.1 UBUNTU=22.04\nARG BASE=nvidia/cuda:${CUDA}-cudnn8-devel-ubuntu${UBUNTU}\nFROM ${BASE} AS base\n",
        ),
        (
            "ARG CUDA=11.7.1\nARG BASE=nvidia/cuda:${CUDA}-cudnn8-devel-ubuntu20.04\nFROM ${BASE} AS base\nARG BASE\n",
            "ARG CUDA=11.7.1\nARG BASE=nvidia/cuda:${CUDA}-cudnn8-devel-ubuntu22.04\nFROM ${BASE} AS base\nARG BASE\n",
        ),
        (
            "ARG OS=ubuntu20.04\nFROM nvidia/cuda:11.7.1-cudnn8-devel-${OS}\nFROM nvidia/cuda:11.7.1-cudnn8-devel-${OS} AS two\n",
            "ARG OS=ubuntu22.04\nFROM nvidia/cuda:11.7.1-cudnn8-devel-${OS}\nFROM nvidia/cuda:11.7.1-cudnn8-devel-${OS} AS two\n",
        ),
        (f"FROM ${{BASE:-{OLD}}}\n", f"FROM ${{BASE:-{NEW}}}\n"),
        (f"ARG BASE\nFROM ${{BASE:+{OLD}}}\n", f"ARG BASE\nFROM ${{BASE:+{NEW}}}\n"),  # spelled out
        ("ARG N=20\nFROM nvidia/cuda:11.7.1-cudnn8-devel-ubuntu${N}.04\n", None),  # 20.04 is made of two pieces
        ("ARG BASE\nFROM $BASE\n", None),
        ("ARG A=$B\nARG B=$A\nFROM $A\n", None),
    ],
)
def test_the_pieces_of_a_name_in_a_dockerfile_are_replaced(text: str, expected: str | None) -> None:
    after = with_image("Dockerfile", text.encode(), OLD, NEW, dockerfile=True)
    assert (None if after is None else after.decode()) == expected


def test_several_pieces_of_a_tag_may_change() -> None:
    text = b"ARG TORCH=2.5.1\nARG CUDA=12.4\nFROM pytorch/pytorch:${TORCH}-cuda${CUDA}-cudnn9-devel\n"
    old, new = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel", "pytorch/pytorch:2.7.0-cuda12.8-cudnn9-devel"
    assert [each.text for each in image_names("Dockerfile", text, dockerfile=True)] == [old]
    after = with_image("Dockerfile", text, old, new, dockerfile=True)
    assert after == text.replace(b"2.5.1", b"2.7.0").replace(b"=12.4", b"=12.8")


def test_the_default_of_a_compose_variable_is_replaced() -> None:
    text = "services:\n  llm:\n    image: vllm/vllm-openai:${TAG:-v0.8.5}\n"
    old, new = "vllm/vllm-openai:v0.8.5", "vllm/vllm-openai:v0.9.0"
    assert [each.text for each in image_names("compose.yaml", text.encode(), dockerfile=False)] == [old]
    after = with_image("compose.yaml", text.encode(), old, new, dockerfile=False)
    assert after == text.replace("v0.8.5", "v0.9.0").encode()


def test_values_that_repeat_others_stay_short() -> None:
    lines = [
        "ARG A0=xxxxxxxx",
        *(f"ARG A{at}=$A{at - 1}$A{at - 1}" for at in range(1, 60)),
        "ARG TAG=1",
        "FROM image:$TAG",
        "FROM $A59",
    ]
    names = image_names("Dockerfile", "\n".join(lines).encode(), dockerfile=True)
    assert [each.text for each in names] == ["image:1"]
