"""pip's configuration: its files, weakest first, and its variables, as one table of options."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from compat.errors import InputError

_NO_OPTION = ("config-file", "no-input")
_NAME = "pip.ini" if sys.platform == "win32" else "pip.conf"


def pip_options(environ: Mapping[str, str], prefix: str | None) -> dict[str, str]:
    """What ``pip install`` would be told: option → text. Variables beat files, ``[install]`` beats ``[global]``.

    ``prefix`` is the environment whose own ``pip.conf`` counts. :class:`InputError` for a file that pip would refuse.
    """
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for path in _files(environ, prefix):
        for section, options in _read(path).items():
            sections.setdefault(section, {}).update(options)
    merged = {**sections["global"], **sections["install"]}
    for variable, value in environ.items():
        option = _option(variable[4:])
        if variable.startswith("PIP_") and value and option not in _NO_OPTION:
            merged[option] = value
    return merged


def _option(text: str) -> str:
    return text.lower().replace("_", "-").removeprefix("--")


def _files(environ: Mapping[str, str], prefix: str | None) -> list[Path]:
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    found = [folder / _NAME for folder in _site_wide(environ)]
    found += [home / ("pip" if sys.platform == "win32" else ".pip") / _NAME, _user(environ, home) / "pip" / _NAME]
    if prefix is not None:
        found.append(Path(prefix) / _NAME)
    if named:
        found.append(Path(named).expanduser())
    return [path for path in found if path.is_file()]


def _site_wide(environ: Mapping[str, str]) -> list[Path]:
    if sys.platform == "win32":
        return [Path(environ.get("PROGRAMDATA", r"C:\ProgramData")) / "pip"]
    if sys.platform == "darwin":
        return [Path("/Library/Application Support/pip")]
    folders = [Path(each) / "pip" for each in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if each]
    return [*folders, Path("/etc")]


def _user(environ: Mapping[str, str], home: Path) -> Path:
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    library = home / "Library" / "Application Support"
    if sys.platform == "darwin" and (library / "pip").is_dir():
        return library
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def _read(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError as problem:
        raise InputError(f"is not UTF-8 (byte {problem.start})", str(path)) from None
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror}", str(path)) from None
    except configparser.Error as problem:
        line = getattr(problem, "lineno", None) or next((number for number, _ in getattr(problem, "errors", [])), None)
        raise InputError("is no configuration of pip: expected [sections] with key = value", str(path), line) from None
    return {name: {_option(key): value for key, value in parser.items(name)} for name in parser.sections()}
