"""What the words of a report mean: versions, names of distributions, "not installed"; nothing here knows a format."""

from __future__ import annotations

import re

from compat import versions
from compat.environment import normalized

_CALLED = {
    "pytorch": "torch", "hf-hub": "huggingface-hub", "hugging-face-hub": "huggingface-hub", "pil": "pillow", "zmq": "pyzmq",
    "multipart": "python-multipart", "flashattention": "flash-attn", "flash-attention": "flash-attn",
    "flash-attention-2": "flash-attn", "flashattention-2": "flash-attn", "fa2": "flash-attn", "bnb": "bitsandbytes",
    "swift": "ms-swift", "llama-factory": "llamafactory", "transformer": "transformers", "liger": "liger-kernel",
    "pytorch-lightning": "pytorch-lightning", "hf-datasets": "datasets", "hf-transformers": "transformers",
    "hf-accelerate": "accelerate", "torch-vision": "torchvision", "torch-audio": "torchaudio", "sgl-kernel": "sgl-kernel",
    "te": "transformer-engine", "transformerengine": "transformer-engine", "openai-triton": "triton",
}  # fmt: skip
_KNOWN = frozenset({
    "accelerate", "aiohttp", "aiter", "anthropic", "apex", "auto-gptq", "autoawq", "axolotl", "bitsandbytes",
    "compressed-tensors", "cupy-cuda12x", "cut-cross-entropy", "datasets", "decord", "decord2", "deepspeed", "diffusers",
    "einops", "fairscale", "fastapi", "flash-attn", "flash-attn-3", "flashinfer", "flashinfer-cubin",
    "flashinfer-jit-cache", "flashinfer-python", "flax", "fsspec", "gguf", "gptqmodel", "gradio", "hf-transfer", "hf-xet",
    "huggingface-hub", "hqq", "jax", "jaxlib", "kernels", "lerobot", "liger-kernel", "lightning", "litellm", "llama-cpp-python",
    "llamafactory", "llguidance", "llm-blender", "llmcompressor", "lmdeploy", "lm-eval", "mamba-ssm", "math-verify",
    "megatron-core", "mistral-common", "mlx", "mlx-lm", "modelscope", "ms-swift", "nemo-toolkit", "ninja", "numba", "numpy",
    "nvidia-nccl-cu12", "onnx", "onnxruntime", "openai", "open-clip-torch", "openrlhf", "optimum", "optimum-quanto", "orjson",
    "outlines", "pandas", "peft", "pillow", "protobuf", "psutil", "pyarrow", "pydantic", "python-multipart",
    "pytorch-lightning", "pytorch-triton", "pytorch-triton-rocm", "pyzmq", "qwen-vl-utils", "ray", "safetensors", "scipy",
    "sentence-transformers", "sentencepiece", "setfit", "sgl-kernel", "sglang", "tensorboard", "tensorflow", "tf-keras",
    "tiktoken", "timm", "tokenizers", "torch", "torch-npu", "torchao", "torchaudio", "torchdata", "torchtune", "torchvision",
    "transformer-engine", "transformers", "triton", "triton-windows", "trl", "unsloth", "unsloth-zoo", "uvicorn", "uvloop",
    "verl", "vllm", "vllm-ascend", "vllm-flash-attn", "wandb", "xformers", "xfuser", "xgrammar",
})  # fmt: skip
_ABSENT = frozenset({
    "", "n/a", "na", "none", "null", "nan", "false", "no", "not installed", "not found", "could not collect", "unknown",
    "not available", "unavailable", "not set", "module not found", "no cuda", "not applicable", "-", "?", "<fill in>",
    "no response", "_no response_", "not used",
})  # fmt: skip
_VERSION = re.compile(r"v?(\d[\w.!+-]{0,79})")
_SERIES = re.compile(r"v?(\d{1,5}(?:\.\d{1,5})*)\.[xX*](?![\w.])")
_RANGE = re.compile(r"(?:[<>~!=]=|[<>])\s?\d[\w.+-]{0,40}(?:\s?,\s?(?:[<>~!=]=|[<>])\s?\d[\w.+-]{0,40}){0,5}")
_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,80}[A-Za-z0-9])?")


def distribution_of(words: str) -> str | None:
    """The distribution that a report's words name ("PyTorch", "`huggingface_hub`"); ``None`` for any other words."""
    if len(words) > 60:
        return None
    name = normalized(words.strip("`*_\"' ").replace(" ", "-"))
    name = _CALLED.get(name, name)
    return name if name in _KNOWN else None


def is_name(word: str) -> bool:
    """Whether a word may be the name of a distribution."""
    return _NAME.fullmatch(word) is not None


def is_absent(text: str) -> bool:
    """Whether a value says that there is nothing, or that nobody knows."""
    return text.strip("`*_\"'. ").lower() in _ABSENT or text.startswith(("<", "e.g.", "[e.g.", "i.e.", "eg."))


def is_tool(name: str) -> bool:
    """Whether what is pinned like a distribution (``cuda==12.4``) is none."""
    return name in ("cuda", "python", "cudnn", "nvcc", "gcc", "gpu", "driver", "cuda-driver", "nvidia-driver", "os", "ubuntu")


def is_version(text: str) -> bool:
    """Whether a text is a version (PEP 440)."""
    if not text or len(text) > 80 or not text.isascii():
        return False
    return versions.is_version(text)


def version_at(text: str) -> str | None:
    """The version that a text begins with (``"2.6.0+cu124 (True)"``, ``"v0.9.1, from source"``), else ``None``."""
    match = _VERSION.match(text.lstrip("`*\"'(= "))
    if match is None:
        return None
    word = match[1].rstrip(".,;:)-_+!")
    return word if is_version(word) else None


def range_at(text: str) -> str | None:
    """The range (PEP 440) that a text begins with: ``">= 4.51, < 4.57"``, ``"4.51.x"``; else ``None``."""
    text = text.strip("`*\"'( ")
    series = _SERIES.match(text)
    if series is not None:
        return f"=={series[1]}.*"
    match = _RANGE.match(text)
    if match is None:
        return None
    from compat.versions import ranges_of

    written = "".join(match[0].split())
    try:
        ranges_of(written)
    except ValueError:
        return None
    return written


def short_version(text: str) -> str | None:
    """Major and minor of a version ("12.4" of ``12.4.131``), as CUDA toolkits are told apart."""
    version = version_at(text)
    parts = version.split(".")[:2] if version else []
    return ".".join(parts) if parts and all(part.isascii() and part.isdigit() for part in parts) else None
