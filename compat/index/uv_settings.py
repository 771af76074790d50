"""uv's configuration: ``uv.toml`` and ``[tool.uv]``, strongest first, as tables with the file each came from."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compat.errors import InputError
from compat.records import record
from compat.toml import parse_toml


@record(frozen=True)
class Table:
    """The options of one file; ``sources`` is ``[tool.uv.sources]``."""

    options: Mapping[str, Any]
    sources: Mapping[str, Any]
    file: str

    @property
    def folder(self) -> str:
        return str(Path(self.file).parent)

    def text(self, option: str) -> str | None:
        value = self.options.get(option)
        if value is not None and not isinstance(value, str):
            raise InputError(f"{option}: expected text", self.file)
        return value

    def texts(self, option: str) -> list[str]:
        value = self.options.get(option, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise InputError(f"{option}: expected a list of texts", self.file)
        return value

    def flag(self, option: str) -> bool | None:
        value = self.options.get(option)
        if value is not None and not isinstance(value, bool):
            raise InputError(f"{option}: expected true or false", self.file)
        return value

    def tables(self, option: str) -> list[dict[str, Any]]:
        value = self.options.get(option, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise InputError(f"{option}: expected tables, each as [[{option}]]", self.file)
        return value


def uv_tables(folder: str, environ: Mapping[str, str]) -> list[Table]:
    """The project's table, the user's and the system's; :class:`InputError` for one that is no TOML."""
    named = environ.get("UV_CONFIG_FILE")
    if named:
        return [_uv_toml(named)]
    if environ.get("UV_NO_CONFIG", "").lower() in ("1", "true"):
        return []
    found = [_project(folder)]
    found += [_uv_toml(str(path)) for path in (_user(environ), _system(environ)) if path.is_file()]
    return [table for table in found if table is not None]


def _uv_toml(path: str) -> Table:
    _, document = parse_toml(path)
    return Table(_with_pip(document, path), {}, path)


def _with_pip(options: dict[str, Any], path: str) -> dict[str, Any]:
    """``[pip]`` is what ``uv pip`` is told, and goes before the rest."""
    pip = options.get("pip", {})
    if not isinstance(pip, dict):
        raise InputError("pip: expected a table", path)
    return {**options, **pip}


def _project(folder: str) -> Table | None:
    start = Path(folder).absolute()
    for place in (start, *start.parents):
        own = place / "uv.toml"
        project = place / "pyproject.toml"
        if own.is_file():
            found = _uv_toml(str(own))
            table = _tool_uv(str(project)) if project.is_file() else None
            return Table(found.options, table.sources if table else {}, str(own))
        if project.is_file():
            table = _tool_uv(str(project))
            if table is not None:
                return table
    return None


def _tool_uv(path: str) -> Table | None:
    _, document = parse_toml(path)
    tool = document.get("tool", {})
    table = tool.get("uv") if isinstance(tool, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise InputError("tool.uv: expected a table", path)
    sources = table.get("sources", {})
    if not isinstance(sources, dict):
        raise InputError("tool.uv.sources: expected a table", path)
    return Table(_with_pip(table, path), sources, path)


def _user(environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME") or environ.get("USERPROFILE") or str(Path.home())
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")) / "uv" / "uv.toml"
    return Path(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")) / "uv" / "uv.toml"


def _system(environ: Mapping[str, str]) -> Path:
    if sys.platform == "win32":
        return Path(environ.get("PROGRAMDATA", r"C:\ProgramData")) / "uv" / "uv.toml"
    folders = [Path(each) for each in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if each]
    found = (each / "uv" / "uv.toml" for each in folders)
    return next((path for path in found if path.is_file()), Path("/etc/uv/uv.toml"))
