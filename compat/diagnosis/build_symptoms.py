"""Messages of compilers, installers and resolvers that say themselves what is wrong.

Each row has the literals of which its message contains one; the groups of its pattern are values that its texts name.
"""

from __future__ import annotations

import re

from compat.diagnosis.symptom_table import Symptom
from compat.model import Fix

_GPU = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility"
_NVCC = "https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#gpu-feature-list"
_CONTAINER = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"
_EXTENSION = "https://pytorch.org/docs/stable/cpp_extension.html"
_PIP = "https://pip.pypa.io/en/stable/topics/dependency-resolution/"

_NEW_DRIVER = Fix("driver", text="install a newer driver on the machine (the host, not the container)")
_ISOLATION = Fix("config", text="build against the torch that is installed", command="pip install --no-build-isolation {name}")
_MARKER = r"\{[^{}]{0,200}\}"  # uv writes it behind a name
_ISOLATION_ANY = Fix("config", text="build against the torch that is installed: pip install --no-build-isolation")
_V = r"[\w.!+*-]{1,40}"


def _s(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


BUILD_SYMPTOMS = (
    Symptom(
        "nvcc-architecture",
        _s(r"Unsupported gpu architecture '(?P<code>compute_\d{2,3}[af]?)'"),
        "This nvcc cannot compile for {code}",
        "The CUDA toolkit is older than the GPU, or so new that it dropped an old one.",
        hints=("Unsupported gpu architecture",),
        effect="install",
        facts=("cuda_toolkit", "accelerators", "variables"),
        fixes=(
            Fix("config", text="install a CUDA toolkit that knows the architecture (12.8 for compute_100 and compute_120)"),
            Fix(
                "env-var",
                text="compile only for architectures that this toolkit knows",
                command='export TORCH_CUDA_ARCH_LIST="8.0;9.0+PTX"',
            ),
        ),
        evidence=(_NVCC,),
    ),
    Symptom(
        "cuda-mismatch",
        _s(
            r"detected CUDA version \((?P<toolkit>[\d.]{1,10})\) mismatches the version that was used to "
            r"compile\s{1,20}PyTorch \((?P<torch>[\d.]{1,10})\)"
        ),
        "nvcc is of CUDA {toolkit}, and torch is built for CUDA {torch}",
        "An extension of torch is compiled with the nvcc that CUDA_HOME or PATH names, and both must be of one major release.",
        hints=("mismatches the version that was used to compile",),
        effect="install",
        facts=("cuda_toolkit", "build", "variables"),
        packages=("torch",),
        fixes=(
            Fix("env-var", text="use the toolkit that fits torch", command="export CUDA_HOME=/usr/local/cuda-{torch}"),
            Fix("source-install", "torch", "", "the build of torch for this toolkit, from torch's own index"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "no-nvcc",
        _s(
            r"CUDA_HOME environment variable is not set|nvcc was not found|nvcc: (?:command )?not found|No such file or "
            r"directory: '[^'\n]{0,200}/bin/nvcc'"
        ),
        "A package is compiled here, and there is no CUDA toolkit",
        "No wheel fits this torch, Python and system, so that the package is built from source, which needs nvcc.",
        hints=(
            "CUDA_HOME environment variable",
            "nvcc",
        ),
        effect="install",
        facts=("cuda_toolkit", "variables", "build"),
        fixes=(
            Fix("pin", None, None, "install a release that has a wheel for this torch and Python"),
            Fix("env-var", text="name the toolkit", command="export CUDA_HOME=/usr/local/cuda"),
            Fix("config", text="start from an image with the toolkit (-devel)"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "gcc-too-new",
        _s(r"unsupported GNU version! gcc versions later than (?P<most>\d{1,2}) are not supported"),
        "This CUDA toolkit takes gcc up to {most} only",
        "nvcc compiles host code with the system's gcc and refuses one that is newer than itself.",
        hints=("unsupported GNU version",),
        effect="install",
        facts=("cuda_toolkit", "platform"),
        fixes=(
            Fix(
                "env-var", text="compile with an older gcc", command="export CC=gcc-{most} CXX=g++-{most} NVCC_CCBIN=g++-{most}"
            ),
            Fix("config", text="install a newer CUDA toolkit"),
        ),
        evidence=("https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy",),
    ),
    Symptom(
        "no-msvc",
        _s(r"Microsoft Visual C\+\+ (?P<least>\d{2}\.\d) or greater is required"),
        "A package is compiled here, and there is no Visual C++",
        "No wheel for Windows and this Python exists, so that the package is built from source.",
        hints=("Microsoft Visual C++",),
        effect="install",
        facts=("os", "platform"),
        fixes=(
            Fix("pin", None, None, "install a release that has a wheel for Windows and this Python"),
            Fix("config", text="install the Build Tools for Visual Studio"),
        ),
        evidence=("https://wiki.python.org/moin/WindowsCompilers",),
    ),
    Symptom(
        "build-failed",
        _s(
            r"(?:Failed building wheel for|Could not build wheels for|Failed to build:? [`']?|Failed to build installable "
            r"wheels for some "
            r"pyproject\.toml based projects \()\s?(?P<name>[A-Za-z][\w-]{1,60})"
        ),
        "{name} is built from source here, and its build fails",
        "No wheel fits this Python, system and torch. The compiler's first error stands above.",
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
    Symptom(
        "no-such-release",
        _s(
            rf"(?:No matching distribution found for|Could not find a version that satisfies the requirement) "
            rf"(?P<name>[A-Za-z][\w-]{{1,60}})(?:\[[\w,-]{{1,60}}\])?(?P<spec>(?:[<>=!~]=|[<>]){_V})?"
            rf"|[Bb]ecause there (?:is|are) no versions? of (?P<name_2>[A-Za-z][\w-]{{1,60}})(?:{_MARKER})?"
            rf"(?P<spec_2>(?:[<>=!~]=|[<>]){_V})?"
            rf"|(?:PackagesNotFoundError|ResolvePackageNotFound): .{{0,120}}\s{{1,20}}- (?P<name_3>[A-Za-z][\w-]{{1,60}})"
            rf"(?P<spec_3>(?:[<>=!~]=|[<>=]){_V})?"
        ),
        "No release {name}{spec} fits this Python and system",
        "The index has none with that number, or none with a wheel for this Python, machine and system. Old releases have no "
        "wheels for a new Python, and builds for one CUDA (+cu124) lie on torch's own index.",
        hints=(
            "No matching distribution",
            "Could not find a version",
            "ecause there",
            "PackagesNotFoundError",
            "ResolvePackageNotFound",
        ),
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
        _s(
            r"ResolutionImpossible|conflicting dependencies|No solution found when resolving|version solving failed|"
            r"LibMambaUnsatisfiableError|UnsatisfiableError"
        ),
        "What is asked for cannot be installed together",
        "The resolver found no set of releases that meets every requirement.",
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
        _s(r"(?P<file>[\w.+%-]{3,200}\.whl) is not a supported wheel on this platform"),
        "{file} is made for another Python or system",
        "The tags at the end of its name say for which Python, ABI and platform it is.",
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
        "cuda-headers",
        _s(
            r"fatal error: (?P<header>(?:cu\w{1,40}|nccl|nv\w{1,40}|thrust/\w{1,40}|cub/\w{1,40})\.(?:h|hpp|cuh)): No such file"
        ),
        "{header} is missing: the CUDA toolkit is not there as a whole",
        "A package is compiled here. nvcc alone, as conda and pip ship it, comes without the headers of the CUDA libraries.",
        hints=("No such file",),
        effect="install",
        facts=("cuda_toolkit", "variables"),
        fixes=(
            Fix("config", text="install the whole toolkit, or start from an image with it (-devel)"),
            Fix(
                "config",
                text="with conda, the development packages",
                command="conda install -c nvidia cuda-libraries-dev cuda-cudart-dev",
            ),
            Fix("pin", None, None, "install a release that has a wheel for this torch and Python"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "compiler-too-old",
        _s(
            r"current installed version of (?P<what>[\w+]{1,10}) \((?P<found>[\d.]{1,12})\) is less than the minimum required "
            r"version(?: by CUDA [\d.]{1,6} \((?P<least>[\d.]{1,8})\))?"
            r"|You need C\+\+(?P<standard>\d\d) to compile PyTorch"
            r"|C\+\+ versions less than (?P<standard_2>\d{4}) are not supported"
        ),
        "The compiler is too old for this torch and CUDA",
        "A package is compiled here, and torch's headers or nvcc ask for a newer g++ or C++ standard than it is compiled with.",
        hints=("minimum required version", "to compile PyTorch", "versions less than"),
        effect="install",
        facts=("cuda_toolkit", "platform", "install"),
        packages=(),
        else_packages=("torch",),
        fixes=(
            Fix("config", text="install a newer compiler", command="conda install -c conda-forge gxx_linux-64"),
            Fix("pin", None, None, "install a release that has a wheel for this torch and Python"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "no-rust",
        _s(
            r"can't find Rust compiler|Rust not found, installing into a temporary directory|requires Rust \d"
            r"|Cargo, the Rust package manager, is not installed|error\[E0\d{3}\]: "
        ),
        "A package is compiled here with Rust, which is missing or does not fit",
        "No wheel of it fits this Python and system, so that it is built from source; old releases have no wheels for new "
        "Pythons.",
        hints=("Rust", "error[E0"),
        effect="install",
        facts=("python", "platform", "install"),
        fixes=(
            Fix("pin", None, None, "install a release that has a wheel for this Python"),
            Fix("config", text="use a Python for which that release has wheels", command="uv venv --python 3.11"),
        ),
        evidence=("https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",),
    ),
    Symptom(
        "compiler-failed",
        _s(r"error: command '[^'\n]{0,200}?(?P<what>gcc|g\+\+|cc|c\+\+|nvcc|cl\.exe|ninja|cmake)(?:-\d{1,2})?' failed"),
        "A package is built from source here, and {what} fails",
        "No wheel fits this Python, system and torch. The compiler's first error stands above.",
        hints=("error: command ",),
        effect="install",
        facts=("build", "python", "cuda_toolkit"),
        fixes=(Fix("pin", None, None, "install a release that has a wheel for this Python and torch"), _ISOLATION_ANY),
        evidence=("https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-only-binary",),
    ),
)
