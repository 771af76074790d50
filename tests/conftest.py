"""Shared by all tests: the compiled matrix is made once, from the rule files of this tree."""

from __future__ import annotations

import gc
import json
import os
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
from scripts.golden import run as run_command

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
def compat_process(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real command in a real process, in an empty folder, with an environment that activates nothing."""

    def run(
        *words: str, stdin: str | None = None, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "compat", *words], input=stdin, capture_output=True, text=True, cwd=cwd or tmp_path,
            env={**_variables(tmp_path), **variables}, timeout=300, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def compat(
    compat_process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command in this process, which takes a quarter of the time, with the folder and variables of ``compat_process``.

    With a ``PYTHONPATH`` of its own it is a process after all.
    """

    def run(
        *words: str, stdin: str | None = None, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        if "PYTHONPATH" in variables:
            return compat_process(*words, stdin=stdin, cwd=cwd, **variables)
        with pytest.MonkeyPatch.context() as patch:
            for name in os.environ:
                patch.delenv(name)
            for name, value in {**_variables(tmp_path), **variables}.items():
                patch.setenv(name, value)
            patch.chdir(cwd or tmp_path)
            code, out, err = run_command(list(map(str, words)), stdin)
        assert isinstance(code, int), code
        return subprocess.CompletedProcess(words, code, out, err)

    return run


def _variables(home: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)}


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
