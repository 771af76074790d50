"""A lock file made again by uv in a private copy of its project, so that the result can be judged before it is written.

The copy has only what uv reads to lock: the edited source, the old lock, metadata of local projects. Nothing is built, and no
interpreter of an environment that may be inspected is started. What a release without a wheel requires is in the old lock.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from compat.formats.edit.files import Edit
from compat.formats.registry import Relocking
from compat.formats.specifiers import admits
from compat.index.configuration import may_start_from, uv_binary
from compat.records import record
from compat.redact import excerpt
from compat.repair.stand_in import OWN, built, stand_in
from compat.repair.target import Target

_SECONDS = 120
_LAST_PATCH = 99
"""The patch release of a Python of which only the minor version is known: a project may require some of its fixes."""
_METADATA = "pyproject.toml"
"""What uv reads of a local project without building it."""
_NOT_OURS = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT", "UV_WORKING_DIRECTORY", "UV_WORKING_DIR", "UV_LOCKED", "UV_FROZEN",
             "UV_PYTHON", "UV_NO_SYNC")  # fmt: skip
"""Variables that would make uv look at another project or interpreter, or refuse to lock."""
_DYNAMIC = re.compile(r"""["']version["']""")
_GIVEN = "0+compat.gives.it"
_GIVEN_LINE = re.compile(rb'(\nname = "[^"\n]{1,200}"\n)version = "0\+compat\.gives\.it"\n')
_REFUSED = "No solution found"
_WITHOUT_BUILDING = "--no-build"


@record(frozen=True)
class Relocked:
    """The edit of the lock, or ``None`` with the reason ``why``; ``refused``: uv found that there is no solution."""

    edit: Edit | None
    why: str = ""
    refused: bool = False


def relock(
    path: str, content: bytes, how: Relocking, edits: Iterable[Edit], target: Target, *, requires_python: str | None,
    offline: bool = False,
) -> Relocked:  # fmt: skip
    """Make the lock ``path`` again for its source as edited; ``target`` has a Python that the project supports."""
    uv = uv_binary()
    if uv is None:
        return Relocked(None, "uv was not found")
    if os.name != "posix":
        return Relocked(None, "only supported on Linux and macOS, where uv can be prevented from building the project")
    with tempfile.TemporaryDirectory(prefix="compat-lock-") as place:
        try:
            folder = _copied(place, how, edits)
            interpreter = _interpreter(place, requires_python, target)
        except (OSError, ValueError) as problem:  # also no TOML, or no UTF-8
            return Relocked(None, f"its project could not be copied: {problem}")
        command = [uv, *how.words, "--quiet", "--color", "never", *(["--offline"] if offline else [])]
        command += ["--python", interpreter, *_target(how, target)]
        try:
            run = partial(
                subprocess.run, cwd=folder, env=_variables(), capture_output=True, text=True, timeout=_SECONDS, check=False
            )
            done = run(command)
            if done.returncode and built(done.stderr) is not None:  # perhaps an older release has a wheel
                other = run([*command, _WITHOUT_BUILDING])
                done = other if not other.returncode else done
            written = os.path.relpath(os.path.realpath(path), os.path.realpath(how.folder or "."))
            after = _without_given(Path(folder, written).read_bytes()) if done.returncode == 0 else b""
        except subprocess.TimeoutExpired:
            return Relocked(None, f"uv did not answer within {_SECONDS} s")
        except OSError as problem:
            return Relocked(None, f"uv cannot be run: {problem.strerror or problem}")
        if done.returncode:
            said = " ".join(done.stderr.replace(place, "").split())
            if (name := built(said)) is not None:
                return Relocked(None, f"uv would have to build {name} to determine its requirements")
            return Relocked(None, excerpt(said, 400), _REFUSED in said and not offline)
    return Relocked(Edit(path, content, after))


def _copied(place: str, how: Relocking, edits: Iterable[Edit]) -> str:
    """Copy what uv reads, with the edits; returns the copy of the folder in which it is run."""
    base = os.path.realpath(how.folder or ".")
    edited = {os.path.realpath(each.path): each.after for each in edits}
    named = (os.path.normpath(os.path.join(base, name)) for name in how.files if not os.path.isabs(name))
    files = {path for each in named for path in _read_of(each)}
    top = os.path.commonpath([base, *map(os.path.dirname, files | edited.keys())])
    here = os.path.join(place, "project", os.path.relpath(base, top))
    os.makedirs(here)
    for path in files | edited.keys():
        to = os.path.join(place, "project", os.path.relpath(path, top))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if path in edited:
            Path(to).write_bytes(edited[path])
        else:
            shutil.copyfile(path, to)
        if os.path.basename(path) == _METADATA:
            _give_version(Path(to))
    return here


def _give_version(path: Path) -> None:
    """Give a project a version whose version is computed by its build backend: uv would have to build it, and locks none."""
    text = path.read_text(encoding="utf-8")
    if not _DYNAMIC.search(text):
        return
    import tomlkit  # 30 ms

    document = tomlkit.parse(text)
    project: Any = document.get("project")
    dynamic = project.get("dynamic") if isinstance(project, dict) else None
    if isinstance(dynamic, list) and "version" in dynamic and isinstance(project, dict) and "version" not in project:
        dynamic.remove("version")
        project["version"] = _GIVEN
        path.write_text(tomlkit.dumps(document), encoding="utf-8")


def _without_given(lock: bytes) -> bytes:
    """The lock without versions that were given: uv locks no version of a project whose version is computed."""
    return _GIVEN_LINE.sub(rb"\1", lock)


def _read_of(path: str) -> Iterable[str]:
    """The files that uv reads of a file or a local project."""
    found = os.path.join(path, _METADATA) if os.path.isdir(path) else path
    return [found] if os.path.isfile(found) else []


def _interpreter(place: str, requires: str | None, target: Target) -> str:
    """The interpreter that uv asks about itself: a stand-in that answers for compat's own, and does nothing else.

    ``--no-build`` does not keep uv from building the project and other local ones. This does: whatever uv starts to build
    something ends at once. If the project excludes compat's Python, the stand-in gives the target's version as its own, so that
    uv searches neither the machine nor an environment that may be inspected.
    """
    versions = (OWN, target.python, f"{target.minor}.{_LAST_PATCH}")
    return stand_in(place, next((each for each in versions if requires is None or admits(requires, each)), OWN))


def _target(how: Relocking, target: Target) -> list[str]:
    """The target of a list of requirements, unless its command names one; a project's lock is for all that it supports."""
    if how.words[0] == "lock":
        return []
    python = [] if "--python-version" in how.words else ["--python-version", target.python]
    platform = {"--python-platform", "--universal"}.intersection(how.words)
    return python if platform else [*python, "--python-platform", target.uv_platform]


def _variables() -> Mapping[str, str]:
    """The user's environment with his access to indexes, in which no inspected environment is found."""
    found = {name: text for name, text in os.environ.items() if name not in _NOT_OURS}
    folders = filter(may_start_from, found.get("PATH", "").split(os.pathsep))
    return {**found, "PATH": os.pathsep.join(folders), "UV_PYTHON_DOWNLOADS": "never"}
