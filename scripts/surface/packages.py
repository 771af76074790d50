"""The packages whose releases are mined, in the order in which they are read: small and central ones first."""

from __future__ import annotations

TRACKED = (
    "trl", "peft", "accelerate", "transformers", "datasets", "huggingface-hub", "unsloth-zoo", "tokenizers", "unsloth", "torch",
    "vllm", "deepspeed", "bitsandbytes", "liger-kernel", "xformers", "sentence-transformers", "diffusers", "llamafactory",
    "axolotl", "verl", "lm-eval", "outlines",
)  # fmt: skip
"""Both sides: what they define, and what they use of the others."""

BESIDE = (
    "compressed-tensors", "torchao", "triton", "optimum", "auto-gptq", "autoawq", "evaluate", "safetensors", "torchvision",
    "xgrammar", "llmcompressor", "ms-swift", "lighteval", "timm", "pydantic", "fastapi", "starlette", "numpy", "pyarrow",
    "sglang", "openai",
)  # fmt: skip
"""Packages that the tracked ones use, or that use them: read once the others are there."""

UNTABLED = frozenset(("numpy", "pyarrow", "pydantic", "fastapi", "starlette", "timm"))
"""Of these the rows tell what others need; scripts are not judged against them: most of what they have is compiled, or made
when they run."""

SINCE = "2022-12-15"
"""The day from which releases are read: the newest release of many packages at the start of 2023 is some weeks older."""

PRE_RELEASES = {
    "transformers": ("5.0.0rc0", "5.0.0rc1", "5.0.0rc2", "5.0.0rc3"),
}
"""Pre-releases that published locks and reports use; all other pre-releases are left out."""

TOPS = {
    "huggingface-hub": ("huggingface_hub",), "sentence-transformers": ("sentence_transformers",), "lm-eval": ("lm_eval",),
    "ms-swift": ("swift",), "flashinfer-python": ("flashinfer",),
    "autoawq": ("awq",), "llamafactory": ("llamafactory", "llmtuner"), "torch": ("torch", "functorch"),
}  # fmt: skip
"""What is imported, where that is not the package's own name."""


def tops_of(package: str) -> tuple[str, ...]:
    """The top-level modules of a package."""
    return TOPS.get(package, (package.replace("-", "_"),))
