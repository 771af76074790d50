"""Imports that a release always runs and does not require, from the modules of a small store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from compat.interfaces.source.module import FORM
from scripts.guards import tables
from scripts.guards.undeclared import Requirements
from scripts.surface.extract import missing, read_records
from scripts.surface.store import Fetched, Store

LAZY = """
from typing import TYPE_CHECKING
from ._lazy import _LazyModule
_import_structure = {"trainer": ["GRPOTrainer"], "plain": ["SFTTrainer"]}
if TYPE_CHECKING:
    from .trainer import GRPOTrainer
    from .plain import SFTTrainer
else:
    import sys
    sys.modules[__name__] = _LazyModule(__name__, globals()["__file__"], _import_structure, module_spec=__spec__)
"""
SOURCES = {
    "trl/__init__.py": LAZY,
    "trl/_lazy.py": "class _LazyModule: ...",
    "trl/trainer.py": "from .client import Client\nclass GRPOTrainer: ...",
    "trl/plain.py": "class SFTTrainer: ...",
    "trl/client.py": "import requests\nimport urllib3\nimport datasets\nimport tomllib\nclass Client: ...",
    "trl/unused.py": "import psutil",
}


class Stated(Requirements):
    """Requirements that the test states, instead of an index."""

    def __init__(self, required: dict[str, frozenset[str]]) -> None:
        self._required = required

    def of(self, package: str, versions: Iterable[str]) -> dict[str, frozenset[str]]:
        return {version: self._required[version] for version in versions if version in self._required}

    def closed(self, *names: str) -> frozenset[str]:
        return frozenset((*names, "urllib3")) if "requests" in names else frozenset(names)


def rows(folder: Path, required: dict[str, frozenset[str]], **changed: str) -> list[dict[str, str]]:
    store = Store(folder)
    sources = {**SOURCES, **{f"trl/{name}.py": body for name, body in changed.items()}}
    bodies = {path: body.encode() for path, body in sources.items()}
    for version in ("1.0", "1.1", "1.2"):
        store.keep(Fetched("trl", version, f"trl-{version}.whl", None, "2026-01-01", True, 0, 0.0, (), bodies))
    store.keep_records(FORM, read_records(store, missing(store, "trl")))
    found = [dict(zip(tables.COLUMNS, row)) for row in tables.rows_of(store, "trl", Stated(required))]
    store.close()
    return found


def test_a_trainer_s_undeclared_import_is_a_row(tmp_path: Path) -> None:
    datasets = frozenset(("datasets",))
    (row,) = rows(tmp_path, {"1.0": datasets, "1.1": datasets, "1.2": datasets | {"requests", "urllib3"}})
    assert (row["releases"], row["module"], row["function"]) == ("1.0..1.1", "trl.client", "")
    assert (row["error"], row["reach"]) == ("ModuleNotFoundError", "trainer=grpotrainer")
    assert row["condition"] == "(importlib.util.find_spec('requests') is None)"


@pytest.mark.parametrize(
    "client",
    [
        "try:\n    import requests\nexcept ImportError:\n    requests = None",
        "def get():\n    import requests",
        "from ._lazy import is_requests_available\nif is_requests_available():\n    import requests",
        "import numpy as requests",
    ],
)
def test_an_import_that_may_not_run_or_is_required_is_none(tmp_path: Path, client: str) -> None:
    assert rows(tmp_path, {"1.0": frozenset(("numpy",))}, client=client) == []


def test_a_release_without_readable_requirements_says_nothing(tmp_path: Path) -> None:
    assert rows(tmp_path, {}) == []


def test_what_importing_the_package_runs_reaches_everyone(tmp_path: Path) -> None:
    found = rows(tmp_path, {"1.1": frozenset()}, __init__="from . import unused")
    assert [(row["releases"], row["module"], row["reach"]) for row in found] == [("1.1", "trl.unused", "import")]
