"""The system: WSL, containers and the C library, read from files below a root."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.machine import system
from compat.machine.system import (
    filesystem_of,
    first_text,
    glibc,
    in_container,
    machine,
    on_path,
    path_below,
    read_system,
    system_program,
    wsl,
)

ON_DISK = "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n22 27 0:21 / /proc rw - proc proc rw\n"
LAYERED = "511 402 0:50 / / rw,relatime master:9 - overlay overlay rw,lowerdir=/a:/b\n512 511 0:53 / /proc rw - proc proc rw\n"


def written(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("5.15.167.4-microsoft-standard-WSL2\n", "wsl2"),
        ("5.10.16.3-microsoft-standard\n", "wsl2"),
        ("4.4.0-19041-Microsoft\n", "wsl1"),
        ("6.8.0-49-generic\n", None),
    ],
)
def test_wsl_is_told_by_the_kernels_name(tmp_path: Path, release: str, expected: str | None) -> None:
    written(tmp_path, "/proc/sys/kernel/osrelease", release)
    assert wsl(str(tmp_path)) == expected


def test_wsl_with_a_kernel_of_ones_own_is_told_by_the_interface_to_windows(tmp_path: Path) -> None:
    written(tmp_path, "/proc/sys/kernel/osrelease", "6.6.1-mine\n")
    written(tmp_path, "/proc/sys/fs/binfmt_misc/WSLInterop", "enabled\n")
    assert wsl(str(tmp_path)) == "wsl2"


@pytest.mark.parametrize("mark", ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"])
def test_what_an_engine_leaves_behind_marks_a_container(tmp_path: Path, mark: str) -> None:
    written(tmp_path, "/proc/self/mountinfo", ON_DISK)
    written(tmp_path, mark, "")
    assert in_container(str(tmp_path)) is True


@pytest.mark.parametrize(("mounts", "expected"), [(ON_DISK, False), (LAYERED, True), ("", None), ("rubbish\n - \n", None)])
def test_without_a_mark_the_root_file_system_tells_a_container(tmp_path: Path, mounts: str, expected: bool | None) -> None:
    written(tmp_path, "/proc/self/mountinfo", mounts)
    assert in_container(str(tmp_path)) is expected


def test_the_last_mount_on_the_root_counts() -> None:
    assert filesystem_of("/", ON_DISK + LAYERED) == "overlay"
    assert filesystem_of("/", LAYERED + ON_DISK) == "ext4"


def test_the_longest_mount_point_above_a_path_counts() -> None:
    mounts = LAYERED + "36 25 0:40 / /mnt/my\\040home rw - nfs4 server:/home rw\n"
    assert filesystem_of("/mnt/my home/venv", mounts) == "nfs4"
    assert filesystem_of("/mnt/my homes", mounts) == "overlay"


@given(st.text())
def test_any_text_may_stand_in_mountinfo(text: str) -> None:
    assert filesystem_of("/", text) is None or " - " in text


def test_the_running_system() -> None:
    found = read_system()
    assert found.os in ("linux", "windows", "darwin")
    if sys.platform == "linux":
        assert found.machine == platform.machine()
        libc, version = platform.libc_ver()
        assert found.glibc == (version if libc == "glibc" else None)


def test_another_c_library_has_no_glibc_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "confstr", unknown, raising=False)
    assert glibc() is None
    monkeypatch.setattr(os, "confstr", lambda name: None, raising=False)
    assert glibc() is None
    monkeypatch.delattr(os, "confstr")
    assert glibc() is None


def test_windows_names_its_processor_in_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.sys, "platform", "win32")
    assert machine({"PROCESSOR_ARCHITECTURE": "AMD64"}) == "x86_64"
    assert machine({"PROCESSOR_ARCHITECTURE": "x86", "PROCESSOR_ARCHITEW6432": "ARM64"}) == "arm64"
    assert machine({}) is None


def test_a_text_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"a\xff\x00b")
    assert first_text(str(tmp_path / "absent")) == ""
    assert first_text(str(tmp_path)) == ""
    assert first_text("with\0null") == ""
    assert first_text(str(tmp_path / "bytes")) == "a\ufffd\0b"
    assert first_text(str(tmp_path / "bytes"), 1) == "a"


def test_paths_below_a_root() -> None:
    assert path_below("/", "/proc/x") == "/proc/x"
    assert path_below("/fake/", "/proc/x") == "/fake/proc/x"


def test_a_program_is_looked_for_on_the_given_path_alone(tmp_path: Path) -> None:
    written(tmp_path, "/usr/local/bin/tool", "")
    assert on_path("tool", {"PATH": "/bin:/usr/local/bin"}, str(tmp_path)) is None  # not executable
    (tmp_path / "usr/local/bin/tool").chmod(0o755)
    assert on_path("tool", {"PATH": "/bin:/usr/local/bin"}, str(tmp_path)) == f"{tmp_path}/usr/local/bin/tool"
    assert on_path("tool", {"PATH": "usr/local/bin::"}, str(tmp_path)) is None
    assert on_path("tool", {}, str(tmp_path)) is None


def test_a_program_is_taken_from_the_system_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("venv/bin", "here", "usr/local/bin"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "nvidia-smi").write_text("#!/bin/sh\n")
        (tmp_path / folder / "nvidia-smi").chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", f"{tmp_path}/venv/bin:.:here")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    assert system_program("nvidia-smi", str(tmp_path)) is None
    (tmp_path / "usr/bin").mkdir()
    (tmp_path / "usr/bin/nvidia-smi").write_text("#!/bin/sh\n")
    assert system_program("nvidia-smi", str(tmp_path)) is None  # not executable
    (tmp_path / "usr/bin/nvidia-smi").chmod(0o755)
    assert system_program("nvidia-smi", str(tmp_path)) == f"{tmp_path}/usr/bin/nvidia-smi"
