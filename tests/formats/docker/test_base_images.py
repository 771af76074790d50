"""What the names and tags of images say."""

from __future__ import annotations

import pytest

from compat.formats.docker.base_images import (
    NGC_PYTORCH,
    beside_torch,
    image_variables,
    known_stack,
    on_newer_pythons,
    system_of,
    system_python,
)
from compat.model import Distribution, Environment, Source
from compat.tables.declared import open_declared
from compat.versions import key_of


def versions(image: str) -> dict[str, str | None]:
    return {each.name: each.version or each.specifier for each in known_stack(image).distributions or ()}


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel", {"torch": "2.6.0", "torchvision": "0.21.0"}),
        ("docker.io/pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime@sha256:0a", {"torch": "2.6.0", "torchvision": "0.21.0"}),
        ("vllm/vllm-openai:v0.2.4", {"vllm": "0.2.4"}),
        ("vllm/vllm-openai:v0.4.1", {"vllm": "0.4.1", "torch": "2.2.1"}),
        ("vllm/vllm-openai:v0.6.1", {"vllm": "0.6.1", "torch": "2.4.0"}),
        ("vllm/vllm-openai:v0.7.1", {"vllm": "0.7.1", "torch": "2.5.1"}),
        ("docker.io/vllm/vllm-openai:v0.8.5.post1", {"vllm": "0.8.5.post1", "torch": "2.6.0"}),
        ("vllm/vllm-openai:v0.11.2", {"vllm": "0.11.2", "torch": "2.9.0"}),
        ("vllm/vllm-openai:v0.20.0-cu129", {"vllm": "0.20.0"}),
        ("vllm/vllm-openai:v0.34.0", {"vllm": "0.34.0"}),
        ("lmsysorg/sglang:v0.4.6.post1-cu124", {"sglang": "0.4.6.post1", "torch": "2.6.0"}),
        ("lmsysorg/sglang:v0.5.12", {"sglang": "0.5.12", "torch": "2.11.0"}),
        ("lmsysorg/sglang:v0.5.12-cu130-runtime", {"sglang": "0.5.12", "torch": "2.11.0"}),
        ("lmsysorg/sglang:v0.5.5.post3-rocm700-mi30x", {"sglang": "0.5.5.post3"}),
        ("lmsysorg/sglang:v0.5.5-cu130", {"sglang": "0.5.5"}),
        ("lmsysorg/sglang:v0.4.1", {"sglang": "0.4.1"}),
        ("lmsysorg/sglang:v0.5.99", {"sglang": "0.5.99"}),
        ("ghcr.io/huggingface/text-generation-inference:3.0.1", {"text-generation-server": "3.0.1"}),
        ("huggingface/transformers-pytorch-gpu:4.41.2", {"transformers": "4.41.2"}),
        ("verlai/verl:app-verl0.4-sglang0.4.6.post5-vllm0.8.5-mcore0.12.2",
         {"sglang": "0.4.6.post5", "vllm": "==0.8.5.*", "megatron-core": "==0.12.2.*"}),
        ("rocm/pytorch:rocm6.3.4_ubuntu22.04_py3.10_pytorch_release_2.4.0", {"torch": "==2.4.0.*"}),
        ("axolotlai/axolotl-base:main-base-py3.11-cu124-2.6.0", {"torch": "2.6.0"}),
        ("unsloth/unsloth:2025.9.1-pt2.8.0-vllm-0.10.1-cu128", {"torch": "==2.8.0.*", "vllm": "==0.10.1.*"}),
        ("host.example:5000/pytorch-training:2.5.1-gpu-py311-cu124-ubuntu22.04-sagemaker", {"torch": "2.5.1"}),
        ("nvcr.io/nvidia/pytorch:25.03-py3", {"torch": "2.7.0a0+7c8ec84dab.nv25.03"}),
    ],
)  # fmt: skip
def test_releases(image: str, expected: dict[str, str]) -> None:
    assert versions(image) == expected
    for each in known_stack(image).distributions or ():
        assert each.source is not None
        assert (each.source.kind, each.source.details) == ("image", {"image": image})


def test_the_torchvision_and_torchaudio_of_pytorchs_images_are_those_for_their_torch() -> None:
    declared = open_declared()
    torch, packages = declared.package("torch"), {name: declared.package(name) for name in ("torchvision", "torchaudio")}
    assert torch is not None
    for version in torch.versions:
        copy = Distribution(
            "torch", version, source=Source("image", {"image": f"pytorch/pytorch:{version}-cuda12.4-cudnn9-devel"})
        )
        for name, package in packages.items():
            beside = beside_torch(copy, name)
            if beside is None:
                assert not key_of("2.1.0") <= key_of(version) < key_of("2.11.0")
                continue
            assert package is not None
            place = package.place(beside.version or "")
            assert place is not None
            assert {each[0] for each in package.requirements(place, "torch")} == {f"=={version}"}
            assert beside.requires == (f"torch=={version}",)


@pytest.mark.parametrize(
    "tag", ["2.5.1.0-cuda12.4-cudnn9-devel", "2.5.1rc1-cuda12.4-cudnn9-devel", "2.5.1.post1-cuda12.4-cudnn9-devel"]
)
def test_a_tag_of_no_final_release_has_no_torchvision(tag: str) -> None:
    assert "torchvision" not in versions(f"pytorch/pytorch:{tag}")


@pytest.mark.parametrize("image", ["nvcr.io/nvidia/pytorch:24.05-py3", "vllm/vllm-openai:v0.8.5", "me/pytorch:2.6.0-cuda12.4"])
def test_what_other_images_have_beside_torch_is_not_known(image: str) -> None:
    torch = Distribution("torch", "2.6.0", source=Source("image", {"image": image}))
    assert beside_torch(torch, "torchvision") is None
    assert beside_torch(Distribution("torch", "2.6.0"), "torchvision") is None


@pytest.mark.parametrize(
    "image",
    ["pytorch/pytorch", "pytorch/pytorch:latest", "pytorch/pytorch@sha256:0a", "vllm/vllm-openai:nightly", "verlai/verl:vllm011.latest",
     "nvcr.io/nvidia/pytorch:19.03-py3", "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404", "rocm/vllm:rocm6.3.1_vllm_0.8.5_20250521",
     "pytorch/pytorch:${TAG}", ""],
)  # fmt: skip
def test_tags_that_tell_no_release(image: str) -> None:
    assert versions(image) == {}


@pytest.mark.parametrize(("release", "cuda"), [("0.8.5", "12.4"), ("0.10.2", "12.8"), ("0.13.0", "12.9"), ("0.33.0", "13.0")])
def test_cuda_of_vllm_images(release: str, cuda: str) -> None:
    stack = known_stack(f"vllm/vllm-openai:v{release}")
    assert stack.python == "3.12"
    assert {each.name: each.extra for each in stack.distributions or ()}["torch"] == {"cuda": cuda}


def test_a_digest_tells_nothing() -> None:
    assert known_stack("nvidia/cuda@sha256:0a") == Environment(os="linux")


def test_windows_images() -> None:
    assert known_stack("mcr.microsoft.com/windows/servercore:ltsc2022").os == "windows"


@pytest.mark.parametrize(
    ("image", "python", "glibc", "toolkit"),
    [
        ("nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04", None, "2.35", "12.4.1"),
        ("nvidia/cuda:12.4.1-runtime-ubuntu22.04", None, "2.35", None),
        ("nvcr.io/nvidia/cuda:12.1.0-devel-rockylinux8", None, "2.28", "12.1.0"),
        ("nvcr.io/nvidia/cuda-dl-base:25.03-cuda12.8-devel-ubuntu24.04", None, "2.39", "12.8"),
        ("pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel", "3.11", None, "12.4"),
        ("nvcr.io/nvidia/pytorch:24.10-py3", "3.10", "2.35", "12.6.2"),
        ("nvcr.io/nvidia/pytorch:24.11-py3", "3.12", "2.39", "12.6"),
        ("python:3.11-slim-bookworm", "3.11", "2.36", None),
        ("library/python:3.12.4", "3.12.4", None, None),
        ("python:3", None, None, None),
        ("ghcr.io/astral-sh/uv:python3.12-bookworm-slim", "3.12", "2.36", None),
        ("ubuntu:22.04", None, "2.35", None),
        ("debian:12.5-slim", None, "2.36", None),
        ("runpod/pytorch:2.4.0-py3.11-cuda12.4.1-devel-ubuntu22.04", "3.11", "2.35", "12.4.1"),
    ],
)
def test_python_glibc_and_toolkit(image: str, python: str | None, glibc: str | None, toolkit: str | None) -> None:
    found = known_stack(image)
    assert (found.python, found.glibc, found.cuda_toolkit, found.os) == (python, glibc, toolkit, "linux")


def test_the_systems_own_python() -> None:
    assert system_python("nvidia/cuda:12.4.1-devel-ubuntu22.04") == "3.10"
    assert system_of("ubuntu:noble") == "ubuntu24.04"
    assert system_python("pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel") is None


def test_variables_of_cuda_images() -> None:
    assert image_variables("nvidia/cuda:12.4.1-base-ubuntu22.04") == {"CUDA_VERSION": "12.4.1"}
    assert image_variables("nvidia/cuda:latest") == {}


def test_ngc_releases_are_versions_in_order() -> None:
    assert list(NGC_PYTORCH) == sorted(NGC_PYTORCH)
    keys = [(key_of(torch), key_of(".".join(cuda.split(".")[:2]))) for torch, cuda in NGC_PYTORCH.values()]
    assert [torch for torch, _ in keys] == sorted(torch for torch, _ in keys)
    assert [cuda for _, cuda in keys] == sorted(cuda for _, cuda in keys)


def test_torch_of_sglang_is_what_its_releases_pin() -> None:
    package = open_declared().package("sglang")
    assert package is not None
    for number, release in enumerate(package.versions):
        asked = package.requirements(number, "torch")  # specifier, ranges, marker, extra
        pins = {specifier for specifier, _, _, extra in asked if extra in (None, "srt")}
        torch = versions(f"lmsysorg/sglang:v{release}").get("torch")
        assert pins == ({f"=={torch}"} if torch else set()), release


def test_the_cuda_of_sglang_images_is_that_of_the_tag() -> None:
    (torch,) = [each for each in known_stack("lmsysorg/sglang:v0.5.12-cu130").distributions or () if each.name == "torch"]
    assert torch.extra == {"cuda": "13.0"}


@pytest.mark.parametrize(
    ("tag", "python"),
    [
        ("1.11.0-cuda11.3-cudnn8-devel", "3.8"),
        ("1.13.1-cuda11.6-cudnn8-runtime", None),
        ("2.3.0-cuda12.1-cudnn8-runtime", "3.10"),
        ("2.8.0-cuda12.8-cudnn9-devel", "3.11"),
        ("latest", None),
    ],
)
def test_the_python_of_pytorch_s_images_is_known_by_their_torch(tag: str, python: str | None) -> None:
    assert known_stack(f"pytorch/pytorch:{tag}").python == python


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nvidia/cuda:11.8.0-devel-ubuntu20.04", [("nvidia/cuda:11.8.0-devel-ubuntu22.04", "3.10")]),
        (
            "nvcr.io/nvidia/cuda:12.6.3-runtime-ubuntu20.04",
            [("nvcr.io/nvidia/cuda:12.6.3-runtime-ubuntu22.04", "3.10"), ("nvcr.io/nvidia/cuda:12.6.3-runtime-ubuntu24.04", "3.12")],
        ),
        ("nvidia/cuda:11.3.1-devel-ubuntu20.04", []),
        ("python:3.12-slim", [("python:3.13-slim", "3.13"), ("python:3.14-slim", "3.14")]),
        ("python:3.9-alpine", []),
        ("ubuntu:22.04", [("ubuntu:24.04", "3.12")]),
        ("debian:bookworm", []),
    ],
)  # fmt: skip
def test_images_with_a_newer_python_and_the_same_cuda(image: str, expected: list[tuple[str, str]]) -> None:
    assert list(on_newer_pythons(image)) == expected
