"""Configuration of pip and uv: pip's files and variables as one mapping, uv's tables by descending priority."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from compat.errors import InputError
from compat.syntax.toml import parse_toml

T = TypeVar("T")
_WINDOWS = sys.platform == "win32"
_PIP_FILE = "pip.ini" if _WINDOWS else "pip.conf"


def pip_options(environ: Mapping[str, str], prefix: str | None) -> dict[str, str]:
    """The configuration of ``pip install``: option → text. Variables override files, ``[install]`` overrides ``[global]``.

    ``prefix`` is the environment whose ``pip.conf`` is read. :class:`InputError` for a file that pip would reject.
    """
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for path in _pip_files(environ, prefix):
        if path.is_file():
            for section, options in _read_pip_file(path).items():
                sections.setdefault(section, {}).update(options)
    merged = {**sections["global"], **sections["install"]}
    for variable, value in environ.items():
        option = _option(variable[4:])
        if variable.startswith("PIP_") and value and option not in ("config-file", "no-input"):
            merged[option] = value
    return merged


def _option(text: str) -> str:
    return text.lower().replace("_", "-").removeprefix("--")


def _pip_files(environ: Mapping[str, str], prefix: str | None) -> Iterator[Path]:
    """pip's configuration files, lowest priority first."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    home = _home(environ)
    for folder in _site_wide(environ):
        yield folder / _PIP_FILE
    yield home / ("pip" if _WINDOWS else ".pip") / _PIP_FILE
    library = home / "Library" / "Application Support"
    yield (library if sys.platform == "darwin" and (library / "pip").is_dir() else _user_folder(environ)) / "pip" / _PIP_FILE
    if prefix is not None:
        yield Path(prefix) / _PIP_FILE
    if named:
        yield Path(named).expanduser()


def _site_wide(environ: Mapping[str, str]) -> list[Path]:
    if _WINDOWS:
        return [Path(environ.get("PROGRAMDATA", r"C:\ProgramData")) / "pip"]
    if sys.platform == "darwin":
        return [Path("/Library/Application Support/pip")]
    return [*(folder / "pip" for folder in _xdg_folders(environ)), Path("/etc")]


def _read_pip_file(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError as problem:
        raise InputError(f"is not UTF-8 (byte {problem.start})", str(path)) from None
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror}", str(path)) from None
    except configparser.Error as problem:
        line = getattr(problem, "lineno", None) or next((number for number, _ in getattr(problem, "errors", [])), None)
        raise InputError("is not a pip configuration: expected [sections] with key = value", str(path), line) from None
    return {name: {_option(key): value for key, value in parser.items(name)} for name in parser.sections()}


@dataclass(frozen=True)
class Table:
    """uv's options in one file; ``sources`` is ``[tool.uv.sources]``."""

    options: Mapping[str, object]
    sources: Mapping[str, object]
    file: str

    @property
    def folder(self) -> str:
        return str(Path(self.file).parent)

    def one(self, option: str, kind: type[T]) -> T | None:
        """The value of an option; :class:`InputError` if it has a different type."""
        value = self.options.get(option)
        if value is not None and not isinstance(value, kind):
            raise InputError(f"{option}: expected {'a string' if kind is str else 'true or false'}", self.file)
        return value

    def many(self, option: str, kind: type[T]) -> list[T]:
        """The values of a list option; :class:`InputError` if they have a different type."""
        value = self.options.get(option, [])
        if not isinstance(value, list) or not all(isinstance(each, kind) for each in value):
            expected = "a list of strings" if kind is str else f"tables, each as [[{option}]]"
            raise InputError(f"{option}: expected {expected}", self.file)
        return value


def uv_tables(folder: str, environ: Mapping[str, str]) -> list[Table]:
    """The tables of the project, the user and the system; :class:`InputError` for a file that is not TOML."""
    named = environ.get("UV_CONFIG_FILE")
    if named:
        return [_uv_toml(Path(named))]
    if environ.get("UV_NO_CONFIG", "").lower() in ("1", "true"):
        return []
    project = _project(Path(folder).absolute())
    user_wide = (_user_folder(environ) / "uv" / "uv.toml", _system(environ))
    return [*([project] if project else []), *(_uv_toml(path) for path in user_wide if path.is_file())]


def _uv_toml(path: Path) -> Table:
    _, document = parse_toml(str(path))
    return _table(document, {}, path)


def _table(options: Any, sources: Any, path: Path) -> Table:
    """A table of options; ``[pip]``, which applies to ``uv pip``, overrides the rest."""
    if not isinstance(options, dict):
        raise InputError("tool.uv: expected a table", str(path))
    pip = options.get("pip", {})
    for name, value in (("pip", pip), ("tool.uv.sources", sources)):
        if not isinstance(value, dict):
            raise InputError(f"{name}: expected a table", str(path))
    return Table({**options, **pip}, sources, str(path))


def _project(folder: Path) -> Table | None:
    """The options of the nearest folder that has any; a ``uv.toml`` overrides the table in ``pyproject.toml``."""
    for place in (folder, *folder.parents):
        own, project = place / "uv.toml", place / "pyproject.toml"
        table = _tool_uv(project) if project.is_file() else None
        if own.is_file():
            return Table(_uv_toml(own).options, table.sources if table else {}, str(own))
        if table is not None:
            return table
    return None


def _tool_uv(path: Path) -> Table | None:
    _, document = parse_toml(str(path))
    tool = document.get("tool", {})
    table = tool.get("uv") if isinstance(tool, dict) else None
    return None if table is None else _table(table, table.get("sources", {}) if isinstance(table, dict) else {}, path)


def _system(environ: Mapping[str, str]) -> Path:
    if _WINDOWS:
        return Path(environ.get("PROGRAMDATA", r"C:\ProgramData")) / "uv" / "uv.toml"
    found = (folder / "uv" / "uv.toml" for folder in _xdg_folders(environ))
    return next((path for path in found if path.is_file()), Path("/etc/uv/uv.toml"))


def _xdg_folders(environ: Mapping[str, str]) -> list[Path]:
    return [Path(each) for each in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if each]


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())


def _user_folder(environ: Mapping[str, str]) -> Path:
    if _WINDOWS:
        return Path(environ.get("APPDATA") or _home(environ) / "AppData" / "Roaming")
    return Path(environ.get("XDG_CONFIG_HOME") or _home(environ) / ".config")


def uv_binary() -> str | None:
    """The path of uv: from its distribution, else from a folder on ``PATH`` that no inspected environment controls."""
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if may_start_from(folder)]
        return shutil.which("uv", path=os.pathsep.join(folders)) if folders else None


def may_start_from(folder: str) -> bool:
    """Whether programs in a folder on ``PATH`` may be started: in compat's own environment, or outside any environment.

    An activated environment is first on ``PATH`` and is being inspected; so may be the current folder and everything below.
    """
    if not os.path.isabs(folder):
        return False
    real = os.path.realpath(folder)
    prefix = os.path.dirname(real)
    if prefix == os.path.realpath(sys.prefix):
        return True
    try:
        below = os.path.commonpath((os.path.realpath(os.getcwd()), real)) == os.path.realpath(os.getcwd()) != os.sep
    except (OSError, ValueError):  # the current folder is gone, or on another drive
        below = False
    environment = any(os.path.exists(os.path.join(prefix, mark)) for mark in ("pyvenv.cfg", "conda-meta"))
    active = {os.path.realpath(path) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if (path := os.environ.get(name))}
    return not (below or environment or prefix in active)


def uv_default_index() -> str | None:
    """The default index of uv if none is configured; ``None`` if uv does not report it."""
    uv = uv_binary()
    if uv is None:
        return None
    command = [uv, "pip", "compile", "-", "--quiet", "--no-config", "--no-header", "--emit-index-url", "--offline"]
    command += ["--python", sys.executable]  # otherwise uv searches the whole machine
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UV_") or name == "UV_CACHE_DIR"}
    try:
        done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=False, env=kept)
    except (OSError, subprocess.TimeoutExpired):
        return None
    option, _, url = done.stdout.strip().partition(" ")
    return url.rstrip("/") if option == "--index-url" and url else None
