"""``python -m scripts.surface.truth``: mined rows against the real releases, installed and imported or called.

For each chosen row both the release that lacks what is needed and the one beside it that has it are installed, with the
consumer and what both require as of their day, in a throw-away folder. A row is *confirmed* when its error appears with the
first and not with the second. Where the consumer cannot be imported at all beside these (another package is in the way), the
statement that needs the name is run with that package alone; where that fails for another reason there is *no control*.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from compat.interfaces.rows import Row, Rows, open_rows
from scripts.surface.collect import CONSUMERS
from scripts.surface.mined import Mined
from scripts.surface.store import Store

_OF_THE_BASE = (
    "torch", "triton", "torchvision", "torchaudio", "vllm", "deepspeed", "xformers", "bitsandbytes",
    "typing-extensions", "numpy", "setuptools",
)  # fmt: skip
"""Not installed: large ones, of which torch is the interpreter's, and what that torch needs as it has it."""
_UNTRIED = frozenset((*_OF_THE_BASE, "unsloth", "unsloth-zoo", "sglang", "auto-gptq", "autoawq"))
"""Nothing is tried about these: they are not installed, or do nothing without an accelerator."""
IMPORTABLE = ("trl", "peft", "accelerate", "transformers", "datasets", "huggingface-hub", "sentence-transformers", "evaluate")
"""Consumers that can be imported beside the interpreter's packages."""
CONFIRMED, NO_ERROR, BOTH, NO_CONTROL = "confirmed", "no error", "error in both", "no control"
_TIMEOUT = 240


@dataclass(frozen=True)
class Trial:
    """One row: ``bad`` and ``good`` are neighbouring releases of the package it is about, ``day`` that of the later one."""

    row: Row
    bad: str
    good: str
    day: str
    consumer_day: str


@dataclass(frozen=True)
class Outcome:
    trial: Trial
    how: str
    result: str
    seen: str


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.truth", description=__doc__)
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--rows", type=int, default=120, metavar="N", help="how many (default 120)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--python", required=True, metavar="FILE", help="an interpreter with torch and the usual dependencies")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the table, as CSV")
    words = parser.parse_args(arguments)
    rows = open_rows()
    trials = chosen(rows, Mined(Store(words.store)), words.rows, random.Random(words.seed))
    counts: Counter[tuple[str, str]] = Counter()
    with (
        open(words.out, "w", newline="", encoding="utf-8") as file,
        ThreadPoolExecutor(words.jobs) as pool,
        tempfile.TemporaryDirectory(prefix="surface-truth-") as root,
    ):
        folders = Folders(Path(root), words.python)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("consumer", "file", "line", "tier", "needs", "bad", "good", "how", "result", "seen"))
        for outcome in pool.map(tried, trials, [words.python] * len(trials), [folders] * len(trials)):
            row, trial = outcome.trial.row, outcome.trial
            counts[outcome.how, outcome.result] += 1
            told = (
                f"{row.consumer} {row.version}",
                row.path,
                row.line,
                row.tier,
                row.what,
                f"{row.package} {trial.bad}",
                trial.good,
            )
            writer.writerow((*told, outcome.how, outcome.result, outcome.seen))
            file.flush()
            print(f"{outcome.how}, {outcome.result}: {row.consumer} {row.version} {row.what} {trial.bad}", flush=True)
    for (how, result), count in sorted(counts.items()):
        print(f"{how}, {result}: {count}")
    return int(any(result in (NO_ERROR, BOTH) for _, result in counts))


def chosen(rows: Rows, mined: Mined, count: int, order: random.Random) -> list[Trial]:
    """Rows of as many pairs of packages as there are, no two about the same name."""
    piles: dict[tuple[str, str, str], list[Trial]] = {}
    seen: set[tuple[str, str]] = set()
    for consumer in CONSUMERS:
        found = [pair for kind in ("E", "R") for pair in rows.all_of(consumer, kind=kind)]
        order.shuffle(found)
        for _, row in found:
            trial = _trial(rows, mined, row)
            if trial is not None and (row.package, row.what) not in seen and _can_be_tried(row):
                seen.add((row.package, row.what))
                piles.setdefault((consumer, row.package, row.problem), []).append(trial)
    order_of_piles = list(piles.values())
    order.shuffle(order_of_piles)
    picked: list[Trial] = []
    while order_of_piles and len(picked) < count:
        order_of_piles = [pile for pile in order_of_piles if pile]
        picked += [pile.pop() for pile in order_of_piles]
    return picked[:count]


def _can_be_tried(row: Row) -> bool:
    """Calls are tried where the name alone is called, and names that an import statement reaches."""
    return row.kind == "import" or (row.kind == "call" and row.problem == "keyword")


def _trial(rows: Rows, mined: Mined, row: Row) -> Trial | None:
    versions = rows.versions(row.package)
    there = next((seen for seen in reversed(row.evidence) if seen.has), None)
    if there is None or row.package in _UNTRIED:
        return None
    at = versions.index(there.version)
    for beside in (at - 1, at + 1):
        if 0 <= beside < len(versions) and versions[beside] in row.bad:
            days = {found.version: found.uploaded for found in _releases(mined, row.package)}
            day = max(days[versions[beside]], days[there.version])
            own = next(found.uploaded for found in _releases(mined, row.consumer) if found.version == row.version)
            return Trial(row, versions[beside], there.version, day, max(day, own))
    return None


_kept: dict[str, list[Dated]] = {}


@dataclass(frozen=True)
class Dated:
    version: str
    uploaded: str


def _releases(mined: Mined, package: str) -> list[Dated]:
    if package not in _kept:
        _kept[package] = [Dated(release.version, release.uploaded) for release in mined.releases(package)]
    return _kept[package]


def tried(trial: Trial, python: str, folders: Folders) -> Outcome:
    """The consumer's own module first, the bare statement where that tells nothing."""
    row = trial.row
    if row.kind == "import" and row.tier != "R1" and row.consumer in IMPORTABLE:
        consumer = f"{row.consumer}=={row.version}"
        both = ((consumer, f"{row.package}=={version}") for version in (trial.bad, trial.good))
        bad, good = (_ran(python, folders, trial.consumer_day, releases, f"import {row.module}") for releases in both)
        if _result(row, bad, good) == CONFIRMED:
            return Outcome(trial, "import of the consumer", CONFIRMED, bad)
    how = "the statement alone" if row.kind == "import" else "the call alone"
    alone = ((f"{row.package}=={version}",) for version in (trial.bad, trial.good))
    bad, good = (_ran(python, folders, trial.day, releases, _statement(row)) for releases in alone)
    return Outcome(trial, how, _result(row, bad, good), bad or good)


def _result(row: Row, bad: str, good: str) -> str:
    if _is_the_error(row, bad):
        return BOTH if _is_the_error(row, good) else NO_CONTROL if good else CONFIRMED
    return NO_CONTROL if bad or good else NO_ERROR


def _is_the_error(row: Row, seen: str) -> bool:
    """Whether an error is the predicted one: it names what is missing."""
    last = row.missing.rpartition(".")[2]
    if "partially initialized" in seen:  # a circle of imports: the name is there
        return False
    if row.problem == "keyword":
        return "TypeError" in seen and f"unexpected keyword argument '{row.missing}'" in seen
    return any(kind in seen for kind in ("ImportError", "ModuleNotFoundError", "AttributeError")) and last in seen


def _statement(row: Row) -> str:
    if row.kind == "import":
        return f"from {row.target} import {row.name}" if row.name else f"import {row.target}"
    return _CALL.format(target=row.target, keyword=row.missing)


_CALL = """
import inspect, pkgutil
called = pkgutil.resolve_name({target!r})
asked = [each for each in inspect.signature(called).parameters.values() if each.default is each.empty]
stubs = {{each.name: None for each in asked if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}}
for given in ({{}}, stubs):  # what hands keywords on is run only where nothing else is missing
    try:
        called(**(given | {{{keyword!r}: None}}))
    except TypeError as problem:
        if "unexpected keyword" in str(problem):
            raise
    except Exception:
        pass
"""


class Folders:
    """Throw-away folders with releases and what they require as of a day, each set of releases installed once."""

    def __init__(self, root: Path, python: str) -> None:
        self._root, self._python = root, python
        self._lock = threading.Lock()
        self._made: dict[tuple[str, ...], Future[str]] = {}

    def folder(self, day: str, releases: tuple[str, ...]) -> str:
        """Where they are, or ``!`` and why they could not be installed."""
        key = (day, *releases)
        with self._lock:
            known = self._made.get(key)
            future = self._made.setdefault(key, known or Future())
            place = self._root / str(len(self._made))
        if known is None:
            try:
                future.set_result(self._install(day, releases, place))
            except (OSError, ValueError) as problem:
                future.set_result(f"!{problem}")
        return future.result()

    def _install(self, day: str, releases: tuple[str, ...], place: Path) -> str:
        """Declared bounds on the releases themselves are overridden: it is they that are put to the test."""
        overrides = place.with_suffix(".txt")
        overrides.write_text(
            "\n".join((*releases, *(f"{name} ; python_version < '3'" for name in _OF_THE_BASE))), encoding="utf-8"
        )
        install = (
            find_uv_bin(), "pip", "install", "--quiet", "--python", self._python, "--target", str(place), "--overrides",
            str(overrides), "--exclude-newer", _after(day), *releases,
        )  # fmt: skip
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        return "!not installed: " + " ".join(done.stderr.split())[:160] if done.returncode else str(place)


def _after(day: str) -> str:
    return (datetime.date.fromisoformat(day[:10]) + datetime.timedelta(days=2)).isoformat()


def _ran(python: str, folders: Folders, day: str, releases: tuple[str, ...], statement: str) -> str:
    """The last line of what a statement raises, ``""`` where it runs; ``!`` before what says nothing about it."""
    folder = folders.folder(day, releases)
    if folder.startswith("!"):
        return folder
    environ = {**os.environ, "PYTHONPATH": folder, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    run = (python, "-c", statement)
    try:
        done = subprocess.run(run, capture_output=True, text=True, timeout=_TIMEOUT, env=environ, cwd=folder, check=False)
    except subprocess.TimeoutExpired:
        return "!took too long"
    if not done.returncode:
        return ""
    lines = [line for line in done.stderr.splitlines() if line[:1].strip() and ("Error" in line or "Exception" in line)]
    told = lines[-1].replace(folder, "…")[:300] if lines else f"exit code {done.returncode}"
    return re.sub(r" \(/[^)]*\)", "", told)  # where the interpreter's own packages lie


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
