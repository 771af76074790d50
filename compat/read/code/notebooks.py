"""A notebook as one module; its lines are called by cell."""

from __future__ import annotations

from compat.errors import InputError
from compat.read.code.bounds import bounds_of
from compat.read.code.fields import fields_of
from compat.read.code.records import CodeFile
from compat.read.python_source.module import module_of
from compat.read.workload.notebook import Notebook


class _Places:
    """What lines of the joined code are called."""

    def __init__(self, path: str, notebook: Notebook) -> None:
        self._path, self._notebook = path, notebook
        self.notes = notebook.notes

    def __call__(self, line: int) -> str:
        cell = self._notebook.cell(line)
        return f"{self._path} cell {cell}, line {line - self._notebook.first_line(cell) + 1}"


def read_notebook(path: str, name: str) -> CodeFile:
    """A notebook's code cells, read as one script; :class:`InputError` where nothing of it can be read."""
    notebook = Notebook(path)
    try:
        module = module_of(notebook.tree, b"", name)
    except (RecursionError, MemoryError):
        raise InputError("is not Python that can be read: nested too deeply", path) from None
    stated = bounds_of(notebook.tree, path)
    return CodeFile(path, module, _Places(path, notebook), stated, fields_of(notebook.tree, module), is_notebook=True)
