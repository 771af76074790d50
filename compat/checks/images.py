"""Findings about the container image that a stack is from: its vendor and the age of its CUDA against the GPU."""

from __future__ import annotations

from compat.checks.drivers import of_consumers
from compat.checks.torch_build import (
    Stack,
    device_name,
    image_of,
    major_version,
    name_and_code,
    replaced_image_of,
    version_tuple,
)
from compat.model import Finding, Fix
from compat.tables.hardware import branch_for, driver_cuda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

RELEASE = "start from a release of the image"
"""How the text of a fix begins that asks for another release of the image without naming one."""
_BLACKWELL = 10
_BY_RUNTIME = 0.5
"""The likelihood that the container runtime uses the forward-compatibility libraries of an image on any card."""
_PTX = (
    "Its torch has PTX, which the driver compiles when the program starts. Libraries and extensions without PTX fail: no "
    "kernel image is available for execution on the device."
)
_REPLACED = (
    "Its torch is replaced, but not its other libraries and extensions, which fail: no kernel image is available for execution "
    "on the device. Its nvcc cannot compile for this GPU (DeepSpeed's optimizers, flash-attn)."
)
_GUIDE = "https://docs.nvidia.com/cuda/blackwell-compatibility-guide/"
_FORWARD = "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html"
_ROCM = "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html"


def judge(stack: Stack) -> Iterator[Finding]:
    copies = stack.facts.environment.distributions or ()
    image = next(filter(None, map(image_of, copies)), "")
    if not image:
        if replaced := next(filter(None, map(replaced_image_of, copies)), ""):
            yield from _before_the_gpu(stack, replaced)
        return
    yield from _vendor(stack, image)
    yield from _before_the_gpu(stack, image)
    yield from _newer_than_the_driver(stack, image)


OTHER_COMPILER = "build-cuda-compiler-release"
_TOOLS = "https://github.com/pytorch/pytorch/blob/v2.15.0/torch/utils/cpp_extension.py"


def compiler(stack: Stack) -> Iterator[Finding]:
    """What is compiled on an image whose compiler is of another major version of CUDA than torch; a wheel that its setup.py
    downloads needs no compiler."""
    for copy in stack.facts.environment.distributions or ():
        image, cuda = copy.extra.get("compiler"), stack.flavour.numbered if stack.flavour.certain else None
        if not image or not cuda or (copy.source is not None and copy.source.kind in ("url", "conda", "image")):
            continue
        from compat.formats.docker.base_images import compiler_of, with_compiler_for  # with re

        own, better = compiler_of(image), with_compiler_for(image, cuda)
        published = stack.tables.published.get(copy.name, {})
        series = ".".join(map(str, version_tuple(stack.release or "")[:2]))
        if own is None or major_version(own) == major_version(cuda):
            continue
        if copy.version not in published or series in published[copy.version or ""]:
            continue
        other = Fix("config", text=f"start from {better}, whose compiler is for CUDA {major_version(cuda)}")
        yield Finding(
            rule=OTHER_COMPILER, origin="build", effect="install",
            title=f"{copy.name} is compiled with CUDA {own}, and this torch is built for CUDA {cuda}",
            why="There is no wheel for this torch. torch's build tools end with an error if nvcc is of another major version: "
            "The detected CUDA version mismatches the version that was used to compile PyTorch.",
            packages={"torch": stack.release, copy.name: copy.version}, facts=("install", "build"),
            fixes=(
                *((other,) if better is not None else ()),
                Fix("config", text=f"install a build of torch for CUDA {major_version(own)}"),
            ),
            evidence=(_TOOLS,), here=f"{copy.name} {copy.version}, torch {stack.release} for CUDA {cuda}, {image}",
        )  # fmt: skip


def _repository(image: str) -> str:
    """The last two parts of an image's name: ``nvidia/pytorch``."""
    folder, _, last = image.partition("@")[0].rpartition("/")
    return f"{folder.rpartition('/')[2]}/{last.partition(':')[0]}".lower()


def _vendor(stack: Stack, image: str) -> Iterator[Finding]:
    """An image for one vendor's GPUs with only GPUs of the other."""
    folder = _repository(image).partition("/")[0]
    built = {"rocm": "amd", "nvidia": "nvidia"}.get(folder)
    devices = stack.facts.accelerators() or ()
    vendors = {each.vendor for each in devices}
    if built is None or len(vendors) != 1 or not vendors <= {"amd", "nvidia"} - {built}:
        return
    platform, other = ("ROCm", "CUDA") if built == "amd" else ("CUDA", "ROCm")
    yield Finding(
        rule="image-vendor", origin="build", effect="slow",
        title=f"This image is built for {platform}, and {device_name(devices[0])} needs one for {other}",
        why="torch.cuda.is_available() is False: CUDA builds only see NVIDIA GPUs, ROCm builds only AMD GPUs.",
        packages=_packages(stack, image), facts=("accelerators", "build"),
        fixes=(Fix("config", text=f"start from an image for {other}"),),
        evidence=(_ROCM,), here=f"{image}, {device_name(devices[0])}",
    )  # fmt: skip


def _before_the_gpu(stack: Stack, image: str) -> Iterator[Finding]:
    """An image of NVIDIA whose CUDA is older than the GPU's architecture: torch has PTX for it, and no code."""
    toolkit, packages = stack.facts.environment.cuda_toolkit, _packages(stack, image)
    replaced = {each.name: each.version for each in stack.facts.environment.distributions or () if replaced_image_of(each)}
    if _repository(image) != "nvidia/pytorch" or toolkit is None:
        return
    key = tuple(int(part) for part in toolkit.split(".")[:2])
    for device in stack.devices:
        capability = device.compute_capability or ""
        releases = [tuple(int(part) for part in each.split(".")) for each in stack.tables.cudas_for(capability)]
        if int(capability.partition(".")[0]) < _BLACKWELL or not releases or key >= min(releases):
            continue
        first = ".".join(map(str, min(releases)))
        yield Finding(
            rule="image-before-gpu", origin="build", severity="warning",
            title=f"This image is older than {name_and_code(device)}: its code needs CUDA {first}, the image has {toolkit}",
            why=_PTX if packages else _REPLACED,
            packages=packages or replaced, facts=("accelerators", "cuda_toolkit"),
            fixes=(Fix("config", text=f"{RELEASE} with CUDA {first} or newer"),),
            evidence=(_GUIDE,), here=f"{image}, {device_name(device)}",
        )  # fmt: skip
        return


def _newer_than_the_driver(stack: Stack, image: str) -> Iterator[Finding]:
    """An image based on NVIDIA's, of a CUDA newer than the driver's, on consumer cards; the minimum of torch is met."""
    repository, cuda = _repository(image), stack.flavour.numbered
    based = repository == "vllm/vllm-openai" or (repository == "pytorch/pytorch" and image.endswith("-devel"))
    supported = driver_cuda(stack.facts.environment)
    if not based or cuda is None or supported is None or version_tuple(supported) >= version_tuple(cuda):
        return
    branch = branch_for(cuda)
    if branch is None or major_version(supported) < major_version(cuda) or not of_consumers(stack):
        return
    yield Finding(
        rule="image-newer-than-driver", origin="build", verdict="possible", severity="warning",
        likelihood=_BY_RUNTIME, missing=("install",), unknown=("container",),
        title=f"This image has CUDA {cuda}, and the driver supports up to {supported}: consumer cards need {branch} or newer",
        why=f"The image contains NVIDIA's forward-compatibility libraries of CUDA {cuda}. Where the container runtime puts "
        "them ahead of an older driver, CUDA fails on consumer cards (error 804). Driver branches that the image does not "
        f"list are refused at the start (unsatisfied condition: cuda>={cuda}).",
        confidence="reported", packages=_packages(stack, image), facts=("driver", "accelerators", "build"),
        fixes=(
            Fix("driver", spec=f">={branch}", text=f"install a driver of branch {branch} or newer"),
            Fix("config", text=f"{RELEASE} with CUDA {supported} or older"),
        ),
        evidence=(_FORWARD, "https://github.com/vllm-project/vllm/issues/5635"),
        here=f"{image}, driver {stack.facts.environment.driver}, {device_name(stack.devices[0])}",
    )  # fmt: skip


def _packages(stack: Stack, image: str) -> dict[str, str | None]:
    """The distributions that the image brings, and that nothing replaces."""
    return {each.name: each.version for each in stack.facts.environment.distributions or () if image_of(each) == image}
