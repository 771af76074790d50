"""``compat fix`` with what published source and the user's code say, as it is run, with an index on this machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat.checks.interfaces import open_rows_once
from tests.index.server import IndexServer

pytest.importorskip("clingo")
pytestmark = pytest.mark.skipif(open_rows_once() is None, reason="the tables are not there: scripts/build_matrix.py")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SCRIPT = "from trl import ORPOTrainer\nORPOTrainer('model', tokenizer=None)\n"


def _release(day: str, *requires: str) -> dict[str, object]:
    return {"uploaded": f"{day}T00:00:00Z", "requires": requires, "requires_python": ">=3.9"}


PACKAGES = {
    "trl": {"0.14.0": _release("2025-01-29"), "0.15.2": _release("2025-02-25"), "0.16.0": _release("2025-03-22")},
    "peft": {"0.14.0": _release("2024-12-06", "accelerate>=0.21.0"), "0.15.0": _release("2025-03-19", "accelerate>=0.21.0")},
    "accelerate": {
        "0.26.0": _release("2024-05-03"),
        "0.31.0": _release("2024-06-07"),
        "0.32.0": _release("2024-07-03"),
    },
}


@pytest.fixture
def index() -> Iterator[IndexServer]:
    with IndexServer(PACKAGES) as server:
        yield server


@pytest.fixture
def fix(compat: Run, tmp_path: Path, index: IndexServer) -> Callable[..., dict[str, tuple[str | None, str | None]]]:
    def run(lines: str, *words: str) -> dict[str, tuple[str | None, str | None]]:
        (tmp_path / "requirements.txt").write_text(lines, encoding="utf-8")
        (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
        own = {"COMPAT_CACHE_DIR": str(tmp_path / "cache"), "UV_CACHE_DIR": str(tmp_path / "uv-cache"), "PIP_RETRIES": "0"}
        where = ("--index-url", index.url, "--python-version", "3.11", "--any-age", "--format", "json")
        done = compat("fix", "requirements.txt", *words, *where, cwd=tmp_path, **own)
        assert done.returncode == 0, done.stderr
        changes = json.loads(done.stdout)["plan"]["changes"]
        return {each["name"]: (each["from"], each["to"]) for each in changes}

    return run


Fix = Callable[..., "dict[str, tuple[str | None, str | None]]"]


def test_the_release_moves_to_one_that_has_what_the_script_uses(fix: Fix) -> None:
    assert fix("trl==0.16.0\n", "--script", "train.py") == {"trl": ("0.16.0", "0.14.0")}
    assert fix("trl==0.16.0\n") == {}


def test_an_import_that_fails_is_mended_with_the_nearest_release(fix: Fix) -> None:
    assert fix("peft==0.15.0\naccelerate==0.26.0\n", "--keep", "peft") == {"accelerate": ("0.26.0", "0.32.0")}


def test_a_repair_does_not_walk_into_one(fix: Fix) -> None:
    assert fix("peft==0.14.0\naccelerate==0.26.0\n", "--keep", "peft==0.15.0") == {
        "peft": ("0.14.0", "0.15.0"),
        "accelerate": ("0.26.0", "0.32.0"),
    }


def test_what_the_script_imports_and_nothing_provides_is_added(
    compat: Run, fix: Fix, index: IndexServer, tmp_path: Path
) -> None:
    """The file lists what gets installed; a module that no table knows stays an error, as nothing tells what provides it."""
    fix("accelerate==0.32.0\n")  # writes the files
    own = {"COMPAT_CACHE_DIR": str(tmp_path / "cache"), "UV_CACHE_DIR": str(tmp_path / "uv-cache"), "PIP_RETRIES": "0"}
    where = ("--index-url", index.url, "--python-version", "3.11", "--write", "--script", "train.py")
    (tmp_path / "train.py").write_text("import accelerate\nimport peft\n", encoding="utf-8")
    done = compat("fix", "requirements.txt", *where, cwd=tmp_path, **own)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "because train.py imports peft, which no installed package provides (missing-peft)" in " ".join(done.stdout.split())
    assert (tmp_path / "requirements.txt").read_text().splitlines() == ["accelerate==0.32.0", "peft==0.15.0"]


def test_what_an_installed_package_imports_and_does_not_require_is_added(
    compat: Run, tmp_path: Path, index: IndexServer
) -> None:
    """The script reaches the import; with the package installed nothing is missing any more."""
    site = tmp_path / "site-packages"
    (site / "alpha").mkdir(parents=True)
    (site / "alpha" / "__init__.py").write_text("import rich.console\n")
    (site / "alpha-1.0.dist-info").mkdir()
    (site / "alpha-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\n")
    (site / "alpha-1.0.dist-info" / "RECORD").write_text("alpha/__init__.py,,\nalpha-1.0.dist-info/METADATA,,\n")
    (tmp_path / "train.py").write_text("import alpha\n")
    index.add("rich", {"13.0": _release("2024-01-01"), "15.0": _release("2025-01-01")})
    index.add("alpha", {"1.0": _release("2025-01-01"), "2.0": _release("2025-02-01")})
    where = ("--index-url", index.url, "--gpu", "none", "--format", "json", "--python", str(site), "--python-version", "3.11")
    own = {"COMPAT_CACHE_DIR": str(tmp_path / "cache"), "UV_CACHE_DIR": str(tmp_path / "uv-cache"), "PIP_RETRIES": "0"}
    done = compat("fix", *where, "--", "python", "train.py", cwd=tmp_path, **own)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert [each["rule"] for each in report["findings"]] == ["missing-rich"]
    assert [(each["name"], each["to"]) for each in report["plan"]["changes"]] == [("rich", "15.0")]
