"""Configurations of launchers among the files to check: they say how a job is started, not what is installed."""

from __future__ import annotations

from compat.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

_MARKS = (b'"compute_environment"', b'"distributed_type"', b'"zero_optimization"', b'"train_batch_size"',
          b'"train_micro_batch_size_per_gpu"')  # fmt: skip
_BESIDE_A_BATCH_SIZE = ("fp16", "bf16", "optimizer", "scheduler", "gradient_clipping", "zero_allow_untested_optimizer")


def refuse_launch_keys(path: str, keys: Container[str]) -> None:
    """:class:`InputError` that says where the file belongs, if its outermost keys are those of such a configuration."""
    if "compute_environment" in keys or ("distributed_type" in keys and "num_processes" in keys):
        raise _belongs(path, "an accelerate configuration", f"accelerate launch --config_file {path} train.py")
    counts = "train_batch_size" in keys and any(key in keys for key in _BESIDE_A_BATCH_SIZE)
    if "zero_optimization" in keys or "train_micro_batch_size_per_gpu" in keys or counts:
        raise _belongs(path, "a DeepSpeed configuration", f"deepspeed train.py --deepspeed {path}")


def refuse_launch_json(path: str, content: bytes) -> None:
    """As :func:`refuse_launch_keys`, for the text of a JSON file; one that is no JSON is left to its reader."""
    if not any(mark in content for mark in _MARKS):
        return
    from compat.read.json_text import parse_json

    try:
        document = parse_json(content.decode("utf-8", "replace"), path)
    except InputError:
        return
    if isinstance(document, dict):
        refuse_launch_keys(path, document)


def _belongs(path: str, what: str, command: str) -> InputError:
    return InputError(
        f"is {what}: it says how a job is started, not what is installed; give it with its command: "
        f"compat check uv.lock -- {command}", path
    )  # fmt: skip
