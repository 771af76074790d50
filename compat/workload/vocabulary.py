"""The words that describe a job: tasks, precisions, quantizations and features, and how their spellings are recognised."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VOCABULARY: Mapping[str, tuple[str, ...]] = {
    "task": ("sft", "grpo", "dpo", "ppo", "orpo", "kto", "cpo", "bco", "reward", "rloo", "online-dpo", "xpo", "nash-md",
             "simpo", "gkd", "prm", "qlora", "lora", "train", "pretrain", "inference", "serve", "import", "install", "build"),
    "precision": ("bf16", "fp16", "fp32", "fp8", "tf32"),
    "quantization": ("4bit", "8bit", "none"),
    "features": ("vllm", "zero-1", "zero-2", "zero-3", "fsdp", "fsdp2", "deepspeed", "peft", "liger",
                 "liger-loss", "packing", "no-cache", "gradient-checkpointing", "reentrant-checkpointing", "no-loss-kwargs",
                 "no-token-average",
                 "gradient-accumulation", "optimizer-offload", "torch-compile", "resume", "unsloth",
                 "unsloth-imported-late", "padded-prompts", "default-precision", "default-dtype", "prefix-tuning",
                 "prompt-tuning", "device-map", "vllm-colocate", "late-modules", "openai-server", "vllm-tensor-parallel",
                 "embedding-learning-rate",
                 "flash-attention", "vllm-lora", "local-model", "vllm-speculative", "vllm-prefix-caching",
                 "vllm-async-scheduling", "tensor-parallel", "pipeline-parallel", "enforce-eager",
                 "8bit-adam", "bitsandbytes-optimizer", "warmup",
                 "deepspeed-auto-warmup",
                 "deepspeed-auto-buckets",
                 "deepspeed-keys-until-0.19.6", "deepspeed-keys-until-0.19.7",
                 "report-to-wandb", "modules-to-save", "classifier-adapter", "masked-lm", "overlap-comm",
                 "zero-quantized-weights", "fp32-gradient-accumulation",
                 "vllm-sleep", "precomputed-reference", "activation-offloading",
                 "sharded-state-dict", "truncated-samples", "fsdp-offload", "neat-packing", "padding-free",
                 "scaled-temperature", "communication-type", "label-smoothing", "completion-only-loss",
                 "assistant-only-loss", "no-custom-all-reduce", "sglang-p2p-check", "guided-request-fields",
                 "lmcache", "fp8-kv-cache", "vllm-ray-data-parallel", "vllm-tool-server", "vllm-aiter-triton-mla",
                 "vllm-xformers",
                 "sglang-nixl", "sglang-flashinfer", "uv-run", "ray-serve-llm", "default-shm",
                 "context-parallel", "ring-attention", "data-from-datasets-4", "dataset-script", "device-map-without-memory",
                 "ram-efficient-loading", "tokenizer-json-0.20", "trl-experimental", "model-by-name", "trl-script",
                 "trl-command", "own-trainer", "without-trl", "without-trainer",
                 "quantized-checkpoint", "dequantized-checkpoint", "quantized-activations",
                 "empty-weights", "multimodal"),
}  # fmt: skip
"""The words known for each key of a workload. The features are those that rules ask for, and ``multimodal``, which says that an
unknown model is likely one of those that also read images."""

_OTHER_NAMES = {
    "task": {"finetune": "train", "finetuning": "train", "training": "train", "pretraining": "pretrain", "serving": "serve",
             "generate": "inference", "generation": "inference"},
    "precision": {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float8": "fp8"},
    "quantization": {"int4": "4bit", "int8": "8bit", "nf4": "4bit", "no": "none", "bnb-4bit": "4bit", "bnb-8bit": "8bit",
                     "gptq-int4": "gptq", "gptq-4bit": "gptq", "awq-int4": "awq", "awq-4bit": "awq"},
    "features": {
        "flash-attention-2": "flash-attention", "flash-attn": "flash-attention", "device-map-auto": "device-map",
        "sleep-mode": "vllm-sleep", "vllm-sleep-mode": "vllm-sleep", "enable-sleep-mode": "vllm-sleep",
        "lora": "peft", "qlora": "peft", "liger-kernel": "liger", "compile": "torch-compile",
        "activation-checkpointing": "gradient-checkpointing", "colocate": "vllm-colocate", "zero": "deepspeed",
        "speculative-decoding": "vllm-speculative", "prefix-caching": "vllm-prefix-caching", "enable-lora": "vllm-lora",
        "async-scheduling": "vllm-async-scheduling", "kv-cache-fp8": "fp8-kv-cache", "sequence-packing": "packing",
        "vision": "multimodal", "vision-language": "multimodal",
    },
}  # fmt: skip

ADAM_8BIT = ("adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit")
"""The names of bitsandbytes' 8-bit Adam; ``adamw_torch_8bit`` is torchao's."""
OF_BITSANDBYTES = (
    "paged_adamw_32bit", "ademamix", "rmsprop_bnb",
    *(f"{kind}_{bits}bit" for kind in ("lion", "paged_lion", "ademamix", "paged_ademamix", "rmsprop_bnb") for bits in (8, 32)),
)  # fmt: skip
"""The names of its other optimizers."""
CLASSES_OF_BITSANDBYTES = (
    "Adam32bit", "AdamW32bit", "PagedAdam32bit", "PagedAdamW32bit", "Lion8bit", "Lion32bit", "PagedLion8bit", "PagedLion32bit",
    "AdEMAMix8bit", "AdEMAMix32bit", "PagedAdEMAMix8bit", "RMSprop8bit",
)  # fmt: skip
"""Their classes in ``bitsandbytes.optim``."""


def recognised(key: str, value: str) -> tuple[str, str | None]:
    """The word that ``value`` spells, such as ``zero-3`` for ``ZeRO3`` and ``bf16`` for ``torch.bfloat16``.

    For a word that is not known: the value itself, and the known word that it resembles, if any.
    """
    known = VOCABULARY.get(key)
    if known is None or value in known:
        return value, None
    spelled = _plain(value.removeprefix("torch."))
    for name, word in (*((each, each) for each in known), *_OTHER_NAMES.get(key, {}).items()):
        if _plain(name) == spelled:
            return word, None
    import difflib

    near = difflib.get_close_matches(value.lower(), known, 1, 0.7)
    return value, near[0] if near else None


def of_features(features: Sequence[str]) -> dict[str, str]:
    """The precision and the quantization that stand among the features (``4bit``), by their keys."""
    known = {key: [word for word in VOCABULARY[key] if word != "none"] for key in ("precision", "quantization")}
    return {key: word for key, words in known.items() for each in features if (word := recognised(key, each)[0]) in words}


def _plain(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "").replace(" ", "")
