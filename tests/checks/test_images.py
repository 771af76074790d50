"""What is found about the image a stack is from: its CUDA against the driver and the GPU, and its vendor."""

from pathlib import Path

import pytest

import compat
from compat.formats.docker.base_images import known_stack
from compat.model import Accelerator, Distribution, Environment, Source
from compat.output.terminal import flags_for
from compat.records import replace

PYTORCH = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
DEVEL = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel"
VLLM = "vllm/vllm-openai:v0.10.1"
NGC = "nvcr.io/nvidia/pytorch:23.10-py3"
ROCM = "docker.io/rocm/pytorch:rocm6.2_ubuntu22.04_py3.10_pytorch_release_2.3.0"


def found(image: str, *gpus: str, driver: str | None = None) -> dict[str, str]:
    devices = tuple(Accelerator(name=name) for name in gpus) or None
    report = compat.check(replace(known_stack(image), accelerators=devices, driver=driver, machine="x86_64"))
    about = ("build-torch-", "image-")
    return {each.rule: f"{each.verdict} {each.severity}" for each in report.findings if each.rule.startswith(about)}


@pytest.mark.parametrize("image", [PYTORCH, DEVEL, VLLM])
def test_the_driver_of_an_image_that_states_its_cuda(image: str) -> None:
    """Forward compatibility may help data-centre GPUs, and never consumer cards."""
    assert found(image, "RTX 4090", driver="470.82")["build-torch-driver"] == "hit error"
    assert found(image, "A100", driver="470.82")["build-torch-driver"] == "possible error"
    assert found(image, driver="470.82")["build-torch-driver"] == "possible error"
    assert "build-torch-driver" not in found(image, "RTX 4090", driver="535.104.05")  # minor-version compatibility


@pytest.mark.parametrize(
    ("image", "gpu", "expected"),
    [
        (PYTORCH, "B200", {"build-torch-gpu": "hit error"}),
        (PYTORCH, "RTX 5090", {"build-torch-gpu": "hit error"}),
        (PYTORCH, "H100", {}),
        (PYTORCH, "MI300X", {"build-torch-vendor": "hit error"}),
        (VLLM, "B200", {}),
        ("lmsysorg/sglang:v0.5.5-cu126", "B200", {"build-torch-gpu": "hit error"}),
        ("lmsysorg/sglang:v0.5.5-cu129", "B200", {}),
        ("lmsysorg/sglang:v0.5.5", "B200", {}),
        (NGC, "B200", {"image-before-gpu": "hit warning"}),
        (NGC, "H100", {}),
        (NGC.replace("23.10", "24.12"), "RTX 5090", {"image-before-gpu": "hit warning"}),
        (NGC.replace("23.10", "25.01"), "RTX 5090", {}),
        (NGC, "MI300X", {"image-vendor": "hit error"}),
        (ROCM, "H100", {"image-vendor": "hit error"}),
        (ROCM, "MI300X", {}),
        ("someone/trainer:2.5.1-cuda12.4", "B200", {}),
    ],
)
def test_the_gpu_of_an_image(image: str, gpu: str, expected: dict[str, str]) -> None:
    assert found(image, gpu) == expected


@pytest.mark.parametrize("image", [DEVEL, VLLM])
def test_consumer_cards_need_the_driver_of_the_image(image: str) -> None:
    """Images based on NVIDIA's contain forward-compatibility libraries, which fail on consumer cards."""
    assert found(image, "RTX 4090", driver="535.104.05") == {"image-newer-than-driver": "possible warning"}
    assert found(image, "RTX 4090", driver="575.57.08") == {}
    assert found(image, "A100", driver="535.104.05") == {}
    assert "image-newer-than-driver" not in found(image, "RTX 4090", driver="470.82")  # an error of torch's own minimum


def test_images_without_those_libraries() -> None:
    assert found(PYTORCH, "RTX 4090", driver="535.104.05") == {}


def test_the_image_of_vllm_0_10_0_has_another_torch_than_its_neighbours() -> None:
    answers = {each: set(found(VLLM.replace("0.10.1", each), "RTX 5090")) for each in ("0.9.2", "0.10.0", "0.10.1")}
    assert answers == {"0.9.2": set(), "0.10.0": {"build-torch-gpu"}, "0.10.1": set()}


def test_what_would_settle_it() -> None:
    devices = (Accelerator(name="A100"),)
    report = compat.check(replace(known_stack(VLLM), accelerators=devices, driver="470.82", machine="x86_64"))
    (asked,) = (each for each in report.findings if each.rule == "build-torch-driver")
    assert asked.unknown == ("container",)
    assert flags_for(asked.unknown) == "nvidia-smi in a container of the image"


def test_gpus_of_two_vendors_are_no_finding() -> None:
    assert found(ROCM, "MI300X", "H100") == {}


@pytest.mark.parametrize(
    ("torch", "vision", "found_there"),
    [
        (("2.0.1", "index"), ("0.15.0a0", "image"), True),
        (("1.14.0a0+44dac51", "image"), ("0.15.0a0", "image"), False),
        (("2.0.1", "index"), ("0.15.2", "index"), False),
        (("2.0.1", "index"), ("0.15.2", "image"), False),  # an image with released builds
    ],
)
def test_what_an_image_compiled_for_the_torch_that_was_replaced(
    torch: tuple[str, str], vision: tuple[str, str], found_there: bool
) -> None:
    listed = (("torch", *torch), ("torchvision", *vision))
    copies = tuple(Distribution(name, version, source=Source(kind)) for name, version, kind in listed)
    report = compat.check(Environment(distributions=copies))
    assert ("image-torch-replaced" in {each.rule for each in report.findings}) is found_there


def test_another_torch_over_an_image_leaves_its_torchvision(tmp_path: Path) -> None:
    """transformers imports it where it is there: operator torchvision::nms does not exist."""
    (tmp_path / "Dockerfile").write_text(f"FROM {DEVEL}\nRUN pip install torch==2.6.0 transformers==4.49.0\n")
    (tmp_path / "both").write_text(f"FROM {DEVEL}\nRUN pip install torch==2.6.0 torchvision==0.21.0 transformers==4.49.0\n")
    report = compat.check(tmp_path / "Dockerfile", gpu="A100")
    (finding,) = (each for each in report.findings if each.severity == "error")
    assert (finding.rule, finding.verdict) == ("requires-torchvision-torch", "hit")
    assert (
        finding.fixes[0].text == "start from pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel, which has torch 2.6.0 for CUDA 12.4"
    )
    assert [fix.command for fix in finding.fixes[1:]] == ['pip install "torch==2.5.1"', 'pip install "torchvision==0.21.0"']
    (tmp_path / "Dockerfile").write_text(f"FROM {DEVEL}\nRUN pip install torch==2.4.1\n")  # and no image without a torchvision
    (finding,) = (each for each in compat.check(tmp_path / "Dockerfile", gpu="A100").findings if each.severity == "error")
    assert finding.fixes[0].text.startswith("start from pytorch/pytorch:2.4.1-cuda12.4-cudnn9-devel, ")
    (tmp_path / "both").rename(tmp_path / "Dockerfile")
    assert not [each for each in compat.check(tmp_path / "Dockerfile", gpu="A100").findings if each.severity == "error"]


def test_a_pin_of_the_release_of_an_image_has_its_cuda(tmp_path: Path) -> None:
    """torchvision 0.19.0 of the index is for CUDA 12, but the one of this image, for CUDA 11, is kept."""
    (tmp_path / "Dockerfile").write_text(
        "FROM pytorch/pytorch:2.4.0-cuda11.8-cudnn9-devel\nRUN pip install torchvision==0.19.0\n"
    )
    report = compat.check(tmp_path / "Dockerfile", gpu="A100")
    assert [each.rule for each in report.findings if each.verdict == "hit" and each.severity != "info"] == []
