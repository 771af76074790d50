"""Triton: whether its ptxas supports the card, and whether a kernel compiles, runs and computes correctly."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import torch

from .job import Job, NotHere, Probe, Verdict, failed, passed

_ENVIRONMENT = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")


def probes(job: Job) -> Iterator[Probe]:
    yield "ptxas", partial(ptxas, job)
    if not job.quick:
        yield "compile", partial(compiles, job)
    yield "run", partial(runs, job)


def ptxas(job: Job) -> Verdict:
    """Test that the assembler that Triton would call lists the card's architecture."""
    capability = _capability(job)
    if torch.version.hip is not None:
        raise NotHere("ROCm's Triton has no ptxas")
    return assembler_for(capability)


def assembler_for(capability: int) -> Verdict:
    """Return the verdict on ptxas for a capability such as 90; needs no device."""
    path = find_ptxas(capability)
    if path is None:
        return failed("Triton has no ptxas, and none is on PATH", fix="pip install --force-reinstall triton")
    named = next((name for name in _ENVIRONMENT if os.environ.get(name)), None)
    fix = f"unset {named}" if named else "pip install --upgrade triton"
    try:
        version = _output_of(path, "--version")
        known = sorted({int(number) for number in re.findall(r"sm_(\d+)", _output_of(path, "--help"))})
    except OSError as problem:
        return failed(f"{path} cannot be started: {problem.strerror or problem}", fix=fix)
    release = re.search(r"release ([\d.]+)", version)
    measured = {"ptxas": path, "release": release.group(1) if release else version.strip()[-60:], "newest": known[-1:]}
    if not known:
        return failed(f"{path} does not list its architectures: it is not ptxas, or it is broken", measured, fix=fix)
    if capability not in known:
        newest = f"the newest it supports is sm_{known[-1]}"
        why = f"ptxas {measured['release']} at {path} does not support sm_{capability}; {newest}"
        return failed(why, measured, {"architecture": f"sm_{capability}"}, fix=fix)
    return passed(measured, {"architecture": f"sm_{capability}"})


def find_ptxas(capability: int) -> str | None:
    """Return the path of Triton's ptxas; for releases before 3.3, search as they do: a variable, their own folder, PATH."""
    package = _package()
    try:
        return str(importlib.import_module("triton.backends.nvidia.compiler").get_ptxas(capability).path)
    except RuntimeError:
        return None  # Triton found no ptxas
    except (ImportError, AttributeError, TypeError):
        pass
    folder = os.path.join(package, "backends", "nvidia", "bin")
    if capability >= 100 and os.path.exists(os.path.join(folder, "ptxas-blackwell")):
        return os.environ.get("TRITON_PTXAS_BLACKWELL_PATH") or os.path.join(folder, "ptxas-blackwell")
    given = os.environ.get("TRITON_PTXAS_PATH")
    if given:
        return given
    for place in (folder, os.path.join(package, "third_party", "cuda", "bin"), os.path.join(package, "common", "..", "bin")):
        if os.path.exists(os.path.join(place, "ptxas")):
            return os.path.join(place, "ptxas")
    return shutil.which("ptxas")


def _package() -> str:
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        raise NotHere("triton is not installed")
    return next(iter(spec.submodule_search_locations))


def _output_of(path: str, option: str) -> str:
    done = subprocess.run([path, option], capture_output=True, text=True, timeout=30, check=False, errors="replace")
    return done.stdout + done.stderr


def compiles(job: Job) -> Verdict:
    """Test compiling a kernel to the card's machine code, without the cache."""
    return compiled_for(_capability(job))


def compiled_for(capability: int) -> Verdict:
    """Return the verdict on compiling our rotary kernel for a capability such as 90; needs no device."""
    _package()
    if torch.version.hip is not None:
        raise NotHere("skipped on this device: ROCm uses other target names")
    version = tuple(int(part) for part in re.findall(r"\d+", importlib.import_module("triton").__version__)[:2])
    if version < (3, 3):
        raise NotHere("this Triton has another interface for ahead-of-time compilation; this probe needs 3.3")
    kernels = importlib.import_module(".triton_kernels", __package__)
    before = os.environ.get("TRITON_ALWAYS_COMPILE")
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    try:
        code = aot(kernels, capability, "bf16", 128, interleaved=False)
    finally:
        os.environ.pop("TRITON_ALWAYS_COMPILE") if before is None else os.environ.update(TRITON_ALWAYS_COMPILE=before)
    return passed(
        {"bytes_of_code": len(code["cubin"]), "loads_of_16_bytes": len(re.findall(r"ld\.global[.\w:]*v4", code["ptx"]))}
    )


def aot(kernels: ModuleType, capability: int, dtype: str, dim: int, *, interleaved: bool) -> dict[str, Any]:
    """Compile the rotary kernel ahead of time to ``ptx`` and ``cubin``. Triton's exceptions propagate."""
    triton = importlib.import_module("triton")
    compiler = importlib.import_module("triton.compiler")
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", capability, 32)
    kernel = kernels._turn_tokens
    names = list(kernel.arg_names)
    # Triton's types of the arguments: pointers, numbers (i32 but for these) and compile-time constants
    pointers = {"q": dtype, "k": dtype, "q_target": dtype, "k_target": dtype, "cos": "fp32", "sin": "fp32"}
    numbers = {"sign": "fp32"}
    constants = {"Q_HEADS": 32, "K_HEADS": 8, "PAIRS": dim // 2, "INTERLEAVED": interleaved}
    constants.update(kernels.blocks(32, 8, dim // 2))
    signature = {
        name: f"*{pointers[name]}" if name in pointers else "constexpr" if name in constants else numbers.get(name, "i32")
        for name in names
    }
    uneven = {*constants, *numbers, "tokens"}
    aligned = {(at,): [["tt.divisibility", 16]] for at, name in enumerate(names) if name not in uneven}
    source = compiler.ASTSource(kernel, signature, {(names.index(name),): value for name, value in constants.items()}, aligned)
    assembled: dict[str, Any] = dict(triton.compile(source, target=target, options={"num_warps": 4}).asm)
    return assembled


def runs(job: Job) -> Verdict:
    """Test compiling and launching a kernel in the ordinary way; its result must be bit-exact."""
    job.needs_accelerator()
    _package()
    add = importlib.import_module(".triton_kernels", __package__).add
    generator = torch.Generator().manual_seed(job.seed)
    a, b = (torch.randint(-(2**20), 2**20, (100_003,), generator=generator).float() for _ in range(2))
    result = add(a.to(job.device), b.to(job.device)).cpu()
    wrong = (result != a + b).nonzero()
    if len(wrong):
        at = int(wrong[0])
        why = f"element {at} of a sum is {float(result[at]):g}, not {float(a[at] + b[at]):g}"
        return failed(why, {"wrong": len(wrong)}, {"wrong": 0})
    return passed({"elements": len(a), "wrong": 0}, {"wrong": 0})


def _capability(job: Job) -> int:
    job.needs_accelerator()
    _package()
    major, minor = torch.cuda.get_device_capability(job.device)
    return 10 * major + minor
