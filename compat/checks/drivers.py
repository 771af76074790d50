"""Whether NVIDIA's driver runs the CUDA of torch and of the toolkit: only the minimum of a CUDA major release is required."""

from __future__ import annotations

from compat.checks.torch_build import Stack, image_of, major_version, torch_for, version_tuple
from compat.model import Finding, Fix
from compat.tables.hardware import has_numbered_driver
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


GUIDE = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"


def judge(stack: Stack) -> Iterator[Finding]:
    """Yield findings about a driver that is too old, and about CUDA libraries that hide those of torch."""
    branch = driver_branch(stack)
    if branch is not None:
        yield from _torch(stack, branch)
        yield from _toolkit(stack, branch)
    yield from _shadowed(stack)


def driver_branch(stack: Stack) -> int | None:
    """Return the branch of NVIDIA's driver, such as 570; ``None`` if it is unknown or not the one that programs load."""
    environment = stack.facts.environment
    branch = (environment.driver or "").partition(".")[0]
    # NVIDIA's forward-compatibility package overrides the driver's own library
    compatible = "/compat" in (stack.facts.variable("LD_LIBRARY_PATH")[1] or "")
    numbered = branch.isascii() and branch.isdecimal() and len(branch) < 5 and has_numbered_driver(environment)
    return int(branch) if numbered and not compatible else None


_FORWARD = " On data-center GPUs, the forward-compatibility libraries of the image may help."


def of_consumers(stack: Stack) -> bool:
    """Whether all GPUs are consumer cards, on which forward compatibility fails with error 804."""
    if not stack.devices:
        return False
    from compat.machine.gpu_names import lookup
    from compat.tables.hardware import open_gpus

    found = [lookup(open_gpus(), each.name or "").names for each in stack.devices]
    return all(names and all(name.startswith(("GeForce", "NVIDIA TITAN", "TITAN")) for name in names) for names in found)


def _torch(stack: Stack, branch: int) -> Iterator[Finding]:
    cuda = stack.flavour.numbered
    floor = None if cuda is None else stack.tables.floor(cuda)
    if stack.torch is None or cuda is None or floor is None or branch >= floor:
        return
    known = {build.cuda for build in stack.builds() if build.cuda}
    certain = stack.flavour.certain or all((stack.tables.floor(each) or 0) > branch for each in known)
    # an image may contain NVIDIA's forward-compatibility libraries, which work on data-center GPUs only
    rescued = bool(image_of(stack.torch)) and not of_consumers(stack)
    missing = () if certain and not rescued else ("accelerators",) if certain and not stack.devices else ("build",)
    certain = not missing
    older = sorted((each for each in known if (stack.tables.floor(each) or 0) <= branch), reverse=True)
    release = stack.release
    fixes = [torch_for(release, each, f"the build for CUDA {each}", stack.beside()) for each in older[:1]]
    fixes.append(Fix(kind="driver", spec=f">={floor}", text=f"install a driver of branch {floor} or newer"))
    if not older:
        fixes += _older_release(stack, branch)
    yield Finding(
        rule="build-torch-driver",
        origin="build",
        verdict="hit" if certain else "possible",
        title=f"The driver is too old for this torch: CUDA {major_version(cuda)} needs {floor} or newer",
        why=f"torch {release} is built for CUDA {cuda}. Older drivers only work down to the minimum of each major release of "
        "CUDA. Below it, torch finds no GPU and reports that the NVIDIA driver is too old." + (_FORWARD if rescued else ""),
        packages={"torch": stack.torch.version},
        facts=("driver", "build"),
        missing=missing,
        unknown=("container",) if rescued else ("build.torch",) if missing else (),
        fixes=tuple(fixes),
        evidence=(GUIDE,),
        here=f"torch {stack.torch.version}, driver {stack.facts.environment.driver}",
    )


def _older_release(stack: Stack, branch: int) -> Iterator[Fix]:
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
        severity="warning",
        title=f"The driver is too old for the CUDA toolkit {toolkit}: it needs {floor} or newer",
        why="Programs that use the toolkit's libraries do not start if the driver is older than the minimum of that major "
        "release. In a container, the toolkit comes from the image and the driver from the host.",
        facts=("driver", "cuda_toolkit"),
        fixes=(
            Fix(kind="driver", spec=f">={floor}", text=f"install a driver of branch {floor} or newer"),
            Fix(
                kind="env-var",
                text="on data-center GPUs, use the toolkit's compatibility libraries",
                command="export LD_LIBRARY_PATH=/usr/local/cuda/compat:$LD_LIBRARY_PATH",
            ),
        ),
        evidence=(GUIDE,),
        here=f"driver {stack.facts.environment.driver}, CUDA toolkit {toolkit}",
    )


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
        if version is None or major_version(version) != major_version(cuda) or version_tuple(version) >= version_tuple(cuda):
            continue
        yield Finding(
            rule="build-library-path",
            origin="build",
            severity="warning",
            title=f"LD_LIBRARY_PATH puts CUDA {version} libraries ahead of torch's own (CUDA {cuda})",
            why="The loader finds them first, and torch's libraries then miss symbols of the newer release, such as undefined "
            "symbol __nvJitLinkAddData.",
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
