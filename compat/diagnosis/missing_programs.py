"""Explain programs that a shell or a subprocess did not find: commands of distributions, compilers, tools of the system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from compat.diagnosis.frame_packages import inferred, version_of
from compat.model import Finding, Fix
from compat.rules.facts import ABSENT
from compat.tables.programs import installers_of

if TYPE_CHECKING:
    from compat.rules.facts import Facts


_NAME = r"(?P<name{}>[A-Za-z][\w+.-]{{1,40}})"
_SAID = (
    r"(?:^|: |/){}: (?:command )?not found\b(?!: \w)",
    r"command not found: {}",
    r"[Cc]ommand ['`\"]{}['`\"] not found",
    r"['`\"]{}['`\"] is not recognized as (?:an internal|the name of a cmdlet)",
    r"[Tt]he term '{}' is not recognized",
    r"exec: \"?{}\"?: executable file not found",
    r"\benv: [‘'`]?{}[’'`]?: No such file",
    r"No such file or directory: ['\"]{}['\"]",
    r"unable to execute ['\"]{}['\"]",
    r"error: command ['\"]{}['\"] failed: No such file",
    r"\bspawn {} ENOENT",
    r"^\s*which: no {} in ",
)
_HINTS = ("not found", "not recognized", "No such file", "unable to execute", "ENOENT", "which: no ")
_PATTERN = "|".join(each.format(_NAME.format(at)) for at, each in enumerate(_SAID))
_COMPILER = "sudo apt-get install build-essential"
_SYSTEM: Mapping[str, tuple[str, str, Fix]] = {
    **dict.fromkeys(
        ("gcc", "g++", "cc", "c++", "clang", "x86_64-linux-gnu-gcc", "x86_64-linux-gnu-g++"),
        ("a C compiler", "Builds from source need it, and so does Triton, which compiles a launcher for each kernel.",
         Fix("config", None, None, "install a compiler and its headers", _COMPILER)),
    ),
    "cl": ("the C++ compiler of Visual Studio", "Extensions for Windows are compiled with it.",
           Fix("config", None, None, "install the Visual Studio Build Tools and start from their developer prompt")),
    "make": ("make", "Builds from source need it.", Fix("config", None, None, "install make", _COMPILER)),
    "git": ("Git", "Requirements that begin with git+ are cloned with it.",
            Fix("config", None, None, "install Git, in images as well", "apt-get install -y git")),
    "git-lfs": ("Git LFS", "Weights in Git repositories are fetched with it.",
                Fix("config", None, None, "install Git LFS", "apt-get install -y git-lfs")),
    **dict.fromkeys(
        ("cargo", "rustc"),
        ("the Rust compiler", "tokenizers, safetensors and others are compiled where no wheel fits the Python and system.",
         Fix("pin", None, None, "install a release that has a wheel, or another Python")),
    ),
    "nvidia-smi": ("the NVIDIA driver", "The driver installs it; inside containers, the NVIDIA Container Toolkit provides it.",
                   Fix("driver", None, None, "install the driver, and start containers with --gpus all")),
    **dict.fromkeys(
        ("mpirun", "mpiexec", "mpicc"),
        ("an MPI implementation", "mpi4py is compiled with it, and the MPI launchers start it.",
         Fix("config", None, None, "install Open MPI", "sudo apt-get install libopenmpi-dev openmpi-bin")),
    ),
    "pdsh": ("pdsh", "The deepspeed launcher starts other nodes with it.",
             Fix("config", None, None, "install it on the node that launches", "sudo apt-get install pdsh")),
    "ffmpeg": ("FFmpeg", "Audio and video are decoded with it.",
               Fix("config", None, None, "install it", "sudo apt-get install ffmpeg")),
    **dict.fromkeys(
        ("hipcc", "rocm-smi", "rocminfo"),
        ("ROCm", "ROCm installs it into /opt/rocm/bin.", Fix("env-var", None, None, "add ROCm's programs",
         "export PATH=/opt/rocm/bin:$PATH")),
    ),
}  # fmt: skip
"""Program → what it is part of, what needs it, and how to get it."""
_SCRIPTS = Fix(
    "env-var", None, None, "add the environment's programs; sudo, cron and services reset PATH",
    '''export PATH="$(python -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$PATH"''',
)  # fmt: skip
_EVIDENCE = "https://docs.python.org/3/library/sysconfig.html#installation-paths"


def missing_programs(text: str, line: int, facts: Facts) -> list[Finding]:
    """Return a finding for each known program that a message says is missing; ``line`` is that of the message in the report."""
    if not any(hint in text for hint in _HINTS):
        return []
    where = f"the error on line {line} of the text" if line else "the text"
    names = dict.fromkeys(match[match.lastgroup or 0] for match in re.finditer(_PATTERN, text, re.MULTILINE))
    return [finding for name in names for finding in _of_program(name.removesuffix(".exe"), where, facts)]


def _of_program(name: str, where: str, facts: Facts) -> Iterator[Finding]:
    if name in _SYSTEM:
        owner, needed, fix = _SYSTEM[name]
        yield inferred(
            rule="symptom-missing-program", title=f"The program {name} is missing ({owner})", why=needed,
            packages={}, facts=("driver",) if fix.kind == "driver" else ("variables", "install"), fixes=(fix,), here=where,
        )  # fmt: skip
        return
    installers = installers_of(name)
    listed = [each for each in installers if isinstance(facts.package(each[0]), list)]
    if not installers:
        return
    package, module = (listed or installers)[0]
    state = facts.package(package)
    install = Fix("pin", package, None, f"installs {name}", f"pip install {package}")
    fixes = [] if state is ABSENT else [_SCRIPTS]
    if module and state is not ABSENT:
        text = f"does the same as {name}, with the Python that has {package}"
        fixes.insert(0, Fix("launch", None, None, text, f"python -m {module}"))
    if not listed:
        fixes.insert(0 if state is ABSENT else len(fixes), install)
    others = [each for each, _ in installers if each != package]
    yield inferred(
        rule="symptom-missing-program",
        title=f"The command {name} is not on PATH: it is installed with {package}",
        why=f"{package} puts it beside its Python. That folder is not on PATH unless the environment is active: the shell of "
        "another environment, sudo, cron, a service or a container's entry point does not see it."
        + (f" {', '.join(others)} install{'s' if len(others) == 1 else ''} a command of this name, too." if others else ""),
        packages={package: version_of(package, facts)},
        facts=("variables", "install"),
        fixes=tuple(fixes),
        evidence=(_EVIDENCE,),
        here=where,
    )
