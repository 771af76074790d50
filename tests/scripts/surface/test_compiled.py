"""Names bound in compiled code: what stubs list, what the strings of libraries rule out, and what stays unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.interfaces.source.module import FORM
from compat.interfaces.table import Table
from compat.interfaces.world import World
from scripts.surface import tables
from scripts.surface.compiled import Strings, strings_of
from scripts.surface.extract import missing, read_records
from scripts.surface.history import history_of
from scripts.surface.mined import Mined
from scripts.surface.opened import table_in
from scripts.surface.store import Fetched, Store

LIBRARY = "torch/lib/libtorch_python.so.names"
INIT = """
from torch._C import *
from torch.functional import *
import torch._C as _C
for name in dir(_C._VariableFunctions):
    globals()[name] = getattr(_C._VariableFunctions, name)
"""
STUB = "from typing import Any\nfrom . import _nn as _nn\n{}"
RELEASES = {
    # stub of torch._C, stub of the functions, strings of the library
    "1.0": ("int8: dtype\n_old: int\n_xpu_init: int", "def add(): ...\ndef stft(): ...", "int8\n_old\nadd\nstft\n-Event"),
    "2.0": ("int8: dtype\n_xpu_init: int", "def add(): ...", "int8\nadd\nstft\nuint8\n-grouped\nEvent"),
    "3.0": (
        "int8: dtype\nuint8: dtype\n_init: int\nclass Event: ...",
        "def add(): ...\ndef stft(): ...\ndef _mm(): ...\ndef grouped(): ...",
        "int8\nadd\nstft\nuint8\n_init\n_mm\nEvent\ngrouped",
    ),
}


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("torch")
    store = Store(folder)
    for version, (stub, functions, strings) in RELEASES.items():
        members = {
            "torch/__init__.py": INIT,
            "torch/functional.py": "__all__ = ['stft']\ndef stft(input, n_fft): ...",
            "torch/_C/__init__.pyi": STUB.format(stub),
            "torch/_C/_VariableFunctions.pyi": functions,
            LIBRARY: strings,
        }
        bodies = {path: body.encode() for path, body in members.items()}
        store.keep(Fetched("torch", version, "a.whl", None, "2024-01-01", True, 1, 0.1, (), bodies))
    store.keep_records(FORM, read_records(store, missing(store, "torch")))
    path = folder / "torch.bin"
    path.write_bytes(tables.packed(history_of(Mined(store), "torch")))
    table = table_in(path)
    assert table is not None
    return table


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch.int8", "value value value"),
        ("torch.uint8", "absent value value"),  # only a later stub lists it, but its string came with 2.0
        ("torch._mm", "absent absent value"),
        ("torch.grouped", "absent unknown value"),  # the end of another string
        ("torch.Event", "unknown unknown class"),  # its string was there before
        ("torch.stft", "value value value"),
        ("torch._C._old", "value absent absent"),
        ("torch._C._init", "absent absent value"),
        ("torch._C._xpu_init", "value value unknown"),  # bound by other builds
        ("torch._init", "never never never"),  # a star import leaves it out
        ("torch.Any", "never never never"),
        ("torch._C.typo", "unknown unknown unknown"),
    ],
)
def test_names_by_release(torch: Table, name: str, expected: str) -> None:
    assert [World((surface,)).find(name).kind for surface in torch.surfaces()] == expected.split()


def test_without_its_library_a_module_stays_open(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for version, names in (("1.0", b"a: int"), ("2.0", b"b: int")):
        bodies = {"torch/__init__.py": INIT.encode(), "torch/_C/__init__.pyi": names, "torch/_C/_VariableFunctions.pyi": b""}
        store.keep(Fetched("torch", version, "a.whl", None, "2024-01-01", True, 1, 0.1, (), bodies))
    store.keep_records(FORM, read_records(store, missing(store, "torch")))
    mined = Mined(store)
    kinds = [World((mined.surface(release),)).find("torch.b").kind for release in mined.releases("torch")]
    assert kinds == ["unknown", "value"]


def test_strings_of_a_library() -> None:
    listed = strings_of(b"\x7fELF\0addmul\0aten::mul\0not a name\0_init\0\x01end").decode()
    strings = Strings(listed)
    assert strings.whole == {"addmul", "_init"}
    assert [name for name in ("addmul", "mul", "ul", "_init", "name", "end", "add") if strings.end_in(name)] == [
        "addmul", "mul", "ul", "_init", "name",
    ]  # fmt: skip
