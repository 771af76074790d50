"""``python -m scripts.guards.tables [PACKAGE…]``: ``matrix/guards/PACKAGE.csv`` from the modules in the store.

A module that did not change between releases is read once; records are kept in the store, so that the next run goes on.
A row stands for one refusal that facts decide: its releases, its place, how it is reached and its condition as source text.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from compat.index import Index, gather
from compat.index import Store as IndexStore
from compat.interfaces.guards import condition_of
from compat.interfaces.imports import Eager
from compat.interfaces.messages import HOLE
from compat.interfaces.refusals import Both, Condition, FactTest, Opposite, fact_tests
from compat.interfaces.release import SourceSurface
from compat.interfaces.source.module import read_module
from compat.interfaces.source.records import Module
from compat.tables.declared import open_declared
from compat.versions import key_of
from scripts.guards.reach import may_say, reach_of
from scripts.guards.refusals import FORM, Contents, Refusal, asks, contents_of
from scripts.guards.sides import facts_on_both_sides
from scripts.guards.undeclared import Requirements, undeclared_of
from scripts.messages.extract import modules_of
from scripts.surface.extract import places_of
from scripts.surface.packages import tops_of
from scripts.surface.store import Release, Store

FOLDER = Path(__file__).resolve().parent.parent.parent / "matrix" / "guards"
PACKAGES = (
    "accelerate", "auto-gptq", "autoawq", "axolotl", "bitsandbytes", "compressed-tensors", "datasets", "deepspeed",
    "flash-attn", "gptqmodel", "kernels", "liger-kernel", "llamafactory", "llmcompressor", "lmdeploy", "ms-swift", "optimum",
    "peft", "sentence-transformers", "sglang", "torchao", "transformers", "trl", "unsloth", "unsloth-zoo", "verl", "vllm",
    "xformers",
)  # fmt: skip
COLUMNS = ("package", "releases", "module", "function", "kind", "error", "reach", "condition", "message")
PLACE = "guards"
_LAZY = frozenset(("transformers", "vllm", "sglang", "optimum"))
"""Packages that load everything at its first use: what importing them runs is not followed."""
ELSEWHERE = re.compile(
    r"\b(is_(sagemaker_[md]p_enabled|(torch_)?(xla|tpu|npu|xpu|mlu|musa|hpu|sdaa|neuron|neuroncore|qaic)_available)|torch\.xpu\.is_available)"
    r"\([^()]*\)"
)
"""Platforms that no described environment is."""
_ADDRESS = re.compile(r"https?://\S+")
_ABOUT_VERSIONS = re.compile(r"support|require|version|incompatib|install", re.IGNORECASE)
_LATER = re.compile(r"deprecat|future|will be removed|will be dropped", re.IGNORECASE)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.guards.tables", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--out", type=Path, metavar="FOLDER", default=FOLDER)
    words = parser.parse_args(arguments)
    store = Store(words.store)
    words.out.mkdir(parents=True, exist_ok=True)
    index = Index(gather(), IndexStore())
    requirements = Requirements(index)
    for package in words.packages or PACKAGES:
        rows = list(rows_of(store, package, requirements))
        if rows:
            with (words.out / f"{package}.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(COLUMNS)
                writer.writerows(sorted(rows))
        print(f"{package}: {len(rows)} guards", flush=True)
    index.close()
    store.close()
    return 0


def rows_of(store: Store, package: str, requirements: Requirements | None = None) -> Iterator[tuple[str, ...]]:
    """Return the rows of a package, as in :data:`COLUMNS`; undeclared imports only if the requirements can be read."""
    releases = sorted(store.releases(package), key=lambda release: key_of(release.version))
    names = open_declared().names
    found: dict[tuple[str, Refusal], int] = defaultdict(int)
    for at, release in enumerate(releases):
        for module, refusal in _of_release(store, release):
            found[module, refusal] |= 1 << at
    grouped: dict[tuple[str, ...], int] = defaultdict(int)
    for (module, refusal), mask in found.items():
        refusal = _with_earlier(refusal, names)
        condition = _decidable(package, refusal, names)
        if condition is not None and _worth_saying(refusal):
            text = " and ".join(f"({each})" for each in reversed(refusal.guards))
            says: tuple[str, ...] = (
                module,
                refusal.function,
                refusal.kind,
                refusal.name,
                refusal.reach,
                text,
                _ADDRESS.sub(HOLE, refusal.template)[:200],
            )
            grouped[says] |= mask
    undeclared = undeclared_of(store, package, requirements) if requirements and package not in _LAZY else ()
    for module, top, ways, mask in undeclared:
        condition_text = f"(importlib.util.find_spec({top!r}) is None)"
        says = module, "", "raise", "ModuleNotFoundError", "|".join(sorted(ways)), condition_text, f"No module named {top!r}"
        grouped[says] |= mask
    for row, mask in grouped.items():
        yield package, _spans(releases, mask), *row


def _of_release(store: Store, release: Release) -> Iterator[tuple[str, Refusal]]:
    """Return a release's relevant refusals, with minimum releases and requirements from its other modules filled in."""
    eager = _run_at_import(store, release)
    modules = {
        module: source for module, source in modules_of(release).items() if module in eager or may_say(release.package, module)
    }
    contents = {module: _contents(store, source) for module, source in modules.items()}
    least = {name: number for each in contents.values() for name, number in each.least}
    listed = {name: text for each in contents.values() for name, text in each.listed}
    for module, each in contents.items():
        for refusal in each.refusals:
            guards = tuple(_completed(guard, least, listed) for guard in refusal.guards)
            earlier = tuple(_completed(guard, least, listed) for guard in refusal.earlier)
            reach, guards = ((refusal.reach,), guards) if refusal.reach else reach_of(
                release.package, module, refusal.function, guards
            )  # fmt: skip
            if not reach and not refusal.function and module in eager:
                reach = ("import",)
                guards += tuple(f"importlib.util.find_spec({name!r}) is not None" for name in sorted(eager[module]))
            if reach:
                yield module, replace(refusal, guards=guards, reach="|".join(reach), earlier=earlier)


def _contents(store: Store, source: int) -> Contents:
    packed = store.record(FORM, source, PLACE)
    if packed is None:
        contents = contents_of(store.body(source))
        store.keep_records(FORM, [(source, PLACE, zlib.compress(json.dumps(
            [[vars(each) for each in contents.refusals], contents.least, contents.listed]
        ).encode()))])  # fmt: skip
        return contents
    refusals, least, listed = json.loads(zlib.decompress(packed))
    return Contents(
        tuple(
            Refusal(**{**each, "guards": tuple(each["guards"]), "earlier": tuple(each["earlier"])}) for each in refusals
        ),
        tuple(map(tuple, least)), tuple(map(tuple, listed)),
    )  # fmt: skip


def _run_at_import(store: Store, release: Release) -> dict[str, frozenset[str]]:
    """Return the modules that importing the package runs, each with the packages that must be installed for it."""
    if release.package in _LAZY:
        return {}
    places = {place.rstrip("/"): (source, place) for source, place in places_of(release) if not place.endswith("?")}

    def read(name: str) -> Module | None:
        source, place = places[name]
        if (source, place) not in _read:
            record = read_module(store.body(source), name, is_package=place.endswith("/"), stub=False)
            _read[source, place] = record if record.problem is None else None
        return _read[source, place]

    surface = SourceSurface(release.package, release.version, places, read, release.opaque)
    tops = tops_of(release.package)
    surface.tops = frozenset(tops)
    return Eager(surface).run(tops).modules


_read: dict[tuple[int, str], Module | None] = {}


def _completed(guard: str, least: dict[str, str], listed: dict[str, str]) -> str:
    guard = ELSEWHERE.sub("False", guard)
    guard = re.sub(
        r"\bis_(\w+)_available\(\)",
        lambda found: (
            f"(is_{found[1]}_available() and importlib.metadata.version({found[1]!r}) >= {least[found[1]]!r})"
            if found[1] in least else found[0]
        ),
        guard,
    )  # fmt: skip
    found = re.fullmatch(r"LISTED\('([\w-]+)'\)", guard)
    if found is None:
        return guard
    condition = asks(listed.get(found[1], ""))
    return f"importlib.util.find_spec({found[1]!r}) is not None and not ({condition})" if condition else guard


def _with_earlier(refusal: Refusal, names: frozenset[str]) -> Refusal:
    """Return a refusal with those of the earlier ones among its guards that facts decide; the others cannot make it pass."""
    decided = tuple(each for each in refusal.earlier if _closed(condition_of(each, names)))
    return replace(refusal, guards=(*refusal.guards, *decided), earlier=())


def _decidable(package: str, refusal: Refusal, names: frozenset[str]) -> Condition | None:
    """Return the condition of a refusal if facts decide all of it."""
    parts = tuple(condition_of(each, names) for each in refusal.guards)
    whole = Both(parts)
    if not parts or not all(map(_closed, parts)):
        return None
    tests = tuple(fact_tests(whole))
    inside = any(test.fact == "variable" and test.operator in ("set", "unset") for test in tests)  # set by the process
    own = all(test.fact in ("package", "installed") and test.name == package for test in tests)
    return None if inside or own or facts_on_both_sides(whole) is None else whole


def _closed(condition: Condition) -> bool:
    if isinstance(condition, FactTest):
        return bool(condition.fact)
    return _closed(condition.part) if isinstance(condition, Opposite) else all(map(_closed, condition.parts))


def _worth_saying(refusal: Refusal) -> bool:
    """Return whether it is an error, or a warning about an unsuitable release; deprecations do not count."""
    if _LATER.search(refusal.template) or refusal.name.endswith("DeprecationWarning") or refusal.name == "FutureWarning":
        return False
    return refusal.kind == "raise" or (refusal.kind == "warn" and _ABOUT_VERSIONS.search(refusal.template) is not None)


def _spans(releases: list[Release], mask: int) -> str:
    """Return runs of consecutive releases, as in ``0.9.0..0.12.2 0.14.0``."""
    runs: list[list[str]] = []
    for at, release in enumerate(releases):
        if mask >> at & 1:
            if at and mask >> (at - 1) & 1:
                runs[-1][1:] = [release.version]
            else:
                runs.append([release.version])
    return " ".join("..".join(run) for run in runs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
