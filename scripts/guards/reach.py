"""Which workload reaches a function: the facts that must be known before a guard in it counts.

A refusal in a function without a row is dropped: a condition in code that is never called is irrelevant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compat.rules.facts import TRAINER_TASKS

_SUPERVISED = ("sft", "dpo", "grpo", "orpo", "kto", "cpo", "bco", "rloo", "reward", "train", "lora", "qlora", "pretrain")
_TRAINING = tuple(f"task={task}" for task in _SUPERVISED)
_TRAINERS = tuple(f"trainer={name}" for name in ("trainer", "seq2seqtrainer", *TRAINER_TASKS))
"""A task alone does not say that it is run by these."""
_SHARDED = ("feature=fsdp", "feature=fsdp2")
_DEEPSPEED = ("feature=deepspeed", "feature=zero-1", "feature=zero-2", "feature=zero-3", "launcher=deepspeed")
_SERVED = ("task=serve", "task=inference")
_SERVING = (*_SERVED, "feature=vllm")
_PLUGIN = r"deepspeed_plugins?( is not None)?|not is_mlu_available\(\)"
_CHECKS = r".*\.(validate_environment|__init__)"
_BITS = ("quantization=4bit", "quantization=8bit")
_QUANTIZERS = (
    "awq", "gptq", "torchao", "hqq", "aqlm", "eetq", "quanto", "higgs", "vptq", "mxfp4", "bitnet", "compressed-tensors",
)  # fmt: skip


@dataclass(frozen=True)
class Way:
    """How functions are reached: ``alternatives`` are in the vocabulary of the described environment.

    ``module`` and ``functions`` are patterns, of the end of the module's name and of dotted names ("" is the module itself).
    ``implied``: guards that hold whenever the alternatives do; if it is given, a refusal needs such a guard to be reached so.
    """

    package: str
    module: str
    functions: str
    alternatives: tuple[str, ...]
    implied: str = ""


ROWS = (
    Way("transformers", r"trainer", r"Trainer\.(__init__|create_accelerator_and_postprocess)", _TRAINERS),
    Way("transformers", r"training_args", r"TrainingArguments\.(__post_init__|_setup_devices|_validate_args)", _TRAINERS),
    Way("transformers", r"quantizers\.quantizer_bnb_4bit", _CHECKS, ("quantization=4bit", "quantization=nf4")),
    Way("transformers", r"quantizers\.quantizer_bnb_8bit", _CHECKS, ("quantization=8bit", "quantization=int8")),
    Way("transformers", r"utils\.quantization_config", r"BitsAndBytesConfig\.post_init", _BITS),
    *(
        Way("transformers", rf"quantizers\.quantizer_{name.replace('-', '_')}", _CHECKS, (f"quantization={name}",))
        for name in _QUANTIZERS
    ),
    Way("transformers", r"deepspeed", r"HfDeepSpeedConfig\.__init__", _DEEPSPEED),
    Way("peft", r"import_utils", r"is_bnb_4bit_available", ("quantization=4bit", "task=qlora")),
    Way("trl", r"import_utils", r"is_vllm_available", ("feature=vllm",)),
    Way("accelerate", r"accelerator", r"Accelerator\.__init__", _DEEPSPEED, _PLUGIN),
    Way("accelerate", r"accelerator", r"Accelerator\.__init__", (*_TRAINERS, "launcher=accelerate")),
    Way("accelerate", r"utils\.dataclasses", r"FullyShardedDataParallelPlugin\.__post_init__", _SHARDED),
    Way("accelerate", r"utils\.fsdp_utils", r"fsdp2_\w+", ("feature=fsdp2",)),
    Way("accelerate", r"utils\.dataclasses", r"DeepSpeedPlugin\.__post_init__", _DEEPSPEED),
    Way("accelerate", r"accelerator", r"Accelerator\._prepare_deepspeed", _DEEPSPEED),
    Way("deepspeed", r"runtime\.engine", r"DeepSpeedEngine\.(__init__|_do_sanity_check|_configure_with_arguments)", _DEEPSPEED),
    Way("llamafactory", r"extras\.misc", r"check_dependencies", _TRAINING),
    Way("sentence-transformers", r"trainer", r"SentenceTransformerTrainer\.__init__", ("trainer=sentencetransformertrainer",)),
    Way("vllm", r"worker\.worker|worker\.gpu_worker|platforms\.cuda", r"(\w+\.)?_?check_if_(gpu_)?supports_dtype", _SERVING),
    Way("sglang", r"entrypoints\.engine|server", r"_?_set_envs_and_config", _SERVED),
    Way("sglang", r"model_runner", r"ModelRunner\.load_model", _SERVED, r"self\.device == 'cuda'"),
    Way("sglang", r"load_model_utils", r"maybe_downgrade_dtype_for_legacy_gpu", _SERVED),
    Way("optimum", r"utils\.import_utils", r"is_(auto_gptq|gptqmodel)_available", ("quantization=gptq",)),
    Way("axolotl", r"schemas\.config", r"\w+\.check_fsdp_torch_version", ("feature=fsdp2",), r".*'fsdp_version'.*== '2'"),
    Way("ms-swift", r"rlhf_args", r"RLHFArguments\._check_grpo", ("task=grpo",), r"not \(self\.rlhf_type != 'grpo'\)"),
    Way("ms-swift", r"arguments|train_args", r"\w+\._init_liger", ("feature=liger",)),
    Way("liger-kernel", r"transformers\.monkey_patch", r"", ("feature=liger",)),
)  # fmt: skip
_OF_TRL = re.compile(r"(\w+?)(Trainer\.__init__|Config\.__post_init__)")
_STATE = re.compile(r"import_utils|dependency_versions_table|utils\.imports|layers\.quantization\.\w+")
"""Modules that state the least releases, or the least compute capability of a quantization."""


def may_say(package: str, module: str) -> bool:
    """Return whether anything in a module can be reached, or defines values that others compare with."""
    inside = module.partition(".")[2]
    of_trl = package == "trl" and inside.startswith("trainer.")
    return of_trl or _STATE.search(inside) is not None or any(
        way.package == package and _ends(inside, way.module) for way in ROWS
    )  # fmt: skip


def reach_of(package: str, module: str, function: str, guards: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the alternatives for a refusal (none if no workload is known to reach it), and the guards they do not imply."""
    inside = module.partition(".")[2]
    for way in ROWS:
        if way.package != package or not _ends(inside, way.module) or not re.fullmatch(way.functions, function):
            continue
        left = tuple(guard for guard in guards if not way.implied or not re.fullmatch(way.implied, guard))
        if not way.implied or len(left) < len(guards):
            return way.alternatives, left
    found = _OF_TRL.fullmatch(function) if package == "trl" and inside.startswith("trainer.") else None
    if found is None:
        return (), tuple(guards)
    trainer = f"{found[1]}trainer".lower()
    task = TRAINER_TASKS.get(trainer)
    return (f"trainer={trainer}", *((f"task={task}",) if task else ())), tuple(guards)


def _ends(module: str, pattern: str) -> bool:
    return re.search(rf"(^|\.)({pattern})$", module) is not None
