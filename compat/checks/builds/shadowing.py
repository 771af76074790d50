"""Libraries of another CUDA in front of those that torch brings."""

from __future__ import annotations

from compat.checks.builds.stack import Stack, major, numbers
from compat.model import Finding, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def judge(stack: Stack) -> Iterator[Finding]:
    """``LD_LIBRARY_PATH`` is searched before the folders a wheel names, so an older toolkit there wins."""
    if stack.facts.environment.os == "windows":
        return  # the loader of Windows does not look there
    known, value = stack.facts.variable("LD_LIBRARY_PATH")
    cuda = stack.flavour.numbered
    if not known or not value or cuda is None or stack.torch is None:
        return
    for folder in value.split(":"):
        version = _toolkit(folder, stack.facts.environment.cuda_toolkit)
        if version is None or major(version) != major(cuda) or numbers(version) >= numbers(cuda):
            continue
        yield Finding(
            rule="build-library-path",
            origin="build",
            verdict="hit",
            severity="warning",
            effect="crash",
            title=f"LD_LIBRARY_PATH puts the libraries of CUDA {version} before those of torch (CUDA {cuda})",
            why="The loader finds them first, and torch's own libraries then miss symbols of the newer release, such as "
            "undefined symbol __nvJitLinkAddData.",
            confidence="confirmed",
            packages={"torch": stack.torch.version},
            facts=("variables", "build"),
            fixes=(
                Fix(
                    kind="env-var",
                    text="torch's wheels bring their own CUDA libraries: take the folder out",
                    command="unset LD_LIBRARY_PATH",
                ),
            ),
            evidence=("https://github.com/pytorch/pytorch/issues/111469",),
            here=f"torch {stack.torch.version}, {folder}",
        )
        return


def _toolkit(folder: str, installed: str | None) -> str | None:
    """The CUDA release of a folder of libraries: by its name, or that of the toolkit where it is the usual link."""
    for part in folder.split("/"):
        if part.startswith("cuda-"):
            text = part[5:]
            return text if text.count(".") == 1 and text.replace(".", "").isdecimal() else None
    return installed if "/cuda/" in f"{folder}/" and installed and installed.count(".") == 1 else None
