"""``python -m scripts.surface.tables [PACKAGE…]``: writes ``matrix/surface/PACKAGE.bin`` from the records in the store."""

from __future__ import annotations

import argparse
import functools
import json
import lzma
import operator
import os
import sys
import time
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

from compat.interfaces.table import FILTERS, MAGIC
from scripts.surface.history import ModuleHistory, PackageHistory, history_of
from scripts.surface.kept import Detail, detail_of, without_provided
from scripts.surface.mined import Mined
from scripts.surface.opened import table_in
from scripts.surface.packages import AROUND, BESIDE, TRACKED, UNTABLED, tops_of
from scripts.surface.store import Store

FOLDER = Path(__file__).resolve().parents[2] / "matrix" / "surface"
CHUNK, LARGE_CHUNK = 192 << 10, 512 << 10
"""Bytes before compression: a question opens a whole chunk. What is seldom asked for is kept in large ones."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.tables", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all that are tracked)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    words = parser.parse_args(arguments)
    mined = Mined(Store(words.store), uses=False)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for package in words.packages or [each for each in (*TRACKED, *BESIDE, *AROUND) if each not in UNTABLED]:
        began = time.monotonic()
        history = history_of(mined, package)
        if not history.versions:
            print(f"{package}: not in the store, its table stays as it is", flush=True)
            continue
        content = packed(history)
        write(FOLDER / f"{package}.bin", content)
        print(f"{package}: {len(content) >> 10} KiB, {time.monotonic() - began:.1f} s", flush=True)
    write(FOLDER / "index.bin", written(_index()).encode("ascii"))
    return 0


ALONGSIDE = {"torch": ("torchgen", "nvfuser", "caffe2"), "torchaudio": ("torio",), "unsloth": ("unsloth_cli",)}
"""Top-level modules that belong to a package beside those that others use."""


def _index() -> dict[str, str]:
    """Which package has a top-level module, of the tables that are there."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.bin")):
        table = table_in(path)
        for top in table.tops & {*tops_of(path.stem), *ALONGSIDE.get(path.stem, ())} if table is not None else ():
            if top not in found or top.replace("_", "-") == path.stem:
                found[top] = path.stem
    return dict(sorted(found.items()))


def write(path: Path, content: bytes) -> None:
    path.with_suffix(".new").write_bytes(content)
    os.replace(path.with_suffix(".new"), path)


def packed(history: PackageHistory) -> bytes:
    """The file of one package."""
    without_provided(history)
    tops = (*tops_of(history.package), *ALONGSIDE.get(history.package, ()))
    for kept in (history.modules, history.opaque):
        for name in [each for each in kept if each.partition(".")[0] not in tops]:
            del kept[name]  # installed by mistake, or the files of another distribution
    writer = _Writer(history)
    details = {name: detail_of(history.package, name) for name in history.modules}
    for name in sorted(details, key=lambda name: (not details[name].whole, name.count(".") > 1, name)):
        writer.add(name, history.modules[name], details[name])
    return writer.done()


class _Writer:
    def __init__(self, history: PackageHistory) -> None:
        self.history = history
        self.masks: dict[int, int] = {}
        self.names: list[str] = []
        self.places: dict[str, list[int]] = {"life": [], "read": [], "chunk": [], "length": []}
        self.chunks: list[bytes] = []
        self._open: list[str] = []
        self._detail: Detail | None = None

    def number(self, mask: int, whole: int = 0) -> int:
        return 0 if mask == whole and whole else self.masks.setdefault(mask, len(self.masks) + 1)

    def add(self, name: str, module: ModuleHistory, detail: Detail) -> None:
        life, read = self.number(module.mask), self.number(module.read) if module.read else -1
        chunk, text = -1, " "
        if detail.any and module.read:
            text = written(self._block(name, module, detail))
            if self._open and (self._is_full(text, detail) or detail != self._detail):
                self._close()
            self._detail, chunk = detail, len(self.chunks)
            self._open.append(text)
        self.names.append(name)
        length = -len(text) if module.is_package else len(text)
        for column, value in zip(self.places.values(), (life, read, chunk, length)):
            column.append(value)

    def _is_full(self, text: str, detail: Detail) -> bool:
        return sum(map(len, self._open)) + len(text) > (CHUNK if detail.whole else LARGE_CHUNK)

    def _close(self) -> None:
        if self._open:
            self.chunks.append(lzma_of("".join(self._open)))
            self._open.clear()

    def _block(self, name: str, module: ModuleHistory, detail: Detail) -> dict[str, list[tuple[Any, ...]]]:
        block: dict[str, list[tuple[Any, ...]]] = {}
        own = tops_of(self.history.package) if module.is_package and not detail.classes else ()
        on_demand = module.statements.get("lazy", {})
        for section, abouts in module.statements.items():
            rows = []
            for about, says in abouts.items():
                if not detail.whole and f"{name}.{about}" in self.history.modules:  # ``from . import data``
                    says = {each: mask for each, mask in says.items() if each != ("i", name, about)}
                kept = detail.kept(section, about, says, own)
                if says and not kept and section == "define" and about in on_demand:  # other releases have it all the same
                    kept = {("v",): functools.reduce(operator.or_, says.values())}
                if kept:
                    rows.append((about, *self._says(kept, module.mask)))
            if rows:
                block[section] = rows
        return block if detail.whole else block | {"some": []}

    def _says(self, says: dict[Hashable, int], whole: int) -> Iterable[Any]:
        for each, mask in says.items():
            yield self.number(mask, whole)
            yield each

    def done(self) -> bytes:
        self._close()
        history = self.history
        opaque = {name: self.number(mask) for name, mask in sorted(history.opaque.items())}
        header = {
            "package": history.package, "versions": history.versions, "uploaded": [each[:10] for each in history.uploaded],
            "modules": self.names, **self.places, "opaque": opaque, "chunks": [*map(len, self.chunks)], "masks": [*self.masks],
        }  # fmt: skip
        return headed(MAGIC, header, self.chunks)


def written(value: Any) -> str:
    """A value as the files hold it: JSON in ASCII, so that places in the text are places in its bytes."""
    return json.dumps(value, separators=(",", ":"))


def compressed(value: Any) -> bytes:
    """A part that holds one value."""
    return lzma_of(written(value))


def headed(magic: bytes, header: Any, parts: Iterable[bytes]) -> bytes:
    """A file as :func:`compat.interfaces.table.header_of` opens it."""
    body = compressed(header)
    return b"".join((magic, len(body).to_bytes(4, "little"), body, *parts))


def lzma_of(text: str) -> bytes:
    return lzma.compress(text.encode("ascii"), lzma.FORMAT_RAW, filters=FILTERS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
