"""Findings about the installation itself: duplicate distributions and unusable NVIDIA drivers."""

from __future__ import annotations

from compat.model import Distribution, Environment, Finding, Fix
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DUPLICATES = "https://peps.python.org/pep-0376/"
_DRIVER = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html"


def judge(environment: Environment) -> tuple[Finding, ...]:
    """Return the findings about duplicate or shadowed distributions and about the driver."""
    return (*_twice(environment), *_shadowed(environment), *_driver(environment))


def _twice(environment: Environment) -> Iterator[Finding]:
    """Two versions in one folder, as after an interrupted upgrade; the remaining files decide which one is imported."""
    copies: dict[str, list[Distribution]] = {}
    for distribution in environment.distributions or ():
        if distribution.marker is None and distribution.version and is_version(distribution.version):
            copies.setdefault(distribution.name, []).append(distribution)
    for name, found in copies.items():
        versions = sorted({copy.version for copy in found if copy.version}, key=key_of)
        if len(versions) < 2:
            continue
        newest = next((version for version in reversed(versions) if ".dev" not in version), versions[-1])
        wanted = f"{name}=={newest}"
        yield Finding(
            rule="installed-twice", origin="metadata", verdict="hit", severity="warning", effect="install",
            title=f"{name} is installed twice: {' and '.join(versions)}",
            why="An upgrade was interrupted, or two tools installed over each other. The files of both versions are mixed, "
            "and no version check can be trusted.",
            confidence="confirmed", packages={name: " and ".join(versions)}, facts=("install",),
            fixes=(Fix(kind="pin", package=name, spec=f"=={newest}", text="remove both copies, then install one",
                       command=f'pip uninstall -y {name}; pip uninstall -y {name}; pip install "{wanted}"'),),
            evidence=(_DUPLICATES,), here=f"{name} {', '.join(versions)}",
        )  # fmt: skip


def _shadowed(environment: Environment) -> Iterator[Finding]:
    for distribution in environment.distributions or ():
        hidden = distribution.source.details.get("shadows") if distribution.source else None
        if not hidden:
            continue
        others = ", ".join(f"{each.get('version')} in {each.get('path')}" for each in hidden)
        yield Finding(
            rule="installed-shadowed", origin="metadata", verdict="hit", severity="info", effect="install",
            title=f"{distribution.name} {distribution.version} hides another copy: {others}",
            why="Python imports the first copy on its path. A tool that looks elsewhere reports the other version.",
            confidence="confirmed", packages={distribution.name: distribution.version}, facts=("install",),
            fixes=(Fix(kind="uninstall", package=distribution.name, text="remove the copy you do not want",
                       command=f"pip uninstall {distribution.name}"),),
            evidence=(_DUPLICATES,), here=f"{distribution.name} {distribution.version}",
        )  # fmt: skip


def _driver(environment: Environment) -> Iterator[Finding]:
    state, version = environment.driver_state, environment.driver or "of unknown version"
    if state == "mismatched":
        yield Finding(
            rule="driver-mismatched", origin="build", verdict="hit", severity="error", effect="crash",
            title="The NVIDIA driver library and its kernel module have different versions",
            why="The driver was updated while the old kernel module was loaded. Every CUDA call fails until it is reloaded.",
            confidence="confirmed", facts=("driver",),
            fixes=(Fix(kind="driver", text="reboot, or unload and load the nvidia kernel modules", command="sudo reboot"),),
            evidence=(_DRIVER,), here=f"driver {version}",
        )  # fmt: skip
    elif state == "not-loaded":
        yield Finding(
            rule="driver-not-loaded", origin="build", verdict="hit", severity="error", effect="crash",
            title="An NVIDIA driver is installed but not loaded: no GPU can be used",
            why="The driver library is installed, but its kernel module is not loaded (a kernel update without the module, "
                "Secure Boot, or a container started without the device).",
            confidence="confirmed", facts=("driver",),
            fixes=(Fix(kind="driver", text="load the kernel module; in a container, pass the GPUs in (--gpus all)",
                       command="sudo modprobe nvidia && nvidia-smi"),),
            evidence=(_DRIVER,), here=f"driver {version}",
        )  # fmt: skip
