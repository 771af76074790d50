"""``numpy_abi.csv``: wheels that check numpy's ABI, from an index on this machine."""

from __future__ import annotations

import csv
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("remotezip", reason="needs the extra 'maintain'")
pytest.importorskip("pypi_simple", reason="needs the extra 'maintain'")

from scripts.refresh import __main__ as program
from tests.index.server import IndexServer
from tests.scripts.compiled_wheels import publish

TAG = "cp311-cp311-manylinux_2_28_x86_64"
CHECK = b"module compiled against ABI version 0x%x but this version of numpy is 0x%x"
NUMPY_1 = b"\x7fELF" + CHECK + Random(1).randbytes(8000)
NUMPY_2 = NUMPY_1 + b"numpy._core._multiarray_umath"
UNRELATED = b"\x7fELF" + Random(1).randbytes(7000)


def released(server: IndexServer, version: str, day: str, code: bytes, tag: str = TAG) -> str:
    members = {"spacy/tokens.so": code, "spacy/unrelated.so": UNRELATED, "spacy/small.so": NUMPY_1[:100]}
    return publish(server, "spacy", version, members, tag, uploaded=f"{day}T10:00:00Z")


def refreshed(folder: Path, expected: int = 0) -> list[dict[str, str]]:
    words = ["--table", "numpy_abi", "--facts", str(folder), "--package", "spacy"]
    assert program.main(words) == expected
    path = folder / "numpy_abi.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_last_release_for_numpy_1_and_the_first_after_it(server: IndexServer, tmp_path: Path) -> None:
    released(server, "3.6.0", "2023-07-01", NUMPY_1)
    last = released(server, "3.7.5", "2024-06-01", NUMPY_1)
    released(server, "3.7.4", "2024-02-01", NUMPY_1)
    released(server, "3.8.0", "2024-10-01", NUMPY_2)
    released(server, "3.8.0", "2024-10-01", NUMPY_1, "cp38-cp38-manylinux_2_28_x86_64")  # no numpy 2 for this Python
    (row,) = refreshed(tmp_path)
    assert (row["package"], row["last"], row["first"], row["module"]) == ("spacy", "3.7.5", "3.8.0", "spacy")
    assert row["source"].startswith(f"{last}: spacy/tokens.so ")


def test_a_package_without_a_later_release_is_read_again(server: IndexServer, tmp_path: Path) -> None:
    released(server, "3.7.4", "2024-02-01", NUMPY_1)
    (row,) = refreshed(tmp_path)
    assert (row["last"], row["first"]) == ("3.7.4", "")
    released(server, "3.8.0", "2024-10-01", NUMPY_2)
    (row,) = refreshed(tmp_path)
    assert (row["last"], row["first"]) == ("3.7.4", "3.8.0")


@pytest.mark.parametrize(
    ("day", "code"), [("2024-02-01", UNRELATED), ("2024-02-01", NUMPY_2), ("2024-10-01", NUMPY_1)], ids=["none", "both", "late"]
)
def test_code_of_which_nothing_is_known_is_no_row(server: IndexServer, tmp_path: Path, day: str, code: bytes) -> None:
    released(server, "3.7.4", day, code)
    assert refreshed(tmp_path) == []
