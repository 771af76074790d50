"""``name: value`` lines: torch's and vLLM's collect_env, ``env`` commands, sglang's check, ds_report, hand-written lists.

All of them share one table of names, since users mix formats. The form of the name distinguishes
programs, which print "version" (``- `transformers` version: 4.51.3``), from users, who write ``torch: 2.6``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from compat.model import EMPTY, Source
from compat.reports.findings import (
    BY_HAND,
    HINTED,
    LISTED,
    ONE_KIND,
    SAID,
    VISIBLE,
    WRITTEN,
    Findings,
    machine_of,
    record_driver,
    record_glibc,
    record_python,
    record_system,
)
from compat.reports.lines import Line
from compat.reports.words import (
    MOST_DEVICES,
    device,
    devices_in,
    distribution_of,
    is_absent,
    is_gpu,
    range_at,
    short_version,
    version_at,
)

if TYPE_CHECKING:
    Reader: TypeAlias = Callable[["Fields", str, str], None]
    """Records the value of a field: (the reading, the value, the name of the field)."""


_COMMIT = re.compile(r"(?:git sha: |@|\+g)([0-9a-f]{7,40})\b")
_DOTS = re.compile(r"^(?P<name>[a-z][\w. ]{2,40}?) \.{3,60} (?P<value>\S.{0,200})$")
_DS_REPORT = {"torch version": "torch", "deepspeed info": "deepspeed", "torch cuda version": "cuda", "nvcc version": "nvcc"}
_SGLANG = ("CUDA_HOME:", "NVCC:", "CUDA available:", "MUSA available:", "ROCM_HOME:")


class Fields:
    """The state of reading one text's ``name: value`` lines, with facts that only count in combination."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.python: str | None = None
        self.platforms: list[str] = []
        self.torch: dict[str, str] = {}
        self.kinds: list[str] = []
        self.count: int | None = None
        self.memory: int | None = None
        self.cuda_is_torch = False


def read_fields(lines: Sequence[Line], found: Findings) -> None:
    """Record every ``name: value`` line that no earlier reader has consumed."""
    reading = Fields(found)
    rank = LISTED if any(line.text.startswith(_SGLANG) for line in lines) else WRITTEN
    for position, line in enumerate(lines):
        if line.number in found.used:
            continue
        if " ..." in line.text and (dotted := _DOTS.match(line.text)):
            _ds_report(reading, dotted["name"], dotted["value"])
            continue
        split = _name_and_value(line.text)
        if split is None:
            continue
        (name, value), number = split, line.number
        if not value and _is_heading(line.text):
            value, number = _below(lines, position)  # an issue form: the question is a heading, with the answer below
        if value and _read(reading, name, value, rank) and ", " not in value:
            found.used.update((line.number, number))  # a value with commas may state more: it is also read as a list
    for value in reading.platforms:
        record_glibc(found, value, of_platform=True, python=reading.python)
    built = {key: value for key, value in reading.torch.items() if value}
    if built and "torch" in found.packages:
        found.package("torch", None, min(each.rank for each in found.packages["torch"]), None, built)
    devices = [device(each, reading.memory) for each in dict.fromkeys(reading.kinds)]
    if len(devices) == 1 and reading.count and reading.count <= MOST_DEVICES:
        found.accelerators(devices * reading.count, VISIBLE)
    elif devices:
        found.accelerators(devices, ONE_KIND, counted=False)


def _read(reading: Fields, name: str, value: str, rank: int) -> bool:
    reader = _READERS.get(name)
    if reader is not None:
        if not is_absent(value):
            reader(reading, value, name)
        elif reader is _cuda_of_torch and value == "None":
            reading.torch.setdefault("cuda", "cpu")  # built for the CPU; builds for ROCm print "N/A"
        return True
    is_version = name.endswith((" version", ".version"))
    package = distribution_of(name[:-8] if is_version else name)
    if package is None:
        return False
    if not is_absent(value):
        _package(reading, package, value, SAID if is_version else rank)
    return True


def _package(reading: Fields, name: str, value: str, rank: int) -> None:
    if any(sign in value for sign in ("->", "→", "=>", " vs ", " or ")):
        return  # a change or a choice
    version, commit = version_at(value), _COMMIT.search(value)
    source = Source("vcs", {"commit": commit[1]}) if commit is not None and name != "torch" else None
    if version is not None and version.startswith(("0.1.dev", "0.0.0")) and commit is not None:
        version = None  # setuptools-scm found no tag
    if version is not None and "." not in version:
        return  # ``ray: 2`` is a setting
    if version is not None and range_at(value) is not None:
        version = None  # 4.51.x
    specifier = range_at(value) if version is None else None
    reading.found.package(name, version, rank, source, EMPTY, specifier)


def _ds_report(reading: Fields, name: str, value: str) -> None:
    kind = _DS_REPORT.get(name)
    if kind == "cuda" and short_version(value):
        reading.torch["cuda"] = short_version(value) or ""
    elif kind == "nvcc":
        reading.found.record("cuda_toolkit", short_version(value))
    elif kind is not None and kind != "cuda":
        _package(reading, kind, value.partition(",")[0], SAID)


def _python(reading: Fields, value: str, name: str) -> None:
    version = record_python(reading.found, value, SAID if "version" in name or "(" in value else WRITTEN)
    reading.python = version or reading.python


def _platform(reading: Fields, value: str, name: str) -> None:
    record_system(reading.found, value)
    if "glibc" in value:
        reading.platforms.append(value)  # its meaning depends on the Python version, which may follow


def _system(reading: Fields, value: str, name: str) -> None:
    if len(value) < 120:
        record_system(reading.found, value, SAID if name == "os" else WRITTEN)


def _ubuntu(reading: Fields, value: str, name: str) -> None:
    """Record ``Ubuntu version: 22.04``."""
    record_system(reading.found, f"ubuntu {value}", WRITTEN)


def _machine(reading: Fields, value: str, name: str) -> None:
    reading.found.record("machine", machine_of(value, None), LISTED)


def _glibc(reading: Fields, value: str, name: str) -> None:
    record_glibc(reading.found, value, of_platform=False)


def _cuda_of_torch(reading: Fields, value: str, name: str) -> None:
    version = version_at(value)
    if version is not None:
        reading.torch["rocm" if name.startswith(("rocm", "hip")) else "cuda"] = version


def _toolkit(reading: Fields, value: str, name: str) -> None:
    reading.found.record("cuda_toolkit", short_version(value))


def _torch_has_cuda(reading: Fields, value: str, name: str) -> None:
    """Note that a later "CUDA version" field in this report is torch's."""
    reading.cuda_is_torch = True


def _cuda(reading: Fields, value: str, name: str) -> None:
    """Record a hand-written "CUDA: 12.4": torch's if the report says so, otherwise the toolkit."""
    version = short_version(value.lower().removeprefix("cuda").lstrip(" :=v"))
    if version is None or "." not in version or float(version) >= 30:
        return
    if reading.cuda_is_torch:
        reading.torch["cuda"] = version
    else:
        reading.found.record("cuda_toolkit", version, WRITTEN)


def _driver(reading: Fields, value: str, name: str) -> None:
    record_driver(reading.found, value, SAID if "version" in name else WRITTEN)


def _kind_of_gpu(reading: Fields, value: str, name: str) -> None:
    if is_gpu(value):
        reading.kinds.append(value)


def _gpu_count(reading: Fields, value: str, name: str) -> None:
    reading.count = int(value) if value.isascii() and value.isdecimal() and len(value) < 5 else None


def _gpu_memory(reading: Fields, value: str, name: str) -> None:
    match = re.match(r"(\d{1,4}(?:\.\d{1,3})?) ?Gi?B", value)
    reading.memory = round(float(match[1]) * 1024) if match else None


def _all_devices(reading: Fields, value: str, name: str) -> None:
    """Record the names of all visible devices (``trl env``)."""
    names = [each.strip() for each in value.split(",") if each.strip()]
    if names and all(is_gpu(each) for each in names):
        reading.found.accelerators([device(each) for each in names], VISIBLE)
    elif value.strip().lower() == "cpu":
        reading.found.accelerators((), VISIBLE)


def _hardware(reading: Fields, value: str, name: str) -> None:
    """Record devices described by hand."""
    if name.startswith("gpu models and") and "gfx" in value:
        reading.found.accelerators([device(value)], ONE_KIND, counted=False)
        return
    counted_devices = devices_in(value)
    if counted_devices is not None:
        devices, counted = counted_devices
        reading.found.accelerators(devices, BY_HAND, counted=counted)
    elif value.strip(" .`*").lower() in ("cpu", "cpu only", "no gpu", "cpu-only"):
        reading.found.accelerators((), BY_HAND)
    if "driver" in value.lower():
        record_driver(reading.found, value.lower().partition("driver")[2], WRITTEN)


def _distributed(reading: Fields, value: str, name: str) -> None:
    if value.lower().startswith(("yes", "true", "distributed", "parallel")):
        reading.found.note("the text says that the script runs distributed or in parallel, but not how it is launched")


def _nvcc(reading: Fields, value: str, name: str) -> None:
    match = re.search(r"release (\d{1,3}\.\d{1,3})", value)
    reading.found.record("cuda_toolkit", match[1] if match else short_version(value))


def _paths(reading: Fields, value: str, name: str) -> None:
    """Record the toolkit of ``CUDA_HOME: /usr/local/cuda-12.4``."""
    match = re.search(r"cuda-(\d{1,2}\.\d{1,2})\b", value)
    reading.found.record("cuda_toolkit", match[1] if match else None, HINTED)


def _nothing(reading: Fields, value: str, name: str) -> None:
    """Ignore the field."""


_READERS: dict[str, Reader] = {}
for _reader, _names in (
    (_python, ("python version", "python", "python_version", "python-version", "py version", "python ver")),
    (_platform, ("platform", "python platform")),
    (_system, ("os", "operating system", "operating systems", "os version", "system", "os platform", "os and version",
               "os/version", "distro", "distribution", "linux distribution", "environment", "os platform and distribution",
               "os type", "wsl version", "kernel version", "uname", "sys.platform", "操作系统", "系统")),
    (_ubuntu, ("ubuntu version", "ubuntu")),
    (_machine, ("architecture", "cpu architecture", "machine", "arch", "processor")),
    (_glibc, ("libc version", "glibc", "glibc version")),
    (_cuda_of_torch, ("cuda used to build pytorch", "rocm used to build pytorch", "torch.version.cuda", "torch cuda version",
                      "pytorch cuda version", "cuda version used by pytorch", "torch.version.hip")),
    (_toolkit, ("cuda runtime version", "nvcc version", "cuda toolkit", "cuda toolkit version", "nvcc cuda version")),
    (_cuda, ("cuda", "cuda version", "cuda/cudnn version", "cuda versions", "cuda version if any", "cuda_version",
             "cuda version on system")),
    (_driver, ("nvidia driver version", "cuda driver version", "driver version", "driver", "nvidia driver", "gpu driver",
               "nvidia-driver", "cuda driver", "nvidia drivers", "gpu driver version", "nvidia driver info")),
    (_kind_of_gpu, ("gpu type", "xpu type", "npu type", "gpu model", "product name", "gpu name", "gpu.name", "hpu type",
                    "cuda device")),
    (_gpu_count, ("gpu number", "npu number", "gpu count", "number of gpus", "num gpus", "num_gpus", "attached gpus")),
    (_gpu_memory, ("gpu memory",)),
    (_all_devices, ("cuda devices", "accelerators", "cuda device(s)", "accelerator(s)")),
    (_hardware, ("gpu", "gpus", "gpu info", "gpu models and configuration", "gpu count and types", "hardware", "device",
                 "devices", "graphics card", "gpu type and number", "gpu hardware", "hardware type", "gpu(s)", "gpus used",
                 "gpu configuration", "gpu details", "gpu and vram", "vram", "card", "显卡", "gpu型号", "machine type",
                 "accelerator type", "video card", "gpu used", "your hardware and system info")),
    (_distributed, ("using distributed or parallel set-up in script",)),
    (_torch_has_cuda, ("is pytorch built with cuda support",)),
    (_nvcc, ("nvcc",)),
    (_paths, ("cuda_home",)),
    (_nothing, ("cuda available", "is cuda available", "pytorch xpu available", "cudnn version", "cudnn", "clang version",
                "gcc version", "cmake version", "nccl version", "hip runtime version", "miopen runtime version",
                "rocm version", "using gpu in script", "model name", "model")),
):  # fmt: skip
    _READERS.update(dict.fromkeys(_names, _reader))


# --- One line as name and value: list marks, Markdown, tables, headings with the answer below


_MARK = re.compile(r"[\s|>]{0,20}(?:[-*+•·–]\s{1,4}|\d{1,2}[.)] |#{1,6} )?[\s`*_\"']{0,8}")
_PARENTHESES = re.compile(r"\((?!s\))[^()]{0,60}\)\??")


def _is_heading(text: str) -> bool:
    """Whether a line may be a heading with its answer below."""
    return text.lstrip(" >").startswith(("#", "**"))


def _name_and_value(text: str) -> tuple[str, str] | None:
    """Split a line into name (lower case, without markup) and value, or ``None``; the value of a heading is empty."""
    mark = _MARK.match(text)
    rest = text[mark.end() :] if mark else text
    name, sign, value = _cells(rest) if "|" in rest and text.lstrip(" >").startswith("|") else _halves(rest)
    if len(name) > 90 or (not sign and not _is_heading(text)):
        return None
    name = _PARENTHESES.sub("", name) if "(" in name else name
    name = name.replace("版本", " version").strip(" `*_\"'?").lower()
    while name and not name[0].isalnum():  # an emoji
        name = name[1:]
    value = value.lstrip(":= ").strip("`*\"', ").removeprefix("[").removesuffix("]")
    return " ".join(name.split()), value


def _cells(row: str) -> tuple[str, str, str]:
    """Split a table row into name, separator and value; a row that compares several versions has no value."""
    name, *cells = (cell.strip() for cell in row.split("|")[:8])
    values = [cell for cell in cells if cell.strip("-: ")]
    numbers = sum(any(character.isdecimal() for character in value) for value in values)
    return name, "|", values[0] if values and numbers < 2 else ""


def _halves(text: str) -> tuple[str, str, str]:
    at = min((place for place in (text.find(":"), text.find("=")) if place > 0), default=-1)
    if at < 0 and text.endswith("]"):
        at = text.find("[")  # DeepSpeed's form: "GPU count and types [...]"
    return (text[:at], text[at], text[at + 1 :]) if at > 0 else (text, "", "")


def _below(lines: Sequence[Line], position: int) -> tuple[str, int]:
    """Return text and number of the only line between a heading and the next empty line; ``""`` and 0 if there are more."""
    after = [line for line in lines[position + 1 : position + 4] if line.text]
    if not after or len(after[0].text) > 120 or after[0].text.startswith(("#", "- [", "* [")):
        return "", 0
    alone = len(after) < 2 or after[1].number > after[0].number + 1
    return (after[0].text.strip(" `*"), after[0].number) if alone else ("", 0)
