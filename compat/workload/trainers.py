"""The trainers of transformers, trl, sentence-transformers and setfit, and the task of each."""

from __future__ import annotations

TASKS = {
    "SFTTrainer": "sft", "GRPOTrainer": "grpo", "DPOTrainer": "dpo", "PPOTrainer": "ppo", "ORPOTrainer": "orpo",
    "KTOTrainer": "kto", "RewardTrainer": "reward", "RLOOTrainer": "rloo", "OnlineDPOTrainer": "online-dpo",
    "XPOTrainer": "xpo", "NashMDTrainer": "nash-md", "CPOTrainer": "cpo", "BCOTrainer": "bco", "GKDTrainer": "gkd",
    "GOLDTrainer": "gold", "PRMTrainer": "prm", "TPOTrainer": "tpo", "DistillationTrainer": "distillation",
    "AsyncGRPOTrainer": "grpo", "GMPOTrainer": "grpo", "IterativeSFTTrainer": "sft", "SDFTTrainer": "sdft",
    "DDPOTrainer": "ddpo", "AlignPropTrainer": "alignprop",
    "Trainer": "train", "Seq2SeqTrainer": "train",
    "SentenceTransformerTrainer": "train", "CrossEncoderTrainer": "train", "SparseEncoderTrainer": "train",
    "SetFitTrainer": "train",
}  # fmt: skip
"""Class → task, from trl 0.15 to 1.16, transformers, sentence-transformers and setfit."""

_SAME = {"UnslothTrainer": "SFTTrainer", "PPOv2Trainer": "PPOTrainer", "RLOOv2Trainer": "RLOOTrainer"}
"""Other names of trl's classes, and subclasses that add nothing but a default."""

_OF_SETFIT = ("Trainer", "DistillationTrainer")
"""Trainers of setfit with the names of another library's; reported as SetFitTrainer, the former name of the first."""

ONLY_FROM = {"Trainer": "transformers", "Seq2SeqTrainer": "transformers"}
"""Names that other libraries use for something else."""

TRAINERS = {
    "sft": "SFTTrainer", "grpo": "GRPOTrainer", "dpo": "DPOTrainer", "kto": "KTOTrainer", "reward": "RewardTrainer",
    "rloo": "RLOOTrainer", "distillation": "DistillationTrainer", "orpo": "ORPOTrainer", "ppo": "PPOTrainer",
}  # fmt: skip
"""Task → trl's class, for commands that name the task."""

CONFIGS = frozenset(
    {"TrainingArguments", "Seq2SeqTrainingArguments", "UnslothTrainingArguments", "ModelConfig", "FSDPConfig"}
    | {f"{name.removesuffix('Trainer')}Config" for name in (*TASKS, *_SAME) if name not in ("Trainer", "Seq2SeqTrainer")}
)
"""Classes whose keywords are options of the training."""


def trainer_of(dotted: str | None) -> tuple[str, str] | None:
    """Return (trainer, task) of a class by its full name; ``None`` if it is not a trainer of a known library."""
    package, _, name = (dotted or "").rpartition(".")
    root = package.partition(".")[0]
    name = "SetFitTrainer" if root == "setfit" and name in _OF_SETFIT else _SAME.get(name, name)
    if not root or ONLY_FROM.get(name) not in (None, root):
        return None
    if name in TASKS:
        return name, TASKS[name]
    if root == "trl" and name.endswith("Trainer") and len(name) > 7:
        return name, name.removesuffix("Trainer").lower()
    return None


def is_config(dotted: str | None) -> bool:
    """Whether a class holds training options, by its full name."""
    package, _, name = (dotted or "").rpartition(".")
    if name in CONFIGS:
        return bool(package)
    return package.partition(".")[0] == "trl" and name.endswith("Config") and len(name) > 6
