"""How a job is started: launcher, number of processes and rank, from the environment variables that launchers set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat.model import EMPTY, Workload
from compat.records import record

COMMAND = "the command"
"""Origin of facts from a command line."""

_ACCELERATE = (
    "ACCELERATE_MIXED_PRECISION", "ACCELERATE_DYNAMO_BACKEND", "ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_FSDP",
    "ACCELERATE_USE_CPU", "ACCELERATE_USE_MEGATRON_LM", "ACCELERATE_CONFIG_DS_FIELDS",
)  # fmt: skip
"""Set by ``accelerate launch`` for the processes it starts (accelerate 1.4 and 1.15, ``utils/launch.py``)."""
_RAY = ("RAY_RAYLET_PID", "RAY_JOB_ID", "RAY_JOB_CONFIG_JSON_ENV_VAR")
_SIZES = (("WORLD_SIZE", "RANK"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK"))


_SCALARS = ("task", "trainer", "model", "model_type", "launcher", "processes", "nodes", "rank", "batch_size", "precision",
            "quantization", "script", "code", "options")  # fmt: skip


@record(frozen=True)
class Launch:
    """The result of reading a command: what it runs, how, and the variables it sets.

    ``variables`` are the environment variables that the command, a recipe or the script itself assigns, without secrets;
    ``script`` is the file it starts (``None`` if there is none or it is unknown); ``notes`` list what could not be
    determined.
    """

    workload: Workload
    variables: Mapping[str, str] = EMPTY
    script: str | None = None
    notes: tuple[str, ...] = ()


def from_variables(variables: Mapping[str, str]) -> Workload:
    """Return the launcher, number of processes, rank and settings from the variables that a launcher sets."""
    known: dict[str, Any] = {}
    origins: dict[str, str] = {}

    def record(key: str, value: object, name: str) -> None:
        if value is not None and key not in known:
            known[key] = value
            origins[key] = f"${name}"

    record(*_launcher(variables))
    inside = "LOCAL_RANK" in variables  # cluster operators may set WORLD_SIZE for nodes instead of processes
    for size, rank in _SIZES:
        if size != "WORLD_SIZE" or inside:
            record("processes", _number(variables, size, 1), size)
            record("rank", _number(variables, rank), rank)
    if known.get("launcher") == "slurm":
        name = "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in variables else "SLURM_NTASKS"
        record("processes", _number(variables, name, 1), name)
        record("rank", _number(variables, "SLURM_PROCID"), "SLURM_PROCID")
    if known.get("launcher") == "accelerate" and not inside and "ACCELERATE_DYNAMO_BACKEND" in variables:
        record("processes", 1, "ACCELERATE_DYNAMO_BACKEND")  # without ranks, accelerate started a single plain process
    precision = variables.get("ACCELERATE_MIXED_PRECISION", "").lower()
    record("precision", precision if precision in ("bf16", "fp16", "fp8") else None, "ACCELERATE_MIXED_PRECISION")
    on, off = _features(variables, origins)
    return Workload(**known, features=on or None, features_absent=off or None, origins=origins)


def _launcher(variables: Mapping[str, str]) -> tuple[str, str | None, str]:
    """Return the innermost launcher found: ("launcher", its name or ``None``, the variable that identifies it)."""
    ranked = all(name in variables for name in ("LOCAL_RANK", "RANK", "WORLD_SIZE"))
    for word, signs in (("accelerate", _ACCELERATE), ("torchrun", ("TORCHELASTIC_RUN_ID",)), ("ray", _RAY)):
        for name in signs:
            if variables.get(name):
                return "launcher", word, name
    if ranked and "CROSS_RANK" in variables:
        return "launcher", "deepspeed", "CROSS_RANK"
    if ranked:
        return "launcher", "torchrun", "LOCAL_RANK"  # any launcher that sets these follows torchrun's contract
    tasks = _number(variables, "SLURM_STEP_NUM_TASKS") or _number(variables, "SLURM_NTASKS") or 0
    if tasks > 1 and "SLURM_PROCID" in variables and "SLURM_PTY_PORT" not in variables:
        return "launcher", "slurm", "SLURM_PROCID"
    return "launcher", None, ""  # a single task may also be a shell in which something else starts the job


def _features(variables: Mapping[str, str], origins: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    on: list[str] = []
    off: list[str] = []

    def record(feature: str, name: str, *, answer: bool = True) -> None:
        (on if answer else off).append(feature)
        origins[f"features.{feature}"] = f"${name}"

    def is_on(name: str) -> bool:
        return variables.get(name, "").lower() == "true"

    if is_on("ACCELERATE_USE_DEEPSPEED"):
        record("deepspeed", "ACCELERATE_USE_DEEPSPEED")
        stage = variables.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "")
        for each in ("1", "2", "3") if stage in ("0", "1", "2", "3") else ():
            record(f"zero-{each}", "ACCELERATE_DEEPSPEED_ZERO_STAGE", answer=stage == each)
        device = variables.get("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", "").lower()
        if device:
            record("optimizer-offload", "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", answer=device != "none")
        if (_number(variables, "ACCELERATE_GRADIENT_ACCUMULATION_STEPS") or 0) > 1:
            record("gradient-accumulation", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS")
    if is_on("ACCELERATE_USE_FSDP"):
        record("fsdp", "ACCELERATE_USE_FSDP")
        version = variables.get("FSDP_VERSION", "")
        if version in ("1", "2"):
            record("fsdp2", "FSDP_VERSION", answer=version == "2")
        if "FSDP_CPU_RAM_EFFICIENT_LOADING" in variables:
            on_rank_0 = is_on("FSDP_CPU_RAM_EFFICIENT_LOADING")
            record("ram-efficient-loading", "FSDP_CPU_RAM_EFFICIENT_LOADING", answer=on_rank_0)
    if (_number(variables, "PARALLELISM_CONFIG_CP_SIZE") or 0) > 1:
        record("context-parallel", "PARALLELISM_CONFIG_CP_SIZE")
    backend = variables.get("ACCELERATE_DYNAMO_BACKEND", "")
    if backend and backend.upper() != "NO":
        record("torch-compile", "ACCELERATE_DYNAMO_BACKEND")
    return tuple(on), tuple(off)


def _number(variables: Mapping[str, str], name: str, least: int = 0) -> int | None:
    text = variables.get(name, "").strip()
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    return number if number is not None and number >= least else None


def merge_workloads(a: Workload, b: Workload) -> Workload:
    """Merge two descriptions of one workload; where they disagree, ``a`` takes precedence.

    Features are united. A process group shards in one way, so a ZeRO stage or FSDP in ``a`` replaces that of ``b``.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name in _SCALARS:
        mine, other = getattr(a, name), getattr(b, name)
        if name == "trainer" and mine is None and a.task is not None and b.task not in (None, a.task):
            other = None  # the trainer belongs to the task that was overridden
        if name == "model_type" and a.model not in (None, b.model):
            other = None  # as the type does to the model
        values[name] = other if mine is None else mine
        source = b if mine is None else a
        if values[name] is not None and name in source.origins:
            origins[name] = source.origins[name]
    on, off = _united(a, b)
    for kept in (*on, *off):
        source = a if kept in (a.features or ()) or kept in (a.features_absent or ()) else b
        if f"features.{kept}" in source.origins:
            origins[f"features.{kept}"] = source.origins[f"features.{kept}"]
    listed = a.features is not None or b.features is not None
    denied = a.features_absent is not None or b.features_absent is not None
    return Workload(**values, features=on if listed else None, features_absent=off if denied else None,
                    features_complete=a.features_complete or b.features_complete,
                    extra={**b.extra, **a.extra}, origins=origins)  # fmt: skip


def _united(a: Workload, b: Workload) -> tuple[tuple[str, ...], tuple[str, ...]]:
    on, off = list(a.features or ()), list(a.features_absent or ())
    zero = any(name.startswith("zero-") for name in on)
    fsdp = any(name.startswith("fsdp") for name in on)
    for name in b.features or ():
        other_stage = (zero and name.startswith(("zero-", "fsdp"))) or (fsdp and name.startswith("zero-"))
        if name not in on and name not in off and not other_stage and not a.features_complete:
            on.append(name)
    off.extend(name for name in b.features_absent or () if name not in off and name not in on)
    return tuple(on), tuple(off)
