"""Commands that install drivers and CUDA toolkits on this system, with links to their documentation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compat.model import Finding, Fix
from compat.records import record, replace

_DRIVER_GUIDE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
_CUDA_GUIDE = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/"
_UBUNTU = "https://documentation.ubuntu.com/server/how-to/graphics/install-nvidia-drivers/"
_WSL = "https://docs.nvidia.com/cuda/wsl-user-guide/"
_WINDOWS = "https://www.nvidia.com/drivers/"
_TOOLKIT = re.compile(r"CUDA_HOME=/usr/local/cuda-(\d+(?:\.\d+)?)(?=\s|$)")
"""Matches a rule's fix that requires a CUDA toolkit of some release."""


@record(frozen=True)
class Host:
    """The facts that decide how a driver is installed; ``family`` and ``release`` come from /etc/os-release, "" if unknown."""

    os: str
    family: str = ""
    release: str = ""
    wsl: bool = False
    container: bool = False
    conda: bool = False


def host_of(os_name: str, os_release: str, *, wsl: bool, container: bool, conda: bool) -> Host:
    """The host for the text of /etc/os-release (os-release(5)); its family is ``ubuntu``, ``debian``, ``rhel``, or ""."""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    names = f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").split()
    family = next((name for name in names if name in ("ubuntu", "debian", "rhel", "fedora")), "")
    release = values.get("VERSION_ID", "").strip('"').partition(".")[0]
    return Host(
        os_name, "rhel" if family == "fedora" else family, release if "fedora" not in names[:1] else "", wsl, container, conda
    )


def on(host: Host, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Add commands for this host to fixes that install a driver or a toolkit, and their documentation to the evidence."""
    return tuple(_completed(host, finding) for finding in findings)


def _completed(host: Host, finding: Finding) -> Finding:
    fixes, sources = [], []
    for fix in finding.fixes:
        toolkit = _TOOLKIT.search(fix.command or fix.text)
        if fix.kind == "driver" and fix.command is None and fix.spec:
            fix, source = _driver(host, fix)
            sources.append(source)
        elif fix.kind == "config" and toolkit:
            fixes.append(fix)
            fix, source = _toolkit(host, toolkit[1])
            sources.append(source)
        fixes.append(fix)
    if not sources:
        return finding
    return replace(finding, fixes=tuple(fixes), evidence=tuple(dict.fromkeys((*finding.evidence, *sources))))


def _driver(host: Host, fix: Fix) -> tuple[Fix, str]:
    if host.wsl:
        return replace(fix, text=f"{fix.text} on Windows; no Linux driver inside WSL"), _WSL
    if host.os == "windows":
        return replace(fix, text=f"{fix.text}: {_WINDOWS}"), _WINDOWS
    if host.container:
        return replace(fix, text=f"{fix.text} on the host, not in the container"), _DRIVER_GUIDE
    if host.family == "ubuntu":
        return replace(fix, text=f"{fix.text}, then reboot", command="sudo ubuntu-drivers install"), _UBUNTU
    by_module = host.family == "rhel" and host.release in ("8", "9")
    install = "dnf module install nvidia-driver:latest-dkms" if by_module else f"{_TOOLS.get(host.family)} install cuda-drivers"
    if host.family in _TOOLS:
        fix = replace(fix, text=f"{fix.text} from {_REPOSITORY}, then reboot", command=f"sudo {install}")
    return fix, _DRIVER_GUIDE


_TOOLS = {"ubuntu": "apt-get", "debian": "apt-get", "rhel": "dnf"}
_REPOSITORY = "NVIDIA's package repository"


def _toolkit(host: Host, version: str) -> tuple[Fix, str]:
    """A fix that installs the toolkit next to existing ones, and its source; the package ``cuda`` would add a driver."""
    text = f"install the CUDA {version} toolkit"
    if host.conda:
        return Fix("config", text=text, command=f'conda install -c nvidia "cuda-toolkit={version}"'), _CUDA_GUIDE
    if host.family in _TOOLS:
        command = f"sudo {_TOOLS[host.family]} install cuda-toolkit-{version.replace('.', '-')}"
        return Fix("config", text=f"{text} from {_REPOSITORY}", command=command), _WSL if host.wsl else _CUDA_GUIDE
    return Fix("config", text=f"{text}: {_ARCHIVE}"), _ARCHIVE


_ARCHIVE = "https://developer.nvidia.com/cuda-toolkit-archive"
