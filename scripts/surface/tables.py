"""``python -m scripts.surface.tables [PACKAGE…]``: writes ``matrix/surface/PACKAGE.bin`` from the records in the store."""

from __future__ import annotations

import argparse
import lzma
import marshal
import os
import sys
import time
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

from compat.matrix.surface.table import FILTERS, MAGIC, open_table
from scripts.surface.history import ModuleHistory, PackageHistory, history_of
from scripts.surface.kept import Detail, detail_of, without_provided
from scripts.surface.mined import Mined
from scripts.surface.packages import BESIDE, TRACKED
from scripts.surface.store import Store

FOLDER = Path(__file__).resolve().parents[2] / "matrix" / "surface"
CHUNK, LARGE_CHUNK = 192 << 10, 2 << 20
"""Bytes before compression: a question opens a whole chunk. What is seldom asked for is kept in large ones."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.tables", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all that are tracked)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    words = parser.parse_args(arguments)
    mined = Mined(Store(words.store), uses=False)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for package in words.packages or (*TRACKED, *BESIDE):
        began = time.monotonic()
        content = packed(history_of(mined, package))
        write(FOLDER / f"{package}.bin", content)
        print(f"{package}: {len(content) >> 10} KiB, {time.monotonic() - began:.1f} s", flush=True)
    write(FOLDER / "index.bin", marshal.dumps(_index(), 4))
    return 0


def _index() -> dict[str, str]:
    """Which package has a top-level module, of the tables that are there."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.bin")):
        table = open_table(path.stem, str(path))
        for top in table.tops if table is not None else ():
            if top not in found or top.replace("_", "-") == path.stem:
                found[top] = path.stem
    return dict(sorted(found.items()))


def write(path: Path, content: bytes) -> None:
    path.with_suffix(".new").write_bytes(content)
    os.replace(path.with_suffix(".new"), path)


def packed(history: PackageHistory) -> bytes:
    """The file of one package."""
    without_provided(history)
    writer = _Writer(history)
    details = {name: detail_of(history.package, name) for name in history.modules}
    for name in sorted(details, key=lambda name: (not details[name].whole, name.count(".") > 1, name)):
        writer.add(name, history.modules[name], details[name])
    return writer.done()


class _Writer:
    def __init__(self, history: PackageHistory) -> None:
        self.history = history
        self.masks: dict[int, int] = {}
        self.places: list[tuple[int, int, int, int, int]] = []
        self.names: list[str] = []
        self.chunks: list[bytes] = []
        self._open = bytearray()
        self._detail: Detail | None = None

    def number(self, mask: int, whole: int = 0) -> int:
        return 0 if mask == whole and whole else self.masks.setdefault(mask, len(self.masks) + 1)

    def add(self, name: str, module: ModuleHistory, detail: Detail) -> None:
        self.names.append(name)
        life, read = self.number(module.mask), self.number(module.read) if module.read else -1
        package = -1 if module.is_package else 1
        if not detail.any or not module.read:
            self.places.append((life, read, -1, 0, package))
            return
        block = marshal.dumps(self._block(module, detail), 4)
        if self._open and (len(self._open) + len(block) > (CHUNK if detail.whole else LARGE_CHUNK) or detail != self._detail):
            self._close()
        self._detail = detail
        self.places.append((life, read, len(self.chunks), len(self._open), package * len(block)))
        self._open += block

    def _close(self) -> None:
        if self._open:
            self.chunks.append(compressed(bytes(self._open)))
            self._open = bytearray()

    def _block(self, module: ModuleHistory, detail: Detail) -> dict[str, list[tuple[Any, ...]]]:
        shared: dict[Any, Any] = {}
        block: dict[str, list[tuple[Any, ...]]] = {}
        for section, abouts in module.statements.items():
            rows = [
                (_one(about, shared), *self._says(kept, module.mask, shared))
                for about, says in abouts.items()
                if (kept := detail.kept(section, about, says))
            ]
            if rows:
                block[sys.intern(section)] = rows
        return block if detail.whole else block | {"some": []}

    def _says(self, says: dict[Hashable, int], whole: int, shared: dict[Any, Any]) -> Iterable[Any]:
        for each, mask in says.items():
            yield self.number(mask, whole)
            yield _one(each, shared)

    def done(self) -> bytes:
        self._close()
        history = self.history
        header = {
            "package": history.package, "versions": history.versions, "uploaded": tuple(each[:10] for each in history.uploaded),
            "modules": tuple(self.names), "places": tuple(self.places),
            "opaque": tuple((name, self.number(mask)) for name, mask in sorted(history.opaque.items())),
            "chunks": tuple(map(len, self.chunks)), "masks": (),
        }  # fmt: skip
        header["masks"] = tuple(self.masks)
        body = compressed(marshal.dumps(header, 4))
        return b"".join((MAGIC, len(body).to_bytes(4, "little"), body, *self.chunks))


def _one(value: Any, shared: dict[Any, Any]) -> Any:
    """The same object for equal values, so that each is written once."""
    if isinstance(value, str):
        return sys.intern(value)
    if isinstance(value, tuple):
        key = value, tuple(map(type, value))
        if key not in shared:
            shared[key] = tuple(_one(each, shared) for each in value)
        return shared[key]
    return value


def compressed(body: bytes) -> bytes:
    return lzma.compress(body, lzma.FORMAT_RAW, filters=FILTERS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
