"""Files of a project that say what a command runs: tasks, sessions, environments of tests, programs in Python.

They are not followed. What they install is a remark, and their pins are named like those that no command is known to install.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from compat.formats.listing import Entry
from compat.formats.pins import pins_of
from compat.records import record
from compat.workload.wrappers import is_python, program_name

Opener: TypeAlias = Callable[[str, "str | None", str], "str | None"]
"""Returns the text of a file of the project by its name, the working directory and the purpose; ``None`` if there is none."""


@record(frozen=True)
class _Runner:
    """The files that a program reads, and the tables that are its own in a file that it shares with others.

    ``runs``: it only runs a task if this is its first operand. ``is_read``: compat reads the file if it is given.
    """

    files: tuple[str, ...]
    tables: tuple[str, ...] = ()
    runs: str = ""
    is_read: bool = False


_SHARED = ("pyproject.toml", "setup.cfg")
_SCRIPTS = _Runner(("package.json",), runs="run")
_RUNNERS = {
    "tox": _Runner(("tox.ini", "tox.toml", *_SHARED), ("tool.tox", "tox", "testenv"), is_read=True),
    "nox": _Runner(("noxfile.py",), is_read=True),
    "just": _Runner(("justfile", "Justfile", ".justfile")),
    "task": _Runner(
        ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml", *_SHARED), ("tool.taskipy",),
    ),
    "invoke": _Runner(("tasks.py", "tasks/__init__.py")), "inv": _Runner(("tasks.py", "tasks/__init__.py")),
    "fab": _Runner(("fabfile.py",)), "doit": _Runner(("dodo.py",)), "snakemake": _Runner(("Snakefile", "workflow/Snakefile")),
    "poe": _Runner(("poe_tasks.toml", *_SHARED), ("tool.poe",)),
    "pdm": _Runner(_SHARED, ("tool.pdm.scripts",), "run"),
    "hatch": _Runner(("hatch.toml", *_SHARED), ("tool.hatch",)),
    "pixi": _Runner(("pixi.toml", *_SHARED), ("tool.pixi",), "run"),
    "npm": _SCRIPTS, "pnpm": _SCRIPTS, "yarn": _SCRIPTS, "dvc": _Runner(("dvc.yaml",)), "earthly": _Runner(("Earthfile",)),
}  # fmt: skip
_MODULES = {
    "tox": "tox",
    "nox": "nox",
    "invoke": "invoke",
    "doit": "doit",
    "poethepoet": "poe",
    "taskipy": "task",
    "hatch": "hatch",
}


@record(frozen=True)
class Started:
    """A file that a command starts or reads its tasks from: its name, text and pins; ``is_read`` as in a runner."""

    name: str
    text: str
    pins: tuple[Entry, ...]
    is_read: bool = False

    @property
    def is_python(self) -> bool:
        return self.name.endswith(".py")


def started_files(words: Sequence[str], directory: str | None, opened: Opener) -> Iterator[Started]:
    """Yield the files of the project that a command starts, or reads what it runs from."""
    for place, word in enumerate(words[:8]):
        runner = _RUNNERS.get(program_name(word))
        if runner is not None and (not runner.runs or runner.runs in words[place + 1 : place + 4]):
            break
        if is_python(program_name(word)) and words[place + 1 : place + 2] == ["-m"]:
            module = "".join(words[place + 2 : place + 3])
            runner = _RUNNERS.get(_MODULES.get(module, ""))
            if runner is None:
                path = module.replace(".", "/")
                runner = _Runner((f"{path}.py", f"{path}/__main__.py"))
            break
        if word.endswith(".py") and (not place or is_python(program_name(words[0]))):
            runner = _Runner((word,))
            break
    else:
        return
    for file in runner.files:
        text = opened(file, directory, "installs")
        if text is None:
            continue
        if file in _SHARED:
            text = tables_of(text, runner.tables)
        yield Started(file, text, pins_of(posixpath.join(directory or "", file), text), runner.is_read)


def tables_of(text: str, names: Sequence[str]) -> str:
    """Return a text with only its tables of these names, and blank lines instead of the others."""
    lines: list[str] = []
    own = False
    for line in text.split("\n"):
        if line.startswith("["):
            own = line.strip("[] \t\r").startswith(tuple(names))
        lines.append(line if own else "")
    return "\n".join(lines)
