"""An empty index on this machine for the programs that read wheels, and a cache of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.index.server import IndexServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[IndexServer]:
    monkeypatch.setenv("COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    with IndexServer({}) as started:
        monkeypatch.setenv("UV_DEFAULT_INDEX", started.url)
        yield started
