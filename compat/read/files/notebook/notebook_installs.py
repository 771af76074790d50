"""A Jupyter notebook → listing: what its cells install, and the training its code does. Nothing is run."""

from __future__ import annotations

from compat.environment import Accelerator, Environment, Workload
from compat.errors import InputError, printable
from compat.read.files.declared_variables import without_secrets
from compat.read.files.installs.conditional_installs import Installs
from compat.read.files.installs.install_files import InstallFiles
from compat.read.files.installs.working_folders import WorkingFolders
from compat.read.files.listing import Listing
from compat.read.files.notebook.notebook_cells import code_cells
from compat.read.files.notebook.notebook_steps import LONGEST, NotebookSteps
from compat.read.files.shell.shell_job import starts_a_job
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from compat.read.workload.script import ScriptFacts

_PYTHON = ("python", "python3", "ipython", "xpython", "")
_DEVICES = {"T4": "Tesla T4", "P100": "Tesla P100", "V100": "Tesla V100", "G4": "RTX PRO 6000 Blackwell Server Edition"}
"""What Colab's words for its machines stand for, where they are not the name itself."""


def read_notebook(path: str, text: str) -> tuple[Listing, ...]:
    """The listing of a notebook; it is never complete, for its image brings more.

    ``context`` has the workload of its code, the Python it was saved with, and the GPU it asks Colab for. Raises
    :class:`InputError` where the text is no notebook.
    """
    cells, metadata = code_cells(path, text.removeprefix("\ufeff"))
    language = _language(metadata)
    if language not in _PYTHON:
        return (Listing(path, "notebook", unread=(printable(f"{path}: its cells are no Python but {language[:40]}"),)),)
    steps = NotebookSteps(path)
    for cell in cells:
        steps.read(cell)
    files = InstallFiles(path, WorkingFolders(path))
    installs = Installs(files)
    installs.run(steps.steps)
    for number, problem in list(steps.unread.items())[:20]:
        files.not_read(f"{path} cell {number}", problem)
    facts = _facts(path, files) if steps.size <= LONGEST else None
    started = [(command, number) for command, number in steps.others if starts_a_job(command.words)]
    for command, number in started[:20]:
        files.note(f"{path} cell {number}", f"{' '.join(command.words)[:80]} is not judged, only the code of the cells is")
    workload = None if facts is None else _launched(facts.workload, alone=not started)
    entries, edges = installs.listed()
    variables: dict[str, str | None] = {**without_secrets({**(facts.variables if facts else {}), **steps.variables})}
    return (
        Listing(
            path, "notebook", entries, edges,
            context=Environment(
                python=_python(metadata), accelerators=_accelerators(metadata), variables=variables or None, workload=workload
            ),
            notes=tuple(dict.fromkeys((*map(printable, files.notes), *(facts.notes if facts else ())))),
            unread=tuple(map(printable, files.unread)),
        ),
    )  # fmt: skip


def _facts(path: str, files: InstallFiles) -> ScriptFacts | None:
    """What the code of the cells says, by the reader of scripts."""
    import os

    from compat.read.workload.script import read_script

    if not path.lower().endswith(".ipynb") or not os.path.isfile(path):
        files.note(path, "its code was not read for what it trains: it is no file whose name ends in .ipynb")
        return None
    try:
        return read_script(path)
    except InputError as problem:
        if problem.message != "has no code":
            files.not_read("", str(problem))
        return None


def _launched(workload: Workload, *, alone: bool) -> Workload:
    """A notebook's kernel is one plain process, where nothing else starts what is trained."""
    if workload.launcher is not None or workload.processes is not None or not (alone or workload.trainer):
        return workload
    origins = {**workload.origins, "launcher": "the notebook", "processes": "the notebook"}
    return replace(workload, launcher="python", processes=1, origins=origins)


def _table(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = metadata.get(name)
    return found if isinstance(found, dict) else {}


def _word(table: Mapping[str, Any], name: str) -> str:
    found = table.get(name)
    return found.strip() if isinstance(found, str) else ""


def _language(metadata: Mapping[str, Any]) -> str:
    spec = _table(metadata, "kernelspec")
    return (_word(_table(metadata, "language_info"), "name") or _word(spec, "language")).lower()


def _python(metadata: Mapping[str, Any]) -> str | None:
    """The version of the kernel's Python, where it is given in full."""
    version = _word(_table(metadata, "language_info"), "version")
    parts = version.split(".")
    return version if len(parts) == 3 and all(part.isascii() and part.isdigit() for part in parts) else None


def _accelerators(metadata: Mapping[str, Any]) -> tuple[Accelerator, ...] | None:
    """The one GPU that Colab is asked for."""
    kind = _word(_table(metadata, "colab"), "gpuType").upper()
    if _word(metadata, "accelerator").upper() != "GPU":
        return None
    if not kind or kind == "NONE" or not kind.isalnum() or len(kind) > 20:
        return (Accelerator(vendor="nvidia"),)
    return (Accelerator(vendor="nvidia", name=_DEVICES.get(kind, kind)),)
