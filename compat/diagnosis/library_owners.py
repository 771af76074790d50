"""Which distribution owns a library, a symbol of CUDA's libraries, or a compiled extension."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compat.rules.facts import Facts

EXTENSIONS = {
    "flash_attn_2_cuda": "flash-attn", "flash_attn": "flash-attn", "sgl_kernel": "sgl-kernel", "vllm": "vllm",
    "xformers": "xformers", "torchvision": "torchvision", "torchaudio": "torchaudio", "bitsandbytes": "bitsandbytes",
    "apex": "apex", "torchao": "torchao", "causal_conv1d_cuda": "causal-conv1d", "selective_scan_cuda": "mamba-ssm",
    "deepspeed": "deepspeed", "transformer_engine": "transformer-engine", "exllamav2_kernels": "auto-gptq",
    "exllama_kernels": "auto-gptq", "autogptq_cuda_64": "auto-gptq", "autogptq_cuda_256": "auto-gptq",
    "autogptq_marlin_cuda": "auto-gptq", "awq_inference_engine": "autoawq", "awq_v2_ext": "autoawq",
    "flash_attn_3_cuda": "flash-attn-3", "rotary_emb": "flash-attn", "dropout_layer_norm": "flash-attn",
    "transformer_engine_torch": "transformer-engine", "awq_ext": "autoawq",
    "flashinfer": "flashinfer-python", "vllm_flash_attn": "vllm", "torchcodec": "torchcodec",
    "torch-scatter": "torch-scatter", "torch-sparse": "torch-sparse", "torch-cluster": "torch-cluster",
    "torch_scatter": "torch-scatter", "torch_sparse": "torch-sparse", "torch_cluster": "torch-cluster",
    "detectron2": "detectron2",
    "amp_C": "apex", "fused_layer_norm_cuda": "apex", "grouped_gemm": "grouped-gemm",
    "fast_hadamard_transform": "fast-hadamard-transform",
    "fla": "flash-linear-attention", "natten": "natten", "torchtext": "torchtext", "llama_cpp": "llama-cpp-python",
    "libllama": "llama-cpp-python", "libggml": "llama-cpp-python", "ggml-cuda": "llama-cpp-python",
    "flash-attention": "flash-attn", "flashattention": "flash-attn",
    "lmdeploy": "lmdeploy", "turbomind": "lmdeploy", "_turbomind": "lmdeploy",
    "deep_gemm": "deep-gemm", "deep_gemm_cpp": "deep-gemm", "deepgemm": "deep-gemm", "repo-deepgemm-src": "deep-gemm",
    "ctranslate2": "ctranslate2", "exllamav2_ext": "exllamav2", "tensorrt_llm": "tensorrt-llm", "libtriton": "triton",
    "sgl-kernel": "sgl-kernel", "common_ops": "sgl-kernel", "spatial_ops": "sgl-kernel", "torch_tensorrt": "torch-tensorrt",
    "torchtrt": "torch-tensorrt", "th_common": "tensorrt-llm", "fbgemm_gpu": "fbgemm-gpu", "fbgemm_gpu_py": "fbgemm-gpu",
    "fbgemm_gpu_experimental_gen_ai": "fbgemm-gpu-genai", "sageattention": "sageattention", "flash_mla": "flash-mla",
}  # fmt: skip
"""Name of an extension, of its folder, or of the folder it is compiled in → its distribution."""

WITH_KERNELS = frozenset({*EXTENSIONS.values(), "torch", "sglang", "text-generation-server"})
"""Distributions that have compiled kernels of their own, or that are installed with them."""

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


_ENVIRONMENT = re.compile(r"[/\\](?:envs|venvs|virtualenvs|\.venvs)[/\\][^/\\\s:]{1,100}")
"""The folder of a virtual environment, which is often called after the package it was made for."""


def packages_in(text: str) -> list[str]:
    """Return the distributions whose compiled modules or sources a path or message names."""
    parts = (part.partition(".")[0] for part in re.split(r"[/\\\s:'\"`()\[\],]+", _ENVIRONMENT.sub("/", text)))
    named = (EXTENSIONS.get(part) or EXTENSIONS.get(part.lower().removeprefix("lib")) for part in parts)
    return list(dict.fromkeys(name for name in named if name is not None))


def only_extension(facts: Facts, besides: Collection[str] = ("triton",)) -> list[str]:
    """Return the extension of torch that is installed, if there is one alone: a message without a file can only mean that.

    Distributions in ``besides``, which come with torch, are not counted.
    """
    names = dict.fromkeys(name for name in EXTENSIONS.values() if name not in besides)
    known = [name for name in names if isinstance(facts.package(name), list)]
    return known if len(known) == 1 else []
