"""The training or inference script a command starts, read as a syntax tree; it is neither imported nor run.

What is computed at run time stays unknown, as does what the script sets inconsistently or only under a condition.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence

from compat.files import content_of
from compat.model import EMPTY, Workload
from compat.records import record, replace
from compat.syntax.python import Notebook, parsed
from compat.workload.draft import UNKNOWN, Draft
from compat.workload.script_calls import Calls
from compat.workload.script_names import Names, Visit, module_of, visits

LIMIT = 4 * 1024 * 1024
"""Maximum size of a script, in bytes."""
_PATCHED = ("trl", "transformers", "peft")
"""Packages that unsloth warns about if they are already imported (unsloth 2025.3 and later)."""
_HARMLESS = frozenset((
    "unsloth", "torch", "numpy", "pandas", "datasets", "wandb", "tqdm", "triton", "accelerate", "huggingface_hub", "yaml",
    "requests", "matplotlib", "PIL", "dotenv", "fire", "rich", "xformers", "bitsandbytes", "scipy", "sklearn", "pydantic",
    "IPython", "tyro", "omegaconf", "hydra", "psutil", "loguru", "regex", "polars", "pyarrow",
))  # fmt: skip
"""Packages that do not import one of them."""
_WITHOUT_UNSLOTH = _HARMLESS | {
    *_PATCHED, "deepspeed", "diffusers", "evaluate", "fastapi", "flash_attn", "gradio", "liger_kernel", "openai", "safetensors",
    "sentence_transformers", "tokenizers", "torchaudio", "torchvision", "vllm",
}  # fmt: skip
"""Packages that do not import unsloth; any other might be a module of the project that does."""


@record(frozen=True)
class ScriptFacts:
    """The facts of a script about its workload.

    ``imports`` are (module, line) pairs in order; in a notebook the line is the number of the code cell. ``variables``
    are the environment variables that it always sets to a constant, ``configs`` the DeepSpeed files it names.
    """

    workload: Workload
    imports: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = EMPTY
    configs: tuple[str, ...] = ()


def read_script(path: str) -> ScriptFacts:
    """Read the workload of a Python script or a Jupyter notebook (``.ipynb``).

    Raises :class:`InputError` with file, line and reason if it cannot be read or parsed by this interpreter.
    """
    if path.lower().endswith(".ipynb"):
        notebook = Notebook(path)
        facts = _facts(notebook.tree, lambda line: f"{path} cell {notebook.cell(line)}", notebook.cell)
        return replace(facts, notes=(*notebook.notes, *facts.notes))
    return _facts(tree_of(path), lambda line: f"{path}:{line}", lambda line: line)


def tree_of(path: str) -> ast.Module:
    """Parse a script or a notebook; raises :class:`InputError` like :func:`read_script`."""
    return Notebook(path).tree if path.lower().endswith(".ipynb") else parsed(content_of(path, LIMIT), path)


def _facts(tree: ast.Module, origin: Callable[[int], str], number: Callable[[int], int]) -> ScriptFacts:
    names = Names(tree)
    draft = Draft()
    calls = Calls(names, draft, origin)
    imports: list[_Import] = []
    for visit in visits(tree, names.test):
        if isinstance(visit.node, (ast.Import, ast.ImportFrom)):
            imports += _imports(visit)
        else:
            calls.read(visit)
    calls.finish()
    _unsloth(draft, imports, origin)
    for each in imports:
        if f"{each.module}.".startswith("trl.experimental."):
            draft.on("trl-experimental", origin(each.line))  # also if a branch imports it from the old location
        if f"{each.module}.".startswith("ray.serve.llm."):
            draft.on("ray-serve-llm", origin(each.line))
    return ScriptFacts(
        replace(draft.workload(), options=tuple(calls.given) or None),
        tuple((each.module, number(each.line)) for each in imports),
        tuple(dict.fromkeys((*draft.notes, *draft.contradictions()))),
        calls.variables,
        tuple(dict.fromkeys(draft.configs)),
    )


class _Import:
    __slots__ = ("conditional", "inside", "line", "module")

    def __init__(self, module: str, line: int, conditional: bool, inside: bool) -> None:
        self.module = module
        self.line = line
        self.conditional = conditional
        self.inside = inside

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]


def _imports(visit: Visit) -> list[_Import]:
    node = visit.node
    if isinstance(node, ast.ImportFrom):
        return [_Import(module_of(node), node.lineno, visit.conditional, bool(visit.scope))]
    if isinstance(node, ast.Import):
        return [_Import(alias.name, node.lineno, visit.conditional, bool(visit.scope)) for alias in node.names]
    return []


def _unsloth(draft: Draft, imports: Sequence[_Import], origin: Callable[[int], str]) -> None:
    """Record whether unsloth is used, and whether it is imported before the packages that it patches."""
    certain = [each for each in imports if each.root == "unsloth" and not each.conditional]
    if not certain:
        if any(each.root == "unsloth" for each in imports):
            draft.feature("unsloth", UNKNOWN, "")
        elif imports and all(each.root in _WITHOUT_UNSLOTH or each.root in sys.stdlib_module_names for each in imports):
            draft.off("unsloth", "")  # a module of the project's own might import it
        return
    # code in functions runs after module-level code
    ordered = sorted(imports, key=lambda each: each.inside)
    first = next(each for each in ordered if each.root == "unsloth" and not each.conditional)
    before = ordered[: ordered.index(first)]
    draft.on("unsloth", origin(first.line))
    late = next((each for each in before if each.root in _PATCHED and not each.conditional), None)
    if late is not None:
        draft.on("unsloth-imported-late", origin(late.line))
    elif all(each.root in _HARMLESS or each.root in sys.stdlib_module_names for each in before):
        draft.off("unsloth-imported-late", origin(first.line))
