"""What changed inside packages, from sources to the file and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.interfaces.changes import FIELD, KEYWORD, MEMBER, MODULE, NAME, REQUIRED, Changes
from compat.interfaces.source.module import FORM
from scripts.surface.changes import Row, changes_of, existing, packed, spans_of
from scripts.surface.extract import missing, read_records
from scripts.surface.history import history_of
from scripts.surface.mined import Mined
from scripts.surface.store import Fetched, Store


def rows_of(folder: Path, *releases: dict[str, str]) -> list[Row]:
    """Return the rows of a package with a module for each entry, ``1.0``, ``2.0`` …"""
    store = Store(folder)
    for at, modules in enumerate(releases, 1):
        bodies = {f"vllm/{name}.py": body.encode() for name, body in {"__init__": "", **modules}.items()}
        store.keep(Fetched("vllm", f"{at}.0", "a.whl", None, "2024-01-01", True, 1, 0.1, (), bodies))
    store.keep_records(FORM, read_records(store, missing(store, "vllm")))
    return changes_of(history_of(Mined(store, uses=False), "vllm"))


def told(rows: list[Row], kind: str) -> list[tuple[str, str, str, tuple[int, ...], tuple[int, ...]]]:
    return [(row.term, row.module, row.owner, row.has, row.lacks) for row in rows if row.kind == kind]


def test_arguments_that_are_taken_and_required(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        {"engine": "def start(model, seed=0): ...\ndef always(x): ..."},
        {"engine": "def start(model, config): ...\ndef always(x): ..."},
        {"engine": "def start(model, *, config): ...\ndef always(x): ..."},
        {"engine": "def start(model, **options): ...\ndef always(x): ..."},
    )
    assert told(rows, KEYWORD) == [
        ("config", "vllm.engine", "start", (1, 2), (0, 0)),
        ("seed", "vllm.engine", "start", (0, 0), (1, 2)),  # what **options takes is not known
    ]
    assert told(rows, REQUIRED) == [("config", "vllm.engine", "start", (1, 2), (0, 0, 3, 3))]


def test_members_that_a_class_gets_from_a_base_later(tmp_path: Path) -> None:
    base = "class Base:\n    {}\n"
    rows = rows_of(
        tmp_path,
        {"base": base.format("..."), "cache": "from vllm.base import Base\nclass Cache(Base):\n    def crop(self): ..."},
        {"base": base.format("def crop(self): ..."), "cache": "from vllm.base import Base\nclass Cache(Base): ..."},
        {"base": base.format("..."), "cache": "from vllm.base import Base\nclass Cache(Base): ..."},
    )
    assert told(rows, MEMBER) == [
        ("crop", "vllm.base", "Base", (1, 1), (0, 0, 2, 2)),
        ("crop", "vllm.cache", "Cache", (0, 1), (2, 2)),
    ]


def test_a_class_that_moves_is_told_of_both_modules(tmp_path: Path) -> None:
    old, new = "class Pool:\n    def __init__(self): ...\n", "class Pool:\n    def __init__(self):\n        self.size = 0\n"
    rows = rows_of(tmp_path, {"a": old}, {"a": new}, {"b": new}, {"b": new})
    assert told(rows, MEMBER) == [
        ("size", "vllm.a", "Pool", (1, 1), (0, 0)),
        ("size", "vllm.b", "Pool", (2, 3), ()),  # it changes nothing here, but the class is the same
    ]


def test_a_base_that_is_not_found_leaves_it_open(tmp_path: Path) -> None:
    has, open_ = "class Worker:\n    def run(self): ...", "from vllm.hidden import Base\nclass Worker(Base): ..."
    assert told(rows_of(tmp_path, {"w": has}, {"w": open_}), MEMBER) == []


def test_names_of_modules_that_the_tables_leave_out(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, {"attention/backend": "def old(): ..."}, {"attention/backend": "", "attention/new": ""})
    assert told(rows, NAME) == [("old", "vllm.attention.backend", "", (0, 0), (1, 1))]
    assert told(rows, MODULE) == [("new", "vllm.attention.new", "", (1, 1), (0, 0))]


@given(st.sets(st.integers(0, 70)))
def test_spans_hold_the_same_releases(releases: set[int]) -> None:
    spans = spans_of(sum(1 << each for each in releases))
    assert {each for first, last in zip(spans[::2], spans[1::2]) for each in range(first, last + 1)} == releases
    assert all(last + 1 < first for last, first in zip(spans[1::2], spans[2::2]))  # runs are as long as they can be


_WORDS = st.text(st.characters(codec="ascii", categories=["Ll", "Lu"]), min_size=1, max_size=6)


@given(st.lists(st.tuples(_WORDS, st.sampled_from((KEYWORD, MEMBER, FIELD)), st.integers(0, 1), _WORDS), max_size=30))
def test_the_file_gives_back_what_was_written(told: list[tuple[str, str, int, str]]) -> None:
    versions = {"a": ("1.0", "1.1"), "b": ("2.0", "2.1", "2.2")}
    rows: dict[str, list[Row]] = {"a": [], "b": []}
    for term, kind, at, owner in told:
        package = "ab"[at]
        rows[package].append(Row(term, kind, package, f"{package}.m", owner, (1, 1), (0, 0)))
    table = Changes(packed(versions, rows))
    for term, kind, at, owner in told:
        found = [(each.kind, each.package, each.owner) for each in table.of(term)]
        assert (kind, "ab"[at], owner) in found
    assert table.of("") == []
    assert all(
        (each.has, each.lacks) in ((("1.1",), ("1.0",)), (("2.1",), ("2.0",))) for term, *_ in told for each in table.of(term)
    )


def test_the_rows_of_a_package_are_replaced_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "changes.bin"
    assert existing(path) == ({}, {})
    row = Row("x", MEMBER, "b", "b.m", "C", (0, 0), (1, 1))
    path.write_bytes(packed({"a": ("1",), "b": ("1", "2")}, {"a": [], "b": [row]}))
    versions, rows = existing(path)
    assert (versions, rows["b"]) == ({"a": ("1",), "b": ("1", "2")}, [row])


def test_files_that_are_cut_off_are_refused(tmp_path: Path) -> None:
    content = packed({"a": ("1",)}, {"a": [Row("x", MEMBER, "a", "a.m", "C", (0, 0), ())]})
    with pytest.raises(Exception, match=r".+"):
        Changes(content[:20])
