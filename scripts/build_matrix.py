"""Compiles matrix/ (rules and facts) into the files the package loads. Run by the build and by ``make setup``."""

from __future__ import annotations

import marshal
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from compat.judge.lint import problems_of  # noqa: E402
from compat.matrix import code_tables, compiled, declared, gpus, pack_declared, peak_rates  # noqa: E402
from compat.matrix.loader import load_assessed, load_folder  # noqa: E402
from compat.matrix.surface import at_once, rows, table  # noqa: E402

FACTS = os.path.join(ROOT, "matrix", "facts")


def build() -> None:
    """Writes both compiled files; raises ``SystemExit`` where a rule's example or fix does not hold."""
    rules = load_folder(os.path.join(ROOT, "matrix", "rules"))
    os.makedirs(os.path.dirname(compiled.FILE), exist_ok=True)
    _write(gpus.FILE, marshal.dumps(gpus.tables_from(FACTS), 4))
    _write(code_tables.FILE, marshal.dumps(code_tables.tables_from(FACTS), 4))
    _write(peak_rates.FILE, marshal.dumps(peak_rates.tables_from(FACTS), 4))
    _write(declared.FILE, pack_declared.packed(FACTS))
    _copy_surface(os.path.join(ROOT, "matrix", "surface"), table.FOLDER)
    problems = problems_of(rules)
    if problems:
        raise SystemExit("\n".join(map(str, problems)))
    _write(compiled.FILE, compiled.packed(rules, load_assessed(os.path.join(ROOT, "matrix", "rules"))))


def _copy_surface(source: str, target: str) -> None:
    """The mined tables are compiled already (``python -m scripts.surface.tables``)."""
    os.makedirs(target, exist_ok=True)
    names = sorted(name for name in os.listdir(source) if name.endswith(".bin"))
    for name in names:
        with open(os.path.join(source, name), "rb") as file:
            _write(os.path.join(target, name), file.read())
    found = rows.open_rows(os.path.join(source, "rows.bin"))
    if found is not None:
        names.append("at_once.bin")
        _write(os.path.join(target, "at_once.bin"), at_once.packed(found))
    for name in set(os.listdir(target)) - set(names):
        os.remove(os.path.join(target, name))


def _write(path: str, content: bytes) -> None:
    """Whole or not at all: a check may be reading the old one."""
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    build()
