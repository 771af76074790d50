"""Triton compiles with the assembler (ptxas) in its wheel: it has to know the GPU, and the driver has to load its code."""

from __future__ import annotations

from compat.checks.drivers import GUIDE, driver_branch
from compat.checks.fix_commands import by_pip
from compat.checks.torch_build import Stack, device_name, name_and_code, own_build
from compat.model import Accelerator, Distribution, Finding, Fix
from compat.versions import key_of, recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_NEEDED_BY = ("vllm", "sgl-kernel", "sglang-kernel", "unsloth")
"""Packages that compile kernels with triton in normal use."""


def judge(stack: Stack) -> Iterator[Finding]:
    copy = stack.one("triton")
    if copy is not None and not own_build(copy):
        yield from _of_architecture(stack, copy)
        yield from _of_driver(stack, copy)


def _users(stack: Stack) -> dict[str, str | None]:
    """The installed packages that compile kernels, with their versions."""
    copies = ((name, stack.one(name)) for name in _NEEDED_BY)
    return {name: copy.version for name, copy in copies if copy is not None}


_BLACKWELL = 10
"""Major compute capability from which triton uses its second assembler, where a wheel has one."""
_NAMED = key_of("3.6")
"""The first release with a variable for its second assembler: shells refuse the name that 3.3 looks for, which has a hyphen."""


def _variable(stack: Stack, copy: Distribution, *, blackwell: bool) -> str | None:
    """The variable that names another assembler in place of the one used for a GPU."""
    assemblers = stack.tables.assemblers.get(recorded(copy.version or "", stack.tables.assemblers))
    if not blackwell or assemblers is None or assemblers[0] == assemblers[1]:
        return "TRITON_PTXAS_PATH"
    return "TRITON_PTXAS_BLACKWELL_PATH" if key_of(copy.version or "0") >= _NAMED else None


def _major(device: Accelerator) -> int:
    return int((device.compute_capability or "0").partition(".")[0])


def _of_architecture(stack: Stack, copy: Distribution) -> Iterator[Finding]:
    """The assembler has to support the GPU."""
    codes = stack.tables.triton.get(recorded(copy.version or "", stack.tables.triton))
    if codes is None:
        return
    for device in stack.devices:
        number = (device.compute_capability or "").replace(".", "")
        if number in codes or f"{number}a" in codes or not number.isdecimal() or int(number) < 80:
            continue
        variable = _variable(stack, copy, blackwell=_major(device) >= _BLACKWELL)
        if variable is not None and stack.facts.variable(variable)[1]:
            continue
        users = _users(stack)
        certain = bool(users) or stack.facts.feature("torch-compile") is True
        newer = [version for version, known in stack.tables.triton.items() if number in known]
        fixes = (
            [
                by_pip(
                    "upgrade",
                    "triton",
                    f">={min(newer, key=key_of)}",
                    "the first release whose ptxas supports it; it is installed with torch",
                )
            ]
            if newer
            else []
        )
        if variable is not None:
            fixes.append(
                Fix(
                    kind="env-var",
                    text="point triton at the ptxas of a CUDA toolkit that supports it",
                    command=f"export {variable}=/usr/local/cuda/bin/ptxas",
                )
            )
        name = device_name(device)
        yield Finding(
            rule="build-triton-gpu",
            origin="build",
            severity="error" if certain else "warning",
            title=f"Triton {copy.version} cannot compile for {name_and_code(device)}",
            why="Triton assembles kernels with the ptxas in its wheel, which does not support the architecture: Value "
            f"'sm_{number}a' is not defined for option 'gpu-name'.",
            packages={"triton": copy.version, **users},
            facts=("accelerators",),
            fixes=tuple(fixes),
            evidence=("https://github.com/triton-lang/triton",),
            here=f"triton {copy.version}, {name}",
        )
        return


def _of_driver(stack: Stack, copy: Distribution) -> Iterator[Finding]:
    """The driver loads code of the CUDA releases of its major version, and of older ones, whatever torch is built for."""
    branch = driver_branch(stack)
    assemblers = stack.tables.assemblers.get(recorded(copy.version or "", stack.tables.assemblers))
    if branch is None or assemblers is None or not _torch_runs(stack, branch):
        return
    newer = any(_major(each) >= _BLACKWELL for each in stack.devices)
    cuda = assemblers[newer]
    floor = stack.tables.floor(cuda)
    variable = _variable(stack, copy, blackwell=newer)
    if floor is None or branch >= floor or (variable is not None and stack.facts.variable(variable)[1]):
        return
    users = _users(stack)
    certain = "unsloth" in users or stack.facts.feature("torch-compile") is True
    major = int(cuda.partition(".")[0])
    toolkit = major - 1
    fixes = [Fix("driver", spec=f">={floor}", text=f"install a driver of branch {floor} or newer")]
    if variable is not None:
        command = f"export {variable}=/usr/local/cuda-{toolkit}/bin/ptxas"
        fixes.append(Fix("env-var", text=f"let triton use the ptxas of a CUDA {toolkit} toolkit", command=command))
    device = device_name(stack.devices[0]) if stack.devices else "the GPU"
    driver = stack.facts.environment.driver
    yield Finding(
        rule="build-triton-driver",
        origin="build",
        severity="error" if certain else "warning" if users else "info",
        title=f"Triton {copy.version} compiles kernels with CUDA {cuda}, whose code driver {driver} cannot load",
        why=f"The ptxas in its wheel is that of CUDA {cuda}, even if torch is built for an older one, and code of CUDA {major} "
        f"needs driver {floor} or newer. torch.compile and libraries with Triton kernels fail: device kernel image is invalid.",
        packages={"triton": copy.version, **users},
        facts=("driver", "accelerators"),
        fixes=tuple(fixes),
        evidence=("https://github.com/pytorch/pytorch/issues/119054", GUIDE),
        here=f"triton {copy.version}, {device}",
    )


def _torch_runs(stack: Stack, branch: int) -> bool:
    """Whether the driver is new enough for torch itself: otherwise nothing gets as far as a kernel."""
    cuda = stack.flavour.numbered
    return cuda is None or branch >= (stack.tables.floor(cuda) or 0)
