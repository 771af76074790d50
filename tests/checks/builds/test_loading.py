"""Published wheels that the loader cannot load, by the shipped tables: symbols of torch, libraries of CUDA, the C library."""

from __future__ import annotations

from typing import Any

import pytest

from tests.checks.builds.test_builds import found, spec


@pytest.mark.parametrize(
    ("torch", "extension", "holds"),
    [
        ("2.8.0+cu128", "sgl-kernel==0.3.20", True),  # asks for symbols that came with 2.9
        ("2.9.1+cu128", "sgl-kernel==0.3.20", False),
        ("2.6.0+cu124", "vllm==0.8.5.post1", False),
        ("2.7.0+cu128", "vllm==0.8.5.post1", True),
        ("2.13.0+cu130", "vllm==0.33.0", False),  # the stable interface of torch
        ("2.5.1+cu124", "torchcodec==0.1.1", False),
        ("2.7.0+cu128", "torchcodec==0.1.1", True),
        ("2.99.0", "sgl-kernel==0.3.20", False),  # newer than what was read
        ("1.13.1", "torchcodec==0.1.1", False),
        ("2.6.0+cu126", "torchcodec==0.6.0", False),  # compiled with the C++11 ABI, unlike the others of its release
        ("2.8.0+cu128", "sgl-kernel==0.3.20+own", False),
        ("2.8.0+cu128", "tokenizers==0.21.0", False),
        ("2.8.0+cu128", "lmcache==0.3.5", True),  # c10::cuda::SetDevice takes one argument more since 2.8
        ("2.7.1+cu128", "lmcache==0.3.5", False),
        ("2.7.1+cu128", "lmcache==0.3.6", True),
    ],
)
def test_symbols_that_a_series_of_torch_does_not_export(torch: str, extension: str, *, holds: bool) -> None:
    rule = f"build-{extension.partition('==')[0]}-torch"
    assert (rule in found(f"torch=={torch}", extension)) is holds


def test_the_way_out_is_the_release_for_the_installed_torch_and_the_torch_of_the_release() -> None:
    finding = found("torch==2.8.0+cu128", "sgl-kernel==0.3.20")["build-sgl-kernel-torch"]
    assert (finding.verdict, finding.severity) == ("hit", "error")
    assert "it is compiled for torch 2.9" in finding.title
    assert [(fix.package, fix.spec) for fix in finding.fixes][:2] == [("sgl-kernel", "<=0.3.18"), ("torch", "==2.9.*")]


def test_a_package_that_goes_on_without_its_kernels_is_a_warning() -> None:
    finding = found("torch==2.6.0+cu124", "auto-gptq==0.7.1")["build-auto-gptq-torch"]
    assert (finding.severity, finding.effect) == ("warning", "slow")


def test_what_a_server_loads_only_on_request_is_a_warning() -> None:
    finding = found("torch==2.8.0+cu128", "lmcache==0.3.5")["build-lmcache-torch"]
    assert (finding.severity, finding.effect) == ("warning", "crash")


def test_a_build_for_another_cuda_is_for_the_same_torch() -> None:
    assert "build-sglang-kernel-torch" in found("torch==2.12.1+cu130", "sglang-kernel==0.4.4+cu130")
    assert "build-sglang-kernel-torch" not in found("torch==2.11.0+cu130", "sglang-kernel==0.4.4+cu130")


@pytest.mark.parametrize("keys", [{"machine": "aarch64"}, {"os": "windows"}, {"source": "vcs"}])
def test_other_wheels_than_those_that_were_read_are_left_alone(keys: dict[str, Any]) -> None:
    assert "build-sgl-kernel-torch" not in found("torch==2.8.0+cu128", "sgl-kernel==0.3.20", **keys)


@pytest.mark.parametrize(
    ("torch", "extension", "keys", "holds"),
    [
        ("2.8.0+cu128", "lmdeploy==0.12.2", {}, False),
        ("2.11.0+cu130", "lmdeploy==0.12.2", {}, True),
        ("2.11.0+cu130", "lmdeploy==0.12.2", {"cuda_toolkit": "12.8"}, False),  # the toolkit has the library
        ("2.11.0+cu130", "torchvision==0.23.0", {}, False),  # from torch's index it may be a build for CUDA 13
        ("2.8.0+cu128", "bitsandbytes==0.47.0", {}, False),  # has a library for each
        ("2.11.0+cu130", "mooncake-transfer-engine==0.3.10", {}, True),  # that for CUDA 13 is another package
        ("2.11.0+cu128", "mooncake-transfer-engine==0.3.10", {}, False),
        ("2.8.0+cu128", "lmcache==0.4.7", {}, True),
    ],
)
def test_libraries_of_another_cuda(torch: str, extension: str, keys: dict[str, Any], *, holds: bool) -> None:
    rule = f"build-{extension.partition('==')[0]}-cuda"
    assert (rule in found(f"torch=={torch}", extension, **keys)) is holds


def test_the_wheel_with_the_libraries_of_the_other_cuda_is_enough() -> None:
    wheel = "nvidia-cuda-runtime-cu12==12.8.90"
    assert "build-lmdeploy-cuda" not in found("torch==2.11.0+cu130", "lmdeploy==0.12.2", wheel)


def test_the_wheel_of_the_other_cuda_is_not_enough_without_a_run_path_to_it() -> None:
    wheel = "nvidia-cuda-runtime==13.0.96"  # left behind by the torch that this one replaced
    assert "build-vllm-cuda" in found("torch==2.11.0+cu129", "vllm==0.21.0", wheel)
    assert "build-vllm-cuda" not in found("torch==2.11.0+cu129", "vllm==0.21.0", wheel, cuda_toolkit="13.0")


@pytest.mark.parametrize(
    ("torch", "glibc", "holds"),
    [
        ("2.6.0+cu126", "2.31", True),  # its library for CUDA 12.6 asks for 2.34, whatever its platform tag says
        ("2.6.0+cu124", "2.31", False),
        ("2.6.0+cu126", "2.35", False),
        ("2.6.0+cu126", "2.17", False),  # no installer takes the wheel
    ],
)
def test_a_c_library_that_is_older_than_the_platform_tag_promises(torch: str, glibc: str, *, holds: bool) -> None:
    findings = found(f"torch=={torch}", "bitsandbytes==0.45.2", glibc=glibc)
    assert ("build-bitsandbytes-glibc" in findings) is holds
    if holds:
        assert spec(findings["build-bitsandbytes-glibc"], "upgrade") == ">=0.46.0"


@pytest.mark.parametrize(
    ("package", "numpy", "holds"),
    [
        ("spacy==3.7.5", "2.4.6", True),
        ("spacy==3.8.0", "2.4.6", False),
        ("spacy==3.7.5", "1.26.4", False),
        ("spacy==3.7.5", "2.0.0rc1", True),
        ("soundfile==0.12.1", "2.4.6", False),
    ],
)
def test_a_release_that_was_compiled_against_numpy_1(package: str, numpy: str, *, holds: bool) -> None:
    rules = found(package, f"numpy=={numpy}")
    assert (f"build-{package.partition('==')[0]}-numpy" in rules) is holds


def test_both_ways_out_of_numpy_1_are_fixes() -> None:
    finding = found("spacy==3.7.5", "numpy==2.2.6")["build-spacy-numpy"]
    assert (finding.verdict, finding.severity, finding.title) == (
        "hit", "error", "import spacy fails: spacy 3.7.5 is compiled against numpy 1",
    )  # fmt: skip
    assert [(fix.package, fix.spec) for fix in finding.fixes] == [("spacy", ">=3.8.0"), ("numpy", "<2")]


@pytest.mark.parametrize("kind", ["vcs", "conda", "directory"])
def test_other_builds_may_be_compiled_against_another_numpy(kind: str) -> None:
    assert "build-spacy-numpy" not in found("spacy==3.7.5", "numpy==2.2.6", source=kind)


@pytest.mark.parametrize(
    ("others", "keys", "holds"),
    [
        ((), {"cuda_toolkit": "12.1"}, True),
        ((), {"cuda_toolkit": "11.8"}, False),
        ((), {}, False),
        ((), {"cuda_toolkit": "12.1", "gpus": ()}, True),
        (("nvidia-cuda-runtime-cu11==11.8.89",), {"cuda_toolkit": "12.1"}, False),
        (("torch==2.5.1+cu118",), {"cuda_toolkit": "12.1"}, False),
        (("torch==2.5.1+cu124",), {}, True),
    ],
)
def test_a_package_without_torch_needs_the_cuda_that_its_wheel_is_linked_to(
    others: tuple[str, ...], keys: dict[str, Any], *, holds: bool
) -> None:
    rules = found("onnxruntime-gpu==1.17.1", *others, **keys)
    assert ("build-onnxruntime-gpu-cuda" in rules) is holds


def test_the_way_out_of_another_cuda_is_the_release_for_the_toolkit() -> None:
    finding = found("onnxruntime-gpu==1.16", cuda_toolkit="12.1")["build-onnxruntime-gpu-cuda"]
    assert (finding.verdict, finding.severity, spec(finding, "upgrade")) == ("possible", "warning", ">=1.19.0")


@pytest.mark.parametrize(
    ("torch", "others", "holds"),
    [
        ("2.3.1+cu121", (), True),  # brings cuDNN 8.9
        ("2.4.1+cu121", (), False),
        ("2.3.1+cu121", ("nvidia-cudnn-cu12==9.1.0.70",), False),
        ("2.3.1+cpu", (), False),
        ("2.99.0", (), False),
    ],
)
def test_a_wheel_that_needs_the_cudnn_of_another_release(torch: str, others: tuple[str, ...], *, holds: bool) -> None:
    findings = found(f"torch=={torch}", "onnxruntime-gpu==1.19.2", *others)
    assert ("build-onnxruntime-gpu-cudnn" in findings) is holds
    if holds:
        finding = findings["build-onnxruntime-gpu-cudnn"]
        assert (finding.verdict, finding.severity) == ("possible", "warning")
        assert [(fix.package, fix.spec) for fix in finding.fixes] == [("torch", ">=2.4.0")]
