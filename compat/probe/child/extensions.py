"""Imports every compiled package that builds on torch, each in a separate process."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import torch

from .job import Job, Probe, Verdict, failed, passed

KNOWN = {
    "apex": ("amp_C", "fused_layer_norm_cuda"),
    "auto-gptq": ("auto_gptq",),
    "autoawq-kernels": ("awq_ext",),
    "bitsandbytes": ("bitsandbytes",),
    "causal-conv1d": ("causal_conv1d_cuda",),
    "deepspeed": ("deepspeed",),
    "flash-attn": ("flash_attn_2_cuda",),
    "flash-attn-3": ("flash_attn_interface",),
    "flashinfer-python": ("flashinfer",),
    "grouped-gemm": ("grouped_gemm_backend",),
    "mamba-ssm": ("selective_scan_cuda",),
    "sgl-kernel": ("sgl_kernel",),
    "sglang-kernel": ("sgl_kernel",),
    "torchao": ("torchao",),
    "torchaudio": ("torchaudio",),
    "torchvision": ("torchvision",),
    "transformer-engine-torch": ("transformer_engine.pytorch",),
    "triton": ("triton",),
    "vllm": ("vllm._C", "vllm._C_stable_libtorch"),
    "xformers": ("xformers.ops",),
}
"""Distribution → the modules whose import loads its compiled code; a release has at least one of them.

apex leaves out what it was not asked to build; vLLM has ``_C_stable_libtorch`` beside ``_C`` from 0.19.0 on, and
alone from 0.24.0 on.
"""
_BINARY = re.compile(r"^(?P<module>[\w/]+)\.(?:cpython-\w+|abi3)[\w.-]*\.so$")
_PROGRAM = """
import faulthandler, importlib, sys
faulthandler.enable()
import torch
there, missing = [], None
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        there.append(name)
    except ModuleNotFoundError as problem:
        if problem.name != name:
            raise
        missing = problem
if not there:
    raise missing
print(*there)
"""
_LIMIT = 60
_HALF = re.compile(r"can't load C\+\+/CUDA extensions|Error loading .*\.so|compiled without GPU support|library load error")
"""Messages of packages that go on without their compiled code: xformers, bitsandbytes."""


def probes(job: Job) -> Iterator[Probe]:
    """Return one probe per distribution, or one that reports that there are none."""
    found = compiled_packages()
    for name, modules in found.items():
        yield name, partial(imported, name, modules)
    if not found:
        yield "none", lambda: passed(why="no compiled package other than torch is installed")


def compiled_packages() -> dict[str, tuple[str, ...]]:
    """Return distributions known to contain CUDA code, and others that require torch and have an extension module."""
    found: dict[str, tuple[str, ...]] = {}
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", (distribution.metadata["Name"] or "").lower())
        if name in KNOWN:
            found[name] = KNOWN[name]
        elif name and name != "torch" and any(map(_requires_torch, distribution.requires or ())):
            binaries = filter(None, (_BINARY.match(str(file)) for file in distribution.files or ()))
            modules = tuple(match["module"].replace("/", ".") for match in binaries)
            if modules:
                found[name] = modules[:4]
    return dict(sorted(found.items()))


def _requires_torch(requirement: str) -> bool:
    return re.match(r"torch\b(?![-_.\w])", requirement) is not None and "extra ==" not in requirement


def imported(name: str, modules: tuple[str, ...]) -> Verdict:
    """Import torch and then the modules in another process; its last lines on stderr explain a failure."""
    try:
        done = subprocess.run([sys.executable, "-c", _PROGRAM, *modules], capture_output=True, text=True, timeout=_LIMIT,
                              check=False, errors="replace", stdin=subprocess.DEVNULL)  # fmt: skip
    except subprocess.TimeoutExpired as over:
        output = over.stderr.decode("utf-8", "replace") if isinstance(over.stderr, bytes) else over.stderr or ""
        return failed(f"importing {', '.join(modules)} did not finish within {_LIMIT} s", last_words=_last(output))
    half = next((line.strip() for line in done.stderr.split("\n") if _HALF.search(line)), None)
    if done.returncode == 0 and half is not None:
        why = f"{', '.join(modules)} can be imported without its compiled code: {half[:300]}"
        return failed(why, last_words=_last(done.stderr))
    if done.returncode == 0:
        found = done.stdout.split("\n")[-2].split()  # output of the packages comes before it
        return passed({"modules": found, "version": importlib.metadata.version(name)})
    words = _last(done.stderr)
    how = words[-1] if done.returncode > 0 and words else f"ended by signal {-done.returncode}"
    why = f"{', '.join(modules)} cannot be imported: {how[:400]}{_meaning(done.stderr, name)}"
    fix = None  # the parent process has the tables of builds
    if torch.version.cuda is None and re.search(r"lib(torch_cuda|c10_cuda|cudart)\b.*cannot open", done.stderr):
        release = str(torch.__version__).partition("+")[0]
        fix = f"install torch {release} built for CUDA, from the index of torch's own builds"
    return failed(why, last_words=words, fix=fix)


def _last(text: str) -> list[str]:
    return [line.rstrip()[:300] for line in text.split("\n") if line.strip() and "<frozen importlib" not in line][-6:]


def _meaning(text: str, name: str) -> str:
    """Explain a loader error by comparing it with the installed builds; ``""`` if it says nothing about the build."""
    here = f"torch {torch.__version__}" + (f" for CUDA {torch.version.cuda}" if torch.version.cuda else " for CPU only")
    library = re.search(r"lib(cudart|cublas|cudnn|nvrtc|cusparse|cufft|nccl)\w*\.so\.(\d+)", text)
    if library and "cannot open shared object" in text:
        return f". It was built for CUDA {library[2]}; installed: {here}" if library[1] != "nccl" else f"; installed: {here}"
    if re.search(r"lib(torch_cuda|c10_cuda)\.so: cannot open", text):
        return f". It was built for a torch with CUDA; installed: {here}"
    if "undefined symbol" in text:
        return f". It was compiled for another torch; installed: {here}"
    if "no kernel image is available" in text:
        return f". {name} has no code for this GPU; installed: {here}"
    needed = re.search(r"(GLIBC(?:XX)?_[\d.]+)' not found", text)
    if needed:
        return f". It was built on a newer system: {needed[1]} is not in this system's libraries"
    return ""
