"""torch from conda's channel ``pytorch``, which ended with 2.5.1: whether its CUDA builds run on the target's GPUs.

Its builds are those of the script that built them, not the wheels: those for CUDA 11 contain PTX, which the driver compiles for
any newer GPU, those for CUDA 12 do not. The builds of conda-forge all contain PTX of their newest architecture.
"""

from __future__ import annotations

from compat.checks.torch_build import Stack, name_and_code, named
from compat.model import Distribution, Finding, Fix
from compat.versions import contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.tables.builds import TorchBuild

CHANNEL = "pytorch"
LAST = "2.5.1"
"""The last release in the channel."""
ELSEWHERE = "2.8.0"
"""The first release whose builds in conda-forge and on the default index all have code for Blackwell."""
_ENDED = "https://github.com/pytorch/pytorch/issues/138506"
_RULE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility"


def judge(stack: Stack) -> Iterator[Finding]:
    copies = stack.facts.package("torch")
    copy = copies[0] if isinstance(copies, list) and len(copies) == 1 else None
    if copy is None or not _is_of_channel(copy):
        return
    cuda = _cuda_of(copy, stack)
    if cuda is None or cuda == "cpu":
        return
    yield from _other_vendor(stack, copy, cuda)
    yield from _no_code(stack, copy, cuda)


def _is_of_channel(copy: Distribution) -> bool:
    """Whether conda takes it from the channel ``pytorch``: by its channel, or by how that channel names its builds."""
    if copy.source is None or copy.source.kind != "conda":
        return False
    channel, build = str(copy.source.details.get("channel") or ""), str(copy.source.details.get("build") or "")
    return build.startswith("py3.") if build and "*" not in build else channel.rpartition("/")[2] == CHANNEL


def _cuda_of(copy: Distribution, stack: Stack) -> str | None:
    """The CUDA release of the build: from its name, else what ``pytorch-cuda`` is pinned to."""
    if copy.extra.get("cuda"):
        return str(copy.extra["cuda"])
    pins = stack.facts.package("pytorch-cuda")
    pin = pins[0] if isinstance(pins, list) and len(pins) == 1 else None
    if not isinstance(pin, Distribution):
        return None
    text = (pin.specifier or pin.version or "").removeprefix("==").removesuffix(".*")
    return text if text.count(".") == 1 and text.replace(".", "").isdigit() else None


def _builds(stack: Stack, copy: Distribution, cuda: str) -> tuple[TorchBuild, ...]:
    """The builds for that CUDA of the release, or of the releases that a range (``=2.5``) admits."""
    tables, wanted = stack.tables, copy.specifier if copy.specifier else f"=={copy.version}"
    try:
        admitted = ranges_of(wanted)
    except ValueError:
        return ()
    releases = [each for each in tables.conda if contains(admitted, key_of(each))]
    found = [next((build for build in tables.conda_builds(each) if build.cuda == cuda), None) for each in releases]
    return tuple(build for build in found if build is not None) if all(found) else ()


def _no_code(stack: Stack, copy: Distribution, cuda: str) -> Iterator[Finding]:
    builds = _builds(stack, copy, cuda)
    for device in stack.devices:
        capability = device.compute_capability or ""
        if not builds or any(stack.tables.runs(capability, each.codes, each.ptx) is not False for each in builds):
            continue
        name, release = named(device), copy.version or copy.specifier or ""
        compiled = ", ".join(f"sm_{code}" for code in builds[0].codes)
        yield Finding(
            rule="build-torch-gpu", origin="build", verdict="hit", severity="error", effect="crash",
            title=f"This torch has no code for {name_and_code(device)}",
            why=f"The builds of conda's channel pytorch for CUDA {cuda} are compiled for {compiled}, without PTX that the "
            f"driver could compile. Every kernel fails: no kernel image is available for execution on the device. The channel "
            f"ended with {LAST} and has no build for this GPU.",
            confidence="reported", packages={"torch": copy.version}, facts=("accelerators", "build"),
            fixes=tuple(_fixes()), evidence=(_RULE, _ENDED), here=f"pytorch {release} for CUDA {cuda}, {name}",
        )  # fmt: skip
        return


def _fixes() -> Iterator[Fix]:
    yield Fix(
        "source-install", "torch", f">={ELSEWHERE}", "from conda-forge, in an environment without pytorch-cuda",
        f'conda install --override-channels -c conda-forge "pytorch-gpu>={ELSEWHERE}"',
    )  # fmt: skip
    yield Fix(
        "upgrade", "torch", f">={ELSEWHERE}", "its wheel, in an environment without conda's pytorch",
        f'pip install "torch>={ELSEWHERE}"',
    )  # fmt: skip


def _other_vendor(stack: Stack, copy: Distribution, cuda: str) -> Iterator[Finding]:
    devices = stack.facts.accelerators() or ()
    if not devices or {each.vendor for each in devices} != {"amd"}:
        return
    device = named(devices[0])
    yield Finding(
        rule="build-torch-vendor", origin="build", verdict="hit", severity="error", effect="slow",
        title=f"This torch is built for CUDA {cuda}, and {device} needs a build for ROCm",
        why="torch.cuda.is_available() is False: a build for CUDA sees NVIDIA's GPUs only. Conda's channel pytorch has no "
        "build for ROCm.",
        confidence="confirmed", packages={"torch": copy.version}, facts=("accelerators", "build"),
        fixes=(
            Fix(
                "source-install", "torch", "", "the wheel for the host's ROCm, in an environment without conda's pytorch",
                "pip install torch --index-url https://download.pytorch.org/whl/rocmX.Y",
            ),
        ),
        evidence=("https://pytorch.org/get-started/locally/",), here=f"pytorch {copy.version or copy.specifier}, {device}",
    )  # fmt: skip
