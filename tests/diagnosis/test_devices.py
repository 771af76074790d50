"""Explanations that name the GPU, torch's CUDA and the owner of a module, where the environment or a path tells them."""

from __future__ import annotations

import pytest

from compat.model import Accelerator, Distribution, Environment
from tests.diagnosis.test_symptoms import said, trace

NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"


def test_the_gpu_is_named_and_so_is_a_torch_for_it() -> None:
    gpu = Environment(accelerators=(Accelerator("nvidia", "NVIDIA GeForce RTX 5090", "12.0"),))
    (finding,) = said(trace(NO_IMAGE.strip(), "torch/nn/modules/linear.py"), gpu)
    assert finding.title == "torch has no code for NVIDIA GeForce RTX 5090 (compute capability 12.0)"
    assert (finding.fixes[0].package, finding.fixes[0].text) == ("torch", "a torch with code for sm_120")


def test_an_older_gpu_has_a_torch_on_the_default_index_as_well() -> None:
    gpu = Environment(accelerators=(Accelerator("nvidia", "Tesla V100", "7.0"),))
    (finding,) = said(trace(NO_IMAGE.strip(), "torch/nn/modules/linear.py"), gpu)
    labelled, default = (fix for fix in finding.fixes if fix.package == "torch" and fix.spec)
    assert ("+cu" in (labelled.spec or ""), "+" in (default.spec or "")) == (True, False)
    assert (default.kind, default.text) == ("downgrade", "a torch with code for sm_70, from the default index")


def test_jetson_needs_the_wheels_of_its_maker() -> None:
    jetson = Environment(accelerators=(Accelerator("nvidia", "Jetson AGX Orin", "8.7"),))
    (finding,) = said(trace(NO_IMAGE.strip(), "torch/nn/modules/linear.py"), jetson)
    assert "JetPack" in finding.fixes[0].text


@pytest.mark.parametrize(
    ("release", "cuda", "spec"),
    [
        ("0.10.2", "12.8", ">=0.10.0,<0.10.1"),
        ("0.9.2", "12.8", ">=0.8.0,<0.9.0"),
        (None, "12.9", ">=0.10.2,<0.11.1"),
        ("0.8.5", "12.4", None),  # older images have not been read
    ],
)
def test_the_newest_image_of_vllm_for_an_older_driver(release: str | None, cuda: str, spec: str | None) -> None:
    text = f"nvidia-container-cli: requirement error: unsatisfied condition: cuda>={cuda}, please update your driver\n"
    (finding,) = said(text, Environment(distributions=(Distribution("vllm", release),)))
    assert next((fix.spec for fix in finding.fixes if fix.package == "vllm"), None) == spec


def test_a_package_that_is_only_guessed_is_not_named() -> None:
    (finding,) = said(NO_IMAGE)
    assert finding.title == "A package has no code for this GPU"


def test_the_variable_is_that_of_the_gpus_generation() -> None:
    radeon = Environment(accelerators=(Accelerator("amd", "Radeon RX 6700 XT", gfx="gfx1031"),))
    (finding,) = said("RuntimeError: HIP error: invalid device function\n", radeon)
    assert finding.fixes[0].command == "export HSA_OVERRIDE_GFX_VERSION=10.3.0"


@pytest.mark.parametrize(
    ("distributions", "wheel"),
    [
        ((Distribution("torch", "2.12.0+cu130"),), "nvidia-cudnn-cu13"),
        ((Distribution("torch", "2.8.0+cu128"),), "nvidia-cudnn-cu12"),
        ((Distribution("torch", None, extra={"cuda": "13.0"}),), "nvidia-cudnn-cu13"),
        ((Distribution("nvidia-nccl-cu13", "2.29.7"),), "nvidia-cudnn-cu13"),
        ((), "nvidia-cudnn-cu12"),
    ],
)
def test_the_library_is_the_one_for_torchs_cuda(distributions: tuple[Distribution, ...], wheel: str) -> None:
    (finding,) = said(
        "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH\n", Environment(distributions=distributions)
    )
    assert wheel in [fix.package for fix in finding.fixes]


@pytest.mark.parametrize(
    ("path", "symbol", "package"),
    [
        ("/v/lib/python3.11/site-packages/torch_tensorrt/lib/libtorchtrt.so", "_ZNK3c105Error4whatEv", "torch-tensorrt"),
        ("/v/lib/python3.11/site-packages/some_kernels/ops.so", "_ZN3c105ErrorC2ENS_14SourceLocationESs", "some-kernels"),
        ("common_ops.abi3.so", "_ZN3c104cuda9SetDeviceEa", "sgl-kernel"),
    ],
)
def test_the_owner_of_a_compiled_module(path: str, symbol: str, package: str) -> None:
    (finding,) = said(f"ImportError: {path}: undefined symbol: {symbol}\n")
    assert (finding.rule, list(finding.packages)) == ("symptom-undefined-symbol", [package, "torch"])


def test_xformers_for_another_python() -> None:
    text = """WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    PyTorch 2.8.0 with CUDA 1209 (you have 2.8.0)
    Python  3.12.3 (you have 3.10.12)
"""
    (finding,) = said(text)
    assert finding.title == "xformers is built for Python 3.12, but this is Python 3.10"
    (finding,) = said(text.replace("(you have 2.8.0)", "(you have 2.7.0)"))
    assert finding.title == "xformers is built for torch 2.8.0, but 2.7.0 is installed"
    (finding,) = said(text.replace("3.10.12", "3.12.1"))
    assert "Python" not in finding.title


def test_a_library_of_tensorrt() -> None:
    (finding,) = said("ImportError: libnvinfer.so.10: cannot open shared object file: No such file or directory\n")
    assert finding.title == "A package is compiled for TensorRT 10, whose libraries are not found"
    assert (finding.fixes[0].package, finding.fixes[0].spec) == ("tensorrt", "==10.*")


def test_the_only_extension_is_what_misses_a_library() -> None:
    text = "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n"
    (finding,) = said(text, Environment(distributions=(Distribution("vllm", "0.11.0"),)))
    assert finding.title == "vllm is linked to CUDA 12, but those libraries are not installed"
    both = (Distribution("vllm", "0.11.0"), Distribution("flash-attn", "2.8.3"))
    (finding,) = said(text, Environment(distributions=both))
    assert finding.title.startswith("A package is linked")


@pytest.mark.parametrize(("cuda", "spec"), [("12.1", ">=530"), ("12.4", ">=550"), ("13.0", ">=580"), ("99.0", None)])
def test_the_driver_that_an_image_asks_for(cuda: str, spec: str | None) -> None:
    (finding,) = said(
        f"nvidia-container-cli: requirement error: unsatisfied condition: cuda>={cuda}, please update your driver\n"
    )
    assert (finding.fixes[0].kind, finding.fixes[0].spec) == ("driver", spec)
