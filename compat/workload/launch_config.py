"""Configuration files of launchers: accelerate's YAML or JSON, and DeepSpeed's JSON.

The meaning of the keys follows accelerate 1.4 and 1.15 (``commands/launch.py``, ``commands/config/config_args.py``) and
DeepSpeed's configuration format. ``"auto"`` is filled in by transformers at run time and stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compat.errors import InputError
from compat.files import regular_path
from compat.model import Workload
from compat.redact import excerpt
from compat.syntax.json import line_of, parse_json, read_text
from compat.workload.arguments import apply_option, deepspeed_facts, zero_stage
from compat.workload.draft import UNKNOWN, Draft, parse_count, parse_switch

LIMIT = 1024 * 1024
"""Maximum size of a DeepSpeed configuration, in bytes."""
_SEVERAL = ("MULTI_GPU", "MULTI_CPU", "MULTI_NPU", "MULTI_MLU", "MULTI_SDAA", "MULTI_MUSA", "MULTI_XPU", "MULTI_HPU",
            "MULTI_NEURON", "DEEPSPEED", "FSDP", "MEGATRON_LM", "TP", "XLA", "TPU")  # fmt: skip
BUILT_IN: dict[str, dict[str, object]] = {
    "single_gpu": {"distributed_type": "NO"}, "multi_gpu": {"distributed_type": "MULTI_GPU"},
    "fsdp1": {"distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 1}},
    "fsdp2": {
        "distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 2, "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"},
    },
    "zero1": {"distributed_type": "DEEPSPEED", "deepspeed_config": {"zero_stage": 1}},
    "zero2": {"distributed_type": "DEEPSPEED", "deepspeed_config": {"zero_stage": 2, "offload_optimizer_device": "none"}},
    "zero3": {"distributed_type": "DEEPSPEED", "deepspeed_config": {"zero_stage": 3, "offload_optimizer_device": "none"}},
}  # fmt: skip
"""The configurations of ``trl --accelerate_config NAME``; each uses bf16 and eight processes."""


class LaunchConfig:
    """The contents of an accelerate configuration file.

    ``distributed`` is its ``distributed_type`` in upper case (``None`` if unset), ``processes`` its ``num_processes`` over
    all machines; facts about the workload go to ``draft``. ``keys`` are its top-level keys, each with its location; empty
    for a configuration that trl ships.
    """

    def __init__(
        self, file: str, settings: Mapping[str, object], origin: Callable[[tuple[str, ...]], str], kind: str | None = None
    ) -> None:
        self.file = file
        self.draft = Draft()
        self.keys: tuple[tuple[str, str], ...] = ()
        stated = settings.get("distributed_type")
        self.distributed = kind or (stated.upper() if isinstance(stated, str) else "NO" if stated is False else None)
        self.processes = parse_count(settings["num_processes"]) if "num_processes" in settings else None
        machines = parse_count(settings.get("num_machines", 1))
        self.machines = machines if isinstance(machines, int) else None
        devices = settings.get("gpu_ids")
        self.gpu_ids = devices if isinstance(devices, str) else None
        _accelerate_facts(self, settings, origin)

    @property
    def several(self) -> bool:
        """Whether it starts one process per device rather than a single plain one."""
        return self.distributed in _SEVERAL


def read_accelerate(path: str, kind: str | None = None) -> LaunchConfig:
    """Read an accelerate configuration file; :class:`InputError` with file and line if it is invalid.

    ``kind`` is the distributed type set on the command line, which overrides the one in the file.
    """
    from compat.syntax.yaml import read_table

    settings, lines = read_table(path, "an accelerate configuration with keys such as 'distributed_type'")

    def origin(keys: tuple[str, ...]) -> str:
        line = lines.get(keys) or lines.get(keys[:1])
        return f"{path}:{line}" if line else path

    _check_types(path, settings, lines)
    config = LaunchConfig(path, settings, origin, kind)
    config.keys = tuple((str(key), origin((key,))) for key in settings)
    return config


def built_in(name: str) -> LaunchConfig | None:
    """Return the configuration that trl ships under a name, or ``None``."""
    settings = BUILT_IN.get(name)
    if settings is None:
        return None
    return LaunchConfig(name, {"mixed_precision": "bf16", "num_processes": 8, **settings}, lambda keys: f"trl's {name}.yaml")


def _check_types(path: str, settings: Mapping[str, Any], lines: Mapping[tuple[str, ...], int]) -> None:
    def wrong(keys: tuple[str, ...], expected: str, value: object) -> InputError:
        line = lines.get(keys) or lines.get(keys[:1])
        return InputError(f"{'.'.join(keys)}: expected {expected}, not {_shown(value)}", path, line)

    kind = settings.get("distributed_type")
    if kind is not None and kind is not False and not isinstance(kind, str):
        raise wrong(("distributed_type",), "a word such as MULTI_GPU", kind)
    count = settings.get("num_processes")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < -1):
        raise wrong(("num_processes",), "a whole number", count)
    precision = settings.get("mixed_precision")
    if precision is not None and precision is not False and not isinstance(precision, str):
        raise wrong(("mixed_precision",), "no, fp16, bf16 or fp8", precision)
    for name in ("deepspeed_config", "fsdp_config", "dynamo_config"):
        table = settings.get(name)
        if table is not None and not isinstance(table, dict):
            raise wrong((name,), "a table", table)
    stage = (settings.get("deepspeed_config") or {}).get("zero_stage")
    if stage is not None and parse_count(stage) not in (0, 1, 2, 3):
        raise wrong(("deepspeed_config", "zero_stage"), "0, 1, 2 or 3", stage)
    version = (settings.get("fsdp_config") or {}).get("fsdp_version")
    if version is not None and parse_count(version) not in (1, 2):
        raise wrong(("fsdp_config", "fsdp_version"), "1 or 2", version)


def _accelerate_facts(config: LaunchConfig, settings: Mapping[str, Any], origin: Callable[[tuple[str, ...]], str]) -> None:
    draft = config.draft
    apply_option(draft, "mixed_precision", settings.get("mixed_precision"), origin(("mixed_precision",)))
    if settings.get("mixed_precision") is None and parse_switch(settings.get("fp16")) is True:
        draft.record("precision", "fp16", origin(("fp16",)))  # the form of accelerate's first releases
    if config.distributed == "DEEPSPEED":
        draft.on("deepspeed", origin(("distributed_type",)))
        table = settings.get("deepspeed_config") or {}
        plugin_facts(draft, table, lambda key: origin(("deepspeed_config", key)))
    elif config.distributed == "FSDP":
        draft.on("fsdp", origin(("distributed_type",)))
        version = (settings.get("fsdp_config") or {}).get("fsdp_version")
        if version is not None:
            apply_option(draft, "fsdp_version", version, origin(("fsdp_config", "fsdp_version")))
        table = {"fsdp_cpu_ram_efficient_loading": True, **(settings.get("fsdp_config") or {})}
        for name in ("fsdp_cpu_ram_efficient_loading", "fsdp_offload_params", "fsdp_state_dict_type"):
            apply_option(draft, name, table.get(name), origin(("fsdp_config", name)))
    parallelism = settings.get("parallelism_config")
    if isinstance(parallelism, dict) and "parallelism_config_cp_size" in parallelism:
        place = ("parallelism_config", "parallelism_config_cp_size")
        apply_option(draft, place[1], parallelism[place[1]], origin(place))
    dynamo = settings.get("dynamo_config") or {}
    backend = dynamo.get("dynamo_backend", settings.get("dynamo_backend"))
    if isinstance(backend, str) and backend.upper() != "NO":
        draft.on("torch-compile", origin(("dynamo_config", "dynamo_backend")))


def plugin_facts(draft: Draft, table: Mapping[str, object], origin: Callable[[str], str]) -> None:
    """Record accelerate's own DeepSpeed settings: options of ``accelerate launch`` and keys under ``deepspeed_config``."""
    if table.get("zero_stage") is not None:
        zero_stage(draft, table["zero_stage"], origin("zero_stage"))
    device = table.get("offload_optimizer_device")
    if isinstance(device, str):
        draft.feature("optimizer-offload", device.lower() != "none", origin("offload_optimizer_device"))
    steps = parse_count(table.get("gradient_accumulation_steps"))
    if steps is not UNKNOWN and steps > 1:
        # ``accelerate config`` always writes 1, and transformers overrides it with its own argument
        draft.on("gradient-accumulation", origin("gradient_accumulation_steps"))
    file = table.get("deepspeed_config_file")
    if isinstance(file, str) and file.lower() != "none":
        draft.configs.append(file)
    elif parse_count(table.get("zero_stage")) == 3:
        # accelerate's own configuration sets no buckets
        draft.off("deepspeed-auto-buckets", origin("zero_stage"))


def read_deepspeed(path: str) -> Workload:
    """Read a DeepSpeed JSON configuration; :class:`InputError` with file and line if it is invalid."""
    text = read_text(regular_path(path), LIMIT)
    settings = parse_json(text, path)
    if not isinstance(settings, dict):
        raise InputError("is not a DeepSpeed configuration: expected a JSON object", path, 1)
    for keys, expected in (
        (("zero_optimization",), dict), (("zero_optimization", "stage"), int), (("bf16",), dict), (("fp16",), dict),
        (("zero_optimization", "offload_optimizer"), dict),
    ):  # fmt: skip
        value: object = settings
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and value != "auto" and not isinstance(value, expected):
            kind = "an object" if expected is dict else "a whole number"
            raise InputError(f"{'.'.join(keys)}: expected {kind}, not {_shown(value)}", path, line_of(text, keys))
    draft = Draft()

    def origin(key: str) -> str:
        line = line_of(text, (key,))
        return f"{path}:{line}" if line else path

    deepspeed_facts(draft, settings, origin)
    return draft.workload()


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"{excerpt(text, 36)} ..."
