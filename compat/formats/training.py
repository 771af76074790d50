"""Configurations of training tools: axolotl, LLaMA-Factory, ms-swift, torchtune, verl and trl. They install nothing.

The workload is read as if their tool were started with them (``axolotl train config.yml``).
"""

from __future__ import annotations

from collections.abc import Callable

from compat.errors import InputError
from compat.formats.include import WorkingFolders
from compat.formats.listing import Listing
from compat.formats.registry import Format
from compat.model import Environment
from compat.records import record
from compat.syntax.yaml import parse_yaml
from compat.workload.arguments import apply_option
from compat.workload.draft import parse_count
from compat.workload.launch import merge_workloads
from compat.workload.launch_config import read_deepspeed
from compat.workload.reading import Recipe, axolotl, llamafactory, torchtune

_VERL_TASKS = {"grpo": "grpo", "gae": "ppo", "rloo": "rloo"}


class TrainingConfig(Format):
    """A configuration of one of the tools; :class:`InputError` if it is not a YAML table."""

    kind = "training"
    lists_packages = False
    by_hand = "it lists no packages"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        settings, lines = parse_yaml(text, path)
        if not isinstance(settings, dict):
            raise InputError("expected a table of settings", path, 1)
        tool = next((each for each in _TOOLS if settings.keys() >= each.keys), None)
        if tool is None:
            raise InputError("expected a configuration of axolotl, LLaMA-Factory, ms-swift, torchtune, verl or trl", path, 1)
        recipe = Recipe(path, settings, lines)
        if tool.read is not None:
            tool.read(recipe)
        workload = recipe.draft.workload()
        hint = f"; check it together with the packages: compat check uv.lock -- {tool.command} {path}" if tool.command else ""
        notes = [f"{path}: a configuration of {tool.name}, which lists no packages{hint}"]
        for file in dict.fromkeys(recipe.draft.configs):
            found = WorkingFolders(path).find(file)
            if found is None:
                notes.append(f"{path}: the DeepSpeed configuration {file} was not read: it is not in the project")
            else:
                workload = merge_workloads(workload, read_deepspeed(found))
        return (Listing(path, self.kind, context=Environment(workload=workload), notes=tuple(notes)),)


def _swift(recipe: Recipe) -> None:
    """Read ``rlhf_type`` and ``model``; ``model_name`` is what the model calls itself."""
    model = recipe.settings.get("model")
    recipe.draft.forget("model")
    if isinstance(model, str) and "$" not in model:
        apply_option(recipe.draft, "model", model, recipe.origin("model"))
    kind = recipe.settings.get("rlhf_type")
    if isinstance(kind, str) and kind.isalnum():
        recipe.draft.record("task", {"rm": "reward", "simpo": "cpo"}.get(kind, kind), recipe.origin("rlhf_type"))


def _verl(recipe: Recipe) -> None:
    """Read ``algorithm.adv_estimator``, the rollout engine, the actor's strategy, and the number of GPUs."""
    draft = recipe.draft
    draft.record("launcher", "ray", recipe.file)

    def at(*keys: str) -> object:
        value: object = recipe.settings
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    estimator = at("algorithm", "adv_estimator")
    if isinstance(estimator, str) and estimator in _VERL_TASKS:
        draft.record("task", _VERL_TASKS[estimator], recipe.origin("algorithm"))
    model = at("actor_rollout_ref", "model", "path")
    if isinstance(model, str) and "$" not in model:
        apply_option(draft, "model_name_or_path", model, recipe.origin("actor_rollout_ref"))
    where = recipe.origin("actor_rollout_ref")
    engine, strategy = at("actor_rollout_ref", "rollout", "name"), at("actor_rollout_ref", "actor", "strategy")
    if isinstance(engine, str):
        draft.feature("vllm", engine == "vllm", where)
    if strategy in ("fsdp", "fsdp2"):
        draft.on("fsdp", where)
        draft.feature("fsdp2", strategy == "fsdp2", where)
    _verl_processes(recipe)


def _verl_sft(recipe: Recipe) -> None:
    """Read verl's supervised trainer, which torchrun starts: model, LoRA, strategy and the number of GPUs."""
    draft, model = recipe.draft, recipe.settings.get("model")
    table = model if isinstance(model, dict) else {}
    where = recipe.origin("model")
    draft.forget("model")
    draft.record("task", "sft", recipe.file)
    draft.record("launcher", "torchrun", recipe.file)
    if isinstance(name := table.get("partial_pretrain", table.get("path")), str) and "$" not in name:
        apply_option(draft, "model_name_or_path", name, where)
    if isinstance(rank := table.get("lora_rank"), int):
        draft.feature("peft", rank > 0, where)
    if isinstance(table.get("enable_gradient_checkpointing"), bool):
        apply_option(draft, "gradient_checkpointing", table["enable_gradient_checkpointing"], where)
    if table.get("strategy") in ("fsdp", "fsdp2"):
        draft.on("fsdp", where)
        draft.feature("fsdp2", table["strategy"] == "fsdp2", where)
    data = recipe.settings.get("data")
    if isinstance(data, dict):
        apply_option(
            draft, "per_device_train_batch_size", parse_count(data.get("micro_batch_size_per_gpu")), recipe.origin("data")
        )
    _verl_processes(recipe)


def _verl_processes(recipe: Recipe) -> None:
    trainer = recipe.settings.get("trainer")
    table = trainer if isinstance(trainer, dict) else {}
    nodes, each = parse_count(table.get("nnodes")), parse_count(table.get("n_gpus_per_node"))
    if isinstance(nodes, int) and isinstance(each, int) and nodes * each:
        recipe.draft.record("processes", nodes * each, recipe.origin("trainer"))


@record(frozen=True)
class _Tool:
    """A tool: the keys of its configurations, the reader of its specific settings (if it has any), and its command."""

    name: str
    keys: frozenset[str]
    read: Callable[[Recipe], None] | None
    command: str | None = None


_TOOLS = (
    _Tool("verl", frozenset(("actor_rollout_ref",)), _verl),
    _Tool("verl", frozenset(("data", "model", "optim", "trainer")), _verl_sft),
    _Tool("torchtune", frozenset(("tokenizer", "checkpointer")), torchtune),
    _Tool("axolotl", frozenset(("base_model",)), axolotl, "axolotl train"),
    _Tool("LLaMA-Factory", frozenset(("stage", "model_name_or_path")), llamafactory, "llamafactory-cli train"),
    _Tool("LLaMA-Factory", frozenset(("template", "model_name_or_path")), llamafactory, "llamafactory-cli chat"),
    _Tool("ms-swift", frozenset(("model", "dataset")), _swift),
    _Tool("trl", frozenset(("model_name_or_path",)), None, "trl sft --config"),
)
"""The most specific keys first."""
