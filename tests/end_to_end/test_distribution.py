"""The sdist and the wheel: built from each other, complete, and of use outside the source tree."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("dist")  # made once, by one worker


def test_workers_of_xdist_share_what_a_group_makes(request: pytest.FixtureRequest) -> None:
    """The releases of pytest and pytest-xdist go together: the group is part of the name that tests are scheduled by."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("not run with --dist loadgroup")
    assert request.node.nodeid.endswith("@dist")


def test_the_wheel_holds_the_compiled_matrix_and_no_source_of_it(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert wheel.name == "compat_doctor-0.1.0-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("compat/data/rules.bin", "compat/data/hardware.bin", "compat/py.typed"):
        assert name in names
    assert not [name for name in names if name.startswith(("tests/", "matrix/", "scripts/"))]
    metadata = next(name for name in names if name.endswith("METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    assert "License-Expression: Apache-2.0" in text
    assert all(f"Provides-Extra: {extra}" in text for extra in ("torch", "trl", "unsloth", "vllm"))


def test_the_wheel_works_on_its_own(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True)
    environment = json.loads((ROOT / "docs" / "examples" / "sft.json").read_text())
    (tmp_path / "environment.json").write_text(json.dumps(environment))
    script = target / "bin" / "compat"
    for command in ([sys.executable, str(script)], [sys.executable, "-m", "compat"]):
        done = subprocess.run(
            [*command, "check", "--environment", "environment.json"], capture_output=True, text=True, cwd=tmp_path,
            env={"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin"}, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert "2 errors." in done.stdout
    lint = [sys.executable, "-m", "compat", "rules", "lint"]
    subprocess.run(lint, check=True, cwd=tmp_path, env={"PYTHONPATH": str(target)}, capture_output=True)
