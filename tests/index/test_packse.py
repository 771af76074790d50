"""The local index is one that uv accepts, and our index reads of it what the scenarios say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compat.index import Index, Settings, Store
from compat.index.metadata import parse_requirement
from compat.index.settings import Source
from compat.model import normalized
from tests.index.packse import scenarios
from tests.index.server import IndexServer

ALL = list(scenarios())


@pytest.mark.skipif(not ALL, reason="the scenarios are not here")
def test_every_scenario_is_served_and_read() -> None:
    for scenario in ALL:
        with IndexServer(scenario.packages) as server:
            index = Index(Settings(sources=(Source(server.url),)), Store(":memory:"))
            pages = index.files_many(scenario.packages)
            read = index.metadata_many([file for page in pages.values() for file in page or ()])
            index.close()
        assert index.problems == index.unusable == {}, scenario.name
        assert None not in read
        for name, versions in scenario.packages.items():
            page = pages[normalized(name)] or ()
            assert {file.version for file in page} == set(versions), scenario.name
            assert all((file.yanked is not None) == bool(versions[file.version].get("yanked")) for file in page), scenario.name
            wheels = {file.version: index.metadata(file) for file in page}
            for version, release in versions.items():
                found = wheels[version]
                assert found is not None
                plain = [each for each in found.requires if "extra ==" not in each.marker]
                assert plain == list(map(parse_requirement, release.get("requires", [])))
                assert set(found.provides_extra) == set(release.get("extras", ()))
                assert found.requires_python == release.get("requires_python")


@pytest.mark.parametrize("options", [{}, {"json": False, "metadata": False}], ids=["json", "html"])
def test_uv_resolves_against_the_server(tmp_path: Path, options: dict[str, bool]) -> None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        pytest.skip("uv is not installed")
    packages = {
        "a": {"1.0": {}, "2.0": {"requires": ["b[x]>1"]}},
        "b": {"1.0": {}, "3.0": {"extras": {"x": ["c"]}}},
        "c": {"1.0+cu1": {"sdist": False}},
    }
    with IndexServer(packages, **options) as server:
        done = subprocess.run(
            [uv, "pip", "compile", "-", "--no-header", "--no-annotate", "--no-config", "--index-url", server.url, "--python", sys.executable,
             "--cache-dir", str(tmp_path / "cache"), "--no-build"],
            input="a\n", capture_output=True, text=True, check=False, cwd=tmp_path,
            env={key: value for key, value in os.environ.items() if not key.startswith(("UV_", "PIP_"))},
        )  # fmt: skip
    assert done.stdout.split() == ["a==2.0", "b==3.0", "c==1.0+cu1"], done.stderr
