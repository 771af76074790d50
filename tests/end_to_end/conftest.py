"""Fixtures of the tests of ``compat fix``, and the distribution that several modules install."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.end_to_end.fixing import JOB, LINES, PACKAGES, Run
from tests.index.server import IndexServer


@pytest.fixture
def index() -> Iterator[IndexServer]:
    with IndexServer(PACKAGES) as server:
        yield server


@pytest.fixture
def fix(compat: Run, tmp_path: Path) -> Run:
    """``compat fix`` of a file that two rules hold for, with caches of its own."""
    (tmp_path / "requirements.txt").write_text(LINES)

    def run(
        *words: str, url: str | None = None, subject: Sequence[str] = ("requirements.txt",), job: Sequence[str] = JOB,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        own = {"COMPAT_CACHE_DIR": str(tmp_path / "cache"), "UV_CACHE_DIR": str(tmp_path / "uv-cache"), "PIP_RETRIES": "0"}
        where = () if url is None else ("--index-url", url)
        return compat("fix", *subject, *job, *where, *words, **{**own, **variables})

    return run


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist of this tree and a wheel made from that sdist, as an index would be given them."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, "--sdist", str(ROOT)], check=True, capture_output=True)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    subprocess.run([*build, "--wheel", str(source)], check=True, capture_output=True)
    return folder
