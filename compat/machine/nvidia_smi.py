"""Parse the output of ``nvidia-smi`` (CSV query, table, list) into :class:`Hardware`.

The text may come from the program or be pasted by a user, so the parsers never raise: what is not recognized stays
unknown. Since R610 the table's header says "KMD Version" and "CUDA UMD Version" where it used to say
"Driver Version" and "CUDA Version".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from compat.machine.system import MISMATCHED, NOT_LOADED, Hardware, merge_hardware
from compat.model import Accelerator
from compat.records import replace

FIELDS = ("index", "name", "compute_cap", "memory.total", "driver_version", "uuid")
"""Fields queried, in this order; drivers before R510 do not support ``compute_cap``."""

_CAPABILITY = re.compile(r"\d{1,2}\.\d", re.ASCII)
_DRIVER = re.compile(r"\d{3}\.\d{1,3}(\.\d{1,3})?", re.ASCII)
_MEMORY = re.compile(r"(\d{1,9}) ?MiB", re.ASCII)
_UUID = re.compile(r"(GPU|MIG)-[0-9A-Za-z/-]+", re.ASCII)
_INDEX = re.compile(r"\d{1,2}", re.ASCII)
_BARE_MEMORY = re.compile(r"\d{4,7}", re.ASCII)
_BUS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d", re.ASCII)
_SHAPES = (
    ("memory.total", _MEMORY), ("uuid", _UUID), ("compute_cap", _CAPABILITY), ("driver_version", _DRIVER), ("index", _INDEX),
    ("memory.total", _BARE_MEMORY), ("pci.bus_id", _BUS),
)  # fmt: skip
"""The format of each field's values, for rows pasted without their header."""

_HEADER_DRIVER = re.compile(r"(?:Driver|KMD) Version: *(\d[\d.]*)", re.ASCII)
_HEADER_CUDA = re.compile(r"CUDA (?:UMD )?Version: *(\d+\.\d+)", re.ASCII)
_ROW = re.compile(
    r"\|\s*(?P<index>\d{1,3})\s+(?P<name>\S.*?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM|ERR!|Enabled|Disabled)\s*\|\s*(?:[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:|N/A)"
)
_USAGE = re.compile(r"\|\s*(?:\d+|N/A|Unknown) ?(?:MiB)?\s*/\s*(?P<total>\d{1,9}) ?MiB", re.ASCII)
_INSTANCE = re.compile(r"\|\s*(?P<gpu>\d{1,3})\s+\d+\s+\d+\s+\d+\s*\|\s*\d+ ?MiB\s*/\s*(?P<total>\d{1,9}) ?MiB", re.ASCII)
_LISTED = re.compile(r"^\W{0,4}GPU (?P<index>\d+): (?P<name>[^\n(]*?)\s*(?:\(UUID: (?P<uuid>GPU-[^\s)]+)\))?\s*$", re.ASCII)
_LISTED_INSTANCE = re.compile(r"^\s+MIG (?P<profile>\S+)\s+Device\s+\d+: \(UUID: (?P<uuid>MIG-[^\s)]+)\)", re.ASCII)
_LOST = re.compile(r"Unable to determine the device handle for (?:gpu|GPU) ?(?P<bus>[0-9A-Fa-f:.]+): *(?P<why>[^\n.]*)")
_NO_DRIVER = ("communicate with the NVIDIA driver", "NVIDIA driver is not loaded", "Driver Not Loaded")


def parse_query(text: str, fields: Sequence[str] = ()) -> Hardware:
    """Parse ``nvidia-smi --query-gpu=… --format=csv``: with its header, with columns from ``fields``, or with neither."""
    rows: list[dict[str, str]] = []
    columns = list(fields)
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        header = _header(cells)
        if header:
            columns = header
        elif columns and len(cells) == len(columns):
            rows.append(dict(zip(columns, cells, strict=True)))
        elif not columns and len(cells) > 1:
            row = _shaped(cells)
            if row:
                rows.append(row)
    notes: list[str] = []
    devices = [_queried(row, notes) for row in rows]
    found = tuple(device for device in devices if device is not None)
    return _with_messages(
        Hardware(
            accelerators=found if found else None,
            driver=next((row["driver_version"] for row in rows if _DRIVER.fullmatch(row.get("driver_version", ""))), None),
            notes=tuple(notes),
        ),
        text,
    )


def _header(cells: Sequence[str]) -> list[str] | None:
    """Return the column names (``memory.total [MiB]`` without its unit) if a line is the query's header."""
    names = [cell.partition(" [")[0] for cell in cells]
    known = ("name", "gpu_name", "compute_cap", "memory.total", "driver_version", "uuid", "index", "gpu_uuid")
    if all(re.fullmatch(r"[a-z_]+(\.[a-z_.]+)?", name) for name in names) and any(name in known for name in names):
        return [{"gpu_name": "name", "gpu_uuid": "uuid"}.get(name, name) for name in names]
    return None


def _shaped(cells: Sequence[str]) -> dict[str, str] | None:
    row: dict[str, str] = {}
    for cell in cells:
        field = next((field for field, shape in _SHAPES if field not in row and shape.fullmatch(cell)), None)
        if field is None and "name" not in row and re.search(r"[A-Za-z]{2}", cell) and not _nothing(cell):
            field = "name"
        if field is not None:
            row[field] = cell
    telling = ("compute_cap", "memory.total", "driver_version", "uuid")
    return row if "name" in row and any(field in row for field in telling) else None


def _queried(row: Mapping[str, str], notes: list[str]) -> Accelerator | None:
    name, capability = row.get("name", ""), row.get("compute_cap", "")
    if _nothing(name) and not _CAPABILITY.fullmatch(capability):
        notes.append(
            f"NVIDIA device {row.get('index', '?')} does not respond to nvidia-smi ({name or 'no name'}) and is ignored."
        )
        return None
    memory = _MEMORY.fullmatch(row.get("memory.total", "")) or re.fullmatch(r"(\d{1,9})", row.get("memory.total", ""), re.ASCII)
    uuid = row.get("uuid", "")
    return Accelerator(
        vendor="nvidia",
        name=None if _nothing(name) else name,
        compute_capability=capability if _CAPABILITY.fullmatch(capability) else None,
        memory_mib=int(memory[1]) or None if memory else None,
        extra={"uuid": uuid} if _UUID.fullmatch(uuid) else {},
    )


def _nothing(cell: str) -> bool:
    """Whether a value is empty, ``[N/A]``, ``[Unknown Error]``, ``[Not Supported]``, ``[GPU requires reset]`` or ``ERR!``."""
    return not cell or cell.startswith("[") or cell in ("N/A", "ERR!", "Unknown Error")


def parse_table(text: str) -> Hardware:
    """Parse the table ``nvidia-smi`` prints without options; names may be truncated ("NVIDIA GeForce RTX 309...")."""
    names: dict[int, str] = {}
    memory: dict[int, int] = {}
    instances: dict[int, list[int]] = {}
    notes: list[str] = []
    current: int | None = None
    for line in _short_lines(text):
        row, instance = _ROW.search(line), _INSTANCE.search(line)
        if instance:
            instances.setdefault(int(instance["gpu"]), []).append(int(instance["total"]))
        elif row:
            current = int(row["index"])
            names.setdefault(current, row["name"])
        elif "Processes:" in line or "MIG devices" in line:
            current = None
        elif current is not None and current not in memory and (usage := _USAGE.search(line)):
            memory[current] = int(usage["total"])
    found: list[Accelerator] = []
    for index, name in names.items():
        parts = instances.get(index)
        if _nothing(name):
            notes.append(f"NVIDIA device {index} does not respond to nvidia-smi ({name}) and is ignored.")
        elif parts:
            notes.append(f"NVIDIA device {index} is split by MIG into {len(parts)} instances; each process uses one of them.")
            found += [Accelerator(vendor="nvidia", name=name, memory_mib=each or None, extra={"mig": True}) for each in parts]
        else:
            found.append(Accelerator(vendor="nvidia", name=name, memory_mib=memory.get(index) or None))
    driver, cuda = _HEADER_DRIVER.search(text), _HEADER_CUDA.search(text)
    return _with_messages(
        Hardware(
            accelerators=tuple(found) if found else None,
            driver=driver[1] if driver and _DRIVER.fullmatch(driver[1]) else None,
            driver_cuda=cuda[1] if cuda else None,
            notes=tuple(notes),
        ),
        text,
    )


def _short_lines(text: str) -> list[str]:
    """Return the lines short enough for nvidia-smi (about 90 characters); the patterns take minutes on very long log lines."""
    return [line for line in text.splitlines() if len(line) < 400]


def parse_list(text: str) -> Hardware:
    """Parse ``nvidia-smi -L`` and the same lines in torch's collect_env: names, UUIDs, MIG instances."""
    devices: list[tuple[Accelerator, list[Accelerator]]] = []
    for line in _short_lines(text):
        listed, instance = _LISTED.match(line), _LISTED_INSTANCE.match(line)
        if listed and listed["name"] and not _nothing(listed["name"]):
            extra = {"uuid": listed["uuid"]} if listed["uuid"] else {}
            devices.append((Accelerator(vendor="nvidia", name=listed["name"], extra=extra), []))
        elif instance and devices:
            whole, instances = devices[-1]
            extra = {"mig": True, "uuid": instance["uuid"]}
            instances.append(Accelerator(vendor="nvidia", name=f"{whole.name} MIG {instance['profile']}", extra=extra))
    found = tuple(device for whole, instances in devices for device in (instances or [whole]))
    return _with_messages(Hardware(accelerators=found or None), text)


def _with_messages(found: Hardware, text: str) -> Hardware:
    """Add what nvidia-smi's messages report: no device, no driver, or a driver that does not match its library."""
    lost = (
        f"NVIDIA device {each['bus']} has no handle and is ignored: {each['why'].strip()}." for each in _LOST.finditer(text)
    )
    notes = [*found.notes, *lost]
    accelerators, state = found.accelerators, found.driver_state
    if accelerators is None and "No devices were found" in text:
        accelerators = ()
        notes.append("nvidia-smi found no device.")
    if "library version mismatch" in text:
        state = MISMATCHED
    elif any(words in text for words in _NO_DRIVER):
        state = NOT_LOADED
    return replace(found, accelerators=accelerators, driver_state=state, notes=tuple(notes))


def query_nvidia_smi(program: str, seconds: float = 15.0) -> Hardware:
    """Run ``nvidia-smi``: its query for the devices, then its table for the highest CUDA and missing values."""
    found = Hardware()
    for fields in (FIELDS, tuple(field for field in FIELDS if field != "compute_cap")):
        text, problem = _output([program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader"], seconds)
        if problem:
            return merge_hardware(found, Hardware(notes=(problem,)))
        found = parse_query(text, fields)
        if found.accelerators is not None or found.driver_state:
            break
    if found.driver_state:
        return found
    text, problem = _output([program], seconds)
    return merge_hardware(found, Hardware(notes=(problem,)) if problem else parse_table(text))


def _output(command: Sequence[str], seconds: float) -> tuple[str, str | None]:
    """Return the output of a command on both streams, or a message on why there is none."""
    import subprocess

    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as problem:
        return "", f"nvidia-smi cannot be started: {problem.strerror or problem}."
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()  # without waiting: with a dead GPU it may hang in the kernel, where signals have no effect
        return "", f"nvidia-smi did not respond within {seconds:g} seconds."
    return printed.decode("utf-8", "replace"), None
