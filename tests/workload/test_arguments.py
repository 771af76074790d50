"""Option names → facts, and how a script's words are split into options."""

from __future__ import annotations

from typing import Any

import pytest

from compat.model import Workload
from compat.workload.arguments import apply_option, parse_words
from compat.workload.draft import UNKNOWN, Draft


def said(*options: tuple[str, Any], last_wins: bool = False) -> Workload:
    draft = Draft(last_wins=last_wins)
    for at, (name, value) in enumerate(options, 1):
        apply_option(draft, name, value, f"line {at}")
    return draft.workload()


@pytest.mark.parametrize(("name", "value", "key", "expected"), [
    ("per_device_train_batch_size", "4", "batch_size", 4), ("per_device_train_batch_size", 4, "batch_size", 4),
    ("per_device_train_batch_size", 0, "batch_size", None), ("per_device_train_batch_size", "auto", "batch_size", None),
    ("per_device_train_batch_size", True, "batch_size", None), ("micro_batch_size", 2, "batch_size", 2),
    ("bf16", True, "precision", "bf16"), ("bf16", "true", "precision", "bf16"), ("bf16", False, "precision", None),
    ("fp16", True, "precision", "fp16"), ("bf16", "auto", "precision", None), ("mixed_precision", "fp8", "precision", "fp8"),
    ("mixed_precision", "no", "precision", None), ("load_in_4bit", True, "quantization", "4bit"), ("load_in_8bit", "True", "quantization", "8bit"),
    ("load_in_4bit", False, "quantization", None), ("quantization_bit", 4, "quantization", "4bit"), ("quant_bits", "3", "quantization", None),
    ("model_name_or_path", "mistralai/Mistral-7B", "model", "mistralai/Mistral-7B"), ("model_name_or_path", UNKNOWN, "model", None),
    ("model", UNKNOWN, "model", None), ("model", "Qwen/Qwen3-4B", "model", "Qwen/Qwen3-4B"),
])  # fmt: skip
def test_values(name: str, value: Any, key: str, expected: Any) -> None:
    assert getattr(said((name, value)), key) == expected


@pytest.mark.parametrize(("name", "value", "on", "off"), [
    ("use_vllm", True, ("vllm",), None), ("use_vllm", "no", None, ("vllm",)), ("use_vllm", UNKNOWN, None, None), ("use_vllm", None, None, None),
    ("fast_inference", True, ("vllm", "vllm-lora"), None), ("vllm_enable_lora", "true", ("vllm-lora",), None),
    ("use_liger_kernel", True, ("liger",), None), ("packing", False, None, ("packing",)),
    ("use_cache", False, ("no-cache",), None), ("use_cache", True, None, ("no-cache",)),
    ("gradient_checkpointing", "unsloth", ("gradient-checkpointing",), None), ("use_gradient_checkpointing", False, None, ("gradient-checkpointing",)),
    ("disable_gradient_checkpointing", True, None, ("gradient-checkpointing",)),
    ("gradient_accumulation_steps", 8, ("gradient-accumulation",), None), ("gradient_accumulation_steps", "1", None, ("gradient-accumulation",)),
    ("gradient_accumulation_steps", "auto", None, None), ("resume_from_checkpoint", "out/checkpoint-5", ("resume",), None),
    ("resume_from_checkpoint", False, None, ("resume",)), ("torch_compile", True, ("torch-compile",), None), ("use_peft", True, ("peft",), None),
    ("fsdp", "full_shard auto_wrap", ("fsdp",), None), ("fsdp", "", None, None), ("fsdp", ["full_shard"], ("fsdp",), None), ("fsdp", False, None, None),
    ("fsdp_config", {"fsdp_version": 2}, ("fsdp", "fsdp2"), None), ("fsdp_version", 1, ("fsdp",), ("fsdp2",)),
    ("deepspeed", "ds.json", ("deepspeed",), None), ("deepspeed", "zero3", ("deepspeed", "zero-3"), ("zero-1", "zero-2")),
    ("deepspeed", "zero2_offload", ("deepspeed", "zero-2", "optimizer-offload"), ("zero-1", "zero-3")), ("deepspeed", False, None, None),
    ("deepspeed", {"zero_optimization": {"stage": 0}}, ("deepspeed",), ("zero-1", "zero-2", "zero-3")),
    ("finetuning_type", "lora", ("peft",), None), ("finetuning_type", "full", None, ("peft",)),
    ("model_init_kwargs", {"use_cache": False}, ("no-cache",), None), ("use_unsloth", True, ("unsloth",), None),
    ("optim", "adamw_bnb_8bit", ("8bit-adam", "bitsandbytes-optimizer"), None),
    ("optim", "paged_adamw_32bit", ("bitsandbytes-optimizer",), ("8bit-adam",)), ("optim", UNKNOWN, None, None),
    ("optim", "adamw_torch_8bit", None, ("8bit-adam", "bitsandbytes-optimizer")),
    ("optim", "lion_8bit", ("bitsandbytes-optimizer",), ("8bit-adam",)),
    ("optimizer", "adamw_8bit", ("8bit-adam", "bitsandbytes-optimizer"), None),
    ("report_to", "wandb", ("report-to-wandb",), None), ("report_to", ["tensorboard", "wandb"], ("report-to-wandb",), None),
    ("report_to", "all", ("report-to-wandb",), None), ("report_to", "none", None, ("report-to-wandb",)), ("report_to", [], None, ("report-to-wandb",)),
    ("report_to", UNKNOWN, None, None), ("report_to", ["tensorboard", UNKNOWN], None, None), ("report_to", None, None, None),
    ("modules_to_save", ["lm_head"], ("modules-to-save",), None), ("lora_modules_to_save", [], None, ("modules-to-save",)),
    ("additional_target", "embed_tokens,lm_head", ("modules-to-save",), None), ("modules_to_save", UNKNOWN, None, None),
    ("vllm_enable_sleep_mode", True, ("vllm-sleep",), None), ("precompute_ref_log_probs", "true", ("precomputed-reference",), None),
    ("activation_offloading", False, None, ("activation-offloading",)), ("activation_offloading", True, ("activation-offloading",), None),
    ("excess_length_strategy", "truncate", ("truncated-samples",), None), ("excess_length_strategy", "drop", None, ("truncated-samples",)),
    ("fsdp_config", {"fsdp_version": 2, "state_dict_type": "SHARDED_STATE_DICT"}, ("fsdp", "fsdp2", "sharded-state-dict"), None),
    ("fsdp_config", {"state_dict_type": "SHARDED_STATE_DICT", "final_state_dict_type": "FULL_STATE_DICT"}, None, ("sharded-state-dict",)),
    ("fsdp", "full_shard auto_wrap offload", ("fsdp", "fsdp-offload"), None), ("neat_packing", True, ("neat-packing",), None),
    ("fsdp_config", {"offload_params": True}, ("fsdp-offload",), None), ("padding_free", "true", ("padding-free",), None),
    ("temperature", 0.7, ("scaled-temperature",), None), ("temperature", "1", None, ("scaled-temperature",)),
    ("temperature", 1.0, None, ("scaled-temperature",)), ("temperature", UNKNOWN, None, None), ("temperature", None, None, None),
    ("use_8bit_adam", True, ("8bit-adam",), None), ("optimizer", {"type": "AdamW"}, None, None),
    ("attn_implementation", "flash_attention_2", ("flash-attention",), None), ("attn_implementation", "sdpa", None, ("flash-attention",)),
    ("flash_attn", "fa2", ("flash-attention",), None), ("flash_attn", "auto", None, None), ("flash_attn", "disabled", None, ("flash-attention",)),
    ("flash_attention", True, ("flash-attention",), None), ("attn_impl", "flash_attn", ("flash-attention",), None),
    ("use_liger_loss", True, ("liger-loss",), None), ("label_smoothing_factor", 0.1, ("label-smoothing",), None), ("label_smoothing_factor", "0", None, None),
    ("completion_only_loss", True, ("completion-only-loss",), None), ("completion_only_loss", None, None, None),
    ("gradient_checkpointing_kwargs", {"use_reentrant": True}, ("reentrant-checkpointing",), None),
    ("gradient_checkpointing_kwargs", {"use_reentrant": False}, None, ("reentrant-checkpointing",)), ("gradient_checkpointing_kwargs", {}, None, None),
    ("average_tokens_across_devices", False, ("no-token-average",), None), ("average_tokens_across_devices", "true", None, ("no-token-average",)),
    ("assistant_only_loss", "false", None, ("assistant-only-loss",)), ("assistant_only_loss", True, ("assistant-only-loss",), None),
])  # fmt: skip
def test_features(name: str, value: Any, on: tuple[str, ...] | None, off: tuple[str, ...] | None) -> None:
    found = said((name, value))
    assert (found.features, found.features_absent) == (on, off)


def test_a_name_that_means_nothing_here() -> None:
    draft = Draft()
    assert not apply_option(draft, "learning_rate", 1e-4, "x")
    assert draft.workload() == Workload()


def test_a_source_that_contradicts_itself_leaves_it_unknown() -> None:
    options = (("use_vllm", True), ("use_vllm", False), ("per_device_train_batch_size", 2), ("per_device_train_batch_size", 4))
    assert said(*options) == Workload()
    last = said(*options, last_wins=True)
    assert (last.features_absent, last.batch_size) == (("vllm",), 4)
    assert last.origins == {"features.vllm": "line 2", "batch_size": "line 4"}


def test_contradictions_are_told_with_their_places() -> None:
    draft = Draft()
    draft.record("batch_size", 2, "a.py:1")
    draft.record("batch_size", 4, "a.py:9")
    draft.on("vllm", "a.py:3")
    assert draft.contradictions() == ("batch_size stays unknown: 2 (a.py:1) and 4 (a.py:9)",)


def test_what_holds_only_under_a_condition_is_not_known() -> None:
    draft = Draft()
    draft.on("peft", "a", tentative=True)
    draft.record("task", "sft", "a", tentative=True)
    draft.on("vllm", "a", tentative=True)
    draft.on("vllm", "b")
    found = draft.workload()
    assert (found.features, found.task) == (("vllm",), "sft")
    assert found.origins["features.vllm"] == "b"


@pytest.mark.parametrize(("words", "options", "others"), [
    (["--a-b", "c"], [("a_b", "c")], []), (["--a=b=c"], [("a", "b=c")], []), (["x", "--use_vllm", "z"], [("use_vllm", True)], ["x", "z"]),
    (["--use_vllm", "false", "z"], [("use_vllm", "false")], ["z"]), (["--lr", "-1"], [("lr", "-1")], []), (["--a", "--b"], [("a", True), ("b", True)], []),
    (["--no_packing"], [("packing", False)], []), (["--no_such", "x"], [("no_such", "x")], []), (["-tp", "2"], [("tp", "2")], []),
    (["--deepspeed", "ds.json"], [("deepspeed", "ds.json")], []), (["--model", "$M"], [("model", UNKNOWN)], []), (["-"], [], ["-"]), ([], [], []),
])  # fmt: skip
def test_words(words: list[str], options: list[tuple[str, Any]], others: list[str]) -> None:
    assert parse_words(words) == (options, others)
