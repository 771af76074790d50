"""The tag of an image that a finding about its packages proposes to start from."""

from __future__ import annotations

import pytest

import compat
from compat.checks.image_tags import newer, older
from compat.formats.docker.base_images import has_known_stack, known_stack, with_tag
from compat.model import Accelerator, Finding
from compat.records import replace


def found(image: str, gpu: str, driver: str | None = None) -> dict[str, Finding]:
    stack = replace(known_stack(image), accelerators=(Accelerator(name=gpu),), driver=driver, machine="x86_64")
    return {each.rule: each for each in compat.check(stack).findings}


@pytest.mark.parametrize(
    ("image", "gpu", "rule", "tag"),
    [
        ("vllm/vllm-openai:v0.8.5", "RTX 5090", "build-torch-gpu", "v0.9.0"),
        ("host.example:5000/vllm/vllm-openai:v0.8.5", "B200", "build-torch-gpu", "v0.9.0"),
        ("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel", "RTX 5090", "build-torch-gpu", "2.7.0-cuda12.8-cudnn9-devel"),
        ("pytorch/pytorch:2.0.1-cuda11.7-cudnn8-runtime", "H100", "build-torch-gpu", "2.0.1-cuda11.8-cudnn8-runtime"),
        ("nvcr.io/nvidia/pytorch:24.05-py3", "B200", "image-before-gpu", "25.01-py3"),
    ],
)
def test_the_nearest_tag_that_runs_on_the_gpu(image: str, gpu: str, rule: str, tag: str) -> None:
    before = found(image, gpu)
    first = before[rule].fixes[0]
    proposed = with_tag(image, tag)
    assert first.kind == "config"
    assert first.text.startswith(f"start from {proposed}, which has ")
    after = found(proposed, gpu)
    assert rule not in after
    errors = [each for each in after.values() if (each.verdict, each.severity) == ("hit", "error")]
    assert errors == []


def test_a_driver_that_is_too_old_gets_an_older_tag() -> None:
    image = "pytorch/pytorch:2.8.0-cuda12.9-cudnn9-runtime"
    proposed = with_tag(image, "2.3.1-cuda11.8-cudnn8-runtime")
    first = found(image, "RTX 3090", "470.256.02")["build-torch-driver"].fixes[0]
    assert "build-torch-driver" not in found(proposed, "RTX 3090", "470.256.02")
    assert first.text.startswith("start from pytorch/pytorch:2.")
    assert "-cuda11.8-" in first.text


@pytest.mark.parametrize(
    "image",
    [
        "pytorch/pytorch:latest",
        "someone/trainer:2.5.1-cuda12.4",
        "vllm/vllm-openai:v0.20.0-cu129",
        "",
        "pytorch/pytorch:2.4.0-cuda12.²-cudnn9-devel",
    ],
)
def test_images_without_known_releases_get_no_tag(image: str) -> None:
    assert list(newer(image)) == list(older(image)) == []
    stack = replace(known_stack(image), accelerators=(Accelerator(name="B200"),))
    assert not [fix.text for each in compat.check(stack).findings for fix in each.fixes if fix.text.startswith("start from")]


@pytest.mark.parametrize(
    "image", ["vllm/vllm-openai:v0.8.5", "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel", "nvcr.io/nvidia/pytorch:24.05-py3"]
)
def test_the_content_of_every_tag_is_known(image: str) -> None:
    tags = [*newer(image), *older(image)]
    assert len(tags) > 20
    assert all(has_known_stack(each) for each in tags)
    assert image not in tags
    assert len(set(tags)) == len(tags)


def test_what_another_tag_does_not_change_keeps_its_fixes() -> None:
    """A finding about a package that the Dockerfile installs is not about the image."""
    stack = replace(known_stack("pytorch/pytorch:2.7.0-cuda12.8-cudnn9-devel"), accelerators=(Accelerator(name="T4"),))
    flash = compat.check(replace(stack, distributions=(*(stack.distributions or ()), replace((stack.distributions or ())[0],
                         name="flash-attn", version="2.7.4.post1", source=None, extra={})), machine="x86_64"))  # fmt: skip
    fixes = [fix.text for each in flash.findings if each.rule == "flash-attn-2-gpu-too-old" for fix in each.fixes]
    assert fixes
    assert not any("start from" in each for each in fixes)


def test_an_option_of_a_later_release_gets_the_image_that_has_it() -> None:
    stack = known_stack("vllm/vllm-openai:v0.7.0")
    report = compat.check(replace(stack, machine="x86_64"), command=["vllm", "serve", "org/model", "--enable-expert-parallel"])
    fixes = [each.fixes[0].text for each in report.findings if each.rule == "option-vllm-enable-expert-parallel"]
    assert [text.partition(",")[0] for text in fixes] == ["start from vllm/vllm-openai:v0.8.0"]


def test_one_finding_for_torch_and_what_the_same_image_builds_for_it() -> None:
    assert "build-torch-gpu" in found("vllm/vllm-openai:v0.8.5", "RTX 5090")
    assert "build-vllm-gpu" not in found("vllm/vllm-openai:v0.8.5", "RTX 5090")
