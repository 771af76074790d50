"""Detect the accelerators and the driver of this machine: NVML, then nvidia-smi, then /proc; AMD through the kernel's kfd.

A machine without any is recognized by a few ``stat`` calls; NVML is loaded and nvidia-smi started only if there is a sign
of NVIDIA's driver. Nothing found inside a container means unknown, not none: an image build looks the same.
"""

from __future__ import annotations

import os
import sys

from compat.machine.system import (
    MISMATCHED,
    Hardware,
    first_text,
    in_container,
    merge_hardware,
    path_below,
    read_toolkit,
    system_program,
)
from compat.model import Accelerator
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compat.machine.nvml import Nvml

_LIBRARY = "libnvidia-ml.so.1"
_WSL_LIBRARY = "/usr/lib/wsl/lib"
_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
    "/usr/local/nvidia/lib64", "/run/opengl-driver/lib",
)  # fmt: skip
_KERNEL_DRIVER = "/proc/driver/nvidia"
_BOARD = "/proc/device-tree/model"
_NVIDIA, _AMD = "10de", "1002"
_UNASKED = ("NVML was not found", "nvidia-ml-py is not installed")
"""Prefixes of notes that matter only if no other source answered."""


def read_hardware(
    variables: Mapping[str, str], root: str = "/", *, bindings: Callable[[], Nvml | None] | None = None
) -> Hardware:
    """Read the hardware under ``root``. Other roots are for tests: NVML is then used only through ``bindings``."""
    if sys.platform == "darwin" and root == "/":
        if os.uname().machine == "arm64":
            return Hardware(accelerators=(Accelerator(vendor="apple"),))
        return Hardware(notes=("GPUs of Intel Macs are not detected.",))
    program = system_program("nvidia-smi", root)
    found = _nvidia(program, root, bindings) if program or _driver_signs(root) else Hardware()
    if os.path.exists(path_below(root, "/sys/class/kfd")):
        found = _with_amd(found, root)
    if found == Hardware():
        found = _nothing_found(root)
    toolkit, missing = read_toolkit(variables, root)
    found = replace(found, cuda_toolkit=toolkit)
    return _noted(found, missing) if missing else found


def _driver_signs(root: str) -> bool:
    """Whether there are signs of NVIDIA's driver; costs a few ``stat`` calls."""
    if os.name == "nt":
        return os.path.exists(os.path.join(os.environ.get("WINDIR", "C:/Windows"), "System32", "nvml.dll"))
    paths = ("/dev/nvidiactl", f"{_KERNEL_DRIVER}/version", "/etc/nv_tegra_release")
    if any(os.path.exists(path_below(root, path)) for path in paths):
        return True
    if os.path.exists(path_below(root, "/dev/dxg")) and os.path.exists(path_below(root, f"{_WSL_LIBRARY}/{_LIBRARY}")):
        return True
    return (
        any(os.path.lexists(path_below(root, f"{folder}/{_LIBRARY}")) for folder in _LIBRARY_FOLDERS)
        or _board(root) is not None
    )


def _nvidia(program: str | None, root: str, bindings: Callable[[], Nvml | None] | None) -> Hardware:
    found = _through_nvml(root, bindings)
    if found.accelerators is None and found.driver_state is None and program:
        from compat.machine.nvidia_smi import query_nvidia_smi

        found = merge_hardware(found, query_nvidia_smi(program))
    if found.accelerators is None:
        found = merge_hardware(found, _from_proc(root))
    board = _board(root)
    if board is not None:
        found = _named_after_board(found, board)
    if found.driver_state is not None:
        return _explained(found, root)
    if found.accelerators is not None:
        return replace(found, notes=tuple(note for note in found.notes if not note.startswith(_UNASKED)))
    return found


def _through_nvml(root: str, bindings: Callable[[], Nvml | None] | None) -> Hardware:
    from compat.machine.nvml import load, read_nvml

    if bindings is None and root != "/":
        return Hardware()
    nvml = (bindings or load)()
    return read_nvml(nvml) if nvml is not None else Hardware(notes=("nvidia-ml-py is not installed, so NVML was not used.",))


def _from_proc(root: str) -> Hardware:
    """Read version and models from the loaded kernel module; it reports neither capability nor memory."""
    driver = parse_module_version(first_text(path_below(root, f"{_KERNEL_DRIVER}/version")))
    folder = path_below(root, f"{_KERNEL_DRIVER}/gpus")
    try:
        texts = [first_text(f"{folder}/{slot}/information") for slot in sorted(os.listdir(folder))]
    except OSError:
        texts = []
    read = [(device, _field(text, "Device Minor")) for text in texts if (device := parse_information(text)) is not None]
    if read and in_container(root):
        # the kernel lists the host's devices; those without a device node are not passed to the container
        given = [(device, minor) for device, minor in read if os.path.exists(path_below(root, f"/dev/nvidia{minor or 'ctl'}"))]
        if not given:
            return Hardware(driver=driver, notes=(_not_given(f" (the host has {len(read)} × {read[0][0].name})"),))
        read = given
    return Hardware(accelerators=tuple(device for device, _ in read) or None, driver=driver)


def _not_given(why: str = "") -> str:
    return f"This container has no GPU{why}; pass --gpu for the GPUs it will run on (or --gpu none)."


def parse_module_version(text: str) -> str | None:
    """Return the driver version in ``/proc/driver/nvidia/version``, e.g. ``550.54.15``, or ``None``."""
    for word in text.partition("\n")[0].split():
        parts = word.split(".")
        if 2 <= len(parts) <= 3 and len(parts[0]) == 3 and all(part.isascii() and part.isdecimal() for part in parts):
            return word
    return None


def parse_information(text: str) -> Accelerator | None:
    """Parse a ``/proc/driver/nvidia/gpus/*/information`` file; ``None`` if the module does not report the model."""
    model, uuid = _field(text, "Model"), _field(text, "GPU UUID")
    if not model or model == "Unknown":
        return None
    return Accelerator(vendor="nvidia", name=model, extra={"uuid": uuid} if uuid.startswith("GPU-") and "?" not in uuid else {})


def _field(text: str, name: str) -> str:
    """Return the value of a line ``Name: value``; ``""`` if there is none."""
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")


def _board(root: str) -> str | None:
    """Return the name of an NVIDIA board (Jetson) from the device tree, or ``None``."""
    model = first_text(path_below(root, _BOARD), 256).strip("\0 \n")
    return model if "nvidia" in model.lower() or "jetson" in model.lower() else None


def _named_after_board(found: Hardware, board: str) -> Hardware:
    """Name the GPU of a Jetson after its board: the driver reports "Orin (nvgpu)" or nothing."""
    if not found.accelerators:
        return replace(found, accelerators=(Accelerator(vendor="nvidia", name=board),))
    renamed = (replace(each, name=board) if each.name is None or "nvgpu" in each.name else each for each in found.accelerators)
    return replace(found, accelerators=tuple(renamed))


def _explained(found: Hardware, root: str) -> Hardware:
    """Explain why an installed driver cannot be used, with its version, if known, and the fix."""
    installed = _library_version(root)
    if found.driver_state == MISMATCHED:
        versions = f"is {found.driver or 'of another version'}, its libraries are {installed or 'newer or older'}"
        return _noted(found, f"The loaded NVIDIA kernel module {versions}: reboot, or reload the module.")
    if in_container(root) and not os.path.exists(path_below(root, "/dev/nvidiactl")):
        return _noted(replace(found, driver_state=None), _not_given(", although it contains NVIDIA's libraries"))
    bus = _pci(root)
    if bus and not any(vendor == _NVIDIA for vendor, _ in bus):
        none = replace(found, accelerators=(), driver_state=None)
        return _noted(none, "The NVIDIA driver is installed, but there is no NVIDIA device on the PCI bus.")
    which = f"NVIDIA's driver {installed}" if installed else "NVIDIA's driver"
    return _noted(
        replace(found, driver=found.driver or installed),
        f"{which} is installed, but its kernel module is not loaded: no GPU can be used.",
    )


def _noted(found: Hardware, note: str) -> Hardware:
    return replace(found, notes=(*found.notes, note))


def _library_version(root: str) -> str | None:
    """Return the version in the target of the ``libnvidia-ml.so.1`` link: ``libnvidia-ml.so.550.54.15``."""
    for folder in _LIBRARY_FOLDERS:
        try:
            target = os.readlink(path_below(root, f"{folder}/{_LIBRARY}"))
        except (OSError, ValueError):
            continue
        version = parse_module_version(target.rpartition(".so.")[2])
        if version:
            return version
    return None


def _with_amd(found: Hardware, root: str) -> Hardware:
    devices = read_amd(root)
    if not devices:
        return found
    names = ", ".join(dict.fromkeys(device.name or "AMD" for device in devices))
    if found.accelerators:
        return _noted(found, f"Ignored because there are NVIDIA devices: {names}.")
    if in_container(root) and not os.path.exists(path_below(root, "/dev/kfd")):
        return _noted(found, _not_given(f" (the host has {names})"))
    return replace(found, accelerators=devices)


def _nothing_found(root: str) -> Hardware:
    """Return the result without any driver: no devices, or unknown in a container or if a GPU lacks its driver."""
    if sys.platform == "win32":
        return Hardware(notes=("No NVIDIA driver was found; GPUs of other vendors are not detected on Windows.",))
    waiting = _without_driver(root)
    container = in_container(root)
    if container:
        return Hardware(notes=(_not_given(f" (the host has {waiting})" if waiting else ""),))
    if waiting:
        return Hardware(notes=(f"Found {waiting}, but no driver for computing: install one, or pass --gpu.",))
    if container is None:
        return Hardware(
            notes=("No GPU was found, but this may be a container; pass --gpu for the GPUs it will run on (or --gpu none).",)
        )
    return Hardware(accelerators=())


def _without_driver(root: str) -> str | None:
    """Describe a GPU without a driver on the PCI bus (class 03: display, 12: processing accelerator)."""
    for vendor, place in _pci(root):
        if vendor not in (_NVIDIA, _AMD):
            continue
        kind = first_text(path_below(root, f"/sys/bus/pci/devices/{place}/class"), 16)[:4]
        if kind in ("0x03", "0x12") or (not kind and vendor == _NVIDIA):
            return "an NVIDIA GPU" if vendor == _NVIDIA else "an AMD GPU"
    return None


def _pci(root: str) -> list[tuple[str, str]]:
    """Return vendor and address ("0000:01:00.0") of every device on the PCI bus, from the one file that lists them.

    Its first column holds the bus in eight bits, the device in five and the function in three; the domain is not in it.
    """
    found = []
    for line in first_text(path_below(root, "/proc/bus/pci/devices"), 1 << 18).splitlines():
        fields = line.split(None, 2)
        try:
            place = int(fields[0], 16)
            found.append((fields[1][:4], f"0000:{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7}"))
        except (ValueError, IndexError):
            continue
    return found


# --- AMD's GPUs, from the kernel's files


_NODES = "/sys/class/kfd/kfd/topology/nodes"
_SHARED_MEMORY = (
    "gfx902", "gfx909", "gfx90c", "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103",
    "gfx1150", "gfx1151", "gfx1152", "gfx1153",
)  # fmt: skip
"""Integrated GPUs: their memory banks show a carve-out, not the memory a job can use."""
_LOCAL_HEAPS = ("1", "2")
"""``heap_type`` of memory on the device, visible and not visible to the CPU (linux/kfd_topology)."""


def read_amd(root: str = "/") -> tuple[Accelerator, ...]:
    """Return every AMD compute device, in the kernel's order; empty if there is none or the driver is not loaded."""
    folder = path_below(root, _NODES)
    try:
        nodes = sorted(os.listdir(folder), key=lambda name: (len(name), name))
    except OSError:
        return ()
    found = (_device(root, f"{folder}/{node}") for node in nodes)
    return tuple(device for device in found if device is not None)


def _device(root: str, node: str) -> Accelerator | None:
    properties = parse_properties(first_text(f"{node}/properties"))
    gfx = gfx_of(properties.get("gfx_target_version", "0"))
    if gfx is None:
        return None  # a CPU-only node
    minor = properties.get("drm_render_minor", "")
    place = path_below(root, f"/sys/class/drm/renderD{minor}/device/product_name")
    name = first_text(place, 256).strip() if minor.isdecimal() else ""
    memory = None if gfx in _SHARED_MEMORY else _memory(node)
    return Accelerator(vendor="amd", name=name or f"AMD {gfx}", gfx=gfx, memory_mib=memory)


def parse_properties(text: str) -> dict[str, str]:
    """Parse the ``name value`` lines of a topology file."""
    return {fields[0]: fields[1] for fields in map(str.split, text.splitlines()) if len(fields) == 2}


def gfx_of(target: str) -> str | None:
    """Convert ``gfx_target_version`` to LLVM's name: 90402 → gfx942, 110501 → gfx1151; ``None`` for 0 or an invalid value."""
    if not (target.isascii() and target.isdecimal() and len(target) < 10) or int(target) == 0:
        return None
    major, minor, stepping = int(target) // 10000, int(target) // 100 % 100, int(target) % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def _memory(node: str) -> int | None:
    """Return the device's own memory in MiB; ``None`` if its banks are not listed."""
    banks = f"{node}/mem_banks"
    try:
        names = os.listdir(banks)
    except OSError:
        return None
    total = 0
    for name in names:
        bank = parse_properties(first_text(f"{banks}/{name}/properties"))
        size = bank.get("size_in_bytes", "")
        if bank.get("heap_type") in _LOCAL_HEAPS and size.isascii() and size.isdecimal() and len(size) < 20:
            total += int(size)
    return total >> 20 or None
