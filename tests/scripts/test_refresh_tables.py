"""Fact tables: what is refused, what may change, and how runs of releases are folded."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.refresh.tables import TableError, changed, load, text_of
from tests.conftest import ROOT

COLUMNS = ("package", "version", "known", "source", "date")


def table(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([",".join(COLUMNS), *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (("a,1,read,,2026-01-01",), "t.csv:2: expected a source"),
        (("a,1,guessed,wheel,2026-01-01",), "t.csv:2: expected a source"),
        (("a,1,read,wheel,2026-01-01", "a,1,read,other,2026-01-01"), "t.csv:3: a, 1 is there twice"),
        (("a,1",), "t.csv:2: expected 5 values"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, rows: tuple[str, ...], message: str) -> None:
    with pytest.raises(TableError, match=message):
        load(table(tmp_path, *rows), COLUMNS, ("package", "version"))


def test_an_old_row_may_change_its_provenance_only() -> None:
    row = dict(zip(COLUMNS, ("a", "1", "read", "wheel", "2026-01-01"), strict=True))
    key = ("a", "1")
    assert changed({key: row}, {key: {**row, "date": "2026-02-02"}}) == []
    assert changed({key: row}, {key: {**row, "version": "2"}}) == ["a, 1: version was '1' and is '2'"]
    assert changed({key: row}, {}) == ["a, 1: gone"]


def test_a_table_that_is_written_can_be_read(tmp_path: Path) -> None:
    path = table(tmp_path, "b,1,read,wheel,2026-01-01", "a,2,declared,text,2026-01-01")
    rows = load(path, COLUMNS, ("package", "version"))
    text = text_of(rows.values(), COLUMNS, lambda row: row["package"])
    assert [line[0] for line in text.splitlines()[1:]] == ["a", "b"]


@given(st.lists(st.lists(st.sampled_from(("x>=1", "y", 'z; extra == "e"')), unique=True), min_size=1, max_size=9))
def test_folding_loses_nothing(requirements: list[list[str]]) -> None:
    metadata = pytest.importorskip("scripts.refresh.metadata", reason="needs the extra 'maintain'")
    versions = [f"1.{number}" for number in range(len(requirements))]
    found = {version: tuple(asked) for version, asked in zip(versions, requirements, strict=True)}
    folded = metadata.folded(found, versions)
    for requirement, runs in folded.items():
        assert metadata.unfolded(runs, versions) == [each for each in versions if requirement in found[each]]


@pytest.mark.parametrize("path", sorted((ROOT / "matrix" / "facts").glob("*.csv")), ids=lambda path: path.stem)
def test_every_row_that_ships_says_how_it_is_known(path: Path) -> None:
    columns = tuple(path.read_text(encoding="utf-8").splitlines()[0].split(","))
    key = tuple(each for each in columns if each not in ("known", "source", "date"))
    assert load(path, columns, key)


def test_requirements_of_source_distributions_without_them_in_their_metadata() -> None:
    index = pytest.importorskip("scripts.refresh.index", reason="needs the extra 'maintain'")
    text = 'torch\npydantic<2 ; extra == "x"\n\n[:python_version < "3.8"]\ndataclasses\n\n[dev:os_name == "nt"]\npytest>=8\n\n[all]\nb; c\n'
    assert index.required(text).splitlines() == [
        "Requires-Dist: torch",
        'Requires-Dist: pydantic<2 ; extra == "x"',
        'Requires-Dist: dataclasses ; (python_version < "3.8")',
        'Requires-Dist: pytest>=8 ; (os_name == "nt") and extra == "dev"',
        'Requires-Dist: b ; (c) and extra == "all"',
    ]
