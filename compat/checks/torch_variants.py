"""Builds of torch other than those for CUDA on an index: whether conda's and those for ROCm have code for the target's GPUs.

Conda's channel ``pytorch`` ended with 2.5.1. Its builds are those of the script that built them, not the wheels: those for CUDA
11 contain PTX of their oldest architecture, which the driver compiles for any newer GPU, but which lacks attention and NCCL;
those for CUDA 12 contain none. The builds of conda-forge all contain PTX
of their newest architecture. A build for ROCm has code for some AMD GPUs (gfx targets).
"""

from __future__ import annotations

from compat.checks.fix_commands import by_pip
from compat.checks.torch_build import INDEX, OWN_BUILDS, Stack, device_name, name_and_code, public_version, torch_for
from compat.model import Distribution, Finding, Fix
from compat.tables.builds import open_code_tables
from compat.tables.linked import series_of
from compat.versions import contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from compat.tables.builds import CodeTables, TorchBuild


CHANNEL = "pytorch"
LAST = "2.5.1"
"""The last release in the channel."""
ELSEWHERE = "2.8.0"
"""The first release whose builds in conda-forge and on the default index all have code for Blackwell."""
_CHANNEL_ENDED = "https://github.com/pytorch/pytorch/issues/138506"
_PTX_RULE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility"


def judge_of_conda(stack: Stack) -> Iterator[Finding]:
    copies = stack.facts.package("torch")
    copy = copies[0] if isinstance(copies, list) and len(copies) == 1 else None
    if copy is None or not is_of_channel(copy):
        return
    cuda = _cuda_of(copy, stack)
    if cuda is None or cuda == "cpu":
        return
    yield from _conda_for_other_vendor(stack, copy, cuda)
    yield from _conda_without_code(stack, copy, cuda)


def is_of_channel(copy: Distribution) -> bool:
    """Whether conda takes it from the channel ``pytorch``: by its channel, or by how that channel names its builds."""
    if copy.source is None or copy.source.kind != "conda":
        return False
    channel, build = str(copy.source.details.get("channel") or ""), str(copy.source.details.get("build") or "")
    return build.startswith("py3.") if build and "*" not in build else channel.rpartition("/")[2] == CHANNEL


def newest_in_channel(copy: Distribution) -> str | None:
    """The last release of torch in conda's channel, which ended, that a range admits; ``None`` for anything else."""
    if copy.name != "torch" or copy.version is not None or not is_of_channel(copy):
        return None
    try:
        admitted = ranges_of(copy.specifier or "")
    except ValueError:
        return None
    return max((each for each in open_code_tables().conda if contains(admitted, key_of(each))), key=key_of, default=None)


def _cuda_of(copy: Distribution, stack: Stack) -> str | None:
    """The CUDA release of the build: from its name, else what ``pytorch-cuda`` is pinned to."""
    if copy.extra.get("cuda"):
        return str(copy.extra["cuda"])
    pins = stack.facts.package("pytorch-cuda")
    pin = pins[0] if isinstance(pins, list) and len(pins) == 1 else None
    if not isinstance(pin, Distribution):
        return None
    text = (pin.specifier or pin.version or "").removeprefix("==").removesuffix(".*")
    return text if text.count(".") == 1 and text.replace(".", "").isdecimal() else None


def _builds(stack: Stack, copy: Distribution, cuda: str) -> dict[str, TorchBuild]:
    """The builds for that CUDA of the release, or of the releases that a range (``=2.5``) admits, by release."""
    tables, wanted = stack.tables, copy.specifier if copy.specifier else f"=={copy.version}"
    try:
        admitted = ranges_of(wanted)
    except ValueError:
        return {}
    releases = [each for each in tables.conda if contains(admitted, key_of(each))]
    found = {each: next((build for build in tables.conda_builds(each) if build.cuda == cuda), None) for each in releases}
    return {each: build for each, build in found.items() if build is not None} if all(found.values()) else {}


def _conda_without_code(stack: Stack, copy: Distribution, cuda: str) -> Iterator[Finding]:
    of_release = _builds(stack, copy, cuda)
    builds = tuple(of_release.values())
    for device in stack.devices:
        capability = device.compute_capability or ""
        if not builds or any(stack.tables.runs(capability, each.codes, ()) is not False for each in builds):
            continue
        by_ptx = any(stack.tables.runs(capability, each.codes, each.ptx) for each in builds)
        if by_ptx and not all(_has_old_ptx(*each) for each in of_release.items()):
            continue
        name, release = device_name(device), copy.version or copy.specifier or ""
        compiled = f"The builds in conda's pytorch channel for CUDA {cuda} are compiled for " + ", ".join(
            f"sm_{code}" for code in builds[0].codes
        )
        no_ptx = (
            f"{compiled}, without PTX that the driver could compile. Every kernel fails: no kernel image is available for "
            f"execution on the device. The channel ended with {LAST} and has no build for this GPU."
        )
        yield Finding(
            rule="build-torch-gpu", origin="build",
            severity="warning" if by_ptx and not _needs_more_than_ptx(stack) else "error",
            title=f"This torch has {f'only PTX of sm_{builds[0].ptx[0]}' if by_ptx else 'no code'} for {name_and_code(device)}",
            why=f"{compiled}. {_OLD_PTX}" if by_ptx else no_ptx,
            confidence="reported", packages={"torch": copy.version}, facts=("accelerators", "build"),
            fixes=tuple(_fixes()), evidence=(_PTX_RULE, *_PTX_FAILS, _CHANNEL_ENDED) if by_ptx else (_PTX_RULE, _CHANNEL_ENDED),
            here=f"pytorch {release} for CUDA {cuda}, {name}",
        )  # fmt: skip
        return


_OLD_PTX = (
    "The driver compiles their PTX of sm_37 when the program starts, for minutes. That lacks the attention kernels "
    "(scaled_dot_product_attention: 'is for sm80-sm90, but was built for sm37'), and NCCL has none (named symbol not found)."
)
_PTX_FAILS = ("https://github.com/dmMaze/BallonsTranslator/issues/1148",)
_FIRST_ATTENTION, _FIRST_ARCHITECTURE = key_of("2.0"), 80
"""The first torch with scaled_dot_product_attention, and the architecture that its kernels for newer GPUs are written for."""
_TAKE_SDPA = {"transformers": "4.36", "diffusers": "0.13"}
"""Packages whose models take scaled_dot_product_attention by default, from a release on."""
_TAKE_NCCL = ("deepspeed", "vllm")


def _has_old_ptx(release: str, build: TorchBuild) -> bool:
    """Whether the PTX of a build is that of an architecture without its kernels for attention."""
    return key_of(release) >= _FIRST_ATTENTION and all(int(each) < _FIRST_ARCHITECTURE for each in build.ptx)


def _needs_more_than_ptx(stack: Stack) -> bool:
    """Whether the job takes attention kernels or NCCL: a package that does is listed, or there are several GPUs."""
    if len(stack.devices) > 1:
        return True
    for copy in stack.facts.environment.distributions or ():
        first = _TAKE_SDPA.get(copy.name)
        if copy.name in _TAKE_NCCL or (first and (copy.version is None or key_of(copy.version) >= key_of(first))):
            return True
    return False


def _fixes() -> Iterator[Fix]:
    yield Fix(
        "source-install", "torch", f">={ELSEWHERE}", "from conda-forge, in an environment without pytorch-cuda",
        f'conda install --override-channels -c conda-forge "pytorch-gpu>={ELSEWHERE}"',
    )  # fmt: skip
    yield by_pip("upgrade", "torch", f">={ELSEWHERE}", "its wheel, in an environment without conda's pytorch")


def _conda_for_other_vendor(stack: Stack, copy: Distribution, cuda: str) -> Iterator[Finding]:
    devices = stack.facts.accelerators() or ()
    if not devices or {each.vendor for each in devices} != {"amd"}:
        return
    device = device_name(devices[0])
    yield Finding(
        rule="build-torch-vendor", origin="build", effect="slow",
        title=f"This torch is built for CUDA {cuda}, and {device} needs a build for ROCm",
        why="torch.cuda.is_available() is False: CUDA builds only see NVIDIA GPUs. Conda's pytorch channel has no "
        "build for ROCm.",
        packages={"torch": copy.version}, facts=("accelerators", "build"),
        fixes=(
            Fix(
                "source-install", "torch", "", "the wheel for the host's ROCm, in an environment without conda's pytorch",
                f"pip install torch --index-url {newest_rocm_index(stack.tables)}",
            ),
        ),
        evidence=("https://pytorch.org/get-started/locally/",), here=f"pytorch {copy.version or copy.specifier}, {device}",
    )  # fmt: skip


_OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
_RARELY_SET = 0.7
"""The likelihood that the variable is not set."""
_RUNS_CODE_OF = {
    **dict.fromkeys(("gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"), "gfx1030"),
    **dict.fromkeys(("gfx1101", "gfx1102", "gfx1103"), "gfx1100"),
    **dict.fromkeys(("gfx1150", "gfx1152", "gfx1153"), "gfx1151"),
}
"""GPU → the target of its generation that wheels contain; the GPU runs that code with an override variable."""
_SUPPORTED_BY_ROCM = "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html"


def judge_of_rocm(stack: Stack) -> Iterator[Finding]:
    other = tuple(_other_vendor(stack))
    yield from other
    if any(each.verdict == "hit" for each in other) and stack.flavour.numbered:
        yield from _extensions_for_cuda(stack)
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
    device = device_name(devices[0])
    builds = sorted((build.cuda for build in stack.builds() if build.cuda), reverse=True)
    yield Finding(
        rule="build-torch-vendor",
        origin="build",
        verdict="hit" if certain else "possible",
        effect="slow",
        title=f"This torch is built for {platform}, and {device} needs a build for {other}",
        why="torch.cuda.is_available() is False: CUDA builds only see NVIDIA GPUs, ROCm builds only AMD GPUs.",
        packages={"torch": stack.torch.version},
        facts=("accelerators", "build"),
        missing=() if certain else ("build",),
        unknown=() if certain else ("build.torch",),
        fixes=(rocm_build(stack.tables, stack.release, stack.beside()),)
        if built == "nvidia"
        else tuple(torch_for(stack.release, each, f"the build for CUDA {each}", stack.beside()) for each in builds[:1]),
        evidence=("https://pytorch.org/get-started/locally/",),
        here=f"torch {stack.torch.version}, {device}",
    )


_ONLY_CUDA = {
    "vllm": Fix("config", text="start from an image of vLLM for ROCm (rocm/vllm), or build vLLM from its source"),
    "sgl-kernel": Fix("config", text="start from an image of SGLang for ROCm, or build sgl-kernel from its source"),
    "xformers": Fix(
        "uninstall", "xformers", None, "torch's own attention runs on AMD GPUs", "pip uninstall xformers"
    ),
}  # fmt: skip
"""Packages whose wheels on the index contain code for CUDA alone, and what runs on AMD GPUs instead."""


def _extensions_for_cuda(stack: Stack) -> Iterator[Finding]:
    """Wheels for CUDA that stay wheels for CUDA if torch's build for ROCm takes the place of the one for CUDA."""
    for name, fix in _ONLY_CUDA.items():
        copy = stack.one(name)
        if copy is None or copy.version is None or "+" in copy.version or (copy.source and copy.source.kind != "index"):
            continue
        if copy.source is not None and copy.source.details.get("url"):
            continue  # an index of its own, which may have builds for ROCm
        device = device_name((stack.facts.accelerators() or ())[0])
        yield Finding(
            rule=f"build-{name}-vendor", origin="build", severity="error" if fix.kind == "config" else "warning",
            title=f"The wheels of {name} on the index are for CUDA, and {device} needs a build for ROCm",
            why=f"{name} {copy.version} is published for NVIDIA GPUs only, and its extension cannot be loaded without CUDA.",
            packages={name: copy.version}, facts=("accelerators", "build"), fixes=(fix,),
            evidence=("https://pytorch.org/get-started/locally/",), here=f"{name} {copy.version}, {device}",
        )  # fmt: skip


def rocm_build(tables: CodeTables, release: str | None, beside: Iterable[Distribution] = ()) -> Fix:
    """The same release of torch, built for ROCm, with what is ``beside`` it; the newest build if none is known of this release.

    pip keeps the build that is there unless the label of another one, or force, is given.
    """
    rocm = tables.rocm_of.get(series_of(release or ""))
    if rocm is None:
        names = " ".join(("torch", *(copy.name for copy in beside)))
        command = f"pip install --force-reinstall {names} --index-url {newest_rocm_index(tables)}"
        return Fix("source-install", "torch", "", "the newest build for ROCm, from torch's own index", command)
    others = "".join(f' "{copy.name}=={public_version(copy.version or "")}+rocm{rocm}"' for copy in beside)
    command = f'pip install "torch=={release}+rocm{rocm}"{others} --index-url {INDEX}/rocm{rocm}'
    return Fix("source-install", "torch", "", "the build for ROCm, from torch's own index", command)


def newest_rocm_index(tables: CodeTables) -> str:
    """torch's index for the newest ROCm."""
    return f"{INDEX}/rocm{max(tables.rocm_of.values(), key=_rocm_release)}"


def _no_code(stack: Stack) -> Iterator[Finding]:
    """A build for ROCm without the target of any of the AMD GPUs, unless a variable overrides the target."""
    if stack.torch is None or (stack.torch.source is not None and stack.torch.source.kind in OWN_BUILDS):
        return
    rocm = (stack.torch.version or "").partition("+rocm")[2]
    targets = stack.tables.rocm.get(rocm, ())
    devices = [each for each in stack.facts.accelerators() or () if each.vendor in (None, "amd") and each.gfx]
    known, override = stack.facts.variable(_OVERRIDE)
    if not targets or not devices or any(each.gfx in targets for each in devices) or _target_of_override(override) in targets:
        return
    device = devices[0]
    name = device_name(device) if device.name is None else f"{device.name} ({device.gfx})"
    yield Finding(
        rule="build-torch-gfx",
        origin="build",
        verdict="hit" if known else "possible",
        title=f"This torch has no code for {name}",
        why=f"The wheels of torch for ROCm {rocm} are compiled for {', '.join(targets)}. Kernels fail with 'HIP error: "
        "invalid device function', or the process ends.",
        packages={"torch": stack.torch.version},
        facts=("accelerators", "build", "variables"),
        missing=() if known else ("variables",),
        unknown=() if known else (f"variables.{_OVERRIDE}",),
        likelihood=None if known else _RARELY_SET,
        fixes=tuple(_with_code(stack, device.gfx or "", rocm, targets)),
        evidence=(_SUPPORTED_BY_ROCM,),
        here=f"torch {stack.torch.version}, {name}",
    )


def _with_code(stack: Stack, gfx: str, rocm: str, targets: Sequence[str]) -> Iterator[Fix]:
    later = [each for each, known in stack.tables.rocm.items() if gfx in known and _rocm_release(each) > _rocm_release(rocm)]
    if later:
        newest = max(later, key=_rocm_release)
        text = f"the build for ROCm {newest}, which has code for {gfx}"
        yield Fix("upgrade", "torch", None, text, f"pip install -U torch --index-url {INDEX}/rocm{newest}")
    if _RUNS_CODE_OF.get(gfx) in targets and (override := override_for(gfx)) is not None:
        yield override
    yield Fix("source-install", "torch", "", f"a build for {gfx}: AMD's own wheels, or PYTORCH_ROCM_ARCH={gfx}")


def override_for(gfx: str) -> Fix | None:
    """The variable that makes the GPU use code for a similar target that the wheels contain."""
    like = _RUNS_CODE_OF.get(gfx)
    if like is None:
        return None
    version = ".".join((like[3:5], like[5], like[6]))
    return Fix("env-var", text=f"run it as {like}, which is of the same generation", command=f"export {_OVERRIDE}={version}")


def _rocm_release(rocm: str) -> tuple[int, ...]:
    return tuple(map(int, rocm.split(".")))


def _target_of_override(override: str | None) -> str | None:
    """``10.3.0`` → ``gfx1030``, ``9.0.10`` → ``gfx90a``; ``None`` if it is not a version."""
    parts = (override or "").split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) < 3 for part in parts):
        return None
    return f"gfx{parts[0]}{parts[1]}{int(parts[2]):x}"
