"""Which workload reaches a function: the facts that must be known before a guard in it counts.

A row is (package, end of the module's name, functions, alternatives in the vocabulary of the described environment). A refusal
in a function without a row is dropped: a condition in code that is never called is irrelevant.
"""

from __future__ import annotations

import re

from compat.rules.facts import TRAINER_TASKS

_SUPERVISED = ("sft", "dpo", "grpo", "orpo", "kto", "cpo", "bco", "rloo", "reward", "train", "lora", "qlora", "pretrain")
_TRAINING = tuple(f"task={task}" for task in _SUPERVISED)
_TRAINERS = tuple(f"trainer={name}" for name in ("trainer", "seq2seqtrainer", *TRAINER_TASKS))
"""A task alone does not say that it is run by these."""
_SHARDED = ("feature=fsdp", "feature=fsdp2")
_DEEPSPEED = ("feature=deepspeed", "feature=zero-1", "feature=zero-2", "feature=zero-3", "launcher=deepspeed")
_SERVING = ("task=serve", "task=inference", "feature=vllm")
_CHECKS = r".*\.(validate_environment|__init__)"
_BITS = ("quantization=4bit", "quantization=8bit")
_QUANTIZERS = (
    "awq", "gptq", "torchao", "hqq", "aqlm", "eetq", "quanto", "higgs", "vptq", "mxfp4", "bitnet", "compressed-tensors",
)  # fmt: skip
_LORA = ("task=lora", "feature=peft")

ROWS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("transformers", r"trainer", r"Trainer\.(__init__|create_accelerator_and_postprocess)", _TRAINERS),
    ("transformers", r"training_args", r"TrainingArguments\.(__post_init__|_setup_devices|_validate_args)", _TRAINERS),
    ("transformers", r"quantizers\.quantizer_bnb_4bit", _CHECKS, ("quantization=4bit", "quantization=nf4")),
    ("transformers", r"quantizers\.quantizer_bnb_8bit", _CHECKS, ("quantization=8bit", "quantization=int8")),
    ("transformers", r"utils\.quantization_config", r"BitsAndBytesConfig\.post_init", _BITS),
    *(
        ("transformers", rf"quantizers\.quantizer_{name.replace('-', '_')}", _CHECKS, (f"quantization={name}",))
        for name in _QUANTIZERS
    ),
    ("transformers", r"deepspeed", r"HfDeepSpeedConfig\.__init__", _DEEPSPEED),
    ("peft", r"import_utils", r"is_(auto_gptq|gptqmodel|torchao)_available", _LORA),
    ("peft", r"import_utils", r"is_bnb_4bit_available", ("quantization=4bit", "task=qlora")),
    ("trl", r"import_utils", r"is_vllm_available", ("feature=vllm",)),
    ("accelerate", r"accelerator", r"Accelerator\.__init__", (*_TRAINERS, "launcher=accelerate")),
    ("accelerate", r"utils\.dataclasses", r"FullyShardedDataParallelPlugin\.__post_init__", _SHARDED),
    ("accelerate", r"utils\.fsdp_utils", r"fsdp2_\w+", ("feature=fsdp2",)),
    ("accelerate", r"utils\.dataclasses", r"DeepSpeedPlugin\.__post_init__", _DEEPSPEED),
    ("accelerate", r"accelerator", r"Accelerator\._prepare_deepspeed", _DEEPSPEED),
    ("deepspeed", r"runtime\.engine", r"DeepSpeedEngine\.(__init__|_do_sanity_check|_configure_with_arguments)", _DEEPSPEED),
    ("llamafactory", r"extras\.misc", r"check_dependencies", _TRAINING),
    ("sentence-transformers", r"trainer", r"SentenceTransformerTrainer\.__init__", ("trainer=sentencetransformertrainer",)),
    ("vllm", r"worker\.worker|worker\.gpu_worker|platforms\.cuda", r"(\w+\.)?_?check_if_(gpu_)?supports_dtype", _SERVING),
    ("sglang", r"entrypoints\.engine|server", r"_?_set_envs_and_config", _SERVING),
)  # fmt: skip
_OF_TRL = re.compile(r"(\w+?)(Trainer\.__init__|Config\.__post_init__)")
_STATE = re.compile(r"import_utils|dependency_versions_table|utils\.imports|layers\.quantization\.\w+")
"""Modules that state the least releases, or the least compute capability of a quantization."""


def may_say(package: str, module: str) -> bool:
    """Return whether anything in a module can be reached, or defines values that others compare with."""
    inside = module.partition(".")[2]
    of_trl = package == "trl" and inside.startswith("trainer.")
    return of_trl or _STATE.search(inside) is not None or any(
        owner == package and _ends(inside, pattern) for owner, pattern, _, _ in ROWS
    )  # fmt: skip


def reach_of(package: str, module: str, function: str) -> tuple[str, ...]:
    """Return the alternatives for a function; none if no workload is known to reach it."""
    inside = module.partition(".")[2]
    for owner, pattern, functions, alternatives in ROWS:
        if owner == package and _ends(inside, pattern) and re.fullmatch(functions, function):
            return alternatives
    found = _OF_TRL.fullmatch(function) if package == "trl" and inside.startswith("trainer.") else None
    if found is None:
        return ()
    trainer = f"{found[1]}trainer".lower()
    task = TRAINER_TASKS.get(trainer)
    return (f"trainer={trainer}", *((f"task={task}",) if task else ()))


def _ends(module: str, pattern: str) -> bool:
    return re.search(rf"(^|\.)({pattern})$", module) is not None
