"""Explain errors of installations that are incomplete, that do not load, or whose packages require other releases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.checks.code import providers
from compat.diagnosis.frame_packages import distribution_of_module, package_of, version_of, where
from compat.diagnosis.library_owners import EXTENSIONS, WITH_KERNELS
from compat.model import Finding, Fix
from compat.records import replace

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts

_FILE = re.compile(
    r"No such file or directory: [bru]?['\"](?P<path>[^'\"\n]{0,400}[/\\](?:site|dist)-packages[/\\]"
    r"(?P<module>\w{2,60})[/\\](?P<inner>[^'\"\n]{1,300}))['\"]"
)
_CANNOT_IMPORT = re.compile(
    r"\b(?:[Cc]an ?not|[Cc]an't|[Cc]ould not|[Cc]ouldn't|[Ff]ailed to|[Uu]nable to) import "
    r"(?:the )?(?:module |package |library |required )?(?P<quote>[`'\"]?)(?P<module>[A-Za-z][\w-]{2,60})(?P=quote)"
    r"(?=[,;:!)]|\.(?:\s|$)|\s*$|\s+(?:because|due|for|in|on|please|properly|correctly|with)\b)"
)
_PACKAGING = "https://packaging.python.org/en/latest/guides/writing-pyproject-toml/"


def incomplete(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a file that a package does not find in its own folder."""
    match = _FILE.search(error.message)
    if match is None or not providers(match["module"]):
        return []
    name = distribution_of_module(match["module"])
    version = version_of(name, facts)
    inner = match["inner"].replace("\\", "/")
    return [
        Finding(
            rule="symptom-missing-file",
            origin="build",
            verdict="possible",
            severity="error",
            effect="crash",
            title=f"The installation of {name} does not have {match['module']}/{inner}",
            why=f"{name} reads a file in its own folder. Either its release, or the commit that was built, was packaged "
            "without that file, or the installation was interrupted or mixed with another one.",
            confidence="reported",
            packages={name: version},
            facts=("install",),
            fixes=(
                Fix("upgrade", name, None, "a release that has the file", f"pip install -U {name}"),
                Fix("source-install", name, "", "or an editable installation of its source, if it was built from a checkout"),
                Fix("pin", name, None, "or install it again", f"pip install --force-reinstall --no-deps {name}"),
            ),
            evidence=(_PACKAGING,),
            here=where(error),
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
        return [replace(each, here=f"{where(error)}, {each.here}") for each in known]
    version = version_of(name, facts)
    compiled = name in WITH_KERNELS
    parts = "was built for another GPU, Python, torch or CUDA, or does not find its libraries" if compiled else "is broken"
    return [
        Finding(
            rule="symptom-not-importable",
            origin="build",
            verdict="possible",
            severity="error",
            effect="crash",
            title=f"{name} cannot be imported",
            why=f"It is not installed, or its import fails because {name} or something that it needs {parts}. The message "
            "hides the error of the import.",
            confidence="reported",
            packages={name: version},
            facts=("install", "build"),
            fixes=(
                Fix("config", text="read the error itself", command=f'python -c "import {module}"'),
                Fix("pin", name, None, f"install {name} for this environment", f"pip install --force-reinstall {name}"),
            ),
            evidence=(_PACKAGING,),
            here=where(error),
        )
    ]


def violated(errors: Sequence[RaisedError], text: str, derived: Sequence[Finding]) -> tuple[Finding, ...]:
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
