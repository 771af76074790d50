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
        "build-without-torch",
        re.compile(
            r"Unable to pre-compile ops without torch installed"
            r"|[Pp]lease install torch before (?:installing|attempting|building)"
            r"|[Tt]orch (?:is|must be) (?:required|installed) (?:to|before) (?:build|install|compil)"
        ),
        "{package} imports torch while it is built, and the build environment has none",
        "Installers build in an empty environment with what the project declares, and torch is not declared. It does not help "
        "that torch is installed.",
        hints=("without torch installed", "install torch before", "orch is required to", "orch must be installed"),
        effect="install",
        facts=("build", "install"),
        fixes=(
            Fix(
                "source-install",
                "{package}",
                "",
                "install torch first, and build against it",
                "pip install --no-build-isolation {package}",
            ),
            Fix("config", text="build against the torch that is installed: pip install --no-build-isolation"),
        ),
        evidence=("https://pip.pypa.io/en/stable/reference/build-system/#build-isolation",),
    ),
    Symptom(
        "cmake-4",
        re.compile(r"Compatibility with CMake < 3\.5 has been removed from CMake"),
        "CMake 4 does not configure a project that asks for CMake before 3.5",
        "CMake 4.0 removed the behavior of CMake before 3.5. The package's build files are older; a newer release of it, or an "
        "older CMake, builds.",
        hints=("Compatibility with CMake",),
        effect="install",
        facts=("build", "variables"),
        fixes=(
            Fix("env-var", text="let CMake treat it as a newer project", command="export CMAKE_POLICY_VERSION_MINIMUM=3.5"),
            Fix("config", text="build with an older CMake", command='pip install "cmake<4"'),
        ),
        evidence=("https://cmake.org/cmake/help/latest/release/4.0.html",),
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
