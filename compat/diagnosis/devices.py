"""What is known of the GPU and of torch's CUDA where a message names neither, and the builds of torch that fit them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from compat.checks.fix_commands import by_pip
from compat.checks.gpu_code import JETSON
from compat.checks.implied_releases import implied_by
from compat.checks.torch_build import major_version, public_version, stack_of, torch_for
from compat.checks.torch_variants import override_for
from compat.diagnosis.frame_packages import version_of
from compat.formats.docker.base_images import vllm_with_older_cuda
from compat.model import Accelerator, Environment, Fix
from compat.records import replace
from compat.rules.facts import Facts
from compat.tables.builds import TorchBuild, open_code_tables
from compat.tables.declared import open_declared
from compat.tables.hardware import branch_for, driver_cuda
from compat.versions import is_version, key_of

_DRIVER_FOUND = re.compile(r"\(found version (?P<number>\d{4,6})\)")
_CODE_OF_GPU = re.compile(r"sm_(?P<major>\d{1,2})(?P<minor>\d)")


def for_driver(message: str, facts: Facts) -> tuple[Fix, ...]:
    """Return a torch that runs with the driver, whose CUDA the message has (``found version 11040``) or whose release is known.

    A driver runs every build for its major release of CUDA or an older one.
    """
    tables = open_code_tables()
    branch = (facts.environment.driver or "").partition(".")[0]
    found = _DRIVER_FOUND.search(message)
    newest = int(found["number"]) // 1000 if found is not None else None
    if newest is None and branch.isascii() and branch.isdecimal():
        newest = max((release for release, floor in tables.floors if floor <= int(branch)), default=None)
    if newest is None:
        return ()
    of = f"a torch for CUDA {newest}, which this driver supports"
    return tuple(_fitting(lambda build: build.cuda != "" and major_version(build.cuda) <= newest, of, facts))


def for_gpu(code: str, facts: Facts) -> tuple[Fix, ...]:
    """Return a torch with code for an architecture (``sm_61``)."""
    tables, match = open_code_tables(), _CODE_OF_GPU.fullmatch(code)
    if match is None:
        return ()
    capability = f"{match['major']}.{match['minor']}"

    def runs(build: TorchBuild) -> bool:
        return bool(build.codes) and tables.runs(capability, build.codes, build.ptx, build.cuda) is True

    text = f"a torch with code for {code}"
    found = tuple(_fitting(runs, text, facts))
    return (*found, *_older_default(runs, text)) if found and version_of("torch", facts) is None else found


def _fitting(fits: Callable[[TorchBuild], bool], text: str, facts: Facts) -> Iterator[Fix]:
    """Yield another build of the installed release that fits, and the newest release that has one.

    If an installed release pins torch, the pinned one is meant, and another is no fix.
    """
    tables = open_code_tables()
    here = version_of("torch", facts)
    pinned = implied_by(_as_released(facts.environment), open_declared()).get("torch") if here is None else None
    here = here if pinned is None else pinned.version
    release = public_version(here) if here is not None and is_version(here) else None
    if pinned is not None and release is not None and (build := _build(release, fits)) is not None:
        yield torch_for(release, build.cuda, f"{text}; {pinned.by} this release")
        return
    newest = next((each for each in sorted(tables.torch, key=key_of, reverse=True) if _build(each, fits) is not None), None)
    for each in dict.fromkeys((release, newest)):
        build = None if each is None else _build(each, fits)
        if build is not None and each is not None:
            if not build.default:
                yield torch_for(each, build.cuda, text)
            elif each != release:
                kind = "pin" if release is None else "downgrade" if key_of(each) < key_of(release) else "upgrade"
                yield by_pip(kind, "torch", f"=={each}", text)


def _older_default(fits: Callable[[TorchBuild], bool], text: str) -> Iterator[Fix]:
    """Yield the newest release whose default build fits, where that of the newest one that fits is on another index."""
    builds = ((each, _build(each, fits)) for each in sorted(open_code_tables().torch, key=key_of, reverse=True))
    fitting = [(each, build.default) for each, build in builds if build is not None]
    found = next((each for each, default in fitting if default), None)
    if found is not None and found != fitting[0][0]:
        yield by_pip("downgrade", "torch", f"=={found}", f"{text}, from the default index")


def _as_released(environment: Environment) -> Environment:
    """Return the environment with the packages of an image as releases: images install what the release requires."""
    copies = environment.distributions or ()
    released = (
        replace(copy, source=None) if copy.source is not None and copy.source.kind == "image" else copy for copy in copies
    )
    return replace(environment, distributions=tuple(released))


def _build(release: str, fits: Callable[[TorchBuild], bool]) -> TorchBuild | None:
    """Return the build of a release for x86-64 that fits: the default one, or else that for the newest CUDA."""
    builds = [each for each in open_code_tables().torch_builds(release) if each.machine == "x86_64" and each.cuda]
    return max(filter(fits, builds), key=lambda each: (each.default, key_of(each.cuda)), default=None)


_SUFFIXED = ("nvidia-cudnn", "nvidia-nccl", "nvidia-cusparselt", "nvidia-nvshmem")
"""Distributions whose name has ``-cu13`` for CUDA 13; the others have no suffix since."""


def only_kind(facts: Facts) -> Accelerator | None:
    """Return one of the visible GPUs if all are alike, by name and capability."""
    devices = facts.accelerators() or ()
    alike = len({(each.name, each.compute_capability, each.gfx) for each in devices}) == 1
    known = alike and (devices[0].name or devices[0].compute_capability or devices[0].gfx)
    return devices[0] if known else None


def torch_for_device(device: Accelerator, facts: Facts) -> tuple[Fix, ...]:
    """Return a torch with code for the GPU."""
    capability = device.compute_capability
    if capability in JETSON:
        return (Fix("source-install", "torch", "", "NVIDIA's wheel for the JetPack release of this Jetson"),)
    return for_gpu(f"sm_{capability.replace('.', '')}", facts) if capability else ()


def driver_of(spec: str, facts: Facts) -> Iterator[Fix]:
    """Yield the driver that an image with ``cuda>=12.4`` asks for: one that supports that CUDA itself."""
    cuda = spec.lstrip("<>= ")
    branch = branch_for(cuda, windows=facts.value("os") == "windows" or facts.value("platform") in ("wsl1", "wsl2"))
    text = "install a newer driver on the machine (the host, not the container)"
    yield Fix(
        "driver", None, f">={branch}" if branch else None, f"{text}: branch {branch} supports CUDA {cuda}" if branch else text
    )


def cuda_above_driver(facts: Facts) -> str | None:
    """Return the CUDA release of the image or toolkit if it is newer than what the driver supports itself."""
    toolkit, newest = facts.environment.cuda_toolkit, driver_cuda(facts.environment)
    return toolkit if toolkit and newest and key_of(toolkit) > key_of(newest) else None


def image_before(spec: str, facts: Facts) -> Iterator[Fix]:
    """Yield the newest release of vLLM's image with an older CUDA than ``cuda>=12.4``, if the image is vLLM's."""
    if not isinstance(facts.package("vllm"), list):
        return
    found = vllm_with_older_cuda(version_of("vllm", facts), spec.lstrip("<>= "))
    if found is not None:
        first, following, cuda = found
        text = f"start from the newest vllm/vllm-openai before v{following}: its CUDA is {cuda}"
        yield Fix("downgrade", "vllm", f">={first},<{following}", text)


def overrides(device: Accelerator) -> Iterator[Fix]:
    """Yield the variable that makes ROCm treat the GPU as the one of its generation that wheels have code for."""
    found = override_for(device.gfx or "")
    if found is not None:
        yield found


def cuda_wheel(name: str, facts: Facts) -> str:
    """Return the distribution of a CUDA library for the CUDA of the installed torch; CUDA 12 if that is unknown."""
    cuda = _cuda_of_torch(facts)
    if cuda == 13:
        return f"{name}-cu13" if name in _SUFFIXED else name
    return f"{name}-cu{cuda or 12}"


def _cuda_of_torch(facts: Facts) -> int | None:
    flavour = stack_of(facts, open_code_tables()).flavour.numbered
    if flavour is not None:
        return major_version(flavour)
    copies = facts.package("torch")
    stated = str(copies[0].extra.get("cuda") or "") if isinstance(copies, list) else ""
    if stated[:1].isdecimal():
        return major_version(stated)
    names = [each.name for each in facts.environment.distributions or () if each.name.startswith("nvidia-")]
    endings = {int(name[-2:]) for name in names if name[-5:-2] == "-cu" and name[-2:].isdecimal()}
    return endings.pop() if len(endings) == 1 else None


_TOOLKITS = {
    "75": "10.0", "80": "11.0", "86": "11.1", "87": "11.4", "89": "11.8", "90": "11.8", "90a": "12.0",
    "100": "12.8", "101": "12.8", "120": "12.8", "103": "12.9", "121": "12.9", "110": "13.0", "88": "13.0",
    "c++17": "11.0", "c++20": "12.0", "static-global-template-stub": "12.8", "compress-mode": "12.8",
}  # fmt: skip
"""The first CUDA toolkit whose nvcc knows an architecture, a value or an option."""
_DROPPED = {"35": "11.8", "37": "11.8", **dict.fromkeys(("50", "52", "53", "60", "61", "62", "70", "72"), "12.9")}
"""The last CUDA toolkit whose nvcc compiles for an architecture."""


def toolkit_for(word: str) -> str:
    """Return the CUDA toolkits whose nvcc knows ``compute_120a`` or the name of an option, in words."""
    code = word.removeprefix("compute_").removeprefix("sm_")
    plain = code.rstrip("af") if code[:1].isdecimal() else code
    if plain in _DROPPED:
        return f"{_DROPPED[plain]} or older"
    least = _TOOLKITS.get(code) or _TOOLKITS.get(plain)
    if code.endswith("f") and plain != code:
        least = "12.9" if least == "12.8" else least  # families came with it
    return f"{least} or newer" if least else "that does"
