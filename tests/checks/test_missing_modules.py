"""Modules that the user's code imports and nothing provides."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks.code import judge_imports
from compat.model import Distribution, Environment, Finding, Source, Workload


def missing(
    tmp_path: Path, code: str, *names: str, complete: bool = True, folders: tuple[str, ...] | None = None
) -> list[Finding]:
    script = tmp_path / "train.py"
    script.write_text(code, encoding="utf-8")
    copies = tuple(Distribution(name, "1.0") for name in names)
    workload = Workload(code=(str(script),))
    return list(
        judge_imports(Environment(distributions=copies, distributions_complete=complete, workload=workload, folders=folders))
    )


def test_the_distribution_of_a_missing_module_is_named(tmp_path: Path) -> None:
    (found,) = missing(tmp_path, "import os\nimport yaml\nfrom sklearn.metrics import f1_score\n", "scikit-learn")
    assert (found.rule, found.severity, found.verdict) == ("missing-pyyaml", "error", "hit")
    assert found.fixes[0].command == "pip install pyyaml"
    assert found.location is not None
    assert found.location.line == 2


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    import wandb\nexcept ImportError:\n    wandb = None\n",
        "def log():\n    import wandb\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import wandb\n",
        "import json, sys\n",
        "import helpers\nfrom . import wandb\n",
        "import a_module_that_no_table_knows\n",
    ],
)
def test_what_is_optional_local_or_not_known_is_no_finding(tmp_path: Path, code: str) -> None:
    (tmp_path / "helpers.py").write_text("", encoding="utf-8")
    assert missing(tmp_path, code) == []


def test_nothing_is_said_where_it_is_not_known_what_is_installed(tmp_path: Path) -> None:
    assert missing(tmp_path, "import wandb\n", complete=False) == []


def test_the_folders_of_an_installation_decide_about_modules_that_no_table_knows(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    (folder / "inhouse").mkdir(parents=True)
    (folder / "compiled.cpython-311-x86_64-linux-gnu.so").write_bytes(b"")
    (folder / "__editable___mine_finder.py").write_text("MAPPING = {'mine': '/src/mine'}\n", encoding="utf-8")
    code = "import inhouse.parts\nimport compiled\nimport mine\nimport gone\n"
    (found,) = missing(tmp_path, code, folders=(str(folder),))
    assert found.title == "train.py imports gone, which no installed package provides"
    assert found.fixes[0].command is None


def test_a_distribution_that_was_installed_without_its_module(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (found,) = missing(tmp_path, "import autotrain\n", "autotrain", folders=(str(folder),))
    assert (found.rule, found.packages) == ("missing-autotrain", {"autotrain": "1.0"})
    assert found.fixes[0].command == "pip install -U autotrain"
    # tables say which releases have a module of theirs
    assert missing(tmp_path, "import trl\n", "trl", folders=(str(folder),)) == []
    # but not of a release that they do not have
    (found,) = missing(tmp_path, "import autotrain\n", "autotrain-advanced", folders=(str(folder),))
    assert found.packages == {"autotrain-advanced": "1.0"}


def test_an_editable_installation_may_be_anywhere(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import mine\n", encoding="utf-8")
    copies = (Distribution("mine", "1.0", source=Source("directory")),)
    workload = Workload(code=(str(script),))
    environment = Environment(
        distributions=copies, distributions_complete=True, workload=workload, folders=(str(tmp_path / "x"),)
    )
    assert list(judge_imports(environment)) == []
