"""Which releases support a model: the architectures that serving engines register, the model types of transformers.

The registries are containers in the table of accepted strings. A model that is in none of its rows is supported by every
release that was read, or by none.
"""

from __future__ import annotations

import re
from functools import cache

from compat.interfaces.changes import Change, values
from compat.records import record
from compat.versions import is_final, key_of

_REGISTRIES = {
    "vllm": re.compile(
        r"vllm\.model_executor\.(?:models(?:\.registry)? _(?!ROCM|CPU|PREVIOUSLY)\w*MODELS|model_loader _MODEL_REGISTRY)\Z"
    ),
    "sglang": re.compile(r" EntryClass\(\)\Z"),
    "transformers": re.compile(r"transformers\.models\.auto\.(?:configuration_auto|auto_mappings) CONFIG_MAPPING_NAMES\Z"),
}
"""Module and name of the containers."""


@record(frozen=True)
class Support:
    """The releases of a package that support a model, and all that were read, in order."""

    having: tuple[str, ...]
    known: tuple[str, ...]


@cache
def support(package: str, model: str) -> Support | None:
    """Return the releases of an engine, or of transformers, that support an architecture or a model type."""
    found = [each for each in values().of(model) if _registers(package, each)]
    if not found:
        return None
    has = {version for each in found for version in each.has}
    known = tuple(version for version in found[0].known if is_final(key_of(version)))
    return Support(tuple(version for version in known if version in has), known)


def _registers(package: str, change: Change) -> bool:
    return change.package == package and _REGISTRIES[package].search(f"{change.module} {change.owner}") is not None
