"""Shared by all tests: the compiled matrix is made once, from the rule files of this tree."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from compat.rules.compiled import Matrix, in_memory
from compat.rules.loader import load_folder

settings.register_profile("any machine", deadline=None)  # a busy one is slow, and that is no failure
settings.load_profile("any machine")
# where tests run in the background (nohup, a shell's &), SIGINT is ignored, and so would every process they start
signal.signal(signal.SIGINT, signal.default_int_handler)
ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "matrix" / "rules"


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests keep is gone with them, and what others kept is not seen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module", autouse=True)
def _frozen_heap() -> None:
    """Garbage is not searched for in what earlier modules loaded: in such a heap a full collection takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def matrix() -> Matrix:
    return in_memory(load_folder(str(RULES)))


@pytest.fixture
def compat(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real command in a real process, in an empty folder, with an environment that activates nothing."""

    def run(
        *words: str, stdin: str | None = None, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        keep = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-m", "compat", *words], input=stdin, capture_output=True, text=True, cwd=cwd or tmp_path,
            env={**keep, **variables}, timeout=300, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def described(tmp_path: Path) -> Callable[..., str]:
    """Writes a described environment to a file and returns its path."""

    def write(packages: dict[str, str] | None = None, name: str = "environment.json", **keys: Any) -> str:
        document: dict[str, Any] = {"schema": "compat/environment/1", **keys}
        if packages is not None:
            sources = document.pop("sources", {})
            document["distributions"] = [
                {"name": n, "version": v, **({"source": sources[n]} if n in sources else {})} for n, v in packages.items()
            ]
        path = tmp_path / name
        path.write_text(json.dumps(document), encoding="utf-8")
        return str(path)

    return write
