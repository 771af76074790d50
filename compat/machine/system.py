"""The system that wheel tags, drivers and launchers depend on, read without starting anything; the record of its hardware."""

from __future__ import annotations

import os
import sys

from compat.model import Accelerator
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


def path_below(root: str, path: str) -> str:
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
        path = path_below(root, f"{folder}/{program}{ending}")
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
    paths = (path_below(root, f"{folder}/{program}") for folder in folders)
    return next((path for path in paths if os.access(path, os.X_OK) and os.path.isfile(path)), None)


def machine(variables: Mapping[str, str]) -> str | None:
    """Return the processor architecture as in wheel tags: ``x86_64``, ``aarch64``, ``arm64`` on macOS."""
    if sys.platform == "win32":
        word = variables.get("PROCESSOR_ARCHITEW6432") or variables.get("PROCESSOR_ARCHITECTURE", "")
        return {"amd64": "x86_64", "arm64": "arm64", "x86": "x86"}.get(word.lower(), word.lower() or None)
    return os.uname().machine or None


def wsl(root: str = "/") -> str | None:
    """Return ``wsl2`` or ``wsl1`` if the kernel is that of WSL, else ``None``."""
    release = first_text(path_below(root, "/proc/sys/kernel/osrelease"), 256).lower()
    if "wsl2" in release or "microsoft-standard" in release:
        return "wsl2"
    if "microsoft" in release:
        return "wsl1"
    # a custom kernel may have another name; the interface to Windows exists all the same
    return "wsl2" if release and os.path.exists(path_below(root, "/proc/sys/fs/binfmt_misc/WSLInterop")) else None


def glibc() -> str | None:
    """Return the version of glibc that this process uses; ``None`` for another C library."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (AttributeError, OSError, ValueError):  # Windows has no confstr; musl and macOS do not support the name
        return None
    return version if name == "glibc" and version else None


def in_container(root: str = "/") -> bool | None:
    """Whether this runs in a container, by marker files of container engines or the file system of the root."""
    if any(os.path.exists(path_below(root, mark)) for mark in _CONTAINER_MARKS):
        return True
    kind = filesystem_of("/", first_text(path_below(root, "/proc/self/mountinfo")))
    if kind in _LAYERED:
        return True
    return False if kind in _ON_DISK else None


def filesystem_of(path: str, mountinfo: str) -> str | None:
    """Return the type of the file system of a path without links, by the longest mount point above it, the last of several.

    In a line of mountinfo (proc(5)) field 5 is the mount point, and the type comes after ``-``.
    """
    best, kind = "", None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, types = before.split(), after.split()
        if len(fields) > 4 and types:
            point = fields[4].replace("\\040", " ")
            if len(point) >= len(best) and (path == point or path.startswith(point.rstrip("/") + "/")):
                best, kind = point, types[0]
    return kind


# --- The CUDA toolkit that an extension would be built with. Only files are read; nvcc is not called.


def read_toolkit(variables: Mapping[str, str], root: str = "/") -> tuple[str | None, str | None]:
    """Return the toolkit's version ("12.4"), and a message if a variable points to a folder without one.

    Searched in torch's order: ``CUDA_HOME``, ``CUDA_PATH``, the folder of nvcc, ``/usr/local/cuda``.
    """
    for name in ("CUDA_HOME", "CUDA_PATH"):
        home = variables.get(name)
        if home:
            version = toolkit_version(path_below(root, home))
            return version, None if version else f"{name} is {home}, which has no CUDA toolkit with a version file."
    nvcc = on_path("nvcc", variables, root)
    if nvcc:
        for program in (nvcc, os.path.realpath(nvcc)):
            version = toolkit_version(os.path.dirname(os.path.dirname(program)))
            if version:
                return version, None
    return toolkit_version(path_below(root, "/usr/local/cuda")), None


def toolkit_version(folder: str) -> str | None:
    """Return major.minor of the toolkit in a folder, from its version file, its runtime header or the folder name."""
    if not os.path.isdir(folder):
        return None
    written = (
        first_text(f"{folder}/version.json")
        .partition('"cuda"')[2]
        .partition('"version"')[2]
        .partition('"')[2]
        .partition('"')[0]
        or first_text(f"{folder}/version.txt", 256).partition("CUDA Version ")[2]
    )
    for text in (written, _header_version(folder), os.path.basename(os.path.realpath(folder)).partition("cuda-")[2]):
        major, _, rest = text.strip().partition(".")
        minor = rest.partition(".")[0]
        if all(part.isascii() and part.isdecimal() and len(part) < 4 for part in (major, minor)):
            return f"{int(major)}.{int(minor)}"
    return None


def _header_version(folder: str) -> str:
    """Read ``CUDART_VERSION`` (13000 is 13.0) from ``cuda_runtime_api.h``; it is within the header's first 8 KiB."""
    for include in ("include", f"targets/{os.uname().machine if os.name == 'posix' else 'x86_64'}-linux/include"):
        number = first_text(f"{folder}/{include}/cuda_runtime_api.h", 16384).partition("#define CUDART_VERSION")[2][:16].split()
        if number and number[0].isascii() and number[0].isdecimal():
            return f"{int(number[0]) // 1000}.{int(number[0]) % 1000 // 10}"
    return ""


# --- Hardware: one record, whichever source answers (NVML, nvidia-smi or the kernel).


NOT_LOADED = "not-loaded"
MISMATCHED = "mismatched"


@record(frozen=True)
class Hardware:
    """The hardware of a machine. ``accelerators`` is ``None`` if unknown and ``()`` if there are certainly none.

    ``driver_cuda`` is the highest CUDA the driver supports ("12.4"); ``driver_state`` is ``"not-loaded"`` or
    ``"mismatched"`` if a driver is installed but cannot be used; ``notes`` are sentences for the user.
    """

    accelerators: tuple[Accelerator, ...] | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    driver_state: str | None = None
    cuda_toolkit: str | None = None
    notes: tuple[str, ...] = ()


def merge_hardware(first: Hardware, second: Hardware) -> Hardware:
    """Return the first reading with unknown fields filled from the second, and the notes of both."""
    return Hardware(
        accelerators=second.accelerators if first.accelerators is None else first.accelerators,
        driver=first.driver or second.driver,
        driver_cuda=first.driver_cuda or second.driver_cuda,
        driver_state=first.driver_state or second.driver_state,
        cuda_toolkit=first.cuda_toolkit or second.cuda_toolkit,
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


# --- Environment variables to report: those that configure CUDA and the stack, never a secret


_PREFIXES = (
    "CUDA_", "NVIDIA_", "NCCL_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "VLLM_", "UNSLOTH_", "ACCELERATE_", "DEEPSPEED_",
    "DS_", "GLOO_", "UCX_", "FI_", "OFI_",
    "TRITON_", "XFORMERS_", "FLASH_ATTENTION_", "FLASHINFER_", "BNB_", "HIP_", "ROCR_", "HSA_", "CUBLAS_", "CUDNN_",
)  # fmt: skip
_NAMES = (
    "LD_LIBRARY_PATH", "LD_PRELOAD", "OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM", "PYTHONPATH", "WORLD_SIZE", "LOCAL_RANK",
    "RANK",
)  # fmt: skip
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH")
_ALWAYS = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "HSA_OVERRIDE_GFX_VERSION")


def relevant_variables(variables: Mapping[str, str], asked: Sequence[str]) -> dict[str, str | None]:
    """Return the variables to report, by name; ``None`` for unset ones that rules depend on (``asked``)."""
    found: dict[str, str | None] = {
        name: value
        for name, value in sorted(variables.items())
        if name in _NAMES or name in asked or (name.startswith(_PREFIXES) and not any(word in name for word in _SECRET))
    }
    for name in (*_ALWAYS, *asked):
        found.setdefault(name, None)
    return found
