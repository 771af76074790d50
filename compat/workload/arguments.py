"""Map names of training options to facts of a workload, for command lines, script keywords and recipe files.

The names are those of transformers' ``TrainingArguments``, trl's configs and ``ModelConfig``, peft, unsloth, vLLM,
LLaMA-Factory, axolotl and ms-swift; an option with the same meaning everywhere has one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from compat.workload.draft import UNKNOWN, Draft, parse_count, parse_switch, precision_word
from compat.workload.vocabulary import ADAM_8BIT, OF_BITSANDBYTES


def zero_stage(draft: Draft, value: object, origin: str, *, tentative: bool = False) -> None:
    """Record a ZeRO stage, 0 to 3."""
    stage = parse_count(value)
    draft.on("deepspeed", origin, tentative=tentative)
    for each in (1, 2, 3):
        if stage in (0, 1, 2, 3):
            draft.feature(f"zero-{each}", stage == each, origin, tentative=tentative)


def apply_option(draft: Draft, name: str, value: object, origin: str, *, tentative: bool = False) -> bool:
    """Record the facts of one option; return ``False`` if its name does not affect the workload.

    ``value`` is a word of a command line, a constant, a mapping or a sequence of them, or :data:`UNKNOWN`.
    """
    reader = _OPTIONS.get(name)
    if reader is None:
        return False
    if value is not None:
        reader(draft, value, origin, tentative)
    return True


def apply_all(draft: Draft, values: Mapping[str, object], origin: str, *, tentative: bool = False) -> None:
    """Record the facts of several options."""
    for name, value in values.items():
        apply_option(draft, name, value, origin, tentative=tentative)


def is_switch(name: str) -> bool:
    """Whether an option may have no value on a command line."""
    return name in _SWITCHES


def parse_words(words: Iterable[str]) -> tuple[list[tuple[str, object]], list[str]]:
    """Parse a script's arguments into (option name with ``_`` for ``-``, value) pairs in order, and the other words.

    A switch without a value is ``True``, ``--no_SWITCH`` is ``False``; a word with a shell variable is :data:`UNKNOWN`.
    """
    options: list[tuple[str, object]] = []
    others: list[str] = []
    waiting: str | None = None
    for word in words:
        is_option = word.startswith("-") and len(word) > 1 and not word[1].isdecimal()
        if waiting is not None:
            name, waiting = waiting, None
            if not is_option and not (
                is_switch(name) and parse_switch(word) is UNKNOWN and "$" not in word and name not in _OPEN
            ):
                options.append((name, _value(word)))
                continue
            options.append((name, True))
        if not is_option:
            others.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if equals:
            options.append((name, _value(value)))
        elif name.startswith("no_") and is_switch(name[3:]):
            options.append((name[3:], False))
        else:
            waiting = name
    if waiting is not None:
        options.append((waiting, True))
    return options, others


def _value(word: str) -> object:
    return UNKNOWN if "$" in word else word


Reader: TypeAlias = "Callable[[Draft, object, str, bool], None]"
"""Records what the value of an option says, with its origin; the last argument is ``tentative``."""


def _fact(key: str, of: Callable[[object], object]) -> Reader:
    """Record the fact that ``of`` makes of a value; ``None``: the value says nothing. What is unknown stays so."""

    def read(draft: Draft, value: object, origin: str, tentative: bool) -> None:
        found = UNKNOWN if value is UNKNOWN else of(value)
        if found is not None:
            draft.record(key, found, origin, tentative=tentative)

    return read


def _feature(name: str, of: Callable[[object], object] = parse_switch) -> Reader:
    """Record whether a feature is on."""
    return _fact(f"features.{name}", of)


def _is_off(value: object) -> object:
    on = parse_switch(value)
    return on if on is UNKNOWN else not on


def _positive(value: object) -> object:
    return parse_count(value) or UNKNOWN


def _is_several(value: object) -> object:
    number = parse_count(value)
    return number if number is UNKNOWN else number > 1


def _choice(key: str, word: str) -> Reader:
    """Read a switch that selects one of several values (``bf16``, ``load_in_4bit``); off, it says nothing of the others."""
    return _fact(key, lambda value: {True: word, False: None}.get(parse_switch(value), UNKNOWN))  # type: ignore[call-overload]


def _device_map(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    """Record whether accelerate spreads the model over the devices; a name such as "cuda:0" selects a single one."""
    if isinstance(value, str):
        spread = value in ("auto", "balanced", "balanced_low_0", "sequential")
        draft.feature("device-map", spread, origin, tentative=tentative)


def _fast_inference(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    """Record that unsloth generates with vLLM, to which it gives the adapter."""
    for feature in ("vllm", "vllm-lora"):
        draft.feature(feature, parse_switch(value), origin, tentative=tentative)


def _is_flash(value: object) -> object:
    """Whether FlashAttention is asked for, by the name of an implementation or by a switch."""
    on = parse_switch(value)
    if on is UNKNOWN and isinstance(value, str) and value not in ("", "auto", "None"):
        word = value.lower()
        on = "flash" in word or word in ("fa2", "fa3", "fa4")
    return on


def _quantization(value: object) -> object:
    bits = parse_count(value)
    return f"{bits}bit" if bits in (4, 8) else UNKNOWN


def _precision(value: object) -> object:
    return None if value in ("no", False) else precision_word(value) or UNKNOWN


def _is_checkpointing(value: object) -> object:
    # unsloth's own variant is selected by name
    return True if value == "unsloth" else parse_switch(value)


def _is_resumed(value: object) -> object:
    on = parse_switch(value)
    return value.lower() != "none" or UNKNOWN if on is UNKNOWN and isinstance(value, str) and value else on


def _model(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    # an object passed under this name was loaded elsewhere, where its name is read
    if isinstance(value, str) and value.strip() and value != "auto":
        draft.record("model", value.strip(), origin, tentative=tentative)


def _model_name(value: object) -> object:
    return (value.strip() if isinstance(value, str) else "") or UNKNOWN


def _deepspeed(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    if value is UNKNOWN or isinstance(value, bool):
        if value is not False:
            draft.feature("deepspeed", value, origin, tentative=tentative)
        return
    if isinstance(value, dict):
        deepspeed_facts(draft, value, lambda key: origin, tentative=tentative)
        return
    if not isinstance(value, str) or not value.strip():
        return
    draft.on("deepspeed", origin, tentative=tentative)
    base = value.strip().lower()
    if base[:4] == "zero" and base[4:5] in ("0", "1", "2", "3") and base[5:] in ("", "_offload"):
        zero_stage(draft, base[4], origin, tentative=tentative)  # a preset name of ms-swift and trl
        if base[5:]:
            draft.on("optimizer-offload", origin, tentative=tentative)
    elif not tentative:
        draft.configs.append(value.strip())


def _fsdp(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    if value is UNKNOWN:
        draft.feature("fsdp", UNKNOWN, origin, tentative=tentative)
    elif value and parse_switch(value) is not False:
        draft.on("fsdp", origin, tentative=tentative)
        words = value.split() if isinstance(value, str) else value if isinstance(value, list) else ()
        if "offload" in words:
            draft.on("fsdp-offload", origin, tentative=tentative)


def _fsdp_version(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    version = parse_count(value)
    draft.on("fsdp", origin, tentative=tentative)
    draft.feature("fsdp2", version == 2 if version in (1, 2) else UNKNOWN, origin, tentative=tentative)


def _fsdp_config(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    if isinstance(value, dict):
        version = value.get("fsdp_version", value.get("version"))
        if version is not None:
            _fsdp_version(draft, version, origin, tentative)
        for name in ("fsdp_cpu_ram_efficient_loading", "cpu_ram_efficient_loading"):
            if name in value:
                _feature("ram-efficient-loading")(draft, value[name], origin, tentative)
        for name in ("fsdp_offload_params", "offload_params"):
            if name in value:
                _feature("fsdp-offload")(draft, value[name], origin, tentative)
        # how the final model is saved, which axolotl may set apart from the checkpoints
        for name in ("final_state_dict_type", "state_dict_type", "fsdp_state_dict_type"):
            if isinstance(value.get(name), str):
                _feature("sharded-state-dict", _is_sharded)(draft, value[name], origin, tentative)
                break


def _is_sharded(value: object) -> object:
    """Whether FSDP saves a state dict of shards."""
    return value.upper() == "SHARDED_STATE_DICT" if isinstance(value, str) else None


def _word(name: str, *words: str) -> Reader:
    """Record whether a feature is on that some words turn on."""
    return _feature(name, lambda value: value in words if isinstance(value, str) else None)


def _is_truncating(value: object) -> object:
    """Whether axolotl cuts samples that are too long, instead of dropping them."""
    return value.lower() == "truncate" if isinstance(value, str) else None


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _is_scaled(value: object) -> object:
    """Whether completions are sampled at another temperature than 1."""
    number = _number(value)
    return None if number is None else number != 1


def _is_above_zero(value: object) -> object:
    """Whether one of several numbers that turn a feature on does so; 0 leaves it to the others."""
    number = _number(value)
    return (number is not None and number > 0) or None


def _is_wandb(value: object) -> object:
    """Whether the trainer logs to Weights & Biases; "all" stands for every installed integration."""
    words = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)):
        return None
    return UNKNOWN if UNKNOWN in words else any(word in ("wandb", "all") for word in words)


def _is_peft(value: object) -> object:
    return value.lower() not in ("full", "freeze", "none", "") if isinstance(value, str) else None


def _optimizer(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    for reader in (_word("8bit-adam", *ADAM_8BIT), _word("bitsandbytes-optimizer", *ADAM_8BIT, *OF_BITSANDBYTES)):
        reader(draft, value, origin, tentative)


def _mapping(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    if isinstance(value, dict):
        apply_all(draft, value, origin, tentative=tentative)


_attention, _checkpointing = _feature("flash-attention", _is_flash), _feature("gradient-checkpointing", _is_checkpointing)
_batch_size, _bits = _fact("batch_size", _positive), _fact("quantization", _quantization)
_named_model = _fact("model", _model_name)
_peft = _feature("peft", _is_peft)
_SWITCHES: dict[str, Reader] = {
    "use_vllm": _feature("vllm"), "fast_inference": _fast_inference, "vllm_enable_lora": _feature("vllm-lora"),
    "use_liger_kernel": _feature("liger"), "use_liger": _feature("liger"), "enable_liger_kernel": _feature("liger"),
    "packing": _feature("packing"), "sample_packing": _feature("packing"),
    "use_peft": _feature("peft"), "use_lora": _feature("peft"),
    "use_cache": _feature("no-cache", _is_off),
    "torch_compile": _feature("torch-compile"),
    "use_unsloth": _feature("unsloth"),
    "use_liger_loss": _feature("liger-loss"),
    "gradient_checkpointing": _checkpointing, "use_gradient_checkpointing": _checkpointing,
    "disable_gradient_checkpointing": _feature("gradient-checkpointing", _is_off),
    "bf16": _choice("precision", "bf16"), "fp16": _choice("precision", "fp16"),
    "device_map": _device_map,
    "flash_attn": _attention, "flash_attention": _attention, "use_flash_attn": _attention, "use_flash_attention_2": _attention,
    "load_in_4bit": _choice("quantization", "4bit"), "load_in_8bit": _choice("quantization", "8bit"),
    "resume_from_checkpoint": _feature("resume", _is_resumed), "deepspeed": _deepspeed, "fsdp": _fsdp,
}  # fmt: skip
_OPEN = ("resume_from_checkpoint", "deepspeed", "fsdp", "gradient_checkpointing", "use_gradient_checkpointing", "flash_attn",
         "flash_attention", "use_flash_attn")  # fmt: skip
"""Switches whose value may also be a name or a path."""

_OPTIONS: dict[str, Reader] = {
    **_SWITCHES,
    "per_device_train_batch_size": _batch_size, "per_gpu_train_batch_size": _batch_size,
    "micro_batch_size": _batch_size,
    "gradient_accumulation_steps": _feature("gradient-accumulation", _is_several),
    "mixed_precision": _fact("precision", _precision),
    "quantization_bit": _bits, "quant_bits": _bits,
    "model_name_or_path": _named_model, "pretrained_model_name_or_path": _named_model, "model_name": _named_model,
    "base_model": _named_model, "model": _model, "model_path": _model, "model_id": _model,
    "deepspeed_config": _deepspeed, "fsdp_config": _fsdp_config, "fsdp_version": _fsdp_version,
    "fsdp_cpu_ram_efficient_loading": _feature("ram-efficient-loading"), "fsdp_offload_params": _feature("fsdp-offload"),
    "fsdp_state_dict_type": _feature("sharded-state-dict", _is_sharded),
    "neat_packing": _feature("neat-packing"), "padding_free": _feature("padding-free"),
    "temperature": _feature("scaled-temperature", _is_scaled),
    "parallelism_config_cp_size": _feature("context-parallel", _is_several),
    # of axolotl, which brings its own attention
    "context_parallel_size": _feature("ring-attention", _is_several),
    "sequence_parallel_degree": _feature("ring-attention", _is_several),
    "optim": _optimizer, "optimizer": _optimizer, "use_8bit_adam": _feature("8bit-adam"),
    "warmup_steps": _feature("warmup", _is_above_zero), "warmup_ratio": _feature("warmup", _is_above_zero),
    "report_to": _feature("report-to-wandb", _is_wandb),
    "label_smoothing_factor": _feature("label-smoothing", _is_above_zero),
    "completion_only_loss": _feature("completion-only-loss"), "assistant_only_loss": _feature("assistant-only-loss"),
    # of peft and ms-swift, of trl and axolotl, of LLaMA-Factory
    "modules_to_save": _feature("modules-to-save", bool), "lora_modules_to_save": _feature("modules-to-save", bool),
    "additional_target": _feature("modules-to-save", bool),
    "embedding_learning_rate": _feature("embedding-learning-rate", lambda _: True),
    "vllm_enable_sleep_mode": _feature("vllm-sleep"), "enforce_eager": _feature("enforce-eager"),
    "precompute_ref_log_probs": _feature("precomputed-reference"),
    "activation_offloading": _feature("activation-offloading"),
    "excess_length_strategy": _feature("truncated-samples", _is_truncating),
    "vllm_mode": _word("vllm-colocate", "colocate"), "vllm_tensor_parallel_size": _feature("vllm-tensor-parallel", _is_several),
    "finetuning_type": _peft, "tuner_type": _peft, "train_type": _peft, "sft_type": _peft,
    "accepts_loss_kwargs": _feature("no-loss-kwargs", _is_off),
    "average_tokens_across_devices": _feature("no-token-average", _is_off),
    "gradient_checkpointing_kwargs": _mapping, "use_reentrant": _feature("reentrant-checkpointing"),
    "model_init_kwargs": _mapping, "attn_implementation": _attention, "attn_impl": _attention,
}  # fmt: skip


_KEYS_UNTIL_0_19_6 = ("nebula", "compression_training", "quantize_training", "sparse_attention",
                      "zero_optimization.mics_shard_size", "zero_optimization.mics_hierarchical_params_gather")  # fmt: skip
_KEYS_UNTIL_0_19_7 = ("amp", "sparse_gradients", "eigenvalue", "elasticity", "graph_harvesting", "curriculum_learning",
                      "progressive_layer_drop", "zero_optimization.zeropp_loco_param")  # fmt: skip
"""Keys that the next release of DeepSpeed refuses, whatever their values."""


def _removed_keys(draft: Draft, settings: Mapping[str, object], origin: Callable[[str], str], tentative: bool) -> None:
    zero = settings.get("zero_optimization")
    for name in (*settings, *(f"zero_optimization.{key}" for key in (zero if isinstance(zero, dict) else ()))):
        if name in _KEYS_UNTIL_0_19_6:
            draft.on("deepspeed-keys-until-0.19.6", origin(name.partition(".")[0]), tentative=tentative)
        elif name in _KEYS_UNTIL_0_19_7:
            draft.on("deepspeed-keys-until-0.19.7", origin(name.partition(".")[0]), tentative=tentative)


def _enabled(table: object) -> bool:
    return isinstance(table, dict) and table.get("enabled") is True


def _zero_facts(draft: Draft, zero: Mapping[str, object], origin: str, tentative: bool) -> None:
    if "stage" in zero:
        zero_stage(draft, zero["stage"], origin, tentative=tentative)
    offload = zero.get("offload_optimizer")
    device = offload.get("device") if isinstance(offload, dict) else None
    if isinstance(device, str) and device != "auto":
        draft.feature("optimizer-offload", device != "none", origin, tentative=tentative)
    elif zero.get("cpu_offload") is True:
        draft.on("optimizer-offload", origin, tentative=tentative)
    if zero.get("stage") == 3:
        on = zero.get("stage3_prefetch_bucket_size") == "auto"
        draft.feature("deepspeed-auto-buckets", on, origin, tentative=tentative)
    if isinstance(zero.get("overlap_comm"), bool):
        draft.feature("overlap-comm", zero["overlap_comm"], origin, tentative=tentative)
    if isinstance(zero.get("zero_quantized_weights"), bool):
        draft.feature("zero-quantized-weights", zero["zero_quantized_weights"], origin, tentative=tentative)


def deepspeed_facts(
    draft: Draft, settings: Mapping[str, object], origin: Callable[[str], str], *, tentative: bool = False
) -> None:
    """Record the facts of a DeepSpeed configuration; values left to transformers (``"auto"``) stay unknown."""
    draft.on("deepspeed", origin("zero_optimization"), tentative=tentative)
    zero = settings.get("zero_optimization")
    if isinstance(zero, dict):
        _zero_facts(draft, zero, origin("zero_optimization"), tentative)
    _removed_keys(draft, settings, origin, tentative)
    model_type = next((key for key in ("bf16", "fp16") if _enabled(settings.get(key))), None)
    communication = precision_word(settings.get("communication_data_type"))
    if communication is not None and model_type is not None:
        draft.feature("communication-type", communication != model_type, origin("communication_data_type"), tentative=tentative)
    types = settings.get("data_types")
    if isinstance(types, dict) and types.get("grad_accum_dtype") is not None:
        on = precision_word(types["grad_accum_dtype"]) == "fp32"
        draft.feature("fp32-gradient-accumulation", on, origin("data_types"), tentative=tentative)
    scheduler = settings.get("scheduler")
    schedule = scheduler.get("params") if isinstance(scheduler, dict) else None
    if isinstance(schedule, dict) and schedule.get("warmup_num_steps") == "auto":
        draft.on("deepspeed-auto-warmup", origin("scheduler"), tentative=tentative)
    if model_type is not None:
        draft.record("precision", model_type, origin(model_type), tentative=tentative)
    batch = settings.get("train_micro_batch_size_per_gpu")
    if parse_count(batch) == batch:
        apply_option(draft, "per_device_train_batch_size", batch, origin("train_micro_batch_size_per_gpu"), tentative=tentative)
    steps = settings.get("gradient_accumulation_steps")
    if parse_count(steps) == steps:
        apply_option(draft, "gradient_accumulation_steps", steps, origin("gradient_accumulation_steps"), tentative=tentative)
