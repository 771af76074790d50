"""Installations that are incomplete, hidden by a file of the user, or do not load.

``datasets.py`` next to the script is found before the installed datasets. Errors show it by the place of the module that lacks
a name, by a frame in such a file that an import leads to, or because Python itself says so.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compat.checks.code import providers
from compat.checks.fix_commands import by_pip, compiled_anew
from compat.diagnosis.frame_packages import distribution_of_module, inferred, location_text, package_of, version_of
from compat.diagnosis.loader import EXTENSIONS, WITH_KERNELS
from compat.model import Finding, Fix
from compat.records import replace
from compat.rules.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from compat.diagnosis.python_messages import Lack
    from compat.reports.log.frames import Frame
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_MISSING_FILE = re.compile(
    r"No such file or directory: [bru]?['\"](?P<path>[^'\"\n]{0,400}[/\\](?:site|dist)-packages[/\\]"
    r"(?P<module>\w{2,60})[/\\](?P<inner>[^'\"\n]{1,300}))['\"]"
)
_CANNOT_IMPORT = re.compile(
    r"\b(?:[Cc]an ?not|[Cc]an't|[Cc]ould not|[Cc]ouldn't|[Ff]ailed to|[Uu]nable to) import "
    r"(?:the )?(?:module |package |library |required )?(?P<quote>[`'\"]?)(?P<module>[A-Za-z][\w-]{2,60})(?P=quote)"
    r"(?=[,;:!)]|\.(?:\s|$)|\s*$|\s+(?:because|due|for|in|on|please|properly|correctly|with)\b)"
)
DEPENDENCIES = "https://packaging.python.org/en/latest/guides/writing-pyproject-toml/#dependencies-optional-dependencies"
_PACKAGING = "https://packaging.python.org/en/latest/guides/writing-pyproject-toml/"


def find_missing_file(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a file that a package does not find in its own folder."""
    match = _MISSING_FILE.search(error.message)
    if match is None or not providers(match["module"]):
        return []
    name = distribution_of_module(match["module"])
    version = version_of(name, facts)
    inner = match["inner"].replace("\\", "/")
    return [
        inferred(
            rule="symptom-missing-file",
            origin="build",
            title=f"The installation of {name} lacks {match['module']}/{inner}",
            why=f"{name} reads a file in its own folder. Either its release, or the commit that was built, was packaged "
            "without that file, or the installation was interrupted or mixed with another one.",
            packages={name: version},
            facts=("install",),
            fixes=(
                by_pip("upgrade", name, None, "a release that has the file"),
                Fix("source-install", name, "", "or an editable installation of its source, if it was built from a checkout"),
                Fix("pin", name, None, "or install it again", f"pip install --force-reinstall --no-deps {name}"),
            ),
            evidence=(_PACKAGING,),
            here=location_text(error),
        )
    ]


def mixed_releases(package: str, version: str, what: str, error: RaisedError) -> Finding:
    """Return the finding for a package whose own code cannot find a name that its installed release has."""
    return inferred(
        rule="symptom-mixed-installation",
        origin="build",
        title=f"{package} mixes files of two releases: its own code cannot find {what}",
        why=f"{package} {version} has it, according to its published source. Files of another release were left behind by an "
        "installation over the old one, or another copy comes first on the path.",
        packages={package: version},
        facts=("install",),
        fixes=(
            Fix(
                "pin",
                package,
                f"=={version}",
                "install it anew",
                f"pip install --force-reinstall --no-deps {package}=={version}",
            ),
        ),
        evidence=(DEPENDENCIES,),
        here=location_text(error),
    )


def unloaded_extension(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a function of a compiled module that is ``None``, because a package goes on if it cannot import it.

    Such a function begins with the name of its module: ``causal_conv1d_fwd`` of ``causal_conv1d_cuda``.
    """
    if lack.owner != "NoneType":
        return []
    modules = [module for module in EXTENSIONS if lack.name.startswith(f"{module.removesuffix('_cuda')}_") and "_" in module]
    if not modules:
        return []
    module = max(modules, key=len)
    name = EXTENSIONS[module]
    return [
        inferred(
            rule="symptom-extension-not-loaded",
            origin="build",
            title=f"The compiled part of {name} was not loaded: {lack.name} is a function of it",
            why="The package that calls it goes on with None where the import of the compiled module fails, because it is not "
            "installed or was built for another torch.",
            packages={name: version_of(name, facts)},
            facts=("build",),
            fixes=(
                Fix("config", text="see why it does not load", command=f'python -c "import {module}"'),
                compiled_anew(name),
            ),
            here=location_text(error),
        )
    ]


def not_importable(error: RaisedError, facts: Facts, derived: Sequence[Finding]) -> list[Finding]:
    """Return what is known to be wrong with a package of which a message says in words that it cannot be imported."""
    match = _CANNOT_IMPORT.search(error.message)
    module = match["module"].replace("-", "_") if match is not None else ""
    if module in ("", "name") or not (providers(module) or module in EXTENSIONS):
        return []
    name = EXTENSIONS.get(module) or distribution_of_module(module)
    if known := [each for each in derived if name in each.packages and each.severity == "error"]:
        return [replace(each, here=f"{location_text(error)}, {each.here}") for each in known]
    version = version_of(name, facts)
    compiled = name in WITH_KERNELS
    parts = "was built for another GPU, Python, torch or CUDA, or cannot find its libraries" if compiled else "is broken"
    return [
        inferred(
            rule="symptom-not-importable",
            origin="build",
            title=f"{name} cannot be imported",
            why=f"It is not installed, or its import fails because {name} or something that it needs {parts}. The message "
            "hides the error of the import.",
            packages={name: version},
            facts=("install", "build"),
            fixes=(
                Fix("config", text="read the error itself", command=f'python -c "import {module}"'),
                Fix("pin", name, None, f"install {name} for this environment", f"pip install --force-reinstall {name}"),
            ),
            evidence=(_PACKAGING,),
            here=location_text(error),
        )
    ]


def violated_requirements(errors: Sequence[RaisedError], text: str, derived: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the violated requirements between packages of which one failed and the text names the other.

    ``errors``: the most decisive ones. It is asked where nothing explains the message itself.
    """
    words = frozenset(re.findall(r"[a-z][\w-]+", text.lower().replace("_", "-")))
    failed = {distribution_of_module(name) for error in errors for name in map(package_of, error.frames) if name is not None}
    return tuple(
        replace(each, verdict="possible", severity="error", effect="crash", here=f"the packages of the error, {each.here}")
        for each in derived
        if each.origin == "metadata" and each.verdict == "hit" and all(each.packages.values())
        if failed & each.packages.keys() and each.packages.keys() <= failed | words
    )


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
                return (_hidden(module, path, names[0] if names else None, errors[number], facts),)
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


def _hidden(module: str, path: str, owner: str | None, error: RaisedError, facts: Facts) -> Finding:
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
