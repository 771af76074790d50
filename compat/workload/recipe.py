"""Recipe files: the YAML or JSON in which trl, LLaMA-Factory, axolotl and ms-swift take a script's arguments."""

from __future__ import annotations

from collections.abc import Mapping

from compat.workload.arguments import Draft, apply

_STAGES = {"sft": "sft", "dpo": "dpo", "kto": "kto", "ppo": "ppo", "rm": "reward", "pt": "pretrain", "orpo": "orpo"}
_RL = ("dpo", "grpo", "kto", "orpo", "simpo", "ipo", "ppo", "cpo", "rm", "gkd")


class Recipe:
    """A recipe file: ``draft`` holds its facts, ``settings`` its top-level table."""

    def __init__(self, file: str, settings: Mapping[str, object], lines: Mapping[tuple[str, ...], int]) -> None:
        self.file = file
        self.settings = settings
        self._lines = lines
        self.draft = Draft(last_wins=True)
        for name, value in settings.items():
            apply(self.draft, name, value, self.origin(name))

    def origin(self, name: str) -> str:
        """Return the file and line of a key: ``"sft.yaml:3"``."""
        line = self._lines.get((name,))
        return f"{self.file}:{line}" if line else self.file

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables set in trl's ``env`` table."""
        table = self.settings.get("env")
        return {str(name): str(value) for name, value in table.items()} if isinstance(table, dict) else {}


def read_recipe(path: str) -> Recipe:
    """Read a recipe file; :class:`InputError` with file and line if it is invalid."""
    from compat.syntax.yaml import read_table  # a guard reads no recipe, and importing PyYAML would take a quarter of its time

    settings, lines = read_table(path, "a table of arguments with lines such as 'model_name_or_path: NAME'")
    return Recipe(path, settings, lines)


def llamafactory(recipe: Recipe) -> None:
    """Read LLaMA-Factory's own keys: its stages."""
    stage = recipe.settings.get("stage")
    if isinstance(stage, str) and stage in _STAGES:
        recipe.draft.say("task", _STAGES[stage], recipe.origin("stage"))


def axolotl(recipe: Recipe) -> None:
    """Read axolotl's own keys: the kind of reinforcement learning, adapters, FSDP, plugins and the ``trl`` table."""
    draft, settings = recipe.draft, recipe.settings
    kind = settings.get("rl")
    if kind is None:
        draft.say("task", "sft", recipe.file)
    elif isinstance(kind, str) and kind in _RL:
        draft.say("task", {"ipo": "dpo", "simpo": "cpo", "rm": "reward"}.get(kind, kind), recipe.origin("rl"))
    adapter = settings.get("adapter")
    if isinstance(adapter, str) and adapter:
        draft.on("peft", recipe.origin("adapter"))
    plugins = settings.get("plugins")
    if isinstance(plugins, list) and any("liger" in str(plugin).lower() for plugin in plugins):
        draft.on("liger", recipe.origin("plugins"))
    if settings.get("fsdp_config") and "fsdp_version" not in settings:
        draft.on("fsdp", recipe.origin("fsdp_config"))
    table = settings.get("trl")
    if isinstance(table, dict):
        apply(draft, "use_vllm", table.get("use_vllm"), recipe.origin("trl"))
    if settings.get("use_ray") is True:
        draft.say("launcher", "ray", recipe.origin("use_ray"))
