"""``overlaps.csv``: RECORD of wheels, from an index on this machine."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("remotezip", reason="needs the extra 'maintain'")
pytest.importorskip("pypi_simple", reason="needs the extra 'maintain'")

from scripts.refresh import __main__ as program
from scripts.refresh.overlaps import _share, build_of
from tests.index.server import IndexServer
from tests.scripts.compiled_wheels import publish

TAG = "cp311-cp311-manylinux_2_28_x86_64"


def released(server: IndexServer, name: str, version: str, files: Mapping[str, str]) -> None:
    lines = [f"{path},sha256={hashlib.sha256(content.encode()).hexdigest()},1" for path, content in files.items()]
    stem = f"{name.replace('-', '_')}-{version}"
    publish(server, name, version, {f"{stem}.dist-info/RECORD": "\n".join(lines) + "\n"}, TAG, uploaded="2024-06-01T10:00:00Z")


def refreshed(folder: Path, package: str) -> dict[str, dict[str, str]]:
    assert program.main(["--table", "overlaps", "--facts", str(folder), "--package", package]) == 0
    with (folder / "overlaps.csv").open(encoding="utf-8", newline="") as file:
        return {row["package"]: row for row in csv.DictReader(file)}


def test_the_releases_that_share_a_module(server: IndexServer, tmp_path: Path) -> None:
    for number in range(12):
        version = f"1.{number}.0"
        for name in ("nixl-cu12", "nixl-cu13"):
            own = {f"{name.replace('-', '_')}/{each}.py": name for each in "abcdef"}
            shared = {"nixl_ep/__init__.py": name, "examples/code.so": name} if 3 <= number < 9 else {}
            released(server, name, version, {**own, **shared, "LICENSE": name})
    released(server, "nixl", "1.0.0", {"nixl/__init__.py": "x"})
    rows = refreshed(tmp_path, "nixl-cu12")
    found = {name: (row["file"], row["releases"]) for name, row in rows.items()}
    assert found == dict.fromkeys(("nixl-cu12", "nixl-cu13"), ("nixl_ep/__init__.py", "1.3.0..1.8.0"))
    assert (rows["nixl-cu12"]["part"], rows["nixl-cu12"]["build"], rows["nixl-cu12"]["alike"]) == ("yes", "cuda12", "")


def test_the_same_content_of_the_same_release(server: IndexServer, tmp_path: Path) -> None:
    for version in ("0.111.0", "0.112.0", "0.115.0"):
        files = {f"fastapi/{each}.py": f"{each} {version}" for each in ("__init__", "routing", "applications")}
        released(server, "fastapi", version, files)
        released(server, "fastapi-slim", version, files)
    rows = refreshed(tmp_path, "fastapi")
    assert rows["fastapi"]["alike"] == "=fastapi-slim"
    assert rows["fastapi-slim"]["releases"] == "0.111.0.."
    assert refreshed(tmp_path, "fastapi") == rows


def test_packages_that_share_nothing_have_no_rows(server: IndexServer, tmp_path: Path) -> None:
    released(server, "xgboost", "3.0.0", {"xgboost/__init__.py": "a", "cmake/__init__.py": "a"})
    released(server, "xgboost-cpu", "3.0.0", {"xgboost_cpu/__init__.py": "b"})
    assert refreshed(tmp_path, "xgboost") == {}


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("onnxruntime", "cpu"), ("onnxruntime-gpu", "cuda"), ("faiss-gpu-cu12", "cuda12"), ("cupy-cuda11x", "cuda11"),
        ("nvidia-dali-cuda120", "cuda12"), ("cuda-python", ""), ("opencv-python", ""), ("cupy-rocm-7-0", "rocm"),
    ],
)  # fmt: skip
def test_the_hardware_of_a_build(name: str, build: str) -> None:
    assert build_of(name) == build


def test_libraries_without_modules_are_not_taken_for_other_projects() -> None:
    assert _share(["nvidia/nccl/lib/libnccl.so.2"], ["nvidia/nccl/lib/libnccl.so.2", "nvidia/__init__.py"]) == 1
    assert _share(["jwt/__init__.py", "jwt/api.py"], ["jwt/__init__.py", "jwt/jwt.py"]) == 0.5
