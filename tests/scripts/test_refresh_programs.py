"""``programs.csv``: commands of wheels, from an index on this machine."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("remotezip", reason="needs the extra 'maintain'")
pytest.importorskip("pypi_simple", reason="needs the extra 'maintain'")

from scripts.refresh import __main__ as program
from tests.index.server import IndexServer
from tests.scripts.compiled_wheels import publish


def refreshed(folder: Path) -> dict[str, str]:
    assert program.main(["--table", "programs", "--facts", str(folder), "--package", "ray"]) == 0
    with (folder / "programs.csv").open(encoding="utf-8", newline="") as file:
        return {row["program"]: row["module"] for row in csv.DictReader(file)}


def test_the_commands_of_the_newest_release(server: IndexServer, tmp_path: Path) -> None:
    publish(server, "ray", "1.0", {"ray-1.0.dist-info/entry_points.txt": "[console_scripts]\nrllib = rllib:main\n"})
    members = {
        "ray-2.0.dist-info/entry_points.txt": "[console_scripts]\nray = ray.scripts:main\nTune = ray.tune:main\nplain = ray.plain:go\n",
        "ray/scripts/__main__.py": "",
        "ray/scripts/__init__.py": "def main(): ...",
        "ray/tune.py": "def main(): ...\nif __name__ == '__main__':\n    main()\n",
        "ray/plain.py": "def go(): ...",
        "ray-2.0.data/scripts/ray-up.bat": "",
    }
    publish(server, "ray", "2.0", members)
    assert refreshed(tmp_path) == {"Tune": "ray.tune", "plain": "", "ray": "ray.scripts", "ray-up": ""}


def test_commands_of_older_releases_stay(server: IndexServer, tmp_path: Path) -> None:
    publish(server, "ray", "1.0", {"ray-1.0.dist-info/entry_points.txt": "[console_scripts]\nrllib = rllib:main\n"})
    assert refreshed(tmp_path) == {"rllib": ""}
    publish(server, "ray", "2.0", {"ray-2.0.dist-info/entry_points.txt": "[console_scripts]\nray = ray.scripts:main\n"})
    assert refreshed(tmp_path) == {"ray": "", "rllib": ""}
