"""A file of the user's own that Python imports in place of an installed package or a module of the standard library.

``datasets.py`` next to the script is found before the installed datasets. Errors show it by the place of the module that lacks
a name, by a frame in such a file that an import leads to, or because Python itself says so.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from compat.checks.code import providers
from compat.diagnosis.frame_packages import location_text, version_of
from compat.model import Finding, Fix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from compat.reports.log.frames import Frame
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_PATHS = "https://docs.python.org/3/library/sys_path_init.html"
_INSTALLED = re.compile(
    r"(?:site|dist)-packages|[/\\]lib(?:64)?[/\\]python\d|[/\\]Lib[/\\]|\.zip[/\\]|^<|[/\\]node_modules[/\\]"
)
"""Places of installed packages and of the standard library."""
_LACKING = re.compile(
    r"cannot import name '[^']{1,200}' from (?:partially initialized module )?'(?P<module>\w{1,100})[\w.]{0,200}'"
    r"[^()\n]{0,60}(?:\(most likely[^()\n]{0,60}\) )?\((?P<path>[^()\n]{1,400})\)"
)
_RENAMING = re.compile(r"\(consider renaming '(?P<path>[^'\n]{1,400})'")
"""What Python 3.13 says of a file that hides a module."""
_NO_PACKAGE = re.compile(r"No module named '(?P<module>\w{1,100})\.[\w.]{1,200}'; '(?P=module)' is not a package")
_IMPORT = re.compile(r"(?:from|import)\s+(?P<module>[A-Za-z_]\w*)")


def hidden_by_own_file(errors: Sequence[RaisedError], order: Sequence[int], facts: Facts) -> tuple[Finding, ...]:
    """Return the finding for the first error that an own file causes by its name."""
    for number in order:
        for module, path in _hidings(errors[number]):
            names = providers(module)
            if names or module in sys.stdlib_module_names:
                return (_finding(module, path, names[0] if names else None, errors[number], facts),)
    return ()


def _hidings(error: RaisedError) -> Iterator[tuple[str, str]]:
    """Yield each module and the own file (or "" if its place is unknown) that was imported in its place."""
    lacking = _LACKING.search(error.message)
    if lacking is not None and _is_own(lacking["path"]) and _module_of(lacking["path"]) == lacking["module"]:
        yield lacking["module"], lacking["path"]
    renaming = _RENAMING.search(error.message)
    if renaming is not None and (module := _module_of(renaming["path"])):
        yield module, renaming["path"]
    if not error.exception or not error.exception.endswith(("ImportError", "ModuleNotFoundError", "AttributeError")):
        return
    yield from _in_frames(error.frames)
    package = _NO_PACKAGE.search(error.message)
    if package is not None:
        yield package["module"], next((each.file for each in error.frames if _module_of(each.file) == package["module"]), "")


def _in_frames(frames: Sequence[Frame]) -> Iterator[tuple[str, str]]:
    """Yield own files that an import statement led to, or that import the module of their own name."""
    for at, frame in enumerate(frames):
        module = _module_of(frame.file) if _is_own(frame.file) and frame.function in (None, "<module>") else None
        if module is None:
            continue
        before = next((each for each in reversed(frames[:at]) if not each.file.startswith("<frozen")), None)
        if module in _imported((before.code if before is not None else None, frame.code)):
            yield module, frame.file


def _imported(lines: Iterable[str | None]) -> set[str]:
    found = (_IMPORT.match(line.strip()) for line in lines if line)
    return {match["module"] for match in found if match is not None}


def _is_own(path: str) -> bool:
    return bool(path) and path.endswith(".py") and _INSTALLED.search(path) is None


def _module_of(path: str) -> str | None:
    """The module that a single file is when its folder is searched; ``None`` for a package, which may be a checkout."""
    name = path.replace("\\", "/").rpartition("/")[2]
    stem = name.removesuffix(".py")
    return stem if stem != name and stem.isidentifier() and stem != "__init__" else None


def _finding(module: str, path: str, owner: str | None, error: RaisedError, facts: Facts) -> Finding:
    version = None if owner is None else version_of(owner, facts)
    what = f"the installed {owner}{f' {version}' if version else ''}" if owner else f"the module {module} of Python"
    file = path.replace("\\", "/").rpartition("/")[2] or f"{module}.py"
    return Finding(
        rule=f"symptom-hidden-{owner or module}", origin="surface",
        title=f"{path or f'A file {file}'} hides {what}",
        why=f"Python looks in the folder of the script, and in those on PYTHONPATH, first: 'import {module}' finds {file} "
        "there, in every package that imports it.",
        packages={} if owner is None else {owner: version}, facts=(),
        fixes=(Fix("config", text=f"rename {path or f'your own {file}'}, and delete its __pycache__"),), evidence=(_PATHS,),
        here=location_text(error),
    )  # fmt: skip
