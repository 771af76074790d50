"""What this package ships is used as it was shipped or not at all: a missing or damaged table ends with one line and exit code 2."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import compat
from compat.errors import InputError
from compat.files import read_table, sealed

PACKAGE = Path(compat.__file__).parent
TABLES = sorted(path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "data").rglob("*.bin"))
CONFLICT = "transformers==4.51.3\nhuggingface-hub==0.20.0\ntokenizers==0.15.0\ntorch==2.6.0\ntrl==0.14.0\nvllm==0.7.1\n"

DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped": lambda path: path.write_bytes(flipped(path.read_bytes(), path.stat().st_size // 2)),
}


def flipped(content: bytes, at: int, bit: int = 3) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, without the sources of its tables beside it."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, folder / "compat", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "given.txt").write_text(CONFLICT)
    return folder


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compat", "check", "given.txt"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("table", ["rules.bin", "declared.bin", "surface/at_once.bin"])
def test_a_damaged_table_is_never_no_finding(table: str, damage: str, installed: Path) -> None:
    path = installed / "compat" / "data" / table
    before = path.read_bytes()
    try:
        DAMAGES[damage](path)
        done = checked(installed)
    finally:
        path.write_bytes(before)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"data/{table}" in done.stderr.replace("\\", "/")
    assert "reinstall compat-doctor" in done.stderr


def test_the_undamaged_copy_finds_the_conflict(installed: Path) -> None:
    done = checked(installed)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("table", TABLES)
def test_every_shipped_table_is_sealed(table: str, tmp_path: Path) -> None:
    whole = (PACKAGE / table).read_bytes()
    assert sealed(read_table(str(PACKAGE / table)), Path(table).name) == whole
    chance = random.Random(table)
    broken = tmp_path / "other.bin"
    broken.write_bytes(whole)
    with pytest.raises(InputError, match="reinstall"):
        read_table(str(broken))  # another table in its place would be read as one without entries
    broken = tmp_path / Path(table).name
    for _ in range(20):
        broken.write_bytes(flipped(whole, chance.randrange(len(whole)), chance.randrange(8)))
        with pytest.raises(InputError, match="reinstall"):
            read_table(str(broken))
