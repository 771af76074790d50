"""Which environment variables belong into a report: those that steer CUDA and the stack, never a secret."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PREFIXES = (
    "CUDA_", "NVIDIA_", "NCCL_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "VLLM_", "UNSLOTH_", "ACCELERATE_", "DEEPSPEED_",
    "DS_", "TRITON_", "XFORMERS_", "FLASH_ATTENTION_", "FLASHINFER_", "BNB_", "HIP_", "ROCR_", "HSA_", "CUBLAS_", "CUDNN_",
)  # fmt: skip
_NAMES = (
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "OMP_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "PYTHONPATH",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "RANK",
)
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH")
_ALWAYS = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")


def relevant(variables: Mapping[str, str], asked: Sequence[str]) -> dict[str, str | None]:
    """The variables to report, by name; ``None`` for those that rules ask about (``asked``) and that are not set."""
    found: dict[str, str | None] = {
        name: value
        for name, value in sorted(variables.items())
        if name in _NAMES or name in asked or (name.startswith(_PREFIXES) and not any(word in name for word in _SECRET))
    }
    for name in (*_ALWAYS, *asked):
        found.setdefault(name, None)
    return found
