"""``python -m scripts.models VLLM TRANSFORMERS``: ``models.csv``, from the unpacked sources of both (an sdist, a wheel).

vLLM's list of supported models and the examples that its tests load say which architecture a model has; the auto classes of
transformers say which model types have that architecture. A configuration of transformers names a model of its type as well:
it counts where the type has the name of the family.
"""

from __future__ import annotations

import ast
import csv
import datetime
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from compat.tables.models import stem_of
from scripts.pack_facts import MODELS

FACTS = Path(__file__).resolve().parents[1] / "matrix" / "facts"
COLUMNS = ("organisation", "stem", "architectures", "types", "own_code", "known", "source", "date")
_ID = re.compile(r"`([\w.-]+/[\w.-]+)`")
_OTHER_GROUPS = ("SPECULATIVE", "TRANSFORMERS_BACKEND", "EMBEDDING")
"""Words in the names of lists whose architectures are those of drafts or of adapters, not of the models they name."""
_OWN_CODE = frozenset(("microsoft", "tiiuae", "stabilityai", "mosaicml", "deepseek-ai"))
"""Organisations whose models brought their own code before transformers had it, so that old releases can load them."""
_ALSO = {("zai-org", "glm-4"): ("ChatGLMModel",)}
"""Further architectures of models with their own code that have the name of a family that is listed."""


def listed(vllm: Path) -> Iterator[tuple[str, str, bool, str]]:
    """Yield model, architecture, whether it is loaded with its own code, and the file that says so."""
    documentation = vllm / "docs" / "models" / "supported_models.md"
    for line in documentation.read_text(encoding="utf-8").splitlines():
        cells = line.split("|")
        if len(cells) < 4 or not cells[1].strip().startswith("`"):
            continue
        architectures = re.findall(r"`(\w+)`", cells[1])
        for model in _ID.findall("|".join(cells[2:])):
            for architecture in architectures:
                yield model, architecture, False, documentation.relative_to(vllm).as_posix()
    tests = vllm / "tests" / "models" / "registry.py"
    for group in ast.parse(tests.read_text(encoding="utf-8")).body:
        if not isinstance(group, (ast.Assign, ast.AnnAssign)) or not isinstance(group.value, ast.Dict):
            continue
        target = group.targets[0] if isinstance(group, ast.Assign) else group.target
        if not isinstance(target, ast.Name) or any(word in target.id for word in _OTHER_GROUPS):
            continue
        for key, value in zip(group.value.keys, group.value.values):
            if isinstance(key, ast.Constant) and isinstance(value, ast.Call):
                own = any(each.arg == "trust_remote_code" for each in value.keywords)
                for model in _examples(value):
                    yield model, str(key.value), own, tests.relative_to(vllm).as_posix()


def _examples(entry: ast.Call) -> Iterator[str]:
    """Yield the models that an entry loads: its first argument, and those of its ``extras``; not tokenizers and drafts."""
    extras = [each.value for each in entry.keywords if each.arg == "extras"]
    for value in (*entry.args, *extras):
        for each in value.values if isinstance(value, ast.Dict) else [value]:
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", each.value):
                yield each.value


def types_of(transformers: Path) -> dict[str, set[str]]:
    """Return the model types of each class that an auto class makes."""
    found: dict[str, set[str]] = defaultdict(set)
    source = (transformers / "models" / "auto" / "modeling_auto.py").read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and all(isinstance(each, ast.Constant) for each in node.elts):
            kind, name = (each.value for each in node.elts if isinstance(each, ast.Constant))
            if isinstance(kind, str) and isinstance(name, str):
                found[name].add(kind)
    defining: dict[str, set[str]] = defaultdict(set)
    for path in (transformers / "models").glob("*/modeling_*.py"):
        for name in re.findall(r"^class (\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            defining[name].add(path.parent.name)
    return {name: _of_modules(kinds, defining[name]) for name, kinds in found.items()}


def _of_modules(kinds: set[str], modules: set[str]) -> set[str]:
    """Return the types named after a module that defines the class, if any are: others only use it."""
    return {kind for kind in kinds if any(kind.replace("-", "_").startswith(module) for module in modules)} or kinds


def checkpoints(transformers: Path) -> Iterator[tuple[str, str, str]]:
    """Yield model, model type and file of the configurations whose type has the name of the model's family."""
    for path in sorted((transformers / "models").glob("*/configuration_*.py")):
        kind = path.parent.name
        for model in re.findall(r'checkpoint="([\w.-]+/[\w.-]+)"', path.read_text(encoding="utf-8")):
            if re.sub(r"\W|_", "", stem_of(model.partition("/")[2])) == kind.replace("_", ""):
                yield model, kind, f"models/{kind}/{path.name}"


def rows(vllm: Path, transformers: Path, today: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the table, sorted."""
    types = types_of(transformers)
    architectures: dict[tuple[str, str], set[str]] = defaultdict(set)
    kinds: dict[tuple[str, str], set[str]] = defaultdict(set)
    sources: dict[tuple[str, str], set[str]] = defaultdict(set)
    own: set[tuple[str, str]] = set()

    def key_of(model: str) -> tuple[str, str]:
        organisation, _, name = model.lower().partition("/")
        return organisation, stem_of(name)

    for model, architecture, own_code, file in listed(vllm):
        key = key_of(model)
        architectures[key].add(architecture)
        kinds[key] |= types.get(architecture, set())
        sources[key].add(f"vllm {file}")
        if own_code or key[0] in _OWN_CODE:
            own.add(key)
    for model, kind, file in checkpoints(transformers):
        key = key_of(model)
        kinds[key].add(kind)
        sources[key].add(f"transformers {file}")
        if key[0] in _OWN_CODE:
            own.add(key)
    for key, others in _ALSO.items():
        architectures[key].update(others)
        own.add(key)
    for key in sorted(sources):
        yield {
            "organisation": key[0],
            "stem": key[1],
            "architectures": " ".join(sorted(architectures[key])),
            "types": " ".join(sorted(kinds[key])),
            "own_code": "yes" if key in own else "no",
            "known": "read",
            "source": "; ".join(sorted(sources[key])),
            "date": today,
        }


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    vllm, transformers = map(Path, arguments)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    with (FACTS / MODELS).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(vllm, transformers, today))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
