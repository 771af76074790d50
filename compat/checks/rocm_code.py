"""AMD GPUs: whether torch is a build for ROCm, and whether that build has code for the GPU (its gfx target)."""

from __future__ import annotations

from compat.checks.torch_build import INDEX, OWN_BUILDS, Stack, named, torch_for
from compat.model import Finding, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
_RARELY_SET = 0.7
"""The likelihood that the variable is not set."""
_LIKE = {
    **dict.fromkeys(("gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"), "gfx1030"),
    **dict.fromkeys(("gfx1101", "gfx1102", "gfx1103"), "gfx1100"),
    **dict.fromkeys(("gfx1150", "gfx1152", "gfx1153"), "gfx1151"),
}
"""GPU → the target of its generation that wheels contain, whose code it runs if the runtime is told so."""
_SUPPORTED = "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html"


def judge(stack: Stack) -> Iterator[Finding]:
    yield from _other_vendor(stack)
    yield from _no_code(stack)


def _other_vendor(stack: Stack) -> Iterator[Finding]:
    """A CUDA build with only AMD GPUs, or a ROCm build with only NVIDIA GPUs."""
    devices = stack.facts.accelerators() or ()
    vendors = {each.vendor for each in devices}
    built = "nvidia" if stack.flavour.numbered else "amd" if stack.flavour.cuda == "rocm" else None
    if stack.torch is None or built is None or len(vendors) != 1 or not vendors <= {"amd", "nvidia"} - {built}:
        return
    if not stack.flavour.certain and stack.facts.package("pytorch-triton-rocm"):
        return
    certain = stack.flavour.certain
    platform = f"CUDA {stack.flavour.cuda}" if built == "nvidia" else "ROCm"
    other = "ROCm" if built == "nvidia" else "CUDA"
    device = named(devices[0])
    builds = sorted((build.cuda for build in stack.builds() if build.cuda), reverse=True)
    yield Finding(
        rule="build-torch-vendor",
        origin="build",
        verdict="hit" if certain else "possible",
        severity="error",
        effect="slow",
        title=f"This torch is built for {platform}, and {device} needs a build for {other}",
        why="torch.cuda.is_available() is False: a build for CUDA sees NVIDIA's GPUs only, one for ROCm AMD's only.",
        confidence="confirmed",
        packages={"torch": stack.torch.version},
        facts=("accelerators", "build"),
        missing=() if certain else ("build",),
        unknown=() if certain else ("build.torch",),
        fixes=(rocm_build(stack.release),)
        if built == "nvidia"
        else tuple(torch_for(stack.release, each, f"the build for CUDA {each}") for each in builds[:1]),
        evidence=("https://pytorch.org/get-started/locally/",),
        here=f"torch {stack.torch.version}, {device}",
    )


def rocm_build(release: str | None) -> Fix:
    """The same release of torch, built for ROCm."""
    command = f'pip install "torch=={release}" --index-url {INDEX}/rocmX.Y'
    return Fix("source-install", "torch", "", "the build for the host's ROCm, from torch's own index", command)


def _no_code(stack: Stack) -> Iterator[Finding]:
    """A build for ROCm without the target of any of the AMD GPUs, unless the runtime is told to use another target."""
    if stack.torch is None or (stack.torch.source is not None and stack.torch.source.kind in OWN_BUILDS):
        return
    rocm = (stack.torch.version or "").partition("+rocm")[2]
    targets = stack.tables.rocm.get(rocm, ())
    devices = [each for each in stack.facts.accelerators() or () if each.vendor in (None, "amd") and each.gfx]
    known, override = stack.facts.variable(_OVERRIDE)
    if not targets or not devices or any(each.gfx in targets for each in devices) or _target(override) in targets:
        return
    device = devices[0]
    name = named(device) if device.name is None else f"{device.name} ({device.gfx})"
    yield Finding(
        rule="build-torch-gfx",
        origin="build",
        verdict="hit" if known else "possible",
        severity="error",
        effect="crash",
        title=f"This torch has no code for {name}",
        why=f"The wheels of torch for ROCm {rocm} are compiled for {', '.join(targets)}. Kernels fail with 'HIP error: "
        "invalid device function', or the process ends.",
        confidence="confirmed",
        packages={"torch": stack.torch.version},
        facts=("accelerators", "build", "variables"),
        missing=() if known else ("variables",),
        unknown=() if known else (f"variables.{_OVERRIDE}",),
        likelihood=None if known else _RARELY_SET,
        fixes=tuple(_with_code(stack, device.gfx or "", rocm, targets)),
        evidence=(_SUPPORTED,),
        here=f"torch {stack.torch.version}, {name}",
    )


def _with_code(stack: Stack, gfx: str, rocm: str, targets: Sequence[str]) -> Iterator[Fix]:
    later = [each for each, known in stack.tables.rocm.items() if gfx in known and _release(each) > _release(rocm)]
    if later:
        newest = max(later, key=_release)
        text = f"the build for ROCm {newest}, which has code for {gfx}"
        yield Fix("upgrade", "torch", None, text, f"pip install -U torch --index-url {INDEX}/rocm{newest}")
    if _LIKE.get(gfx) in targets and (override := override_for(gfx)) is not None:
        yield override
    yield Fix("source-install", "torch", "", f"a build for {gfx}: AMD's own wheels, or PYTORCH_ROCM_ARCH={gfx}")


def override_for(gfx: str) -> Fix | None:
    """The variable that makes the runtime load the code of the target of the GPU's generation that wheels contain."""
    like = _LIKE.get(gfx)
    if like is None:
        return None
    version = ".".join((like[3:5], like[5], like[6]))
    return Fix("env-var", text=f"run it as {like}, which is of the same generation", command=f"export {_OVERRIDE}={version}")


def _release(rocm: str) -> tuple[int, ...]:
    return tuple(map(int, rocm.split(".")))


def _target(override: str | None) -> str | None:
    """``10.3.0`` → ``gfx1030``, ``9.0.10`` → ``gfx90a``; ``None`` if it is not a version."""
    parts = (override or "").split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 3 for part in parts):
        return None
    return f"gfx{parts[0]}{parts[1]}{int(parts[2]):x}"
