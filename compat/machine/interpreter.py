"""Find the distributions installed for a Python interpreter. Nothing is started."""

from __future__ import annotations

import os
import sys

from compat.errors import InputError, Undecided
from compat.files import regular_path
from compat.machine.metadata import INDEX, installer_of, read_distribution
from compat.model import Distribution, Environment, Source, normalized
from compat.records import record, replace
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_WINDOWS = os.name == "nt"


@record(frozen=True)
class Target:
    """A Python to inspect: its version if known, its ``site-packages`` folders in import order, and a display name.

    ``interpreter`` is the program, as a user would call it, if there is one.
    """

    label: str
    version: str | None
    folders: tuple[str, ...]
    running: bool = False
    interpreter: str | None = None


@record(frozen=True)
class Installed:
    """The distributions installed for a target. If one folder has two versions, ``distributions`` contains both.

    ``folders`` are those of the import path: the target's, and those that its ``.pth`` files add.
    """

    target: Target
    distributions: tuple[Distribution, ...]
    folders: tuple[str, ...]
    notes: tuple[str, ...]


def running_target() -> Target:
    """Return the Python that runs this process."""
    version = ".".join(map(str, sys.version_info[:3]))
    folders = tuple(folder for folder in sys.path if folder and not folder.endswith(".zip") and os.path.isdir(folder))
    return Target(label=shown(sys.prefix), version=version, folders=folders, running=True)


def default_target(variables: Mapping[str, str]) -> Target:
    """Return the activated environment if there is one, else the Python that runs this process.

    If ``compat`` is installed in its own tool environment (pipx, uvx), the first Python on ``PATH`` is used.
    """
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = variables.get(name)
        if folder and os.path.isdir(folder) and os.path.realpath(folder) != os.path.realpath(sys.prefix):
            return target_at(folder)
    if _is_tool_environment(sys.prefix):
        found = find_python(variables, apart_from=sys.prefix)
        if found:
            return target_at(found)
    return running_target()


def target_at(path: str) -> Target:
    """Return the Python at ``path``: an interpreter, a virtual or conda environment, or a ``site-packages`` folder.

    Raises :class:`InputError` for any other path.
    """
    if not path:
        raise InputError("--python: expected an interpreter, an environment or a site-packages folder, not an empty string")
    if os.path.isdir(path):
        if os.path.isfile(os.path.join(path, "pyvenv.cfg")):
            return _virtual(path)
        folders = _site_packages(path)
        if folders:
            return Target(
                label=shown(path), version=_version_near(path, folders[0]), folders=folders, interpreter=_program(path)
            )
        if (
            any(name.endswith((".dist-info", ".egg-info")) for name in _listing(path))
            or os.path.basename(path) == "site-packages"
        ):
            return Target(label=shown(path), version=_version_in_path(path), folders=(path.rstrip("/"),))
        raise InputError("is not an interpreter, virtual environment or site-packages folder", path)
    if not os.path.exists(path):
        if os.sep not in path:
            found = find_command(path, os.environ)
            if found:
                return target_at(found)
        raise InputError("no such interpreter, environment or site-packages folder", path)
    return _interpreter(path)


def read_installed(target: Target) -> Installed:
    """Read every distribution of a target, sorted by name; the first folder takes precedence, as on import."""
    notes: list[str] = []
    found: dict[str, list[Distribution]] = {}
    seen: set[str] = set()
    folders = list(target.folders)
    for folder in folders:
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        names = _listing(folder)
        _merge(found, _in_folder(folder, names, notes), folder)
        if folder in target.folders and not target.running:  # the running interpreter's path already includes what they add
            folders += [
                linked for name in names if name.endswith(".pth") and name[0] != "." for linked in _pth_folders(folder, name)
            ]
    distributions = tuple(copy for name in sorted(found) for copy in found[name])
    return Installed(target=target, distributions=distributions, folders=tuple(dict.fromkeys(folders)), notes=tuple(notes))


def _in_folder(folder: str, names: list[str], notes: list[str]) -> dict[str, list[Distribution]]:
    found: dict[str, list[Distribution]] = {}
    conda = os.path.isdir(f"{os.path.dirname(os.path.dirname(os.path.dirname(folder)))}/conda-meta")
    for name in names:
        if not name.endswith((".dist-info", ".egg-info")) or name[0] == ".":
            continue
        if name[0] == "~":
            notes.append(f"{folder}/{name}: left over from an interrupted uninstall; ignored")
            continue
        copy = read_distribution(folder, name, notes)
        if copy is None:
            continue
        if conda and copy.source is INDEX and installer_of(f"{folder}/{name}") == "conda":
            copy = replace(copy, source=Source("conda"))
        copies = found.setdefault(copy.name, [])
        if all(other.version != copy.version for other in copies):
            copies.append(copy)
    return found


def _merge(found: dict[str, list[Distribution]], here: dict[str, list[Distribution]], folder: str) -> None:
    """Add the distributions of a later folder; those with a known name are recorded as shadowed."""
    for name, copies in here.items():
        if name not in found:
            found[name] = copies
            continue
        first = found[name][0]
        hidden = [{"version": copy.version, "path": folder} for copy in copies if copy.version != first.version]
        if hidden and first.source is not None:
            details = {**first.source.details, "shadows": [*first.source.details.get("shadows", ()), *hidden]}
            found[name][0] = replace(first, source=Source(first.source.kind, details))


def _listing(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _pth_folders(folder: str, name: str) -> Iterable[str]:
    """Return the folders that a ``.pth`` file adds to the import path."""
    try:
        if not os.path.isfile(f"{folder}/{name}"):
            return  # reading a pipe would block
        with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 20).splitlines()
    except OSError:
        return
    for line in lines:
        # a line that starts with "import" is code; it is never run
        if line.strip() and not line.startswith(("#", "import ", "import\t")):
            path = os.path.join(folder, line.rstrip())
            if os.path.isdir(path):
                yield path


def _virtual(path: str) -> Target:
    """Read a virtual environment; its ``pyvenv.cfg`` states the version and whether system packages are visible."""
    settings: dict[str, str] = {}
    with open(regular_path(os.path.join(path, "pyvenv.cfg")), encoding="utf-8", errors="replace") as file:
        for line in file:
            key, equals, value = line.partition("=")
            if equals:
                settings[key.strip().lower()] = value.strip()
    folders = _site_packages(path)
    version = settings.get("version") or ".".join(settings.get("version_info", "").split(".")[:3]) or None
    if settings.get("include-system-site-packages", "").lower() == "true" and settings.get("home"):
        folders += _site_packages(os.path.dirname(settings["home"]))
    return Target(label=shown(path), version=version, folders=folders, interpreter=_program(path))


def _program(environment: str) -> str | None:
    names = ("Scripts/python.exe",) if _WINDOWS else ("bin/python", "bin/python3")
    return next((shown(f"{environment}/{name}") for name in names if os.path.lexists(f"{environment}/{name}")), None)


def _interpreter(path: str) -> Target:
    environment = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    if os.path.isfile(os.path.join(environment, "pyvenv.cfg")):
        return _virtual(environment)
    with open(regular_path(path), "rb") as file:
        start = file.read(4)
    if start[:2] == b"#!":
        real = behind_shim(path, os.environ)
        if real is None:
            raise InputError("is a script, not an interpreter: pass the interpreter or the environment itself", path)
        return _interpreter(real)
    if not start.startswith(_PROGRAMS):
        raise InputError("is not a Python interpreter: it is not an executable", path)
    if not any(name in os.path.basename(os.path.realpath(path)).lower() for name in ("python", "pypy")):
        raise InputError("is not a Python interpreter: it is another program", path)
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(path)))
    folders = _site_packages(prefix, of=os.path.basename(os.path.realpath(path)))
    if not folders:
        raise InputError("is not a Python interpreter: it has no site-packages folder", path)
    return Target(label=shown(path), version=_version_near(prefix, folders[0]), folders=folders, interpreter=shown(path))


_PROGRAMS = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""Magic bytes of executable files on Linux, Windows and macOS."""


def _site_packages(prefix: str, of: str = "") -> tuple[str, ...]:
    """Return the folders below ``prefix`` that contain distributions, including Debian's layout."""
    if _WINDOWS:
        folder = os.path.join(prefix, "Lib", "site-packages")
        return (folder,) if os.path.isdir(folder) else ()
    wanted = of if of.startswith("python3.") else ""
    found: list[str] = []
    for lib in ("local/lib", "lib", "lib64"):
        for name in _listing(f"{prefix}/{lib}"):
            if name.startswith("python3") and (not wanted or name in (wanted, "python3")):
                found += [f"{prefix}/{lib}/{name}/{leaf}" for leaf in ("site-packages", "dist-packages")]
    return tuple(folder for folder in found if os.path.isdir(folder))


def _version_near(prefix: str, folder: str) -> str | None:
    """Return the full version from files of the installation, else the one in the folder's name."""
    short = _version_in_path(folder)
    header = f"{prefix}/include/python{short}/patchlevel.h"
    try:
        with open(regular_path(header), encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("#define PY_VERSION "):
                    return line.split('"')[1].rstrip("+")
    except (OSError, InputError, IndexError):
        pass
    for name in _listing(f"{prefix}/conda-meta"):
        if name.startswith("python-3.") and name.endswith(".json"):
            return name.split("-")[1]
    return short


def _version_in_path(path: str) -> str | None:
    for part in reversed(path.split(os.sep)):
        if part.startswith("python3."):
            return part[6:]
    return None


def _is_tool_environment(prefix: str) -> bool:
    if any(os.path.isfile(os.path.join(prefix, name)) for name in ("uv-receipt.toml", "pipx_metadata.json")):
        return True
    parts = prefix.split(os.sep)
    return "pipx" in parts or ("uv" in parts and ("tools" in parts or any(part.startswith("archive-v") for part in parts)))


def shown(path: str) -> str:
    """Shorten a path for display: relative to the working directory or the home folder if that is shorter."""
    home = os.path.expanduser("~")
    path = os.path.abspath(path)
    here = os.getcwd()
    if path.startswith(here + os.sep):
        return path[len(here) + 1 :]
    return "~" + path[len(home) :] if home != "/" and path.startswith(home + os.sep) else path


# --- Finding an interpreter by name or behind a pyenv shim, without starting it


def find_command(name: str, variables: Mapping[str, str], apart_from: str = "") -> str | None:
    """Return the first executable named ``name`` on ``PATH``, outside the folder ``apart_from``."""
    for folder in variables.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name)
        if apart_from and os.path.realpath(folder).startswith(os.path.realpath(apart_from)):
            continue
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def find_python(variables: Mapping[str, str], apart_from: str = "") -> str | None:
    """Return the interpreter that ``python3`` or ``python`` would start, outside the folder ``apart_from``."""
    for name in ("python3", "python"):
        found = find_command(name, variables, apart_from)
        if found:
            return behind_shim(found, variables) or found
    return None


def behind_shim(path: str, variables: Mapping[str, str]) -> str | None:
    """Return the interpreter that a pyenv shim starts, by ``PYENV_VERSION`` or pyenv's ``version`` file."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(folder) != "shims":
        return None
    root = os.path.dirname(folder)
    chosen = variables.get("PYENV_VERSION", "").split(":")
    if not chosen[0]:
        try:
            with open(regular_path(os.path.join(root, "version")), encoding="utf-8", errors="replace") as file:
                chosen = file.read(4096).split()
        except (OSError, InputError):
            return None
    for version in chosen:
        candidate = os.path.join(root, "versions", version, "bin", os.path.basename(path))
        if version and os.path.isfile(candidate):
            return candidate
    return None


# --- pip's own view of the running environment, for comparison. This starts pip.


def disagreements(environment: Environment) -> tuple[str, ...]:
    """Return one line for every distribution that pip lists differently; :class:`Undecided` if pip cannot be run."""
    try:
        import pip_api

        listed = pip_api.installed_distributions()  # type: ignore[attr-defined]
    except Exception as problem:  # pip_api raises any kind of exception
        reason = str(problem).strip().splitlines()
        raise Undecided(
            f"pip's view of the environment is not available ({reason[-1] if reason else type(problem).__name__})"
        ) from None
    theirs = {normalized(name): str(found.version) for name, found in listed.items()}
    ours: dict[str, set[str]] = {}
    for copy in environment.distributions or ():
        ours.setdefault(copy.name, set()).add(copy.version or "unknown")
    lines = []
    for name in sorted({*theirs, *ours}):
        if name not in ours:
            lines.append(f"{name}: pip lists {theirs[name]}, but its files were not found on the path")
        elif name not in theirs:
            lines.append(f"{name}: found in version {' and '.join(sorted(ours[name]))}, but pip does not list it")
        elif len(ours[name]) > 1 or any(
            version == "unknown" or key_of(version) != key_of(theirs[name]) for version in ours[name]
        ):
            lines.append(f"{name}: pip lists {theirs[name]}, but its files say {' and '.join(sorted(ours[name]))}")
    return tuple(lines)
