"""Distributions that are compiled when they are installed, on images with and without a CUDA compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

import compat
from compat.checks.images import OTHER_COMPILER
from compat.checks.installation import NO_COMPILER
from compat.formats.docker.base_images import compiler_of, has_no_compiler, with_compiler, with_compiler_for
from compat.formats.docker.dockerfile import read_dockerfile

RUNTIME = "nvidia/cuda:12.4.1-runtime-ubuntu22.04"
FLASH = "RUN pip install flash-attn==2.7.4.post1 --no-build-isolation\n"


def flagged(folder: Path, text: str) -> list[str]:
    """The distributions that a Dockerfile is said to compile without a compiler."""
    path = folder / "Dockerfile"
    path.write_text(text, encoding="utf-8")
    report = compat.check(str(path))
    found = [each for each in report.findings if each.rule == NO_COMPILER]
    assert all((each.verdict, each.severity) == ("hit", "error") for each in found)
    return sorted(name for each in found for name in each.packages)


@pytest.mark.parametrize(
    "image",
    [
        RUNTIME,
        RUNTIME.replace("runtime", "base"),
        "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime",
        "python:3.11-slim",
        "ubuntu:22.04",
    ],
)
def test_images_without_a_compiler(tmp_path: Path, image: str) -> None:
    assert has_no_compiler(image)
    assert flagged(tmp_path, f"FROM {image}\n{FLASH}") == ["flash-attn"]


@pytest.mark.parametrize(
    "text",
    [
        f"FROM {RUNTIME.replace('runtime', 'devel')}\n{FLASH}",
        f"FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel\n{FLASH}",
        f"FROM someone/trainer:1\n{FLASH}",
        f"FROM {RUNTIME}\nRUN apt-get update && apt-get install -y cuda-toolkit-12-4\n{FLASH}",
        f"FROM {RUNTIME}\nRUN apt-get install -y nvidia-cuda-toolkit\n{FLASH}",
        f"FROM {RUNTIME}\nRUN conda install -y -c nvidia cuda-nvcc=12.4\n{FLASH}",
        f"FROM {RUNTIME}\nRUN conda install -y -c nvidia/label/cuda-12.4.0 cuda\n{FLASH}",
        f"FROM {RUNTIME}\nCOPY --from=nvidia/cuda:12.4.1-devel-ubuntu22.04 /usr/local/cuda /usr/local/cuda\n{FLASH}",
        f"FROM {RUNTIME}\nENV CUDA_HOME=/opt/cuda\n{FLASH}",
        f"FROM {RUNTIME}\nENV FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE\n{FLASH}",
        f"FROM {RUNTIME}\nRUN FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE pip install flash-attn==2.7.4.post1\n",
        f"FROM {RUNTIME}\nRUN pip install https://host.example/flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp310-cp310-linux_x86_64.whl\n",
        f"FROM {RUNTIME}\nRUN pip install flash-attn==2.7.4.post1 --find-links https://host.example/wheels\n",
        f"FROM {RUNTIME}\nRUN pip install torch==2.6.0 vllm==0.8.5\n",
    ],
)
def test_what_has_a_compiler_or_needs_none(tmp_path: Path, text: str) -> None:
    assert flagged(tmp_path, text) == []


def test_a_stage_that_only_copies_the_environment_needs_no_compiler(tmp_path: Path) -> None:
    text = f"FROM {RUNTIME.replace('runtime', 'devel')} AS build\nRUN python3 -m venv /opt/venv\nRUN /opt/venv/bin/pip install flash-attn==2.7.4.post1\n"
    text += f"FROM {RUNTIME}\nCOPY --from=build /opt/venv /opt/venv\n"
    assert flagged(tmp_path, text) == []


def test_all_that_fail(tmp_path: Path) -> None:
    text = f"FROM {RUNTIME}\nRUN pip install mamba-ssm==2.2.2 causal-conv1d==1.4.0 'flash-attn @ git+https://github.com/Dao-AILab/flash-attention'\n"
    assert flagged(tmp_path, text) == ["causal-conv1d", "flash-attn", "mamba-ssm"]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (RUNTIME, "nvidia/cuda:12.4.1-devel-ubuntu22.04"),
        ("nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04", "nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04"),
        (
            "docker.io/pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime@sha256:0a",
            "docker.io/pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel",
        ),
        ("nvidia/cuda:12.4.1-devel-ubuntu22.04", None),
        ("python:3.11", None),
    ],
)
def test_the_image_that_has_one(image: str, expected: str | None) -> None:
    assert with_compiler(image) == expected


DEVEL = "nvidia/cuda:12.4.1-cudnn8-devel-ubuntu22.04"


@pytest.mark.parametrize(
    ("image", "torch", "flash", "bad"),
    [
        (DEVEL, "2.11.0", "flash-attn==2.8.3", True),  # torch is for CUDA 13
        (DEVEL, "2.9.1", "flash-attn==2.8.3", False),
        (DEVEL.replace("12.4.1", "13.0.1"), "2.9.1", "flash-attn==2.8.3", True),
        (DEVEL.replace("12.4.1", "13.0.1"), "2.8.0", "flash-attn==2.8.3", False),  # its setup.py downloads the wheel
        (DEVEL, "2.11.0", "flash-attn", False),  # a newer release may have one
        (DEVEL, "2.11.0", "flash-attn==2.8.3 --find-links https://host.example/wheels", False),
        ("someone/cuda:12.4.1-devel", "2.11.0", "flash-attn==2.8.3", False),
    ],
)
def test_a_compiler_of_another_major_version_than_torch(
    tmp_path: Path, image: str, torch: str, flash: str, *, bad: bool
) -> None:  # fmt: skip
    path = tmp_path / "Dockerfile"
    path.write_text(f"FROM {image}\nRUN pip install torch=={torch}\nRUN pip install {flash}\n", encoding="utf-8")
    found = [each for each in compat.check(str(path)).findings if each.rule == OTHER_COMPILER]
    assert [(each.verdict, each.severity, sorted(each.packages)) for each in found] == (
        [("hit", "error", ["flash-attn", "torch"])] if bad else []
    )


def test_a_toolkit_that_the_image_gets_later_may_be_any(tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    lines = "RUN apt-get install -y cuda-toolkit-13-0\nRUN pip install torch==2.11.0 flash-attn==2.8.3\n"
    path.write_text(f"FROM {DEVEL}\n{lines}", encoding="utf-8")
    assert OTHER_COMPILER not in {each.rule for each in compat.check(str(path)).findings}


def test_the_image_with_a_compiler_for_torch() -> None:
    assert compiler_of(DEVEL) == "12.4"
    assert compiler_of(RUNTIME) is None
    assert with_compiler_for(DEVEL, "13.0") == "nvidia/cuda:13.0.1-cudnn-devel-ubuntu22.04"
    assert with_compiler_for(DEVEL.replace("ubuntu22.04", "ubuntu20.04"), "13.0") is None
    assert with_compiler_for(DEVEL, "11.8") is None


def test_the_image_is_that_of_the_stage_that_installs() -> None:
    (found,) = read_dockerfile("Dockerfile", f"FROM {RUNTIME}\n{FLASH}")
    (entry,) = [each for each in found.entries if each.distribution.name == "flash-attn"]
    assert entry.distribution.extra["no_compiler"] == RUNTIME


def test_the_newest_commit_of_a_repository_is_no_old_release(tmp_path: Path) -> None:
    """The apex of the index is a certain old release; what is cloned from a repository is newer than every release."""
    path = tmp_path / "Dockerfile"
    path.write_text(
        "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install git+https://github.com/NVIDIA/apex.git\n", encoding="utf-8"
    )
    assert [each.rule for each in compat.check(str(path)).findings] == []
    path.write_text("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install apex\n", encoding="utf-8")
    assert [each.rule for each in compat.check(str(path)).findings] == ["apex-of-the-index"]
