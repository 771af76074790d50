"""Driver compatibility with the CUDA of torch and of the toolkit: only the minimum of the CUDA major release is required."""

from __future__ import annotations

from compat.checks.builds.stack import Stack, major, numbers, torch_for
from compat.model import Finding, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_GUIDE = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"


def judge(stack: Stack) -> Iterator[Finding]:
    environment = stack.facts.environment
    branch = _branch(environment.driver)
    if branch is not None and environment.machine != "aarch64" and not _compatibility_libraries(stack):
        yield from _torch(stack, branch)
        yield from _toolkit(stack, branch)
    yield from _shadowed(stack)


def _torch(stack: Stack, branch: int) -> Iterator[Finding]:
    cuda = stack.flavour.numbered
    floor = None if cuda is None else stack.tables.floor(cuda)
    if stack.torch is None or cuda is None or floor is None or branch >= floor:
        return
    known = {build.cuda for build in stack.builds() if build.cuda}
    certain = stack.flavour.certain or all((stack.tables.floor(each) or 0) > branch for each in known)
    older = sorted((each for each in known if (stack.tables.floor(each) or 0) <= branch), reverse=True)
    release = stack.release
    fixes = [torch_for(release, each, f"the build for CUDA {each}") for each in older[:1]]
    fixes.append(Fix(kind="driver", spec=f">={floor}", text=f"install a driver of branch {floor} or newer"))
    if not older:
        fixes += _older_release(stack, branch)
    yield Finding(
        rule="build-torch-driver",
        origin="build",
        verdict="hit" if certain else "possible",
        severity="error",
        effect="crash",
        title=f"The driver is too old for this torch: CUDA {major(cuda)} needs {floor} or newer",
        why=f"torch {release} is built for CUDA {cuda}. Older drivers only work down to the minimum of each major release of "
        "CUDA. Below it, torch finds no GPU and reports that the NVIDIA driver is too old.",
        confidence="confirmed",
        packages={"torch": stack.torch.version},
        facts=("driver", "build"),
        missing=() if certain else ("build",),
        unknown=() if certain else ("build.torch",),
        fixes=tuple(fixes),
        evidence=(_GUIDE,),
        here=f"torch {stack.torch.version}, driver {stack.facts.environment.driver}",
    )


def _older_release(stack: Stack, branch: int) -> Iterator[Fix]:
    from compat.versions import key_of

    here = key_of(stack.release or "0")
    fitting = [
        release
        for release in stack.tables.torch
        if key_of(release) < here
        and any(
            build.default and build.cuda and build.machine == stack.machine and (stack.tables.floor(build.cuda) or 0) <= branch
            for build in stack.tables.torch_builds(release)
        )
    ]
    if fitting:
        newest = max(fitting, key=key_of)
        text = "the last release whose default wheel runs with this driver"
        yield Fix("downgrade", "torch", f"<={newest}", text, f'pip install "torch=={newest}"')


def _toolkit(stack: Stack, branch: int) -> Iterator[Finding]:
    """Check the driver minimum of the machine's or image's toolkit, for code compiled with it or linked to its libraries."""
    toolkit = stack.facts.environment.cuda_toolkit
    if toolkit is None or not toolkit[:1].isdecimal():
        return
    floor = stack.tables.floor(toolkit)
    if floor is None or branch >= floor:
        return
    yield Finding(
        rule="build-toolkit-driver",
        origin="build",
        verdict="hit",
        severity="warning",
        effect="crash",
        title=f"The driver is too old for the CUDA toolkit {toolkit}: it needs {floor} or newer",
        why="Programs that use the toolkit's libraries do not start if the driver is older than the minimum of that major "
        "release. In a container, the toolkit comes from the image and the driver from the host.",
        confidence="confirmed",
        facts=("driver", "cuda_toolkit"),
        fixes=(
            Fix(kind="driver", spec=f">={floor}", text=f"install a driver of branch {floor} or newer"),
            Fix(
                kind="env-var",
                text="on data-centre GPUs, use the toolkit's compatibility libraries",
                command="export LD_LIBRARY_PATH=/usr/local/cuda/compat:$LD_LIBRARY_PATH",
            ),
        ),
        evidence=(_GUIDE,),
        here=f"driver {stack.facts.environment.driver}, CUDA toolkit {toolkit}",
    )


def _compatibility_libraries(stack: Stack) -> bool:
    """Whether NVIDIA's forward-compatibility package overrides the driver's own library."""
    known, value = stack.facts.variable("LD_LIBRARY_PATH")
    return known and value is not None and "/compat" in value


def _branch(driver: str | None) -> int | None:
    first = (driver or "").partition(".")[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) < 5 else None


# --- Libraries of another CUDA release ahead of those that come with torch.


def _shadowed(stack: Stack) -> Iterator[Finding]:
    """Find an older toolkit in ``LD_LIBRARY_PATH``, which is searched before the folders of a wheel."""
    if stack.facts.environment.os == "windows":
        return  # Windows does not use LD_LIBRARY_PATH
    known, value = stack.facts.variable("LD_LIBRARY_PATH")
    cuda = stack.flavour.numbered
    if not known or not value or cuda is None or stack.torch is None:
        return
    for folder in value.split(":"):
        version = _release_in(folder, stack.facts.environment.cuda_toolkit)
        if version is None or major(version) != major(cuda) or numbers(version) >= numbers(cuda):
            continue
        yield Finding(
            rule="build-library-path",
            origin="build",
            verdict="hit",
            severity="warning",
            effect="crash",
            title=f"LD_LIBRARY_PATH puts CUDA {version} libraries ahead of torch's own (CUDA {cuda})",
            why="The loader finds them first, and torch's libraries then miss symbols of the newer release, such as undefined "
            "symbol __nvJitLinkAddData.",
            confidence="confirmed",
            packages={"torch": stack.torch.version},
            facts=("variables", "build"),
            fixes=(
                Fix(
                    kind="env-var",
                    text="torch's wheels include their own CUDA libraries: remove the folder from the path",
                    command="unset LD_LIBRARY_PATH",
                ),
            ),
            evidence=("https://github.com/pytorch/pytorch/issues/111469",),
            here=f"torch {stack.torch.version}, {folder}",
        )
        return


def _release_in(folder: str, installed: str | None) -> str | None:
    """The CUDA release of a library folder: from its name, or the toolkit's if it is the usual ``cuda`` symlink."""
    for part in folder.split("/"):
        if part.startswith("cuda-"):
            text = part[5:]
            return text if text.count(".") == 1 and text.replace(".", "").isdecimal() else None
    return installed if "/cuda/" in f"{folder}/" and installed and installed.count(".") == 1 else None
