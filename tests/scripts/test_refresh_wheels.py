"""``wheels.csv``: the names of the files of an index on this machine."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("remotezip", reason="needs the extra 'maintain'")
pytest.importorskip("pypi_simple", reason="needs the extra 'maintain'")

from scripts.refresh import __main__ as program
from tests.index.server import IndexServer
from tests.scripts.compiled_wheels import publish


def refreshed(folder: Path) -> list[tuple[str, str, str]]:
    assert program.main(["--table", "wheels", "--facts", str(folder), "--package", "sentencepiece"]) == 0
    with (folder / "wheels.csv").open(encoding="utf-8", newline="") as file:
        return [(row["first"], row["last"], row["wheels"]) for row in csv.DictReader(file)]


def test_releases_with_the_same_wheels_are_one_row(server: IndexServer, tmp_path: Path) -> None:
    linux, windows = "manylinux_2_17_x86_64", "win_amd64"
    for version, tags in {
        "0.1.0": [f"cp310-cp310-{linux}", f"cp311-cp311-{linux}"],
        "0.1.1": [f"cp311-cp311-{linux}", f"cp310-cp310-{linux}"],
        "0.2.0": [f"cp39-abi3-{linux}", f"cp312-cp312-{windows}"],
    }.items():
        for tag in tags:
            publish(server, "sentencepiece", version, {"s.so": b"x"}, tag)
    expected = [("0.1.0", "0.1.1", "linux-x86_64:3.10..3.11"), ("0.2.0", "0.2.0", "linux-x86_64:3.9.. windows:3.12")]
    assert refreshed(tmp_path) == expected
    before = (tmp_path / "wheels.csv").read_text(encoding="utf-8")
    publish(server, "sentencepiece", "0.2.1", {"s.so": b"x"}, f"cp39-abi3-{linux}")
    assert refreshed(tmp_path) == [*expected, ("0.2.1", "0.2.1", "linux-x86_64:3.9..")]
    assert (tmp_path / "wheels.csv").read_text(encoding="utf-8").startswith(before)


def test_a_system_has_its_processor_where_only_one_has_wheels(server: IndexServer, tmp_path: Path) -> None:
    for version, platforms in {
        "0.1.0": ["manylinux_2_17_x86_64", "manylinux_2_17_aarch64", "macosx_11_0_arm64"],
        "0.2.0": ["manylinux_2_17_aarch64", "macosx_10_9_universal2"],
        "0.3.0": ["musllinux_1_2_x86_64", "macosx_10_9_x86_64", "macosx_11_0_arm64"],
    }.items():
        for platform in platforms:
            publish(server, "sentencepiece", version, {"s.so": b"x"}, f"cp312-cp312-{platform}")
    assert refreshed(tmp_path) == [
        ("0.1.0", "0.1.0", "darwin-arm64:3.12 linux:3.12"),
        ("0.2.0", "0.2.0", "darwin:3.12 linux-aarch64:3.12"),
        ("0.3.0", "0.3.0", "darwin:3.12 linux-x86_64:3.12"),
    ]
