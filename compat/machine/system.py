"""The operating system facts that wheel tags, drivers and launchers depend on, read without starting anything."""

from __future__ import annotations

import os
import sys

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SYSTEMS = {"linux": "linux", "darwin": "darwin", "win32": "windows", "cygwin": "windows"}
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_LAYERED = ("overlay", "fuse-overlayfs", "aufs")
"""Layered file systems: typical of a container's root, rare as that of a machine."""
_ON_DISK = ("ext4", "ext3", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs")


@record(frozen=True)
class System:
    """``os`` is linux, windows or darwin, ``platform`` wsl1 or wsl2 under Windows, ``None`` elsewhere.

    ``container`` is ``None`` if unknown. ``glibc`` is ``None`` with another C library.
    """

    os: str | None = None
    machine: str | None = None
    platform: str | None = None
    glibc: str | None = None
    container: bool | None = None


def read_system(root: str = "/") -> System:
    """Read the system under ``root``. Other roots are for tests; kernel and C library are always the running ones."""
    return System(
        os=_SYSTEMS.get(sys.platform),
        machine=machine(os.environ),
        platform=wsl(root),
        glibc=glibc(),
        container=in_container(root),
    )


def under(root: str, path: str) -> str:
    """Return an absolute path as seen below ``root``."""
    return path if root == "/" else root.rstrip("/") + path


def first_text(path: str, limit: int = 65536) -> str:
    """Read the start of a small text file; ``""`` if it cannot be read. Undecodable bytes are replaced."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):  # ValueError: a null byte in a path taken from a variable
        return ""


def on_path(program: str, variables: Mapping[str, str], root: str) -> str | None:
    """Find a program on ``PATH`` (of the given variables, not of this process)."""
    ending = ".exe" if os.name == "nt" else ""
    for folder in variables.get("PATH", "").split(os.pathsep):
        path = under(root, f"{folder}/{program}{ending}")
        if os.path.isabs(folder) and os.access(path, os.X_OK):
            return path
    return None


_SYSTEM_FOLDERS = (
    "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/lib/wsl/lib", "/usr/local/nvidia/bin", "/run/current-system/sw/bin",
)  # fmt: skip
"""Folders for driver programs, to which no Python environment or wheel installs."""


def system_program(program: str, root: str) -> str | None:
    """Find a system program. ``PATH`` is not used: it may include the inspected environment, which must not be run."""
    if sys.platform == "win32":
        folders: tuple[str, ...] = (f"{os.environ.get('SYSTEMROOT', 'C:/Windows')}/System32",)
        program = f"{program}.exe"
    else:
        folders = _SYSTEM_FOLDERS
    paths = (under(root, f"{folder}/{program}") for folder in folders)
    return next((path for path in paths if os.access(path, os.X_OK) and os.path.isfile(path)), None)


def machine(variables: Mapping[str, str]) -> str | None:
    """Return the processor architecture as in wheel tags: ``x86_64``, ``aarch64``, ``arm64`` on macOS."""
    if sys.platform == "win32":
        word = variables.get("PROCESSOR_ARCHITEW6432") or variables.get("PROCESSOR_ARCHITECTURE", "")
        return {"amd64": "x86_64", "arm64": "arm64", "x86": "x86"}.get(word.lower(), word.lower() or None)
    return os.uname().machine or None


def wsl(root: str = "/") -> str | None:
    """Return ``wsl2`` or ``wsl1`` if the kernel is that of WSL, else ``None``."""
    release = first_text(under(root, "/proc/sys/kernel/osrelease"), 256).lower()
    if "wsl2" in release or "microsoft-standard" in release:
        return "wsl2"
    if "microsoft" in release:
        return "wsl1"
    # a custom kernel may have another name; the interface to Windows exists all the same
    return "wsl2" if release and os.path.exists(under(root, "/proc/sys/fs/binfmt_misc/WSLInterop")) else None


def glibc() -> str | None:
    """Return the version of glibc that this process uses; ``None`` for another C library."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (
        AttributeError,
        OSError,
        ValueError,
    ):  # Windows has no confstr; musl and macOS do not support the name
        return None
    return version if name == "glibc" and version else None


def in_container(root: str = "/") -> bool | None:
    """Whether this runs in a container, by marker files of container engines or the file system of the root."""
    if any(os.path.exists(under(root, mark)) for mark in _CONTAINER_MARKS):
        return True
    kind = _root_filesystem(first_text(under(root, "/proc/self/mountinfo")))
    if kind in _LAYERED:
        return True
    return False if kind in _ON_DISK else None


def _root_filesystem(mountinfo: str) -> str | None:
    """Return the type of the last file system mounted on ``/`` (proc(5): mount point in field 5, type after ``-``)."""
    found = None
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split()
        if dash and len(fields) > 4 and fields[4] == "/" and after.split():
            found = after.split()[0]
    return found


# --- Environment variables to report: those that configure CUDA and the stack, never a secret


_PREFIXES = (
    "CUDA_", "NVIDIA_", "NCCL_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "VLLM_", "UNSLOTH_", "ACCELERATE_", "DEEPSPEED_",
    "DS_", "TRITON_", "XFORMERS_", "FLASH_ATTENTION_", "FLASHINFER_", "BNB_", "HIP_", "ROCR_", "HSA_", "CUBLAS_", "CUDNN_",
)  # fmt: skip
_NAMES = (
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "OMP_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "PYTHONPATH",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "RANK",
)
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH")
_ALWAYS = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")


def relevant(variables: Mapping[str, str], asked: Sequence[str]) -> dict[str, str | None]:
    """Return the variables to report, by name; ``None`` for unset ones that rules depend on (``asked``)."""
    found: dict[str, str | None] = {
        name: value
        for name, value in sorted(variables.items())
        if name in _NAMES or name in asked or (name.startswith(_PREFIXES) and not any(word in name for word in _SECRET))
    }
    for name in (*_ALWAYS, *asked):
        found.setdefault(name, None)
    return found
