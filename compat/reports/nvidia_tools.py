"""What NVIDIA's programs print: ``nvidia-smi`` (table, list, query, ``-q``), ``nvcc --version``; also sglang's list of GPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.machine.nvidia_smi import parse_list, parse_query, parse_table
from compat.model import Accelerator
from compat.reports.findings import ONE_KIND, PHYSICAL, SAID, Findings
from compat.reports.gpu_words import is_gpu, vendor_of
from compat.reports.words import Line, short_version

if TYPE_CHECKING:
    from compat.machine import Hardware


_IN_TABLE = ("|", "+-", "+=", "==", "║", "│")
_LISTED = re.compile(r"^\W{0,4}GPU \d{1,3}: (?!\d{1,3} ?[x×*])\S")  # no program counts there, people do
_INSTANCE = re.compile(r"^ +MIG \S+ +Device +\d+: ")
_GROUP = re.compile(
    r"^\W{0,4}GPU (?P<indexes>\d{1,3}(?:, ?\d{1,3}){0,63})(?P<field>:| Compute Capability:) *(?P<value>.{1,100})$"
)
_TOOLKIT = re.compile(r"Cuda compilation tools, release (\d{1,3}\.\d{1,3})")
_CELLS = re.compile(r"\d{3,7} MiB|\d{3}\.\d{1,3}\.?\d{0,3}(?:,|$)|GPU-[0-9a-f]{8}-")
_FAILED = ("NVIDIA-SMI has failed", "Driver/library version mismatch", "No devices were found")
_TOO_NEW = re.compile(r"(?P<name>NVIDIA [\w ./-]{2,60}) with CUDA capability sm_(?P<digits>\d{2,3})")
_HIGHEST = re.compile(r"ompute capability among GPUs detected: (\d{1,2}\.\d)")
_TOPOLOGY = re.compile(r"^ *GPU0(?: +GPU\d{1,3})* (?! *X\b)")


def read_nvidia(lines: Sequence[Line], found: Findings) -> None:
    """Devices, driver and toolkit; nothing is raised for a text of any kind."""
    _tables(lines, found)
    _lists(lines, found)
    _queries(lines, found)
    for line in lines:
        if "Cuda compilation tools" in line.text and (match := _TOOLKIT.search(line.text)):
            found.say("cuda_toolkit", short_version(match[1]))
            found.used.add(line.number)
        elif "capability" in line.text:
            _warning(line.text, found)
        elif "GPU0" in line.text and (match := _TOPOLOGY.match(line.text + " ")):
            found.device_counts.append(match[0].count("GPU"))
            found.used.add(line.number)
        elif line.text.startswith("CUDA Version    ") or line.text.startswith("CUDA UMD Version    "):
            found.used.add(line.number)  # nvidia-smi -q: the newest the driver supports


def _warning(text: str, found: Findings) -> None:
    """torch's warning about a GPU it has no code for, and bitsandbytes' old banner."""
    warned, highest = _TOO_NEW.search(text), _HIGHEST.search(text)
    if warned is not None and is_gpu(warned["name"]):
        digits = warned["digits"]
        one = Accelerator("nvidia", warned["name"].strip(), f"{digits[:-1]}.{digits[-1]}")
        found.accelerators([one], ONE_KIND, counted=False)
    elif highest is not None:
        found.accelerators([Accelerator("nvidia", None, highest[1])], ONE_KIND, counted=False)


def _add(found: Findings, hardware: Hardware) -> None:
    devices = tuple(each for each in hardware.accelerators or () if each.name is None or is_gpu(each.name))
    if devices or hardware.accelerators == ():
        found.accelerators(devices, PHYSICAL)
    found.say("driver", hardware.driver)
    found.say("driver_state", hardware.driver_state)
    for note in hardware.notes:
        found.note(note.rstrip("."))


def _tables(lines: Sequence[Line], found: Findings) -> None:
    """Each table from its ``NVIDIA-SMI`` line to the last line drawn with bars; one empty line may lie between its parts."""
    table: list[Line] = []
    for line in (*lines, None):
        if line is not None and "NVIDIA-SMI " in line.text and ("Version:" in line.text or "|" in line.text):
            _table(table, found)
            table = [line]
        elif table and line is not None and (line.text.lstrip().startswith(_IN_TABLE) or not line.text) and not line.edge:
            table.append(line)
        elif table:
            _table(table, found)
            table = []
        if line is not None and any(words in line.text for words in _FAILED):
            _add(found, parse_table(line.text.strip()))


def _table(table: Sequence[Line], found: Findings) -> None:
    if table:
        _add(found, parse_table("\n".join(line.text for line in table)))
        found.used.update(line.number for line in table)


def _lists(lines: Sequence[Line], found: Findings) -> None:
    """``GPU 0: NVIDIA A100 (UUID: …)`` in consecutive lines, also where collect_env puts the first behind its words."""
    block: list[str] = []
    for line in (*lines, None):
        text = _listed(line.text) if line is not None else None
        first = text is not None and "GPU 0:" in text
        if block and (text is None or first):
            _add(found, parse_list("\n".join(block)))
            block = []
        if text is not None and line is not None:
            block.append(text)
            found.used.add(line.number)
    _groups(lines, found)


def _listed(text: str) -> str | None:
    if "GPU " in text:
        inline = text.partition("GPU models and configuration")[2].lstrip(" :")
        text = inline or text
        if _LISTED.match(text) and is_gpu(text.partition(":")[2]):
            return text.strip(" -*•`")
    return text if "MIG " in text and _INSTANCE.match(text) else None


def _groups(lines: Sequence[Line], found: Findings) -> None:
    """``GPU 0,1: NVIDIA H20`` and ``GPU 0,1 Compute Capability: 9.0``, as sglang, lmdeploy and MMEngine print them."""
    names: dict[int, str] = {}
    capabilities: dict[int, str] = {}
    for line in lines:
        match = _GROUP.match(line.text) if "GPU " in line.text else None
        if match is None:
            continue
        indexes = [int(index) for index in match["indexes"].split(",")]
        value = match["value"].strip()
        if match["field"] != ":" and re.fullmatch(r"\d{1,2}\.\d", value):
            capabilities.update(dict.fromkeys(indexes, value))
            found.used.add(line.number)
        elif match["field"] == ":" and is_gpu(value):
            names.update(dict.fromkeys(indexes, value.partition(" (UUID")[0]))
            found.used.add(line.number)
    several = len(names) > 1 or capabilities
    if several and sorted(names) == list(range(len(names))):
        devices = [Accelerator(vendor_of(names[i]), names[i], capabilities.get(i)) for i in sorted(names)]
        found.accelerators(devices, PHYSICAL)


def _queries(lines: Sequence[Line], found: Findings) -> None:
    """``nvidia-smi --query-gpu=… --format=csv`` in consecutive lines; also what diffusers prints as its accelerators."""
    block: list[Line] = []
    for line in (*lines, None):
        text = line.text if line is not None else ""
        belongs = "," in text and len(text) < 300 and ((_CELLS.search(text) and is_gpu(text)) or _is_header(text))
        if block and not belongs:
            rows = "\n".join(each.text.partition("Accelerator:")[2] or each.text for each in block)
            hardware = parse_query(rows)
            if hardware.accelerators:
                _add(found, hardware)
                found.used.update(each.number for each in block)
            block = []
        if belongs and line is not None:
            block.append(line)


def _is_header(text: str) -> bool:
    return text.startswith(("name, ", "index, ", "gpu_name, ", "driver_version, ")) and "=" not in text


def say_driver(found: Findings, value: str, rank: int = SAID) -> None:
    """A driver's version ("550.54.15", "driver 550"); smaller numbers are versions of something else."""
    match = re.match(r"[^\d\n]{0,30}?(\d{3}(?:\.\d{1,3}){0,2})(?![\d.]*\d)", value)
    if match is not None:
        found.say("driver", match[1], rank)
