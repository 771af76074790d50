"""Which distributions install the same files, by release."""

from __future__ import annotations

import pytest

from compat.model import Distribution, Source
from compat.tables.overlaps import open_overlaps


def groups(*pins: str, source: Source | None = None) -> list[tuple[str, tuple[str, ...]]]:
    copies = (Distribution(name, version, source) for name, _, version in (pin.partition("==") for pin in pins))
    return [(group.file, tuple(copy.name for copy in group.copies)) for group in open_overlaps().groups(copies)]


@pytest.mark.parametrize(
    ("pins", "file"),
    [
        (("opencv-python==4.10.0.84", "opencv-python-headless==4.11.0.86"), "cv2/__init__.py"),
        (("onnxruntime==1.20.1", "onnxruntime-gpu==1.20.1"), "onnxruntime/__init__.py"),
        (("nixl-cu12==1.2.0", "nixl-cu13==1.2.0"), "nixl_ep/__init__.py"),
        (("nixl-cu12==1.3.2", "nixl-cu13==1.3.2"), None),  # each has a name of its own
        (("flash-linear-attention==0.3.1", "fla-core==0.3.2"), "fla/__init__.py"),
        (("flash-linear-attention==0.3.2", "fla-core==0.3.2"), None),
        (("cuda-python==12.6.2.post1", "cuda-bindings==13.5.0"), "cuda/bindings/__init__.py"),
        (("cuda-python==12.9.0", "cuda-bindings==12.9.0"), None),
        (("nvidia-cutlass-dsl-libs-base==4.5.2", "nvidia-cutlass-dsl-libs-cu13==4.5.2"), "nvidia_cutlass_dsl/python_packages/cutlass/__init__.py"),
        (("nvidia-cutlass-dsl-libs-base==4.6.0", "nvidia-cutlass-dsl-libs-cu13==4.6.0"), None),
        (("flash-attn==2.8.3+cu12torch2.8", "flash-attn-4==4.0.0b36"), "flash_attn/cute/__init__.py"),
        (("flash-attn==2.7.4.post1", "flash-attn-4==4.0.0b36"), None),
        (("nvidia-cudnn-cu11==8.9.2.26", "nvidia-cudnn-cu12==9.1.0.70"), None),  # libcudnn.so.8 and .so.9
        (("pynvml==12.0.0", "nvidia-ml-py==13.580.65"), None),
        (("tensorboard==2.18.0", "tensorboardx==2.6.2.2"), None),
    ],
)  # fmt: skip
def test_releases_that_install_the_same_file(pins: tuple[str, ...], file: str | None) -> None:
    assert [found for found, _ in groups(*pins)] == ([] if file is None else [file])


def test_the_same_content_is_no_overlap() -> None:
    assert groups("fastapi==0.115.0", "fastapi-slim==0.115.0") == []
    assert groups("fastapi==0.115.0", "fastapi-slim==0.112.0") == [("fastapi/__init__.py", ("fastapi", "fastapi-slim"))]
    assert groups("decord==0.6.0", "eva-decord==0.6.1") == []
    assert groups("transformer-engine==2.8.0", "transformer-engine-cu12==2.8.0") == []
    # of three, those that are alike do not hide the third
    ((_, names),) = groups("decord==0.6.0", "eva-decord==0.6.1", "decord2==3.4.0")
    assert names == ("decord", "eva-decord", "decord2")


def test_conda_and_editable_installs_do_not_count() -> None:
    pins = "opencv-python==4.10.0.84", "opencv-python-headless==4.10.0.84"
    assert groups(*pins, source=Source("conda")) == []
    assert groups(*pins, source=Source("directory", {"editable": True})) == []
    assert len(groups(*pins, source=Source("index"))) == 1


def test_two_versions_of_one_distribution_are_another_finding() -> None:
    assert groups("opencv-python==4.10.0.84", "opencv-python==4.11.0.86") == []
