"""``programs.csv``: the commands that distributions install, and the modules that ``python -m`` runs instead of them.

The console scripts and programs of the newest release of each package are read from its wheel. A command that no newer
release installs keeps its row: releases that do are still in use.

    python -m scripts.refresh --table programs [--package X]
"""

from __future__ import annotations

import configparser
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.refresh.index import Index, Release
from scripts.refresh.packages import FLOORS
from scripts.refresh.tables import PROVENANCE, Row, changed, load, text_of
from scripts.refresh.updates import THREADS, Request, Update
from scripts.refresh.wheel import UnreadableError, Wheel

COLUMNS = ("program", "package", "module", "known", "source", "date")
KEY = ("program", "package")
OTHERS = ("cmake", "litgpt", "ms-swift", "ninja", "openai", "pytest", "tensorboard", "uv", "wandb")
"""Distributions that are not tracked, but whose commands jobs and builds start."""
_MAIN = "__name__ =="


def update(folder: Path, request: Request) -> Update:
    """Read the commands of the newest releases of the requested packages."""
    index = Index()
    packages = [name for name in sorted({*FLOORS, *OTHERS}) if not request.packages or name in request.packages]
    found: dict[tuple[str, ...], Row] = {}
    unread: list[str] = []

    def read(package: str) -> list[Row]:
        release = next((each for each in reversed(index.releases(package)) if each.wheels and not each.yanked), None)
        return [] if release is None else list(_commands(index, package, release, request))

    def tried(package: str) -> list[Row] | str:
        try:
            return read(package)
        except UnreadableError as problem:
            return str(problem)

    with ThreadPoolExecutor(THREADS) as pool:
        for read_or_not in pool.map(tried, packages):
            if isinstance(read_or_not, str):
                unread.append(read_or_not)
            else:
                found.update({(row["program"], row["package"]): row for row in read_or_not})
    path = folder / "programs.csv"
    old = load(path, COLUMNS, KEY)
    rows = {**old, **found}
    differences = changed(old, rows, (*PROVENANCE, "module"))
    text = text_of(rows.values(), COLUMNS, lambda row: (row["program"], row["package"]))
    return Update({path.name: text}, tuple(differences), tuple(unread), index.received)


def _commands(index: Index, package: str, release: Release, request: Request) -> Iterator[Row]:
    """Yield the row of each console script of a release."""
    file = next((each for each in release.wheels if "linux" in each.filename), release.wheels[0])
    with index.wheel(file, request.budget) as wheel:
        scripts = (name.partition(".data/scripts/")[2] for name in wheel.members())
        found = {name.removesuffix(".bat"): ("", "scripts") for name in scripts if name and "/" not in name}
        name = next((each for each in wheel.members() if each.endswith(".dist-info/entry_points.txt")), None)
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        parser.read_string(wheel.text(name) if name is not None else "")
        for program, target in parser["console_scripts"].items() if parser.has_section("console_scripts") else ():
            found[program] = _module(wheel, target.partition(":")[0].strip()), "entry_points.txt"
    for program, (module, where) in found.items():
        yield {
            "program": program, "package": package, "module": module,
            "known": "read", "source": f"{file.filename}: {where}", "date": request.today,
        }  # fmt: skip


def _module(wheel: Wheel, module: str) -> str:
    """Return the module that ``python -m`` runs like the command; "" if it does nothing when it is run."""
    path = module.replace(".", "/")
    for member, name in (
        (f"{path}/__main__.py", module),
        (f"{path.rpartition('/')[0]}/__main__.py", module.rpartition(".")[0]),
    ):
        if name and member in wheel.members():
            return name
    member = f"{path}.py"
    return module if member in wheel.members() and _MAIN in wheel.text(member) else ""
