"""Whose files are on disk where two installed distributions have the same ones."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from compat.machine.interpreter import read_installed, target_at
from compat.machine.metadata import with_files

PYTHON = {"cv2/__init__.py": b"one", "cv2/config.py": b"GUI = True", "cv2/cv2.abi3.so": b"\x7fELF" * 9}
HEADLESS = {"cv2/__init__.py": b"two", "cv2/config.py": b"GUI = False", "cv2/cv2.abi3.so": b"\x7fELF" * 7}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "lib" / "python3.11" / "site-packages"
    folder.mkdir(parents=True)
    return folder


def record(site: Path, name: str, version: str, files: Mapping[str, bytes]) -> None:
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n")
    lines = [f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{path},sha256={digest},{len(content)}")
    (info / "RECORD").write_text("\n".join(lines) + "\n")


def write(site: Path, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(content)


def states(site: Path) -> dict[str, object]:
    installed = read_installed(target_at(str(site)))
    owners: dict[str, list[str]] = {}
    for copy in installed.distributions:
        owners.setdefault("flash_attn/cute/__init__.py" if copy.name == "flash-attn" else "cv2/__init__.py", []).append(
            copy.name
        )
    return {copy.name: copy.extra.get("files") for copy in with_files(installed.distributions, installed.folders, owners)}


@pytest.mark.parametrize(
    ("on_disk", "python", "headless"),
    [
        (PYTHON, "own", "replaced"),
        (HEADLESS, "replaced", "own"),
        ({**PYTHON, "cv2/cv2.abi3.so": HEADLESS["cv2/cv2.abi3.so"]}, "mixed", "mixed"),
    ],
)
def test_hashes_say_whose_files_are_there(site: Path, on_disk: Mapping[str, bytes], python: str, headless: str) -> None:
    record(site, "opencv_python", "4.10.0.84", PYTHON)
    record(site, "opencv_python_headless", "4.11.0.86", HEADLESS)
    write(site, on_disk)
    assert states(site) == {"opencv-python": python, "opencv-python-headless": headless}


def test_files_that_were_uninstalled_with_another_distribution_are_missing(site: Path) -> None:
    record(site, "opencv_python", "4.10.0.84", PYTHON)
    assert states(site) == {"opencv-python": "missing"}


def test_a_build_without_the_file_misses_nothing(site: Path) -> None:
    record(site, "flash_attn", "2.8.3", {"flash_attn/__init__.py": b"2"})
    write(site, {"flash_attn/__init__.py": b"2"})
    assert states(site) == {"flash-attn": None}


def test_a_single_distribution_is_not_read(site: Path) -> None:
    record(site, "opencv_python", "4.10.0.84", PYTHON)
    write(site, HEADLESS)  # whatever the user did with it
    assert states(site) == {"opencv-python": None}


@pytest.mark.parametrize("text", ["", "cv2/__init__.py\n", "\0\0,,\n,,,,\n", 'cv2/__init__.py,sha256=x,"\n'])
def test_a_damaged_record_says_nothing(site: Path, text: str) -> None:
    record(site, "opencv_python", "4.10.0.84", PYTHON)
    record(site, "opencv_python_headless", "4.11.0.86", HEADLESS)
    write(site, PYTHON)
    (site / "opencv_python_headless-4.11.0.86.dist-info" / "RECORD").write_text(text)
    assert states(site) == {"opencv-python": None, "opencv-python-headless": None}
