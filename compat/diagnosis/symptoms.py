"""Error messages that identify a problem whichever release is at fault: ``matrix/symptoms``, compiled."""

from __future__ import annotations

import functools
import marshal
import os
import re
from typing import Any

from compat.errors import InputError
from compat.files import DATA, read_table
from compat.model import EFFECTS, FIX_KINDS, Fix
from compat.records import record
from compat.rules.parsing import known_keys, words
from compat.syntax.toml import parse_toml

FILE = os.path.join(DATA, "symptoms.bin")
_SUBJECTS = (
    "loading", "binaries", "amd", "gpus", "cuda", "communication", "processes", "python", "source_builds", "compilers",
    "numerics", "kernels", "installers",
)  # fmt: skip
"""The files in matching order: more specific messages come first."""
_LISTS = ("explained_by", "facts", "packages", "else_packages", "written_for", "evidence", "hints")
_FIX_KEYS = ("kind", "package", "spec", "text", "command")


@record(frozen=True)
class Symptom:
    """A message, the derived findings that explain it (by prefix of their rule), and its explanation without them.

    ``packages`` are the affected packages; ``else_packages`` apply if neither the message nor its frames name one.
    Every message with the pattern contains one of the ``hints``. Texts, commands, packages and the releases of fixes may
    refer to the pattern's groups in braces; the same group in another alternative has a numeric suffix (``name_2``).
    ``{package}`` in a text or a fix stands for the first affected package ("a package" in texts if there is none).
    ``several``: what is enough of the message where the environment has several GPUs or processes.
    ``general``: another line of the same text may be more specific.
    ``kernels``: the failing code is a compiled kernel, so the only extension that is installed is its package.
    ``written_for``: a package and one that its releases are written for; those published at the same time are fixes.
    """

    name: str
    pattern: str
    title: str
    why: str
    fixes: tuple[Fix, ...]
    evidence: tuple[str, ...]
    hints: tuple[str, ...]
    effect: str = "crash"
    explained_by: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    else_packages: tuple[str, ...] = ()
    written_for: tuple[str, str] | tuple[()] = ()
    several: str = ""
    general: bool = False
    kernels: bool = False

    def search(self, text: str, *, several: bool = False) -> re.Match[str] | None:
        """Find the message in a text; the pattern is only compiled for a text with one of the hints.

        ``several``: the environment has several GPUs or processes.
        """
        found = re.search(self.pattern, text) if any(hint in text for hint in self.hints) else None
        return re.search(self.several, text) if found is None and several and self.several else found


@functools.cache
def symptoms() -> tuple[Symptom, ...]:
    """Return all symptoms, in matching order."""
    return tuple(
        Symptom(**{**values, "fixes": tuple(Fix(*fix) for fix in values["fixes"])})
        for values in marshal.loads(read_table(FILE))
    )


@functools.cache
def general_rules() -> frozenset[str]:
    """Rules of symptoms that another error in the same text may describe more precisely."""
    return frozenset(f"symptom-{symptom.name}" for symptom in symptoms() if symptom.general)


def packed(folder: str) -> bytes:
    """Return the compiled form of the files in a folder; :class:`InputError` for a symptom that is not valid."""
    files = sorted(name.removesuffix(".toml") for name in os.listdir(folder))
    if files != sorted(_SUBJECTS):
        raise InputError(f"expected exactly the files {', '.join(_SUBJECTS)}: their order is the order of matching", folder)
    found: dict[str, dict[str, Any]] = {}
    for subject in _SUBJECTS:
        path = os.path.join(folder, f"{subject}.toml")
        document = parse_toml(path)[1]
        shared = {name: _fix(table) for name, table in document.get("fix", {}).items()}
        for table in document["symptom"]:
            name = table.get("name")
            try:
                if name in found:
                    raise ValueError("the name is already used")
                found[name] = _values(table, shared)
            except (KeyError, TypeError, ValueError, re.error) as problem:
                raise InputError(f"symptom {name}: {problem}", path) from None
    return marshal.dumps(tuple(found.values()), 4)


def _values(table: dict[str, Any], shared: dict[str, tuple[str | None, ...]]) -> dict[str, Any]:
    """The fields of a symptom as plain values; ``pattern`` may list alternatives, and ``fixes`` may name shared ones."""
    known_keys("symptom", table, tuple(Symptom.__annotations__))
    pattern = table["pattern"] if isinstance(table["pattern"], str) else "|".join(table["pattern"])
    re.compile(pattern)
    re.compile(table.get("several", ""))
    if table.get("effect", "crash") not in EFFECTS:
        raise ValueError(f"unknown effect {table['effect']!r}")
    return {
        **table,
        **{key: words(key, table[key]) for key in _LISTS if key in table},
        "pattern": pattern,
        "why": " ".join(table["why"].split()),
        "fixes": tuple(shared[fix] if isinstance(fix, str) else _fix(fix) for fix in table["fixes"]),
    }


def _fix(table: dict[str, str]) -> tuple[str | None, ...]:
    known_keys("fix", table, _FIX_KEYS)
    if table["kind"] not in FIX_KINDS:
        raise ValueError(f"unknown kind of fix {table['kind']!r}")
    return tuple(table.get(key, "" if key == "text" else None) for key in _FIX_KEYS)
