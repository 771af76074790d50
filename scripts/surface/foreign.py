"""``python -m scripts.surface.foreign``: writes ``matrix/surface/foreign.bin`` from the sources in the store.

What packages do with objects of other packages: attributes that they set on them (deepspeed's ``ds_id`` on torch's
parameters), that classes of their own add to a class of another package (trl's ``SFTConfig`` to ``TrainingArguments``), and
that they read although only another package's classes have them. Files are read as text, without their documentation strings:
an assignment is a line, and ``self`` in a function outside of classes is an object of another package, whose method it
replaces. Names that many packages have are left out. A package that is not in the store keeps its rows.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from compat.interfaces.changes import EXTENDS, FIELD, MEMBER, READS, SETS
from compat.versions import key_of
from scripts.surface.changes import NOT_USED, Row, existing, packed, spans_of
from scripts.surface.changes import PATH as CHANGES
from scripts.surface.mined import modules_of
from scripts.surface.packages import AROUND, BESIDE, TRACKED, tops_of
from scripts.surface.store import Release, Store
from scripts.surface.tables import FOLDER, write

PATH = FOLDER / "foreign.bin"
PATCHING = (
    "trl", "peft", "accelerate", "transformers", "unsloth-zoo", "unsloth", "deepspeed", "bitsandbytes", "liger-kernel",
    "sentence-transformers", "diffusers", "llamafactory", "axolotl", "verl", "optimum", "auto-gptq", "autoawq", "ms-swift",
    "vllm", "sglang", "torchao", "gptqmodel", "xformers", "llmcompressor", "compressed-tensors", "hqq", "openrlhf", "lightning",
)  # fmt: skip
"""Packages that work on the objects of others."""
_MODELS = re.compile(r"^transformers\.models\.|^diffusers\.(pipelines|models\.(transformers|unets|autoencoders|controlnets))\.")
"""What is left to the models themselves: there are thousands of these files."""
_READING = re.compile(r"^vllm\.(model_executor\.)?models\.|^sglang\.srt\.models\.")
"""Models of which only what they read counts."""
_SHORTEST = 6
"""Characters of a name that an error can be recognized by."""
_SHORTEST_READ = 8
_MOST_SETTING, _MOST_HAVING = 2, 1
"""Packages that set an attribute, and others whose classes have it: the names of more say nothing of who is meant. Of a
class of torch, no other package's class may have it."""
_MOST_CHANGED = 6
"""Packages in which a member that is read came or went."""
_DOCS = re.compile(r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|(?m:^[ \t]*#.*$)')
_BLOCK = re.compile(r"(?m)^(?=(?:async )?def |class )")
_STATEMENT = re.compile(r"(?m)^[ \t]*(\w[\w.\[\]'\"-]*)\.(\w+)[ \t]*(?::[^=\n]+)?=(?!=)")
_SET_BY_NAME = re.compile(r"setattr\(\s*([^,()\n]+),\s*['\"](\w+)['\"]")
_ATTRIBUTE = re.compile(r"\.([A-Za-z_]\w{5,})\b(?! *=[^=])")
_METHOD = re.compile(r"def (\w+)\(\s*(?:self|cls)\b")
_FIELD = re.compile(r"(?m)^    ([a-z]\w*)[ \t]*: ?[A-Z\w'\"]")
_CLASS = re.compile(r"class (\w+)\(([^()]*)\)")
_IMPORT = re.compile(r"(?m)^[ \t]*from ([\w.]+) import (\([^)]*\)|[^\n(]+)")
_AS = re.compile(r"(\w+)(?:\s+as\s+(\w+))?")
_ROOTS = frozenset((
    "Module", "Function", "Tensor", "BaseModel", "BaseSettings", "Dataset", "IterableDataset", "PretrainedConfig",
    "PreTrainedConfig", "PreTrainedModel", "ProcessorMixin", "ConfigMixin", "ModelOutput", "PushToHubMixin",
    "PyTorchModelHubMixin", "HfArgumentParser",
))  # fmt: skip
"""Classes that nearly everything is derived from, or that every model has one of its own of."""
_KNOWN = frozenset(top for package in (*TRACKED, *BESIDE, *AROUND) for top in tops_of(package))


class Class(NamedTuple):
    """A class: what it is derived from, as written, the top-level module and the name of what is imported; its own members."""

    name: str
    bases: tuple[str, ...]
    imported: tuple[tuple[str, str], ...]
    members: frozenset[str]


class Said(NamedTuple):
    """The names that a file sets on other objects, asks of any object, and has in its own classes."""

    sets: frozenset[str]
    reads: frozenset[str]
    classes: tuple[Class, ...]


def said_in(text: str) -> Said:
    """Return what the source of a module sets, reads and has."""
    code = _DOCS.sub("", text)
    imported = {
        name[2] or name[1]: (each[1].partition(".")[0], name[1])
        for each in _IMPORT.finditer(code)
        for name in _AS.finditer(each[2])
    }
    sets: set[str] = set()
    classes = []
    for block in _BLOCK.split(code):
        assigned = [(found[1], found[2]) for found in _STATEMENT.finditer(block)]
        assigned += [(found[1].strip(), found[2]) for found in _SET_BY_NAME.finditer(block)]
        if not block.startswith("class "):
            sets.update(name for _, name in assigned)
            continue
        sets.update(name for target, name in assigned if target not in ("self", "cls"))
        own = {name for target, name in assigned if target in ("self", "cls")}
        found = _CLASS.match(block)
        bases = [base.strip() for base in found[2].split(",")] if found is not None else []
        outside = [place for base in bases if (place := _place(base, imported))[0] in _KNOWN]
        inside = [base for base in bases if base.isidentifier()]
        members = _telling({*own, *_METHOD.findall(block), *_FIELD.findall(block)})
        classes.append(Class(block[6:].partition("(")[0].partition(":")[0].strip(), tuple(inside), tuple(outside), members))
    return Said(_telling(sets), _telling(set(_ATTRIBUTE.findall(code))), tuple(classes))


def _place(base: str, imported: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Return the top-level module that the name of a base class leads to, and the class's own name."""
    first, dot, last = base.partition(".")[0], "." in base, base.rpartition(".")[2]
    top, name = ("torch", "") if dot and first in ("nn", "torch") else imported.get(first, ("", ""))
    return top, last if dot else name


def _telling(names: set[str]) -> frozenset[str]:
    return frozenset(each for each in names if len(each) >= _SHORTEST and not each.startswith("__") and not each[0].isupper())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.foreign", description=__doc__)
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    words = parser.parse_args(arguments)
    store = Store(words.store)
    read = {}
    for package in PATCHING:
        releases = sorted(store.releases(package), key=lambda release: key_of(release.version))
        if releases:
            read[package] = Package(package, releases, store)
            print(f"{package}: {len(releases)} releases read", flush=True)
    versions, rows = existing(PATH)
    for package, found in rows_of(read, _changed()).items():
        versions[package], rows[package] = read[package].versions, found
        print(f"{package}: {len(found)} rows", flush=True)
    write(PATH, packed(versions, rows))
    return 0


def _changed() -> dict[str, set[str]]:
    """Return the packages of each member that some of their releases lack, unless they are many."""
    packages: dict[str, set[str]] = defaultdict(set)
    for package, found in existing(CHANGES)[1].items():
        for row in found:
            if row.kind in (MEMBER, FIELD) and row.lacks and len(row.term) >= _SHORTEST_READ:
                packages[row.term].add(package)
    return {name: them for name, them in packages.items() if len(them) <= _MOST_CHANGED}


class Package:
    """What the files of a package's releases set, read and have, each with the set of releases, by name and module."""

    def __init__(self, package: str, releases: list[Release], store: Store) -> None:
        self.package = package
        self.versions = tuple(release.version for release in releases)
        self.sets: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.reads: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.classes: dict[tuple[str, Class], int] = defaultdict(int)
        places: dict[tuple[int, str], int] = defaultdict(int)
        for at, release in enumerate(releases):
            for name, (source, _) in modules_of(release).items():
                if name.partition(".")[0] in tops_of(package) and not (NOT_USED.search(name) or _MODELS.search(name)):
                    places[source, name] |= 1 << at
        known: dict[int, Said] = {}
        for (source, module), mask in places.items():
            if source not in known:
                known[source] = said_in(store.body(source).decode("utf-8", "replace"))
            for name in known[source].reads:
                self.reads[name][module] |= mask
            if _READING.search(module):
                continue
            for name in known[source].sets:
                self.sets[name][module] |= mask
            for each in known[source].classes:
                self.classes[module, each] |= mask
        self.own = {name for _, each in self.classes for name in each.members}


def rows_of(read: Mapping[str, Package], changed: Mapping[str, set[str]]) -> dict[str, list[Row]]:
    """Return the rows of each package. ``changed``: the packages in which a member came or went."""
    having = Counter(name for said in read.values() for name in said.own)
    setting = Counter(name for said in read.values() for name in said.sets.keys() - said.own)
    put = {name for name, count in setting.items() if count <= _MOST_SETTING and having[name] <= _MOST_HAVING}
    found = {}
    for package, said in read.items():
        sets = {name: modules for name, modules in said.sets.items() if name in put and name not in said.own}
        reads = {
            name: modules for name, modules in said.reads.items()
            if len(name) >= _SHORTEST_READ and (name in put or changed.get(name, set()) - {package})
        }  # fmt: skip
        others = {name: next(iter(sorted(each for each in read if name in read[each].own)), "") for name in sets}
        always = [row for row in _rows(said, READS, reads, {}) if not row.lacks]
        added = _extensions(said, {name for name, count in having.items() if count == 1})
        rows = {*_rows(said, SETS, sets, others), *_rows(said, READS, reads, {}), *added}.difference(always)
        found[package] = sorted(rows)
    return found


def _rows(said: Package, kind: str, names: Mapping[str, Mapping[str, int]], others: Mapping[str, str]) -> Iterator[Row]:
    """Yield a row for each name, with the module that has it in the most releases, and the other package that has it."""
    for name, modules in names.items():
        module = max(modules, key=lambda each: (modules[each].bit_count(), -len(each), each))
        yield _row(said, name, kind, module, others.get(name, ""), _union(modules.values()))


def _row(said: Package, name: str, kind: str, module: str, owner: str, has: int) -> Row:
    everywhere = (1 << len(said.versions)) - 1
    return Row(name, kind, said.package, module, owner, spans_of(has), spans_of(everywhere & ~has))


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


def _extensions(said: Package, single: Collection[str]) -> Iterator[Row]:
    """Yield the public members that classes add to a class of another package that they are derived from.

    ``single``: the names that the classes of no other package have.
    """
    by_name: dict[str, list[tuple[Class, int]]] = defaultdict(list)
    tops = tops_of(said.package)
    for (_, each), mask in said.classes.items():
        by_name[each.name].append((each, mask))

    def outside(made: Class, among: int, depth: int) -> Iterator[tuple[str, str, int]]:
        yield from ((top, base, among) for top, base in made.imported if top not in tops and base not in _ROOTS)
        for base in {*made.bases, *(base for top, base in made.imported if top in tops)} if depth < 4 else ():
            for other, mask in by_name.get(base, ()):
                if mask & among and other.name != made.name:
                    yield from outside(other, mask & among, depth + 1)

    masks: dict[tuple[str, str, str], int] = defaultdict(int)
    for (module, made), mask in said.classes.items():
        for top, base, within in outside(made, mask, 0):
            for name in made.members:
                if not name.startswith("_") and (top != "torch" or name in single):
                    masks[name, module, f"{made.name}({base})"] |= within
    for (name, module, owner), has in masks.items():
        yield _row(said, name, EXTENDS, module, owner, has)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
