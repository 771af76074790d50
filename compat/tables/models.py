"""Architectures and model types of published models, by the name of their family (``matrix/facts/models.csv``), compiled.

The name of a model on a hub (``Qwen/Qwen3-8B``) says which code it needs, without its files: the models of a family differ in
size, training and format, and keep the name (``Qwen3-8B``, ``Qwen3-0.6B-Base``, ``Qwen3-8B-FP8``).
"""

from __future__ import annotations

import marshal
import os
import re

from compat.files import DATA, read_table
from compat.records import cached, record

FILE = os.path.join(DATA, "models.bin")
_SIZE = re.compile(r"(?P<active>a)?(?P<effective>e)?\d{1,4}(?:\.\d{1,3})?[bmt]\Z")
"""A number of parameters (``8b``, ``e4b``), or of those that a token uses (``a3b``), which only mixtures of experts have."""
_VARIANT = re.compile(
    r"(?:it|instruct|chat|base|hf|pt|sft|rl|dpo|preview|exp|unquantized|thinking|reasoning|\d{4}|\d{6}|\d{8}|\d{1,4}k"
    r"|fp8|fp4|nvfp4|mxfp4|bf16|awq|gptq|gguf|bnb|mlx|int[48]|[2348]bit|w\d{1,2}a\d{1,2}|quantized(?:\.w\d{1,2}a\d{1,2})?|dynamic|unsloth|qat|q[48]_0)\Z"
)
"""The parts of a name that training, context length, release date and number format add."""
_FLAVOURS = frozenset(("coder", "code", "math", "embedding", "reranker", "air", "safeguard"))
"""Words for models trained further for a purpose, or in another size, which need the same code."""
_MIRRORS = frozenset(("unsloth", "redhatai", "neuralmagic", "nm-testing"))
"""Organisations that publish the models of others under their names."""
_RENAMED = {"thudm": "zai-org", "cohereforai": "coherelabs"}
_MIXTURE = "+experts"


@record(frozen=True)
class Family:
    """What the models of one family need: any of ``architectures`` in an engine, any of ``types`` in transformers.

    ``own_code``: their files bring their own classes, so that transformers need not know the type.
    """

    architectures: tuple[str, ...]
    types: tuple[str, ...]
    own_code: bool


def stem_of(name: str) -> str:
    """Return the name of a model's family: ``qwen3`` for Qwen3-8B-FP8, ``qwen3+experts`` for Qwen3-30B-A3B."""
    parts = [part for part in re.split(r"[-_]", name.lower()) if part]
    sizes = [_SIZE.match(part) for part in parts]
    kept = [part for part, size in zip(parts, sizes) if size is None]
    while len(kept) > 1 and _VARIANT.match(kept[-1]):
        kept.pop()
    return "-".join(kept) + (_MIXTURE if any(size is not None and size["active"] for size in sizes) else "")


def family(model: str) -> Family | None:
    """Return the family of a published model; ``None`` for a path, a model of another organisation, and what is not known."""
    organisation, slash, name = model.strip().lower().partition("/")
    if not slash or not organisation or not name or "/" in name or organisation.startswith((".", "~", "$")):
        return None
    stem = stem_of(name)
    return _published(organisation, stem) or _published(organisation, _without_flavour(stem))


def of_type(kind: str) -> Family | None:
    """Return what the models of a type need (``qwen2_vl``, or ``qwen2.5-vl``); ``None`` if no published model has the type."""
    kind = re.sub(r"[-.]", "_", kind.strip().lower())
    found = [each for each in _open().values() if each.types == (kind,) and not each.own_code]
    if not found:
        return None
    architectures = dict.fromkeys(name for each in found for name in each.architectures)
    return Family(tuple(architectures), (kind,), own_code=False)


def _published(organisation: str, stem: str) -> Family | None:
    families = _open()
    if organisation not in _MIRRORS:
        return families.get((_RENAMED.get(organisation, organisation), stem))
    found = [each for (_, other), each in families.items() if other == stem]
    return found[0] if len(found) == 1 else None


def _without_flavour(stem: str) -> str:
    name, plus, mixture = stem.partition("+")
    start, _, last = name.rpartition("-")
    return f"{start}{plus}{mixture}" if last in _FLAVOURS else stem


@cached
def _open() -> dict[tuple[str, str], Family]:
    rows = marshal.loads(read_table(FILE))
    return {(organisation, stem): Family(*rest) for organisation, stem, *rest in rows}
