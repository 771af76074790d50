"""Output of programs: ``nvidia-smi``, ``nvcc``, ``rocminfo``, llama.cpp and unsloth's banner; accelerate's configuration."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from compat.machine.nvidia_smi import parse_list, parse_query, parse_table
from compat.machine.system import Hardware
from compat.model import Accelerator
from compat.records import record, replace
from compat.reports.findings import ONE_KIND, PHYSICAL, SAID, VISIBLE, Findings
from compat.reports.lines import Line
from compat.reports.words import MOST_DEVICES, device, is_gpu, short_version, vendor_of, version_at
from compat.workload.draft import UNKNOWN, parse_count
from compat.workload.launch_config import LaunchConfig

# --- NVIDIA's: nvidia-smi (table, list, query, -q), nvcc --version; also sglang's list of GPUs


_IN_TABLE = ("|", "+-", "+=", "==", "║", "│")
_LISTED = re.compile(r"^\W{0,4}GPU \d{1,3}: (?!\d{1,3} ?[x×*])\S")  # no program prints a count there, but users write one
_INSTANCE = re.compile(r"^ +MIG \S+ +Device +\d+: ")
_GROUP = re.compile(
    r"^\W{0,4}GPU (?P<indexes>\d{1,3}(?:, ?\d{1,3}){0,63})(?P<field>:| Compute Capability:) *(?P<value>.{1,100})$"
)
_NVCC = re.compile(r"Cuda compilation tools, release (\d{1,3}\.\d{1,3})")
_CELLS = re.compile(r"\d{3,7} MiB|\d{3}\.\d{1,3}\.?\d{0,3}(?:,|$)|GPU-[0-9a-f]{8}-")
_FAILED = ("NVIDIA-SMI has failed", "Driver/library version mismatch", "No devices were found")
_TOO_NEW = re.compile(r"(?P<name>NVIDIA [\w ./-]{2,60}) with CUDA capability sm_(?P<digits>\d{2,3})")
_HIGHEST = re.compile(r"ompute capability among GPUs detected: (\d{1,2}\.\d)")
_TOPOLOGY = re.compile(r"^ *GPU0(?: +GPU\d{1,3})* (?! *X\b)")


def read_nvidia(lines: Sequence[Line], found: Findings) -> None:
    """Record devices, driver and toolkit."""
    _tables(lines, found)
    _lists(lines, found)
    _queries(lines, found)
    for line in lines:
        if "Cuda compilation tools" in line.text and (match := _NVCC.search(line.text)):
            found.record("cuda_toolkit", short_version(match[1]))
            found.used.add(line.number)
        elif "capability" in line.text:
            # read torch's warning about an unsupported GPU, and the old banner of bitsandbytes
            warned, highest = _TOO_NEW.search(line.text), _HIGHEST.search(line.text)
            if warned is not None and is_gpu(warned["name"]):
                digits = warned["digits"]
                one = Accelerator("nvidia", warned["name"].strip(), f"{digits[:-1]}.{digits[-1]}")
                found.accelerators([one], ONE_KIND, counted=False)
            elif highest is not None:
                found.accelerators([Accelerator("nvidia", None, highest[1])], ONE_KIND, counted=False)
        elif "GPU0" in line.text and (match := _TOPOLOGY.match(line.text + " ")):
            found.device_counts.append(match[0].count("GPU"))
            found.used.add(line.number)
        elif line.text.startswith("CUDA Version    ") or line.text.startswith("CUDA UMD Version    "):
            found.used.add(line.number)  # nvidia-smi -q: the newest the driver supports


def _add(found: Findings, hardware: Hardware) -> None:
    devices = tuple(each for each in hardware.accelerators or () if each.name is None or is_gpu(each.name))
    if devices or hardware.accelerators == ():
        found.accelerators(devices, PHYSICAL)
    found.record("driver", hardware.driver)
    found.record("driver_state", hardware.driver_state)
    for note in hardware.notes:
        found.note(note.rstrip("."))


def _tables(lines: Sequence[Line], found: Findings) -> None:
    """Read tables, each from its ``NVIDIA-SMI`` line to the last line with bars; empty lines may separate its parts."""
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
    """``GPU 0: NVIDIA A100 (UUID: …)`` in consecutive lines, of which collect_env prints the first after its own words."""
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
    """Read ``GPU 0,1: NVIDIA H20`` and ``GPU 0,1 Compute Capability: 9.0``, as sglang, lmdeploy and MMEngine print them."""
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
    """Read ``nvidia-smi --query-gpu=… --format=csv`` in consecutive lines, and diffusers' list of accelerators."""
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


# --- unsloth's banner when it loads a model; its "CUDA" is the compute capability, its "Toolkit" is torch's CUDA


_BUILT_IN = re.compile(r"\b(Unsloth|Transformers|vLLM|Torch|Pytorch|Triton|Xformers) ?[:=]? ?(v?\d[\w.!+-]{0,60})")
_RELEASE = re.compile(r"Unsloth: Fast \w{2,30} patching release (\d{4}\.\d{1,2}(?:\.\d{1,2})?)")
_GPU = re.compile(r"(?:/\|\s{1,20}|^\s{0,20}|GPU: ?)(?:GPU: ?)?(?P<name>[A-Za-z][^.:=]{2,60}?)\. (?:Num GPUs|Max memory)")
_NUMBER = re.compile(r"Num GPUs ?[:=] ?(\d{1,4})")
_MEMORY = re.compile(r"Max memory ?[:=] ?(\d{1,4}(?:\.\d{1,3})?) ?GB")
_CAPABILITY = re.compile(r"\bCUDA(?: Compute)? ?[:=] ?(\d{1,2}\.\d)\.")
_TOOLKIT = re.compile(r"\b(CUDA|ROCm) Toolkit ?[:=] ?(\d{1,2}\.\d{1,3})")
_PLATFORM = re.compile(r"Platform ?[:=] ?(Linux|Windows|Darwin)")
_NAMES = {"pytorch": "torch"}
_START = re.compile(r"==\(\(====\)\)==|\bUnsloth(?: \d{4}\.[\d.]{1,10})?: Fast \w{2,30} patching")
"""The first line of the banner, with its drawing or without."""
_BANNER = 5  # lines


def read_banner(lines: Sequence[Line], found: Findings) -> None:
    """Record versions, the GPU, its capability, and the number of visible GPUs."""
    last, seen = -1, set()
    for position, line in enumerate(lines):
        if position >= last and _START.search(line.text) is not None:
            text = "\n".join(each.text for each in lines[position : position + _BANNER])
            found.used.update(each.number for each in lines[position : position + _BANNER])
            last = position + _BANNER
            if text not in seen:  # every process prints the banner
                seen.add(text)
                _banner(text, found)
        elif position >= last and "O^O/" in line.text and "Torch" in line.text:
            _banner(line.text, found)


def _banner(text: str, found: Findings) -> None:
    for match in _BUILT_IN.finditer(text):
        name = match[1].lower()
        found.package(_NAMES.get(name, name), version_at(match[2]), SAID)
    if (release := _RELEASE.search(text)) is not None:
        found.package("unsloth", release[1], SAID)
    toolkit, capability = _TOOLKIT.search(text), _CAPABILITY.search(text)
    if toolkit is not None:
        found.package("torch", None, SAID, None, {toolkit[1].lower(): short_version(toolkit[2])})
    platform = _PLATFORM.search(text)
    if platform is not None:
        found.record("os", platform[1].lower())
    name = next((each["name"].strip() for each in _GPU.finditer(text) if is_gpu(each["name"])), None)
    if name is None:
        return
    number, memory = _NUMBER.search(text), _MEMORY.search(text)
    one = device(name, round(float(memory[1]) * 1024) if memory else None, capability[1] if capability else None)
    found.accelerators([one] * min(int(number[1]), MOST_DEVICES) if number else [one], VISIBLE, counted=number is not None)


# --- accelerate's configuration, in the output of `accelerate env`, `trl env` and others, or as its file


_KEY = re.compile(r"(?P<indent>[\s|]{0,40})(?:[-*] )?(?P<key>[a-z][a-z0-9_]{2,50}):(?: +(?P<value>.*))?$")
_TABLES = ("deepspeed_config", "fsdp_config", "dynamo_config")
_LITERAL = 4000  # characters of a table written in one line
_DEEPEST = 12


def read_accelerate(lines: Sequence[Line], found: Findings) -> None:
    """Record the workload of every configuration: launcher, processes, precision, and kind of distribution."""
    block: list[_Entry] = []
    for line in (*lines, None):
        match = _KEY.match(line.text) if line is not None and ":" in line.text[:100] else None
        if match is None or line is None:
            _configuration(block, found)
            block = []
        else:
            block.append(_Entry(line.number, len(match["indent"]), match["key"], (match["value"] or "").strip()))


@record(frozen=True)
class _Entry:
    """A line ``key: value`` of a configuration."""

    number: int
    indent: int
    key: str
    value: str


def _configuration(block: Sequence[_Entry], found: Findings) -> None:
    keys = {entry.key for entry in block}
    if "distributed_type" not in keys or not keys & {"compute_environment", "num_processes", "num_machines"}:
        return
    settings = _settings(block)
    config = LaunchConfig("accelerate's configuration", settings, lambda keys: f"accelerate's configuration: {keys[-1]}")
    count = None if config.processes is UNKNOWN else config.processes
    workload = config.draft.workload()
    found.workloads.append(replace(workload, launcher="accelerate", processes=count if config.several else 1))
    found.used.update(entry.number for entry in block)
    devices = config.gpu_ids
    if devices is not None and re.fullmatch(r"\d{1,3}(?:, ?\d{1,3}){0,63}", devices):
        found.variable("CUDA_VISIBLE_DEVICES", devices.replace(" ", ""))
    found.note(
        "the workload is read from accelerate's configuration, which only applies if the job is started with accelerate launch"
    )


def _settings(block: Sequence[_Entry]) -> dict[str, Any]:
    """Return keys and plain values; values of the wrong type are omitted."""
    settings: dict[str, Any] = {}
    table: dict[str, Any] | None = None
    depth = 0
    for entry in block:
        if table is not None and entry.indent > depth:
            table[entry.key] = _value(entry.value)
            continue
        table = None
        if entry.key in _TABLES:
            settings[entry.key] = _literal(entry.value) if entry.value.startswith("{") else {}
            if not entry.value:  # its keys follow, indented
                table, depth = settings[entry.key], entry.indent
        else:
            settings[entry.key] = _value(entry.value)
    return {key: value for key, value in _typed(settings).items() if value is not None}


def _typed(settings: dict[str, Any]) -> dict[str, Any]:
    for key in ("distributed_type", "gpu_ids"):
        value = settings.get(key)
        settings[key] = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(settings[key], (str, type(None))) and settings[key] is not False:
            settings[key] = None
    if not isinstance(settings.get("num_processes", 1), int):
        settings.pop("num_processes")
    for key in _TABLES:
        table = settings.get(key)
        if isinstance(table, dict):
            settings[key] = {name: value for name, value in table.items() if isinstance(value, (str, int, bool, type(None)))}
    if parse_count((settings.get("fsdp_config") or {}).get("fsdp_version")) not in (1, 2):
        (settings.get("fsdp_config") or {}).pop("fsdp_version", None)
    return settings


def _value(written: str) -> object:
    word = written.partition(" #")[0].strip().strip("'\"")
    if word in ("True", "true"):
        return True
    if word in ("False", "false"):
        return False
    if word in ("null", "None", "~", ""):
        return None
    return int(word) if word.isascii() and word.isdecimal() and len(word) < 10 else word[:200]


def _literal(written: str) -> dict[str, object]:
    """Parse a Python dictionary as accelerate prints it; return an empty one for anything else."""
    if len(written) > _LITERAL or written.count("{") + written.count("[") + written.count("(") > _DEEPEST:
        return {}
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return {}
    return {key: each for key, each in value.items() if isinstance(key, str)} if isinstance(value, dict) else {}


_AGENT = re.compile(r"^\W{0,8}Name: +(?P<gfx>gfx\d[0-9a-f]{2,3})(?::\S{1,40})?\s*$")
_MARKETING = re.compile(r"^\W{0,8}Marketing Name: +(?P<name>\S.{1,60}?)\s*$")
_CARD = re.compile(
    r"^\W{0,4}GPU\[(?P<index>\d{1,3})\]\s{0,8}: +(?P<field>Card [Ss]eries|Card [Mm]odel|GFX Version) ?:\s{1,12}"
    r"(?P<value>\S.{0,60}?)\s*$"
)
_GGML = re.compile(
    r"^\W{0,4}Device (?P<index>\d{1,3}): (?P<name>[A-Z][^,\n]{2,60}), "
    r"(?:compute capability (?P<capability>\d{1,2}\.\d)|(?P<gfx>gfx\d[0-9a-f]{2,3}))\b"
)


def read_devices(lines: Sequence[Line], found: Findings) -> None:
    """Record the GPUs, in the order in which they are numbered."""
    _agents(lines, found)
    cards: dict[int, dict[str, str]] = {}
    listed: dict[int, Accelerator] = {}
    for line in lines:
        if "GPU[" in line.text and (card := _CARD.match(line.text)) is not None:
            cards.setdefault(int(card["index"]), {})[card["field"].lower()] = card["value"]
            found.used.add(line.number)
        elif "Device " in line.text and (match := _GGML.match(line.text)) is not None:
            name = match["name"].strip()
            listed[int(match["index"])] = Accelerator(vendor_of(name), name, match["capability"], gfx=match["gfx"])
            found.used.add(line.number)
    devices = [_card(cards[index]) for index in sorted(cards)]
    if any(each.name or each.gfx for each in devices):
        found.accelerators(devices, PHYSICAL)
    if listed and sorted(listed) == list(range(len(listed))):
        found.accelerators([listed[index] for index in sorted(listed)], VISIBLE)


def _card(fields: dict[str, str]) -> Accelerator:
    gfx = fields.get("gfx version", "")
    return Accelerator("amd", fields.get("card series") or fields.get("card model"), gfx=gfx if gfx.startswith("gfx") else None)


def _agents(lines: Sequence[Line], found: Findings) -> None:
    """Read rocminfo: an agent that is a GPU is named after its target, and its card a few lines below."""
    devices: list[Accelerator] = []
    for position, line in enumerate(lines):
        agent = _AGENT.match(line.text) if "gfx" in line.text else None
        if agent is None:
            continue
        below = (_MARKETING.match(each.text) for each in lines[position + 1 : position + 6])
        name = next((match["name"] for match in below if match is not None), None)
        devices.append(Accelerator("amd", name, gfx=agent["gfx"]))
        found.used.add(line.number)
    if devices:
        found.accelerators(devices, PHYSICAL)
