"""Detect which library version wrote a saved tokenizer or dataset. The files are read, not loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from compat.errors import InputError
from compat.files import regular

LIMIT = 64 * 1024 * 1024
"""Maximum size in bytes; the largest tokenizer.json in use has 40 MiB."""


def merges_are_pairs(model: str) -> bool | None:
    """Whether a model's folder has a BPE tokenizer in the format of tokenizers 0.20 and later; ``None`` if it has none."""
    saved = _table(os.path.join(model, "tokenizer.json"))
    kind = saved.get("model") if saved else None
    merges = kind.get("merges") if isinstance(kind, dict) else None
    return isinstance(merges[0], list) if isinstance(merges, list) and merges else None


def has_list_features(folder: str) -> bool | None:
    """Whether a saved dataset uses the feature type introduced in datasets 4; ``None`` if the folder has no dataset."""
    splits = _table(os.path.join(folder, "dataset_dict.json"))
    names = splits.get("splits") if splits else [""]
    for name in names if isinstance(names, list) else []:
        saved = _table(os.path.join(folder, str(name), "dataset_info.json"))
        if saved is not None:
            return "List" in _types(saved.get("features"))
    return None


def _types(value: object) -> Iterator[object]:
    for each in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from _types(each)
    if isinstance(value, dict):
        yield value.get("_type")


def _table(path: str) -> dict[str, object] | None:
    try:
        with open(regular(path), "rb") as file:
            content = file.read(LIMIT + 1)
        found = json.loads(content) if len(content) <= LIMIT else None
    except (InputError, OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
