"""Compiles matrix/ (rules and facts) into the files the package loads. Run by the build and by ``make setup``."""

from __future__ import annotations

import csv
import marshal
import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from compat.checks.lint import problems_of  # noqa: E402
from compat.diagnosis import symptoms  # noqa: E402
from compat.files import sealed  # noqa: E402
from compat.interfaces import announced, homes, messages, refusals, table  # noqa: E402
from compat.rules import compiled  # noqa: E402
from compat.rules.loader import load_assessed, load_folder  # noqa: E402
from compat.tables import builds, declared, hardware, linked, models, overlaps, programs, stacks  # noqa: E402
from scripts import pack_declared, pack_facts, pack_mined, pack_wheels  # noqa: E402
from scripts.surface.opened import rows_in  # noqa: E402

FACTS = os.path.join(ROOT, "matrix", "facts")


def build() -> None:
    """Write both compiled files; raises ``SystemExit`` if a rule's example or fix does not hold."""
    rules = load_folder(os.path.join(ROOT, "matrix", "rules"))
    os.makedirs(os.path.dirname(compiled.FILE), exist_ok=True)
    _write(hardware.FILE, marshal.dumps(pack_facts.hardware(FACTS), 4))
    _write(builds.FILE, marshal.dumps(dict(pack_facts.code_tables(FACTS)), 4))
    for path, content in zip((linked.FILE, linked.SYMBOLS_FILE), pack_wheels.packed_linked(FACTS)):
        _write(path, content)
    _write(linked.NUMPY_FILE, pack_wheels.packed_numpy_abi(FACTS))
    _write(overlaps.FILE, pack_wheels.packed_overlaps(FACTS))
    _write(hardware.PEAK_RATES_FILE, marshal.dumps(pack_facts.peaks(FACTS), 4))
    _write(declared.FILE, pack_declared.packed(FACTS))
    _write(declared.WHEELS_FILE, pack_wheels.packed_wheels(FACTS))
    _write(symptoms.FILE, symptoms.packed(os.path.join(ROOT, "matrix", "symptoms")))
    _write(models.FILE, marshal.dumps(pack_facts.models(FACTS), 4))
    _write(announced.FILE, marshal.dumps(pack_facts.successors(FACTS), 4))
    _write(programs.FILE, marshal.dumps(pack_facts.programs(FACTS), 4))
    _write(stacks.FILE, marshal.dumps(pack_facts.stacks(os.path.dirname(FACTS)), 4))
    _copy_surface(os.path.join(ROOT, "matrix", "surface"), table.FOLDER)
    _without_others(messages.FOLDER, _copy(os.path.join(ROOT, "matrix", "messages"), messages.FOLDER))
    _write(compiled.EVIDENCE, pack_mined.evidence(rules, _rows(os.path.join(ROOT, "matrix", "evidence"))))
    names = declared.Declared().names
    _write(refusals.FILE, pack_mined.guards(_rows(os.path.join(ROOT, "matrix", "guards")), names))
    problems = problems_of(rules)
    if problems:
        raise SystemExit("\n".join(map(str, problems)))
    _write(compiled.FILE, compiled.packed(rules, load_assessed(os.path.join(ROOT, "matrix", "rules"))))


def _copy_surface(source: str, target: str) -> None:
    """Copy the mined tables, which are already compiled (``python -m scripts.surface.tables``)."""
    names = _copy(source, target)
    found = rows_in(Path(source, "rows.bin"))
    if found is not None:
        names.append("at_once.bin")
        _write(os.path.join(target, "at_once.bin"), pack_mined.at_once(found))
    _write(homes.FILE, pack_mined.homes())
    names.append(os.path.basename(homes.FILE))
    _without_others(target, names)


def _copy(source: str, target: str) -> list[str]:
    """Copy the compiled files of a folder and return their names."""
    os.makedirs(target, exist_ok=True)
    names = sorted(name for name in os.listdir(source) if name.endswith(".bin"))
    for name in names:
        with open(os.path.join(source, name), "rb") as file:
            _write(os.path.join(target, name), file.read())
    return names


def _rows(folder: str) -> Iterator[dict[str, str]]:
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def _without_others(folder: str, names: list[str]) -> None:
    for name in set(os.listdir(folder)) - set(names):
        os.remove(os.path.join(folder, name))


def _write(path: str, content: bytes) -> None:
    """Write atomically, since a check may be reading the old file."""
    with open(path + ".new", "wb") as file:
        file.write(sealed(content, os.path.basename(path)))
    os.replace(path + ".new", path)


if __name__ == "__main__":
    build()
