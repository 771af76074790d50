"""The kinds of tasks: words by which a condition holds for every task of a kind.

New trainers appear with every release of trl, and a reader names the task of one it does not know after its class. A rule
that lists tasks one by one is wrong about those that it does not list.
"""

from __future__ import annotations

PREFERENCE = ("dpo", "orpo", "kto", "cpo", "bco", "simpo", "tpo")
_GENERAL = ("train", "pretrain")
_OFFLINE = (*_GENERAL, "sft", "lora", "qlora", "reward", "prm", *PREFERENCE)
_OTHERS = ("inference", "serve", "import", "install", "build")

TRAINING, OFFLINE_TRAINING, ONLINE_TRAINING = "training", "offline-training", "online-training"
LLM_TRAINING, PREFERENCE_TRAINING = "llm-training", "preference-training"
KINDS = {
    TRAINING: "every task but inference, serve, import, install and build",
    OFFLINE_TRAINING: "training on given samples, which generates none",
    ONLINE_TRAINING: "training that generates samples",
    LLM_TRAINING: "training by a trainer for language models: not train and pretrain",
    PREFERENCE_TRAINING: "offline training on pairs or ratings of answers, with a loss of its own",
}
"""The kinds that conditions can name."""

_ONLINE = frozenset((TRAINING, ONLINE_TRAINING, LLM_TRAINING))
"""The kinds of every task that is not listed: a trainer that nobody has classified may generate."""


def _kinds() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = dict.fromkeys(_OTHERS, frozenset())
    for task in _OFFLINE:
        special = () if task in _GENERAL else (LLM_TRAINING, *((PREFERENCE_TRAINING,) if task in PREFERENCE else ()))
        found[task] = frozenset((TRAINING, OFFLINE_TRAINING, *special))
    found[TRAINING] = frozenset((TRAINING,))
    found[OFFLINE_TRAINING] = found["train"]
    found[LLM_TRAINING] = frozenset((TRAINING, LLM_TRAINING))
    found[PREFERENCE_TRAINING] = found["dpo"]
    return found


_KINDS = _kinds()


def kinds_of(task: str) -> frozenset[str]:
    """The kinds of a task; of a kind, the kinds that its tasks have in common."""
    return frozenset() if task.startswith("(") else _KINDS.get(task, _ONLINE)
