"""``python -m scripts.trial FIRST LAST``: random environments, tried for real.

A seed stands for a small program (``scripts/trial/programs``), a Python, and old releases of one to three packages; uv
resolves everything else to its newest release and installs it. The program runs. What doctor said of it before
and what diagnose says of its output are compared with what happened, and a table counts both. Results are kept in the store,
one file a seed: a run may be stopped and started again. An environment that compat was wrong about is kept, too:
``--judge`` asks about it again, after a change of compat.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from packaging.version import Version

from compat.index import Index, Store, gather
from scripts.golden_inputs import ROOT
from scripts.trial.choice import PYTHONS, chosen, programs
from scripts.trial.outcome import CRASH, OK, Result, judged, tried


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.trial", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, help="this seed is included")
    parser.add_argument("--python", action="append", metavar="X.Y", help="only these (default: 3.10 to 3.13)")
    parser.add_argument("--again", action="store_true", help="try seeds again that have a result")
    parser.add_argument("--judge", action="store_true", help="only ask compat again, about the environments that were kept")
    parser.add_argument("--table", action="store_true", help="only print the results that there are")
    parser.add_argument("--store", type=Path, default=Path(os.environ.get("COMPAT_TRIALS", ROOT / ".trials")))
    words = parser.parse_args(arguments)
    seeds, store = range(words.first, words.last + 1), words.store.absolute()
    if words.judge:
        _judge_again(seeds, store)
    elif not words.table:
        _try(seeds, store, words.python or PYTHONS, again=words.again)
    print(table([Result.read(path) for path in _results(seeds, store)]))
    return 0


def _try(seeds: range, store: Path, pythons: Sequence[str], *, again: bool) -> None:
    index = Index(gather(), Store())

    @cache
    def releases(name: str) -> list[str]:
        found = {Version(each.version) for each in index.files(name) or () if each.yanked is None}
        return [str(each) for each in sorted(found) if not each.is_prerelease]

    for seed in seeds:
        path = store / f"{seed}.json"
        if again or not path.exists():
            result = tried(seed, chosen(seed, releases, pythons), store)
            result.write(path)
            print(_line(result), flush=True)


def _judge_again(seeds: range, store: Path) -> None:
    commands = {each.name: each.command for each in programs()}
    for path in _results(seeds, store):
        result = Result.read(path)
        if result.end in (OK, CRASH) and (path.with_suffix("") / "env").exists():
            judged(result, path.with_suffix(""), commands[result.program])
            result.write(path)
            print(_line(result), flush=True)


def _results(seeds: range, store: Path) -> list[Path]:
    return [path for seed in seeds if (path := store / f"{seed}.json").exists()]


def _line(result: Result) -> str:
    said = ", ".join(each.rule for each in result.errors) or "nothing"
    named = f"; named: {', '.join(each.rule for each in result.named) or 'nothing'}" if result.end == CRASH else ""
    head = f"{result.seed} {result.program} (Python {result.python}, {' '.join(result.requirements)})"
    return f"{head}: {result.end}; doctor: {said}{named}"


def table(results: Sequence[Result]) -> str:
    """Return the counts of results, and a line for each one that compat was wrong about."""
    crashes = [each for each in results if each.end == CRASH]
    good = [each for each in results if each.end == OK]
    false = [each for each in good if each.predicted]
    predicted, named = sum(each.predicted for each in crashes), sum(bool(each.named) for each in crashes)
    ends = Counter(each.end for each in results)
    lines = [
        f"{len(results)} trials: {', '.join(f'{count} {end}' for end, count in ends.most_common())}",
        f"crashes: {len(crashes)}, predicted by doctor {predicted}, named by diagnose {named}",
        f"programs that run: {len(good)}, with an error from doctor {len(false)}",
    ]
    for title, of in (
        ("not predicted", [each for each in crashes if not each.predicted]),
        ("not named", [each for each in crashes if not each.named]),
        ("runs, though doctor has an error", false),
    ):
        lines += [f"\n{title}:" for _ in of[:1]]
        for each in of:
            last = each.error.strip().splitlines()[-1:] if each.end == CRASH else []
            lines += [f"  {_line(each)}", *(f"      {line[:200]}" for line in last)]
    return "\n".join(lines)


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
