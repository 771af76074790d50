"""Whether wheels have code for the GPU (cubin: same major, minor not above; PTX; suffixes) and the GPU has the precision."""

from __future__ import annotations

from compat.checks.fix_commands import compiled, downgrade_to, upgrade_to
from compat.checks.torch_build import (
    Stack,
    cuda_of,
    device_name,
    image_of,
    name_and_code,
    own_build,
    public_version,
    torch_for,
)
from compat.checks.torch_variants import judge_of_conda, judge_of_rocm, rocm_build
from compat.checks.triton_assembler import judge as judge_triton
from compat.model import Accelerator, Distribution, Finding, Fix
from compat.records import replace
from compat.tables.declared import open_declared
from compat.versions import contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.tables.builds import TorchBuild


_RULE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility"
JETSON = ("5.3", "6.2", "7.2", "8.7")
"""Capabilities of Jetson modules whose JetPack has a driver and CUDA of its own, unlike those of servers."""
_ENGINE = "This applies to TurboMind; lmdeploy's PyTorch engine (--backend pytorch) compiles its kernels with Triton and works."


def judge(stack: Stack) -> Iterator[Finding]:
    of_torch = list(_torch(stack))
    yield from of_torch
    fails = any(each.verdict == "hit" for each in of_torch)
    yield from _no_gpu_build(stack)
    yield from judge_of_conda(stack)
    yield from judge_of_rocm(stack)
    for name in ("vllm", "sgl-kernel", "sglang-kernel", "bitsandbytes", "auto-gptq", "autoawq", "lmdeploy"):
        copy = stack.one(name)
        if copy is None or (own_build(copy) and not _in_an_image(copy)):
            continue
        if fails and stack.torch is not None and _in_an_image(copy) and image_of(copy) == image_of(stack.torch):
            continue  # another image replaces both
        for finding in _extension(stack, copy):
            # images usually contain the published build but do not record it
            finding = replace(finding, severity="warning", why=f"{finding.why} {_ENGINE}") if name == "lmdeploy" else finding
            yield replace(finding, verdict="possible", missing=("install",)) if _in_an_image(copy) else finding
    yield from judge_triton(stack)
    yield from _precision(stack)


def _torch(stack: Stack) -> Iterator[Finding]:
    builds = [build for build in stack.builds() if build.cuda]
    build = stack.build()
    lacking = [device for device in stack.devices if build is not None and _runs(stack, device, build) is False]
    if stack.torch is None or build is None or not build.codes or not lacking:
        return
    device = lacking[0]
    certain = stack.flavour.certain or all(_runs(stack, device, each) is False for each in builds)
    name = device_name(device)
    compiled = ", ".join(f"sm_{code}" for code in build.codes)
    yield Finding(
        rule="build-torch-gpu",
        origin="build",
        verdict="hit" if certain else "possible",
        title=f"This torch has no code for {name_and_code(device)}",
        why=f"torch {stack.release} for CUDA {build.cuda} is compiled for {compiled}, without PTX that the driver could "
        f"compile. Every kernel fails: no kernel image is available for execution on the device.",
        confidence="reported" if build.known == "curated" else "confirmed",
        packages={"torch": stack.torch.version},
        facts=("accelerators", "build"),
        missing=() if certain else ("build",),
        unknown=() if certain else ("build.torch",),
        fixes=tuple(_other_torch(stack, device)),
        evidence=(_RULE,),
        here=f"torch {stack.torch.version}, {name}",
    )


def _in_an_image(copy: Distribution) -> bool:
    return copy.source is not None and copy.source.kind == "image"


def _runs(stack: Stack, device: Accelerator, build: TorchBuild) -> bool | None:
    return stack.tables.runs(device.compute_capability or "", build.codes, build.ptx, build.cuda)


def _other_torch(stack: Stack, device: Accelerator) -> Iterator[Fix]:
    """Yield fixes: the same release for another CUDA, and the nearest release with code for the device."""
    release = stack.release or ""
    if device.compute_capability in JETSON:
        yield Fix("source-install", "torch", "", "NVIDIA's wheel for the JetPack release of this Jetson")
    for build in sorted(stack.builds(), key=lambda each: each.cuda, reverse=True):
        if build.cuda and _runs(stack, device, build):
            yield torch_for(release, build.cuda, f"the build for CUDA {build.cuda}", stack.beside())
            break
    here = key_of(release)
    serving = [
        each
        for each in stack.tables.torch
        if any(
            build.default and build.machine == stack.machine and build.codes and _runs(stack, device, build)
            for build in stack.tables.torch_builds(each)
        )
    ]
    above = min((each for each in serving if key_of(each) > here), key=key_of, default=None)
    below = max((each for each in serving if key_of(each) < here), key=key_of, default=None)
    if above is not None:
        yield upgrade_to("torch", above, "the first later release whose default wheel has code for it")
    elif below is not None:
        yield downgrade_to("torch", below, "the last release whose default wheel has code for it")


def _no_gpu_build(stack: Stack) -> Iterator[Finding]:
    """A CPU-only build on a machine with GPUs, or with extensions that need CUDA."""
    extensions = [copy for name in ("xformers", "flash-attn", "vllm", "bitsandbytes") if (copy := stack.one(name)) is not None]
    devices = stack.facts.accelerators() or ()
    gpus = [each for each in devices if each.vendor == "nvidia" or each.compute_capability]
    if not gpus and stack.facts.environment.os == "linux":
        gpus = [each for each in devices if stack.tables.has_rocm(each.gfx)]
    compiled = [copy for copy in extensions if copy.name in ("xformers", "flash-attn")]
    certain = stack.flavour.certain
    if stack.torch is None or stack.flavour.cuda != "cpu" or not (gpus or (compiled and certain)):
        return
    if not certain and gpus[0].compute_capability in JETSON:  # NVIDIA's wheels for JetPack have no label either
        return
    release = stack.release or ""
    serving = (build for build in stack.builds() if build.cuda and not (gpus and _runs(stack, gpus[0], build) is False))
    builds = sorted((build.cuda for build in serving), reverse=True)
    fixes = [torch_for(release, cuda, f"the build for CUDA {cuda}", stack.beside()) for cuda in builds[:2]]
    if gpus and gpus[0].gfx:
        fixes = [rocm_build(stack.tables, release, stack.beside())]
    elif not fixes and gpus:  # the oldest releases for aarch64 are published for the CPU alone
        fixes = list(_other_torch(stack, gpus[0]))
    what = device_name(gpus[0]) if gpus else f"{compiled[0].name}"
    yield Finding(
        rule="build-torch-cpu-only",
        origin="build",
        verdict="hit" if certain else "possible",
        severity="error" if gpus and not gpus[0].gfx else "warning",
        effect="slow",
        title=f"This torch is a CPU-only build, but the target has {what}",
        why="torch.cuda.is_available() is False, everything runs on the CPU, and extensions compiled for CUDA cannot be "
        "loaded.",
        packages={"torch": stack.torch.version, **{each.name: each.version for each in compiled}},
        facts=("build", *(("accelerators",) if gpus else ())),
        missing=() if certain else ("build",),
        unknown=() if certain else ("build.torch",),
        fixes=tuple(fixes),
        evidence=("https://pytorch.org/get-started/locally/",),
        here=f"torch {stack.torch.version}, {what}",
    )


def _extension(stack: Stack, copy: Distribution) -> Iterator[Finding]:
    builds = [build for build in stack.extension(copy) if build.codes]
    label = (copy.version or "").partition("+")[2]
    if label:  # a wheel from another index than the recorded one, unless it is recorded for the same CUDA
        builds = [build for build in builds if build.cuda and build.cuda == cuda_of(label)]
    if copy.name == "bitsandbytes" and stack.flavour.numbered:
        builds = [build for build in builds if build.cuda == stack.flavour.cuda]
    for device in stack.devices:
        answers = [stack.tables.runs(device.compute_capability or "", build.codes, build.ptx, build.cuda) for build in builds]
        if not answers or any(answer is not False for answer in answers):
            continue
        compiled = ", ".join(f"sm_{code}" for code in builds[0].codes)
        name = device_name(device)
        yield Finding(
            rule=f"build-{copy.name}-gpu",
            origin="build",
            title=f"This {copy.name} has no code for {name_and_code(device)}",
            why=f"The wheel of {copy.name} {public_version(copy.version or '')} is compiled for {compiled}. Its kernels fail: "
            f"no kernel "
            "image is available for execution on the device.",
            packages={copy.name: copy.version},
            facts=("accelerators",),
            fixes=tuple(_other_release(stack, copy, device)),
            evidence=(_RULE,),
            here=f"{copy.name} {copy.version}, {name}",
        )
        return


def _other_release(stack: Stack, copy: Distribution, device: Accelerator) -> Iterator[Fix]:
    here = key_of(public_version(copy.version or ""))
    serving = [
        version
        for version in stack.tables.extension(copy.name)
        if any(
            build.codes and stack.tables.runs(device.compute_capability or "", build.codes, build.ptx, build.cuda)
            for build in stack.tables.extension_builds(copy.name, version, stack.machine)
        )
    ]
    later = (each for each in sorted(serving, key=key_of) if key_of(each) > here)
    above = next((each for each in later if _torch_has_code(stack, copy.name, each, device)), None)
    below = max((each for each in serving if key_of(each) < here), key=key_of, default=None)
    if above is not None:
        yield upgrade_to(copy.name, above, "the first release known to have code for it")
    elif below is not None:
        yield downgrade_to(copy.name, below, "the last release known to have code for it")
    arch = device.compute_capability or ""
    codes = [
        int(code.rstrip("af"))
        for version in stack.tables.extension(copy.name)
        for build in stack.tables.extension_builds(copy.name, version, stack.machine)
        for code in build.codes
    ]
    if not serving and codes and int(arch.replace(".", "")) < min(codes):
        least = f"{min(codes) // 10}.{min(codes) % 10}"
        yield Fix("config", text=f"use a GPU with compute capability {least} or higher: no release has code for this one")
    yield compiled(copy.name, "build it for this GPU", variable=f'TORCH_CUDA_ARCH_LIST="{arch}" ')


def _torch_has_code(stack: Stack, name: str, version: str, device: Accelerator) -> bool:
    """Whether a torch that a release requires has code for a GPU, too: a release with PTX alone may pin an old torch."""
    package = open_declared().package(name)
    place = None if package is None else package.place(version)
    asked = [] if package is None or place is None else [ranges_of(str(row[0])) for row in package.requirements(place, "torch")]
    fitting = [each for each in stack.tables.torch if all(contains(ranges, key_of(each)) for ranges in asked)]
    return not asked or any(_runs(stack, device, build) for each in fitting for build in stack.tables.torch_builds(each))


# --- The requested precision.


_LACKING = {"bf16": ("8.0", "Ampere"), "fp8": ("8.9", "Ada"), "fp4": ("10.0", "Blackwell"), "tf32": ("8.0", "Ampere")}
_ENGINES = ("vllm", "sglang", "sgl-kernel")


def _precision(stack: Stack) -> Iterator[Finding]:
    """A finding for the first device without the precision; torch emulates bf16 on some older GPUs, engines reject it."""
    precision = str(stack.facts.value("workload.precision") or "")
    asked = next((name for name in _LACKING if precision.startswith(name)), None)
    if precision.startswith("bfloat16"):
        asked = "bf16"
    if asked is None:
        return
    for device in stack.devices:
        known = stack.tables.capabilities.get(device.compute_capability or "")
        if known is None or known[asked] == "yes":
            continue
        least, architecture = _LACKING[asked]
        engine = next((copy for name in _ENGINES if (copy := stack.one(name)) is not None), None)
        emulated = known[asked] == "emulated" and engine is None
        name = device.name or f"a GPU with compute capability {device.compute_capability}"
        other = {"bf16": "fp16", "fp8": "bf16 or fp16", "fp4": "fp8", "tf32": "fp32"}[asked]
        yield Finding(
            rule=f"precision-{asked}",
            origin="build",
            severity="warning" if emulated else "error",
            effect="slow" if emulated else "crash",
            title=f"{name} has no {asked}: this needs compute capability {least} ({architecture})",
            why="torch emulates it slowly where it can; Trainer, vLLM and most kernels reject it."
            if emulated
            else "The hardware does not support it, and libraries refuse to start.",
            packages={} if engine is None else {engine.name: engine.version},
            facts=("accelerators", "workload"),
            fixes=(
                Fix(
                    kind="config",
                    text=f"use {other}: fp16=True, bf16=False in the training arguments, --dtype half for vLLM"
                    if asked == "bf16"
                    else f"use {other}",
                    command=None,
                ),
            ),
            evidence=("https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions",),
            here=f"{asked}, {name} ({device.compute_capability})",
        )
        return
