"""The loader's messages: which distribution owns a library, a symbol or an extension, what the tables of wheels say about it,
and the form of the findings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from compat.checks import loading
from compat.checks.fix_commands import by_pip, compiled_anew
from compat.checks.torch_build import has_cxx11_abi
from compat.diagnosis.frame_packages import (
    distribution_in,
    distribution_of_module,
    inferred,
    innermost_packages,
    package_of,
    version_of,
)
from compat.model import Finding, Fix, normalized
from compat.records import replace
from compat.rules.facts import Facts
from compat.tables.declared import open_declared
from compat.tables.linked import LinkedTable, open_linked, open_numpy_abi, open_symbols, series_of
from compat.versions import contains, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


EXTENSIONS = {
    "flash_attn_2_cuda": "flash-attn", "flash_attn": "flash-attn", "sgl_kernel": "sgl-kernel", "vllm": "vllm",
    "xformers": "xformers", "torchvision": "torchvision", "torchaudio": "torchaudio", "bitsandbytes": "bitsandbytes",
    "apex": "apex", "torchao": "torchao", "causal_conv1d_cuda": "causal-conv1d", "selective_scan_cuda": "mamba-ssm",
    "deepspeed": "deepspeed", "transformer_engine": "transformer-engine", "exllamav2_kernels": "auto-gptq",
    "exllama_kernels": "auto-gptq", "autogptq_cuda_64": "auto-gptq", "autogptq_cuda_256": "auto-gptq",
    "autogptq_marlin_cuda": "auto-gptq", "awq_inference_engine": "autoawq", "awq_v2_ext": "autoawq",
    "flash_attn_3_cuda": "flash-attn-3", "flash_attn_interface": "flash-attn-3",
    "rotary_emb": "flash-attn", "dropout_layer_norm": "flash-attn",
    "transformer_engine_torch": "transformer-engine", "transformer_engine_extensions": "transformer-engine",
    "awq_ext": "autoawq",
    "flashinfer": "flashinfer-python", "vllm_flash_attn": "vllm", "torchcodec": "torchcodec",
    "torch-scatter": "torch-scatter", "torch-sparse": "torch-sparse", "torch-cluster": "torch-cluster",
    "torch_scatter": "torch-scatter", "torch_sparse": "torch-sparse", "torch_cluster": "torch-cluster",
    "detectron2": "detectron2",
    "amp_C": "apex", "fused_layer_norm_cuda": "apex", "grouped_gemm": "grouped-gemm",
    "fast_hadamard_transform": "fast-hadamard-transform",
    "fla": "flash-linear-attention", "natten": "natten", "torchtext": "torchtext", "llama_cpp": "llama-cpp-python",
    "libllama": "llama-cpp-python", "libggml": "llama-cpp-python", "ggml-cuda": "llama-cpp-python",
    "flash-attention": "flash-attn", "flashattention": "flash-attn",
    "lmcache": "lmcache", "lmdeploy": "lmdeploy", "turbomind": "lmdeploy", "_turbomind": "lmdeploy",
    "deep_gemm": "deep-gemm", "deep_gemm_cpp": "deep-gemm", "deepgemm": "deep-gemm", "repo-deepgemm-src": "deep-gemm",
    "ctranslate2": "ctranslate2", "exllamav2_ext": "exllamav2", "tensorrt_llm": "tensorrt-llm", "libtriton": "triton",
    "sgl-kernel": "sgl-kernel", "common_ops": "sgl-kernel", "spatial_ops": "sgl-kernel", "torch_tensorrt": "torch-tensorrt",
    "torchtrt": "torch-tensorrt", "th_common": "tensorrt-llm", "fbgemm_gpu": "fbgemm-gpu", "fbgemm_gpu_py": "fbgemm-gpu",
    "onnxruntime_providers_cuda": "onnxruntime-gpu", "onnxruntime_providers_tensorrt": "onnxruntime-gpu",
    "exllamav3_ext": "exllamav3", "xgrammar": "xgrammar", "cpu_adam": "deepspeed", "fused_adam": "deepspeed",
    "cpu_adagrad": "deepspeed", "cpu_lion": "deepspeed", "fused_lamb": "deepspeed", "fused_lion": "deepspeed",
    "async_io": "deepspeed", "transformer_inference": "deepspeed", "inference_core_ops": "deepspeed",
    "ragged_device_ops": "deepspeed", "evoformer_attn": "deepspeed", "fp_quantizer": "deepspeed",
    "fbgemm_gpu_experimental_gen_ai": "fbgemm-gpu-genai", "sageattention": "sageattention", "flash_mla": "flash-mla",
}  # fmt: skip
"""Name of an extension, of its folder, or of the folder it is compiled in → its distribution."""

WITH_KERNELS = frozenset({*EXTENSIONS.values(), "torch", "sglang", "text-generation-server"})
"""Distributions that contain compiled kernels, or are installed with such packages."""

COME_WITH_TORCH = ("triton", "torchvision", "torchaudio", "torchtext", "torchcodec")
"""Extensions that are installed with torch and rarely are what fails."""

ROCM = frozenset((
    "amdhip64", "hiprtc", "hsa-runtime64", "amd_comgr", "rocm_smi64", "roctx64", "hipblas", "hipblaslt", "rocblas",
    "MIOpen", "rccl", "hipsparse", "rocsparse", "hipfft", "rocfft", "hiprand", "rocrand", "hipsolver", "rocsolver", "magma_hip",
))  # fmt: skip
"""Libraries of ROCm; the number of amdhip64 is that of the ROCm release."""

CUDA_11_TO_13 = {"11": "-cu11", "12": "-cu12", "13": ""}
OTHER_NUMBERS = {"cufft": {"10": "-cu11", "11": "-cu12", "12": ""}, "cusolver": {"11": "-cu12", "12": ""}}
WHEELS = {
    "cudart": "nvidia-cuda-runtime", "cublas": "nvidia-cublas", "cublasLt": "nvidia-cublas", "cufft": "nvidia-cufft",
    "curand": "nvidia-curand", "cusolver": "nvidia-cusolver", "cusparse": "nvidia-cusparse", "cusparseLt": "nvidia-cusparselt",
    "nccl": "nvidia-nccl", "nvJitLink": "nvidia-nvjitlink", "nvrtc": "nvidia-cuda-nvrtc", "cupti": "nvidia-cuda-cupti",
    "nvToolsExt": "nvidia-nvtx", "nvshmem_host": "nvidia-nvshmem", "cufile": "nvidia-cufile", "cudnn": "nvidia-cudnn",
}  # fmt: skip
"""CUDA library → the distribution that ships it, without the suffix for the CUDA version."""

OF_SYSTEM = {
    "GL": ("opencv-python", "libgl1"), "gthread-2.0": ("opencv-python", "libglib2.0-0"), "glib-2.0": ("opencv-python",
    "libglib2.0-0"),
    "SM": ("opencv-python", "libsm6"), "Xext": ("opencv-python", "libxext6"), "Xrender": ("opencv-python", "libxrender1"),
    "mpi": ("mpi4py", "libopenmpi-dev"), "mpi_cxx": ("mpi4py", "libopenmpi-dev"), "aio": ("deepspeed", "libaio-dev"),
    "numa": ("vllm", "libnuma1"), "avutil": ("torchcodec", "ffmpeg"), "avcodec": ("torchcodec", "ffmpeg"),
    "avformat": ("torchcodec", "ffmpeg"),
    "sndfile": ("soundfile", "libsndfile1"), "tbb": ("numba", "libtbb2"), "gomp": ("scikit-learn", "libgomp1"),
    "ibverbs": ("torch", "libibverbs1"),
    "stdc++": ("torch", "libstdc++6"), "openblas": ("numpy", "libopenblas0"), "tcmalloc": ("torch", "libgoogle-perftools4"),
}  # fmt: skip
"""System library → the distribution that most often requires it, and the Debian or Ubuntu package that provides it."""

CUDAS = (
    ("__nvJitLink", "nvJitLink"), ("nvJitLink", "nvJitLink"), ("ncclC", "nccl"), ("ncclM", "nccl"), ("ncclG", "nccl"),
    ("nccl", "nccl"),
    ("cudnn", "cudnn"), ("cublasLt", "cublasLt"), ("cublas", "cublas"), ("cusparseLt", "cusparseLt"), ("cusparse", "cusparse"),
    ("cufft", "cufft"), ("curand", "curand"), ("cusolver", "cusolver"), ("nvrtc", "nvrtc"), ("cudaGet", "cudart"), ("cuda",
    "cudart"),
    ("cupti", "cupti"), ("nvshmem", "nvshmem_host"),
)  # fmt: skip
"""Symbol prefix → the CUDA library that defines it."""


_ENVIRONMENT_PATH = re.compile(r"[/\\](?:envs|venvs|virtualenvs|\.venvs)[/\\][^/\\\s:]{1,100}")
"""The folder of a virtual environment, which is often called after the package it was made for."""


def packages_in(text: str) -> list[str]:
    """Return the distributions whose compiled modules or sources a path or message names."""
    parts = (part.partition(".")[0] for part in re.split(r"[/\\\s:'\"`()\[\],]+", _ENVIRONMENT_PATH.sub("/", text)))
    named = (EXTENSIONS.get(part) or EXTENSIONS.get(part.lower().removeprefix("lib")) for part in parts)
    return list(dict.fromkeys(name for name in named if name is not None))


def only_extension(facts: Facts, besides: Collection[str] = ("triton",)) -> list[str]:
    """Return the extension of torch that is installed, if there is one alone: a message without a file can only mean that.

    Distributions in ``besides``, which come with torch, are not counted.
    """
    known = [name for name in installed_extensions(facts) if name not in besides]
    return known if len(known) == 1 else []


def installed_extensions(facts: Facts) -> list[str]:
    """Return the distributions with extensions that are installed."""
    return [name for name in dict.fromkeys(EXTENSIONS.values()) if isinstance(facts.package(name), list)]


def requires_this_torch(name: str, facts: Facts) -> bool:
    """Whether the installed release of a package pins exactly the torch that is installed, so that its wheel is for it."""
    package, version, torch = open_declared().package(name), version_of(name, facts), version_of("torch", facts)
    place = None if package is None or version is None else package.place(version)
    if package is None or place is None or torch is None:
        return False
    pins = [
        ranges for text, ranges, _, extra in package.requirements(place, "torch") if extra is None and text.startswith("==")
    ]
    return any(contains(ranges, key_of(torch.partition("+")[0])) for ranges in pins)


def of_unknown_extension(symbol: str, where: str, facts: Facts) -> Finding:
    """Return the finding for an undefined symbol of torch where nothing tells which extension was loaded."""
    torch, series = version_of("torch", facts), exporting(symbol)
    exporters = f" Of the releases of torch, only {series[0]} to {series[-1]} export it." if len(series) > 1 else ""
    return inferred(
        rule="symptom-undefined-symbol",
        origin="build",
        title="A compiled extension was built for a torch other than the installed one",
        why=f"The missing symbol belongs to torch's C++ ABI, which changes between releases.{exporters} The message does "
        "not name the extension. It is one that the last import loads, often flash-attn, which is built for one torch.",
        packages={"torch": torch},
        facts=("build",),
        fixes=(
            Fix("config", text="show the library: the whole line of the message begins with its path"),
            compiled_anew(
                "flash-attn",
                text="if it is flash-attn: compile it for the installed torch, or take a wheel for it from its releases",
            ),
            Fix("source-install", None, "", "else the extension for this torch"),
        ),
        evidence=(TORCH,),
        here=where,
    )


def exporting(symbol: str) -> list[str]:
    """Return the series of torch that export a symbol, oldest first; empty if all do, or none is known to."""
    return list(open_symbols().exported.get(symbol, ())) if symbol else []


_NEW_STRINGS = re.compile(r"NSt7__cxx11|B5cxx11")
_OLD_STRINGS = re.compile(r"(?<![a-z])Ss(?![a-z])")
"""``std::string`` in the mangled name of a function that was compiled with the C++11 ABI, and without."""
_STRINGS = re.compile(f"{_NEW_STRINGS.pattern}|{_OLD_STRINGS.pattern}")


def has_strings(symbol: str) -> bool:
    """Whether a function takes or returns ``std::string``, so that its name depends on the C++ ABI."""
    return _STRINGS.search(symbol) is not None


def note_on_strings(symbol: str, torch: str | None) -> str | None:
    """Explain a symbol whose strings have the other C++ ABI than the wheels of the installed torch."""
    new = None if torch is None else has_cxx11_abi(torch)
    if _NEW_STRINGS.search(symbol) and new is False:
        return (
            f"It takes strings of the C++11 ABI; the wheels of torch before 2.7 are compiled without it, as is torch {torch}: "
            "a wheel named cxx11abiTRUE does not load, one named cxx11abiFALSE does."
        )
    if _OLD_STRINGS.search(symbol) and new:
        return (
            f"It takes strings of the C++ ABI before C++11; torch {torch}, as all wheels of torch since 2.7, is compiled with "
            "the C++11 ABI: a wheel named cxx11abiFALSE, or made for an older torch, does not load."
        )
    return None


_OF_NUMPY_1 = re.compile(
    r"numpy\.dtype size changed, may indicate binary incompatibility\. Expected 96 |_ARRAY_API not found"
    r"|numpy\.core\.(?:multiarray|umath) failed to import"
)


def of_numpy_1(message: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
    """The innermost package among the frames of which releases were compiled against numpy 1, if this error says so."""
    if error is None or not _OF_NUMPY_1.search(message):
        return None

    table = open_numpy_abi()
    names = (distribution_of_module(found) for frame in reversed(error.frames) if (found := package_of(frame)))
    name = next((name for name in names if name in table), None)
    if name is None:
        return None
    row, here, numpy = table[name], version_of(name, facts), version_of("numpy", facts)
    if (here and key_of(here) > key_of(row.last)) or (numpy and key_of(numpy) < loading.NUMPY_2):
        return None
    return replace(loading.of_numpy_1(name, here, numpy, row), here=where)


_CUT = re.compile(
    r"(?:^|(?:Error|its traceback\)):\s)\S{0,300}[/\\](?:site|dist)-packages[/\\](?P<path>[\w./\\+-]{1,300}?)"
    r"(?P<start>: undefined symbol:?)?[\s'\")`]*$"
)
"""A loader's message that ends after the path of the library, or before the name of the symbol."""
_COMPILED = re.compile(r"\.(?:so|pyd|dylib)\b")


def without_reason(message: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
    """The package whose compiled module a message names that is cut off before it says what is wrong with it."""
    match = _CUT.search(message.strip())
    raised = error is not None and error.exception in ("ImportError", "OSError", "RuntimeError")
    if match is None or not (raised or match["start"]):
        return None
    parts = re.split(r"[/\\]", match["path"])
    names = packages_in(parts[-1]) or (
        distribution_in(f"site-packages/{'/'.join(parts)}") if _COMPILED.search(parts[-1]) else []
    )
    if not names:
        return None
    module = ".".join((*parts[:-1], parts[-1].partition(".")[0]))
    return inferred(
        rule="symptom-extension-not-loaded",
        origin="build",
        title=f"{module}, a compiled part of {names[0]}, cannot be loaded; the text ends before the reason",
        why="The loader's message begins with the path of the library. What follows it is missing here: usually a symbol that "
        "the installed torch does not have, or a library of another CUDA release.",
        packages={each: version_of(each, facts) for each in dict.fromkeys((names[0], "torch"))},
        facts=("build",),
        fixes=(
            Fix("config", None, None, "show the whole message", f'python -c "import torch, {module}"'),
            Fix("source-install", names[0], "", "if a symbol is undefined: compile it for the installed torch"),
            Fix("pin", names[0], None, "or a wheel of it for this Python, torch and CUDA"),
        ),
        evidence=(LOADER,),
        here=where,
    )


LOADER = "https://man7.org/linux/man-pages/man8/ld.so.8.html"
TORCH = "https://pytorch.org/docs/stable/cpp_index.html"


def importing(error: RaisedError | None) -> list[str]:
    """Return the innermost package among the frames, other than torch, as a list of at most one."""
    names = [] if error is None else [normalized(name) for name in innermost_packages(error)]
    return [name for name in names if name != "torch"][-1:]


def of_torch(name: str, where: str, facts: Facts, symbol: str = "") -> Finding:
    """Return the finding for an undefined symbol in torch's C++ namespaces: the extension was built for another torch."""
    torch, here = version_of("torch", facts), version_of(name, facts)
    table, series = open_linked(), exporting(symbol)
    linked = None if here is None or "+" in here else table.release(name, here, None)
    built = [each for each in (linked.series or () if linked is not None else ()) if not series or each in series] or series
    why = ["The missing symbol belongs to torch's C++ ABI, which changes between releases."]
    if series:
        exporters = f"{series[0]} exports" if len(series) == 1 else f"{series[0]} to {series[-1]} export"
        why.append(f"Of torch {table.oldest} to {table.newest}, only {exporters} it.")
        if torch is not None and series_of(torch) in series and not has_strings(symbol):
            why.append(f"The wheels of torch {torch} have it, so another torch was loaded, or this one was compiled locally.")
    if (note := note_on_strings(symbol, torch)) is not None:
        why.append(note)
    fitting = [
        each.version for each in table.of(name) if torch is not None and each.series and series_of(torch) in each.series
    ]  # fmt: skip
    spec, which = None, f"the torch this {name} was compiled for"
    if built and (torch is None or series_of(torch) not in built):
        above = [each for each in built if torch is None or key_of(each) > key_of(series_of(torch))]
        spec = f"=={above[0] if above else built[-1]}.*"
        if torch is None and len(built) > 1:
            spec, which = _between(built), f"the releases with the symbol; this {name} was compiled for one of them"
    fixes = [
        Fix("pin", "torch", spec, which, spec and f'pip install "torch{spec}"'),
        compiled_anew(name),
    ]
    if fitting and torch is not None:
        text = f"the newest release for torch {series_of(torch)}"
        fixes.insert(0, by_pip("pin", name, f"=={fitting[-1]}", text))
    else:
        fixes.append(by_pip("upgrade", name, None, "a release for this torch"))
    found = inferred(
        rule="symptom-undefined-symbol",
        origin="build",
        title=f"{name} is compiled for a torch other than the installed one",
        why=" ".join(why),
        packages={each: version_of(each, facts) for each in (name, "torch")},
        facts=("build",),
        fixes=tuple(fixes),
        evidence=(TORCH,),
        here=where,
    )
    return replace(found, verdict="hit", confidence="confirmed") if _lacks(torch, symbol, series, table) else found


def _lacks(torch: str | None, symbol: str, series: Sequence[str], table: LinkedTable) -> bool:
    """Whether no wheel of a torch exports a symbol. Those with strings differ between its builds."""
    if torch is None or not series or has_strings(symbol):
        return False
    public = torch.partition("+")[0]
    if not public.replace(".", "").isdecimal() or has_cxx11_abi(torch) is None:
        return False  # a nightly, or compiled from other sources
    key = key_of(public)
    return key_of(table.oldest) <= key <= key_of(f"{table.newest}.99") and series_of(torch) not in series


def _between(series: Sequence[str]) -> str:
    """``2.2`` to ``2.6`` as a specifier: ``>=2.2,<2.7``."""
    major, _, minor = series[-1].partition(".")
    return f">={series[0]},<{major}.{int(minor) + 1}"
