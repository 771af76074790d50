"""Map names of training options to facts of a workload, for command lines, script keywords and recipe files.

The names are those of transformers' ``TrainingArguments``, trl's configs and ``ModelConfig``, peft, unsloth, vLLM,
LLaMA-Factory, axolotl and ms-swift; an option with the same meaning everywhere has one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from compat.workload.draft import UNKNOWN, Draft, parse_count, parse_switch, precision_word


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


def _switch(feature: str, *, inverse: bool = False) -> Callable[[Draft, object, str, bool], None]:
    def read(draft: Draft, value: object, origin: str, tentative: bool) -> None:
        on = parse_switch(value)
        draft.feature(feature, on if on is UNKNOWN or not inverse else not on, origin, tentative=tentative)

    return read


def _number(key: str) -> Callable[[Draft, object, str, bool], None]:
    def read(draft: Draft, value: object, origin: str, tentative: bool) -> None:
        number = parse_count(value)
        draft.record(key, UNKNOWN if number == 0 else number, origin, tentative=tentative)

    return read


def _choice(key: str, word: str) -> Callable[[Draft, object, str, bool], None]:
    """Read a switch that selects one of several values (``bf16``, ``load_in_4bit``); off, it says nothing of the others."""

    def read(draft: Draft, value: object, origin: str, tentative: bool) -> None:
        on = parse_switch(value)
        if on is not False:
            draft.record(key, word if on is True else UNKNOWN, origin, tentative=tentative)

    return read


def _several(feature: str) -> Callable[[Draft, object, str, bool], None]:
    """Read a number that turns a feature on if it is above 1."""

    def read(draft: Draft, value: object, origin: str, tentative: bool) -> None:
        number = parse_count(value)
        draft.feature(feature, number if number is UNKNOWN else number > 1, origin, tentative=tentative)

    return read


def _device_map(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    """Record whether accelerate spreads the model over the devices; a name such as "cuda:0" selects a single one."""
    if isinstance(value, str):
        spread = value in ("auto", "balanced", "balanced_low_0", "sequential")
        draft.feature("device-map", spread, origin, tentative=tentative)


def _fast_inference(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    """Record that unsloth generates with vLLM, to which it gives the adapter."""
    for feature in ("vllm", "vllm-lora"):
        draft.feature(feature, parse_switch(value), origin, tentative=tentative)


def _attention(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    """Record whether FlashAttention is asked for, by the name of an implementation or by a switch."""
    on = parse_switch(value)
    if on is UNKNOWN and isinstance(value, str) and value not in ("", "auto", "None"):
        word = value.lower()
        on = "flash" in word or word in ("fa2", "fa3", "fa4")
    draft.feature("flash-attention", on, origin, tentative=tentative)


def _bits(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    bits = parse_count(value)
    draft.record("quantization", f"{bits}bit" if bits in (4, 8) else UNKNOWN, origin, tentative=tentative)


def _mixed_precision(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    if value not in ("no", False):
        draft.record("precision", precision_word(value) or UNKNOWN, origin, tentative=tentative)


def _checkpointing(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    # unsloth's own variant is selected by name
    on = True if value == "unsloth" else parse_switch(value)
    draft.feature("gradient-checkpointing", on, origin, tentative=tentative)


def _resume(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    on = parse_switch(value)
    if on is UNKNOWN and isinstance(value, str) and value:
        on = value.lower() != "none" or UNKNOWN
    draft.feature("resume", on, origin, tentative=tentative)


def _model(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    # an object passed under this name was loaded elsewhere, where its name is read
    if isinstance(value, str) and value.strip() and value != "auto":
        draft.record("model", value.strip(), origin, tentative=tentative)


def _named_model(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    name = value.strip() if isinstance(value, str) else ""
    draft.record("model", name or UNKNOWN, origin, tentative=tentative)


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
                _switch("ram-efficient-loading")(draft, value[name], origin, tentative)
        for name in ("fsdp_offload_params", "offload_params"):
            if name in value:
                _switch("fsdp-offload")(draft, value[name], origin, tentative)
        # how the final model is saved, which axolotl may set apart from the checkpoints
        for name in ("final_state_dict_type", "state_dict_type", "fsdp_state_dict_type"):
            if isinstance(value.get(name), str):
                on = value[name].upper() == "SHARDED_STATE_DICT"
                draft.feature("sharded-state-dict", on, origin, tentative=tentative)
                break


def _vllm_mode(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    if value is UNKNOWN or isinstance(value, str):
        draft.feature("vllm-colocate", value if value is UNKNOWN else value == "colocate", origin, tentative=tentative)


def _given(feature: str) -> Callable[[Draft, object, str, bool], None]:
    """Read an option that is off as long as it is ``None``."""

    def read(draft: Draft, value: object, origin: str, tentative: bool) -> None:
        draft.feature(feature, value if value is UNKNOWN else value is not None, origin, tentative=tentative)

    return read


_ADAM_8BIT = ("adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit")
"""The names of bitsandbytes' 8-bit Adam; ``adamw_torch_8bit`` is torchao's."""


def _optimizer(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    if value is UNKNOWN or isinstance(value, str):
        draft.feature("8bit-adam", value if value is UNKNOWN else value in _ADAM_8BIT, origin, tentative=tentative)


def _listed(feature: str) -> Callable[[Draft, object, str, bool], None]:
    """Read an option that names what a feature is on for: a list, or words in one string."""

    def read(draft: Draft, value: object, origin: str, tentative: bool) -> None:
        draft.feature(feature, value if value is UNKNOWN else bool(value), origin, tentative=tentative)

    return read


def _temperature(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    """Record whether completions are sampled at another temperature than 1."""
    try:
        on = UNKNOWN if value is UNKNOWN else float(str(value)) != 1
    except ValueError:
        return
    draft.feature("scaled-temperature", on, origin, tentative=tentative)


def _excess_length(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    """Record whether axolotl cuts samples that are too long, instead of dropping them."""
    if value is UNKNOWN or isinstance(value, str):
        on = value if value is UNKNOWN else str(value).lower() == "truncate"
        draft.feature("truncated-samples", on, origin, tentative=tentative)


def _report_to(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    """Record whether the trainer logs to Weights & Biases; "all" stands for every installed integration."""
    on: object = UNKNOWN
    if value is not UNKNOWN:
        words = value.replace(",", " ").split() if isinstance(value, str) else value
        if not isinstance(words, (list, tuple)):
            return
        on = UNKNOWN if UNKNOWN in words else any(word in ("wandb", "all") for word in words)
    draft.feature("report-to-wandb", on, origin, tentative=tentative)


def _above_zero(feature: str) -> Callable[[Draft, object, str, bool], None]:
    """Read one of several numbers that turn a feature on; 0 leaves it to the others."""

    def read(draft: Draft, value: object, origin: str, tentative: bool) -> None:
        try:
            on = UNKNOWN if value is UNKNOWN else float(str(value)) > 0
        except ValueError:
            return
        if on:
            draft.feature(feature, on, origin, tentative=tentative)

    return read


def _peft_type(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    if isinstance(value, str):
        draft.feature("peft", value.lower() not in ("full", "freeze", "none", ""), origin, tentative=tentative)
    elif value is UNKNOWN:
        draft.feature("peft", UNKNOWN, origin, tentative=tentative)


def _mapping(draft: Draft, value: object, origin: str, tentative: bool) -> None:
    if isinstance(value, dict):
        apply_all(draft, value, origin, tentative=tentative)


_SWITCHES: dict[str, Callable[[Draft, object, str, bool], None]] = {
    "use_vllm": _switch("vllm"), "fast_inference": _fast_inference, "vllm_enable_lora": _switch("vllm-lora"),
    "use_liger_kernel": _switch("liger"), "use_liger": _switch("liger"), "enable_liger_kernel": _switch("liger"),
    "packing": _switch("packing"), "sample_packing": _switch("packing"),
    "use_peft": _switch("peft"), "use_lora": _switch("peft"),
    "use_cache": _switch("no-cache", inverse=True),
    "torch_compile": _switch("torch-compile"),
    "use_unsloth": _switch("unsloth"),
    "gradient_checkpointing": _checkpointing, "use_gradient_checkpointing": _checkpointing,
    "disable_gradient_checkpointing": _switch("gradient-checkpointing", inverse=True),
    "bf16": _choice("precision", "bf16"), "fp16": _choice("precision", "fp16"),
    "device_map": _device_map,
    "flash_attn": _attention, "flash_attention": _attention, "use_flash_attn": _attention, "use_flash_attention_2": _attention,
    "load_in_4bit": _choice("quantization", "4bit"), "load_in_8bit": _choice("quantization", "8bit"),
    "resume_from_checkpoint": _resume, "deepspeed": _deepspeed, "fsdp": _fsdp,
}  # fmt: skip
_OPEN = ("resume_from_checkpoint", "deepspeed", "fsdp", "gradient_checkpointing", "use_gradient_checkpointing", "flash_attn",
         "flash_attention", "use_flash_attn")  # fmt: skip
"""Switches whose value may also be a name or a path."""

_OPTIONS: dict[str, Callable[[Draft, object, str, bool], None]] = {
    **_SWITCHES,
    "per_device_train_batch_size": _number("batch_size"), "per_gpu_train_batch_size": _number("batch_size"),
    "micro_batch_size": _number("batch_size"),
    "gradient_accumulation_steps": _several("gradient-accumulation"),
    "mixed_precision": _mixed_precision,
    "quantization_bit": _bits, "quant_bits": _bits,
    "model_name_or_path": _named_model, "pretrained_model_name_or_path": _named_model, "model_name": _named_model,
    "base_model": _named_model, "model": _model, "model_path": _model, "model_id": _model,
    "deepspeed_config": _deepspeed, "fsdp_config": _fsdp_config, "fsdp_version": _fsdp_version,
    "fsdp_cpu_ram_efficient_loading": _switch("ram-efficient-loading"), "fsdp_offload_params": _switch("fsdp-offload"),
    "neat_packing": _switch("neat-packing"), "padding_free": _switch("padding-free"), "temperature": _temperature,
    "parallelism_config_cp_size": _several("context-parallel"),
    "optim": _optimizer, "optimizer": _optimizer, "use_8bit_adam": _switch("8bit-adam"),
    "warmup_steps": _above_zero("warmup"), "warmup_ratio": _above_zero("warmup"),
    "report_to": _report_to,
    "label_smoothing_factor": _above_zero("label-smoothing"),
    "completion_only_loss": _switch("completion-only-loss"), "assistant_only_loss": _switch("assistant-only-loss"),
    # of peft and ms-swift, of trl and axolotl, of LLaMA-Factory
    "modules_to_save": _listed("modules-to-save"), "lora_modules_to_save": _listed("modules-to-save"),
    "additional_target": _listed("modules-to-save"),
    "embedding_learning_rate": _given("embedding-learning-rate"),
    "vllm_enable_sleep_mode": _switch("vllm-sleep"), "precompute_ref_log_probs": _switch("precomputed-reference"),
    "activation_offloading": _switch("activation-offloading"), "excess_length_strategy": _excess_length,
    "vllm_mode": _vllm_mode, "vllm_tensor_parallel_size": _several("vllm-tensor-parallel"),
    "finetuning_type": _peft_type, "tuner_type": _peft_type, "train_type": _peft_type, "sft_type": _peft_type,
    "model_init_kwargs": _mapping, "attn_implementation": _attention, "attn_impl": _attention,
}  # fmt: skip


def _enabled(table: object) -> bool:
    return isinstance(table, dict) and table.get("enabled") is True


def deepspeed_facts(
    draft: Draft, settings: Mapping[str, object], origin: Callable[[str], str], *, tentative: bool = False
) -> None:
    """Record the facts of a DeepSpeed configuration; values left to transformers (``"auto"``) stay unknown."""
    draft.on("deepspeed", origin("zero_optimization"), tentative=tentative)
    zero = settings.get("zero_optimization")
    if isinstance(zero, dict):
        if "stage" in zero:
            zero_stage(draft, zero["stage"], origin("zero_optimization"), tentative=tentative)
        offload = zero.get("offload_optimizer")
        device = offload.get("device") if isinstance(offload, dict) else None
        if isinstance(device, str) and device != "auto":
            draft.feature("optimizer-offload", device != "none", origin("zero_optimization"), tentative=tentative)
        elif zero.get("cpu_offload") is True:
            draft.on("optimizer-offload", origin("zero_optimization"), tentative=tentative)
        if isinstance(zero.get("overlap_comm"), bool):
            draft.feature("overlap-comm", zero["overlap_comm"], origin("zero_optimization"), tentative=tentative)
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
