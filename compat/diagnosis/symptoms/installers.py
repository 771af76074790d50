"""Messages of installers and resolvers that find nothing to install."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_V = r"[\w.!+*-]{1,40}"
_PIP = "https://pip.pypa.io/en/stable/topics/dependency-resolution/"
_ISOLATION = Fix("config", text="build against the torch that is installed", command="pip install --no-build-isolation {name}")
_MARKER = r"\{[^{}]{0,200}\}"


INSTALLERS = (
    Symptom(
        "no-such-release",
        re.compile(
            rf"(?:No matching distribution found for|Could not find a version that satisfies the requirement) "
            rf"(?P<name>[A-Za-z][\w-]{{1,60}})(?:\[[\w,-]{{1,60}}\])?(?P<spec>(?:[<>=!~]=|[<>]){_V})?"
            rf"|[Bb]ecause there (?:is|are) no versions? of (?P<name_2>[A-Za-z][\w-]{{1,60}})(?:{_MARKER})?"
            rf"(?P<spec_2>(?:[<>=!~]=|[<>]){_V})?"
            rf"|(?:PackagesNotFoundError|ResolvePackageNotFound): .{{0,120}}\s{{1,20}}- (?P<name_3>[A-Za-z][\w-]{{1,60}})"
            rf"(?P<spec_3>(?:[<>=!~]=|[<>=]){_V})?"
        ),
        "No release of {name}{spec} is available for this Python and system",
        "The index has no such version, or none with a wheel for this Python, machine and system. Old releases have no wheels "
        "for a new Python, and builds for one CUDA release (+cu124) are only on torch's own index.",
        hints=(
            "No matching distribution",
            "Could not find a version",
            "ecause there",
            "PackagesNotFoundError",
            "ResolvePackageNotFound",
        ),
        explained_by=("wheels-",),
        effect="install",
        facts=("python", "os", "install"),
        packages=("{name}",),
        fixes=(
            Fix("pin", "{name}", None, "a release that has wheels here", "pip index versions {name}"),
            Fix("config", text="use a Python for which that release has wheels", command="uv venv --python 3.11"),
        ),
        evidence=("https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",),
    ),
    Symptom(
        "conflicting-requirements",
        re.compile(
            r"ResolutionImpossible|conflicting dependencies|No solution found when resolving|version solving failed|"
            r"LibMambaUnsatisfiableError|UnsatisfiableError"
        ),
        "The requirements conflict with each other",
        "The resolver found no set of releases that satisfies every requirement.",
        hints=(
            "ResolutionImpossible",
            "conflicting dependencies",
            "No solution found",
            "version solving failed",
            "UnsatisfiableError",
        ),
        effect="install",
        facts=("install",),
        fixes=(Fix("config", text="drop the pins that contradict each other and let 'compat fix FILE' choose them"),),
        evidence=(_PIP,),
    ),
    Symptom(
        "wheel-not-supported",
        re.compile(r"(?P<file>[\w.+%-]{3,200}\.whl) is not a supported wheel on this platform"),
        "{file} is built for another Python or system",
        "The tags at the end of its name give the Python, ABI and platform it supports.",
        hints=("is not a supported wheel",),
        effect="install",
        facts=("python", "platform", "os"),
        fixes=(
            Fix(
                "source-install",
                None,
                "",
                "the wheel for this Python, torch and CUDA: 'pip debug --verbose' lists the tags that fit",
            ),
        ),
        evidence=("https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",),
    ),
    Symptom(
        "build-failed",
        re.compile(
            r"(?:Failed building wheel for|Could not build wheels for|Failed to build:? [`']?|Failed to build installable "
            r"wheels for some "
            r"pyproject\.toml based projects \()\s?(?P<name>[A-Za-z][\w-]{1,60})"
        ),
        "{name} is built from source, and the build fails",
        "No wheel matches this Python, system and torch. The compiler's first error is further up in the log.",
        hints=(
            "building wheel",
            "build wheels",
            "Failed to build",
        ),
        effect="install",
        facts=("build", "python", "cuda_toolkit"),
        packages=("{name}",),
        fixes=(
            Fix(
                "pin",
                "{name}",
                None,
                "a release that has a wheel for this Python and torch",
                "pip install --only-binary :all: {name}",
            ),
            _ISOLATION,
        ),
        evidence=("https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-only-binary",),
    ),
)
