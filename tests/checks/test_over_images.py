"""What a file installs over an image: packages of the image that a release requires otherwise are replaced."""

from __future__ import annotations

import pytest

from compat.checks.over_images import with_replaced
from compat.checks.selections import judged_listing
from compat.checks.torch_build import image_of, replaced_image_of
from compat.formats.docker.dockerfile import DockerfileFormat
from compat.formats.listing import Listing
from compat.model import Accelerator, Distribution
from compat.records import replace
from compat.rules.compiled import in_memory

NGC = "nvcr.io/nvidia/pytorch:24.12-py3"
B200 = Accelerator("nvidia", "B200", compute_capability="10.0")


def read(image: str, *commands: str) -> Listing:
    text = "\n".join((f"FROM {image}", *(f"RUN {each}" for each in commands)))
    (listing,) = DockerfileFormat().read("Dockerfile", text + "\n")
    return with_replaced(listing)


def torch_of(listing: Listing) -> Distribution:
    (found,) = [each.distribution for each in listing.entries if each.distribution.name == "torch"]
    return found


@pytest.mark.parametrize(
    ("image", "command", "version"),
    [
        ("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-devel", "pip install vllm==0.6.5", "2.5.1"),
        (NGC, "pip install vllm==0.8.2", "2.6.0"),  # its 2.6.0a0 is before 2.6.0
        (NGC, "uv pip install --system vllm==0.8.2", "2.6.0"),
    ],
)
def test_the_release_that_is_required_takes_the_place(image: str, command: str, version: str) -> None:
    listing = read(image, command)
    torch = torch_of(listing)
    assert (torch.version, image_of(torch), replaced_image_of(torch)) == (version, "", image)
    assert any(f"requires torch=={version}, so installers replace the torch 2." in note for note in listing.notes)


@pytest.mark.parametrize(
    ("image", "commands"),
    [
        ("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel", ("pip install vllm==0.6.5",)),  # the same
        ("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-devel", ("pip install accelerate==1.2.0",)),  # within its range
        ("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-devel", ("pip install --no-deps vllm==0.6.5",)),
        ("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-devel", ("pip install git+https://github.com/vllm-project/vllm@v0.6.5",)),
        ("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-devel", ("pip install vllm",)),
    ],
)
def test_what_meets_the_requirements_stays(image: str, commands: tuple[str, ...]) -> None:
    listing = read(image, *commands)
    assert image_of(torch_of(listing)) == image
    assert not any("replace" in note for note in listing.notes)


def test_what_a_later_command_installs_is_what_is_there() -> None:
    torch = torch_of(read("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-devel", "pip install vllm==0.6.5", "pip install torch==2.4.0"))
    assert (torch.version, replaced_image_of(torch)) == ("2.4.0", "")


def test_the_age_of_the_image_still_counts() -> None:
    """torch is replaced, but not nvcc."""
    listing = read(NGC, "pip install vllm==0.8.2")
    known = replace(listing.context, accelerators=(B200,))
    found = {each.rule: each for each in judged_listing(listing, known, in_memory([]))[0] if each.verdict == "hit"}
    assert found["build-torch-gpu"].severity == "error"
    assert found["image-before-gpu"].severity == "warning"
    assert "Its nvcc cannot compile" in found["image-before-gpu"].why
