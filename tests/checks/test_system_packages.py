"""Drivers and toolkits as each system installs them."""

from __future__ import annotations

import pytest

from compat.api.machine import Machine
from compat.checks import check_environment
from compat.checks.fix_commands import Host, host_of, with_host_commands
from compat.cli.doctor import with_system_of
from compat.model import Accelerator, Distribution, Environment, Finding, Fix
from compat.rules.compiled import open_matrix

UBUNTU = 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n'
DEBIAN = "ID=debian\nVERSION_ID=12\n"
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n'
RHEL10 = 'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="10.0"\n'
FEDORA = "ID=fedora\nVERSION_ID=42\n"
ARCH = "ID=arch\n"


def host(text: str, **more: bool) -> Host:
    return host_of(
        "linux",
        text,
        wsl=more.get("wsl", False),
        container=more.get("container", False),
        conda=more.get("conda", False),
        old=more.get("old", False),
    )


def finding(fix: Fix) -> Finding:
    return Finding(rule="r", origin="build", verdict="hit", severity="error", effect="crash", title="t", why="w",
                   confidence="confirmed", fixes=(fix,))  # fmt: skip


@pytest.mark.parametrize(
    ("here", "command", "words"),
    [
        (host(UBUNTU), "sudo ubuntu-drivers install", "reboot"),
        (host(DEBIAN), "sudo apt-get install nvidia-open", "NVIDIA's package repository"),
        (host(DEBIAN, old=True), "sudo apt-get install cuda-drivers-580", "NVIDIA's package repository"),
        (host(ROCKY), "sudo dnf module install nvidia-driver:open-dkms", "NVIDIA's package repository"),
        (host(ROCKY, old=True), "sudo dnf module install nvidia-driver:580-dkms", "NVIDIA's package repository"),
        (host(RHEL10), "sudo dnf install nvidia-open", "NVIDIA's package repository"),
        (host(RHEL10, old=True), "sudo dnf install cuda-drivers-580", "NVIDIA's package repository"),
        (host(FEDORA), "sudo dnf install nvidia-open", "NVIDIA's package repository"),
        (host(UBUNTU, wsl=True), None, "no Linux driver inside WSL"),
        (host(UBUNTU, container=True), None, "on the host, not in the container"),
        (host(ARCH), None, "install a driver"),
        (Host("windows"), None, "https://www.nvidia.com/drivers/"),
    ],
)
def test_a_driver(here: Host, command: str | None, words: str) -> None:
    (found,) = with_host_commands(here, [finding(Fix("driver", spec=">=525", text="install a driver of branch 525 or newer"))])
    (fix,) = found.fixes
    assert fix.command == command
    assert words in fix.text
    assert found.evidence[-1].startswith("https://")


@pytest.mark.parametrize(
    ("here", "command"),
    [
        (host(UBUNTU), "sudo apt-get install cuda-toolkit-12"),
        (host(UBUNTU, wsl=True), "sudo apt-get install cuda-toolkit-12"),
        (host(ROCKY), "sudo dnf install cuda-toolkit-12"),
        (host(UBUNTU, conda=True), 'conda install -c nvidia "cuda-toolkit=12"'),
        (Host("windows"), None),
    ],
)
def test_a_toolkit_comes_beside_the_setting_that_names_it(here: Host, command: str | None) -> None:
    setting = Fix("config", text="CUDA_HOME=/usr/local/cuda-12 (install a CUDA 12 toolkit and let CUDA_HOME point to it)")
    (found,) = with_host_commands(here, [finding(setting)])
    assert found.fixes[0] == setting
    assert found.fixes[1].command == command
    assert "CUDA 12 toolkit" in found.fixes[1].text
    assert len(found.evidence) == 1


@pytest.mark.parametrize("fix", [Fix("driver", text="another release"), Fix("config", text="gradient_checkpointing=True")])
def test_other_fixes_stay_what_they_are(fix: Fix) -> None:
    assert with_host_commands(host(UBUNTU), [finding(fix)]) == (finding(fix),)


@pytest.mark.parametrize(
    ("gpu", "capability", "package"),
    [("NVIDIA A100-SXM4-80GB", "8.0", "nvidia-open"), ("Tesla V100", "7.0", "cuda-drivers-580")],
)
def test_doctor_completes_what_it_finds_on_this_machine(
    monkeypatch: pytest.MonkeyPatch, gpu: str, capability: str, package: str
) -> None:
    monkeypatch.setattr("compat.machine.system.first_text", lambda path, limit=0: DEBIAN if path == "/etc/os-release" else "")
    monkeypatch.setattr("compat.machine.system.in_container", lambda root="/": False)
    environment = Environment(os="linux", driver="470.57", distributions=(Distribution("torch", "2.5.1+cu124"),),
                              accelerators=(Accelerator(vendor="nvidia", name=gpu, compute_capability=capability),))  # fmt: skip
    _, found, _ = check_environment(environment, open_matrix())
    machine = Machine(environment, "", None, running=False, interpreter=None, notes=())
    (old,) = (each for each in with_system_of(machine, found) if each.rule == "build-torch-driver")
    (driver,) = (fix for fix in old.fixes if fix.kind == "driver")
    assert driver.command == f"sudo apt-get install {package}"
