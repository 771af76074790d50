"""A notebook's JSON → its code cells, each line with the line of the file that it stands on, and its metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from compat.errors import InputError, printable
from compat.formats.format import Format
from compat.formats.installs.files import InstallFiles, WorkingFolders
from compat.formats.installs.steps import Installs
from compat.formats.listing import Listing
from compat.formats.notebook.steps import LONGEST, NotebookSteps
from compat.model import Accelerator, Environment, Workload
from compat.records import record, replace
from compat.redact import without_secrets
from compat.syntax.json import parse_json, scanner
from compat.workload.command import starts_a_job

if TYPE_CHECKING:
    from compat.workload.script import ScriptFacts

    Decode: TypeAlias = Callable[[str, int], tuple[Any, int]]
    Place: TypeAlias = tuple[Any, int, int]
    """(key or position, where the value begins, behind it)."""


CELLS = 5000
"""Code cells; no notebook that anybody ran has more."""
_SPACE = " \t\n\r"


@record(frozen=True)
class Cell:
    """A code cell: its number among the code cells (from 1), its source lines, and their lines in the file."""

    number: int
    lines: tuple[str, ...]
    places: tuple[int, ...]


def code_cells(path: str, text: str) -> tuple[list[Cell], Mapping[str, Any]]:
    """The code cells and the metadata; :class:`InputError` where the text is no notebook."""
    document = parse_json(text, path)
    if not isinstance(document, dict):
        raise InputError("is no Jupyter notebook: expected a JSON object", path, 1)
    cells = document.get("cells")
    where: tuple[Any, ...] = ("cells",)
    if cells is None:  # the third version of the format
        sheets = document.get("worksheets")
        cells = sheets[0].get("cells") if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else None
        where = ("worksheets", 0, "cells")
    if not isinstance(cells, list):
        raise InputError("is no Jupyter notebook: expected a list of cells", path, 1)
    places = _Places(text, where)
    found: list[Cell] = []
    for index, cell in enumerate(cells):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            if len(found) == CELLS:
                raise InputError(f"has more than {CELLS} code cells", path)
            key = "source" if "source" in cell else "input"
            found.append(_cell(len(found) + 1, cell.get(key, ""), places.of(index, key), path))
    metadata = document.get("metadata")
    return found, metadata if isinstance(metadata, dict) else {}


def _cell(number: int, source: Any, places: list[int], path: str) -> Cell:
    """A cell; ``places`` are the lines its pieces of source begin on, the whole cell's line first."""
    pieces = [source] if isinstance(source, str) else source
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        line = places[0] if places else None
        raise InputError("is no Jupyter notebook: expected text in every code cell", path, line)
    lines: list[str] = [""]
    at: list[int] = [places[0] if places else 1]
    own = places[1:] if len(places) == len(pieces) + 1 else [at[0]] * len(pieces)
    for piece, line in zip(pieces, own):
        first, *others = piece.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if not lines[-1]:
            at[-1] = line
        lines[-1] += first
        lines += others
        at += [line] * len(others)
    return Cell(number, tuple(lines), tuple(at))


class _Places:
    """Where the pieces of source of each cell stand in the text; goes through it once."""

    def __init__(self, text: str, path: tuple[Any, ...]) -> None:
        self._text = text
        self._line, self._counted = 1, 0
        self._cells: list[Place] = []
        self._decode = _decoder()
        try:
            at = self._skip(0)
            for step in path:
                at = next(start for key, start, _ in self._children(at) if key == step)
            self._cells = self._children(at)
        except (IndexError, RecursionError, StopIteration, ValueError):
            pass

    def of(self, index: int, key: str) -> list[int]:
        """The line of the cell's source, and of every piece where it is a list; empty where they cannot be told."""
        try:
            start = next(start for name, start, _ in reversed(self._children(self._cells[index][1])) if name == key)
            pieces = self._children(start) if self._text[start] == "[" else [(0, start, start)]
        except (IndexError, RecursionError, StopIteration, ValueError):
            return []
        return [self._line_of(start), *(self._line_of(at) for _, at, _ in pieces)]

    def _line_of(self, at: int) -> int:
        if at < self._counted:
            return self._line
        self._line += self._text.count("\n", self._counted, at)
        self._counted = at
        return self._line

    def _skip(self, at: int) -> int:
        while self._text[at] in _SPACE:
            at += 1
        return at

    def _children(self, at: int) -> list[Place]:
        """The values in an object or an array that begins at ``at``."""
        opened = self._text[at]
        if opened not in "{[":
            raise ValueError("no container")
        found: list[Place] = []
        at = self._skip(at + 1)
        while self._text[at] not in "}]":
            key: Any = len(found)
            if opened == "{":
                key, at = self._decode(self._text, at)
                at = self._skip(self._skip(at) + 1)
            start = at
            _, at = self._decode(self._text, at)
            found.append((key, start, at))
            at = self._skip(at)
            if self._text[at] == ",":
                at = self._skip(at + 1)
        return found


def _decoder() -> Decode:
    try:
        return scanner()
    except ImportError:
        import json

        return json.JSONDecoder().raw_decode


# --- A Jupyter notebook → listing: what its cells install, and the training its code does. Nothing is run.


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

    from compat.workload.script import read_script

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


class Notebook(Format):
    """A Jupyter notebook."""

    kind = "notebook"
    lists_packages = False
    by_hand = "change its cells by hand"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return read_notebook(path, text)
