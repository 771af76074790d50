"""The state of reading one command. ``launchers`` and ``training_tools`` read the programs that start jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, TypeAlias

from compat.errors import InputError
from compat.model import Option
from compat.records import replace
from compat.workload.arguments import apply_option, parse_words
from compat.workload.draft import Draft, parse_count, precision_word
from compat.workload.launch import COMMAND
from compat.workload.wrappers import DEPTH, is_python, program_name, unwrapped

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
            apply_option(self.draft, name, value, self.origin(name))

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
        recipe.draft.record("task", _STAGES[stage], recipe.origin("stage"))


def axolotl(recipe: Recipe) -> None:
    """Read axolotl's own keys: the kind of reinforcement learning, adapters, FSDP, plugins and the ``trl`` table."""
    draft, settings = recipe.draft, recipe.settings
    kind = settings.get("rl")
    if kind is None:
        draft.record("task", "sft", recipe.file)
    elif isinstance(kind, str) and kind in _RL:
        draft.record("task", {"ipo": "dpo", "simpo": "cpo", "rm": "reward"}.get(kind, kind), recipe.origin("rl"))
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
        for key in ("use_vllm", "vllm_mode"):
            apply_option(draft, key, table.get(key), recipe.origin("trl"))
    if settings.get("use_ray") is True:
        draft.record("launcher", "ray", recipe.origin("use_ray"))


def torchtune(recipe: Recipe) -> None:
    """Read torchtune's own keys: ``model._component_``, ``dtype`` and the recipe's switches."""
    draft, settings = recipe.draft, recipe.settings
    draft.forget("model")
    model = settings.get("model")
    component = model.get("_component_") if isinstance(model, dict) else None
    if isinstance(component, str):
        name = component.rpartition(".")[2]
        draft.feature("peft", "lora" in name or "dora" in name, recipe.origin("model"))
        if name.startswith("qlora"):
            draft.record("quantization", "4bit", recipe.origin("model"))
    if (precision := precision_word(settings.get("dtype"))) is not None:
        draft.record("precision", precision, recipe.origin("dtype"))
    for key, name in (("enable_activation_checkpointing", "gradient_checkpointing"), ("compile", "torch_compile")):
        value = settings.get(key)
        if isinstance(value, bool):
            apply_option(draft, name, value, recipe.origin(key))
    loss = settings.get("loss")
    name = str(loss.get("_component_") if isinstance(loss, dict) else "").rpartition(".")[2].lower()
    task = next((task for task in ("grpo", "dpo", "ppo") if name.startswith(task)), None)
    if task is not None:
        draft.record("task", task, recipe.origin("loss"))
    batch = parse_count(settings.get("batch_size"))
    apply_option(draft, "per_device_train_batch_size", batch, recipe.origin("batch_size"))


SCRIPT = "the script"
"""The parser of the script that the command starts."""
_RECIPE_ENDINGS = (".yaml", ".yml", ".json")


class Reading:
    """What is known so far about one command.

    ``draft`` holds the facts of the command line itself, ``recipes`` those of the argument files it names, ``given`` the
    options passed to parsers, as written, ``defaults`` facts that the script overrides. ``around`` is an outer launcher
    that starts the command several times, with its number of processes; ``plain`` is set if plain python starts the
    script, ``lenient`` for commands in a shell script, which may depend on files that cannot be read. ``programs`` and
    ``modules`` map a program or a module for ``python -m`` to the reader of its arguments.
    """

    programs: ClassVar[Mapping[str, ProgramReader]] = {}
    modules: ClassVar[Mapping[str, ProgramReader]] = {}

    def __init__(self, directory: str, variables: Mapping[str, str]) -> None:
        self.directory = directory
        self.inherited = variables
        self.assigned: dict[str, str] = {}
        self.draft = Draft(last_wins=True)
        self.recipes: list[Draft] = []
        self.given: list[Option] = []
        self.defaults: list[Draft] = []
        self.around: tuple[str | None, int | None] | None = None
        self.script: str | None = None
        self.lenient = False
        self.plain = False
        self.depth = 0

    def variable(self, name: str) -> str | None:
        """Return an environment variable as the job would see it."""
        value = self.assigned.get(name)
        return self.inherited.get(name) if value is None else value

    def note(self, text: str) -> None:
        if text not in self.draft.notes:
            self.draft.notes.append(text)

    def path(self, name: str) -> str:
        """Resolve a path of the command so that it can be opened from here; unchanged if the command would start here."""
        if self.directory in ("", ".") or os.path.isabs(name):
            return name
        joined = os.path.join(self.directory, name)
        return name if os.path.abspath(name) == os.path.abspath(joined) else joined

    def record(self, key: str, value: object) -> None:
        self.draft.record(key, value, COMMAND)

    def launched(self, launcher: str | None, processes: int | None, nodes: int | None = None) -> None:
        """Record the launcher that starts the job, its number of processes and of nodes, replacing earlier ones."""
        for fact in ("launcher", "processes", "nodes"):
            self.draft.forget(fact)
        if launcher is not None:
            self.record("launcher", launcher)
        if processes:
            self.record("processes", processes)
        if nodes:
            self.record("nodes", nodes)

    def plainly(self) -> None:
        """Record a plain process, or as many as the outer launcher starts."""
        self.plain = self.around is None
        self.launched(*(self.around or ("python", 1)))

    def plainly_unless_launched(self) -> None:
        """Like :meth:`plainly`, unless a launcher was already read."""
        if self.draft.get("launcher") is None and self.draft.get("processes") is None:
            self.plainly()

    def options(self, words: Iterable[str], *, origin: str = COMMAND) -> list[str]:
        """Read a script's arguments; return those that are not options."""
        options, others = parse_words(words)
        for name, value in options:
            apply_option(self.draft, name, value, origin)
        return others

    def give(self, parser: str, words: Iterable[str], recipe: Recipe | None = None) -> None:
        """Record the options passed to a program's parser, on the command line and in its argument file."""
        waiting = False
        for word in words:
            if word == "--":
                break
            name, _, value = word.partition("=")
            if name.startswith("--") and name[2:3].isalpha() and "$" not in name:
                self.given.append(Option(parser, name, COMMAND, value if value and "$" not in value else None))
                waiting = not value
            elif waiting and "$" not in word:
                self.given[-1] = replace(self.given[-1], value=word)
                waiting = False
        if recipe is not None:
            for key, setting in recipe.settings.items():
                known = isinstance(setting, (str, int)) and not isinstance(setting, bool)
                self.given.append(Option(parser, str(key), recipe.origin(key), str(setting) if known else None))

    def recipe(self, name: str, dialect: Callable[[Recipe], None] | None = None, *, needed: bool = True) -> Recipe | None:
        """Read an argument file; an invalid file is an error only if it is ``needed``, otherwise a note."""
        if "$" in name:
            self.note(f"{name} was not read: its name is only known at run time")
            return None

        try:
            found = read_recipe(self.path(name))
        except InputError as problem:
            if needed and not self.lenient:
                raise
            self.note(f"not read: {problem}")
            return None
        if dialect is not None:
            dialect(found)
        self.recipes.append(found.draft)
        self.assigned.update(found.variables)
        return found

    def start(self, words: Sequence[str]) -> None:
        """Read one command: unwrap it, then call the reader of its program."""
        self.depth += 1
        if self.depth > DEPTH:
            raise InputError(f"the command starts one program through another more than {DEPTH} times")
        rest = unwrapped(words, self.assigned)
        before = [program_name(word) for word in words[: len(words) - len(rest)]]
        if "run" in before and "uv" in before[: before.index("run")]:
            self.draft.on("uv-run", COMMAND)
        if not rest:
            self.note("the command starts no program")
            return
        name = program_name(rest[0])
        reader = self.programs.get("python" if is_python(name) else name)
        if reader is not None:
            reader(self, rest[1:])
        elif name.endswith((".py", ".ipynb")):
            self.run_script(rest)
        elif name.endswith(".sh"):
            self.programs["sh"](self, rest)
        else:
            import difflib

            near = difflib.get_close_matches(name, self.programs, 1, 0.75)
            meant = f" (did you mean {near[0]}?)" if near and near[0] != name else ""
            self.note(f"{rest[0]!r} is not a program compat knows{meant}: how it starts a job is unknown")

    def run_script(self, words: Sequence[str]) -> None:
        """Read a script and its arguments, run in a plain process unless a launcher was already read."""
        self.plainly_unless_launched()
        name, *arguments = words
        if not name:
            raise InputError("the command names a script without a name")
        if "$" in name:
            self.note(f"{name} was not read: its name is only known at run time")
        elif "://" in name:
            self.note(f"{name} was not read: it is not on this machine")
        else:
            self.script = self.path(name)
        # the argument file that the parsers of trl and transformers accept
        options, others = parse_words(arguments)
        recipe = None
        for option, value in options:
            if option == "config" and isinstance(value, str) and value.endswith(_RECIPE_ENDINGS):
                recipe = self.recipe(value, needed=False)
        self.give(SCRIPT, arguments, recipe)
        if not options and len(others) == 1 and others[0].endswith(_RECIPE_ENDINGS):
            self.recipe(others[0], llamafactory, needed=False)
        self.options(arguments)


ProgramReader: TypeAlias = "Callable[[Reading, list[str]], None]"
