"""accelerate's configuration as ``accelerate env``, ``trl env`` and others print it, or as its file → workload."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compat.records import replace
from compat.reports.findings import Findings
from compat.workload.arguments import UNKNOWN, whole
from compat.workload.launch_config import LaunchConfig

if TYPE_CHECKING:
    from compat.reports.words import Line


_KEY = re.compile(r"(?P<indent>[\s|]{0,40})(?:[-*] )?(?P<key>[a-z][a-z0-9_]{2,50}):(?: +(?P<value>.*))?$")
_TABLES = ("deepspeed_config", "fsdp_config", "dynamo_config")
_LITERAL = 4000  # characters of a table written in one line
_DEEPEST = 12


def read_accelerate(lines: Sequence[Line], found: Findings) -> None:
    """The workload of every configuration in the text: launcher, processes, precision and what is distributed how."""
    block: list[tuple[Line, int, str, str]] = []
    for line in (*lines, None):
        match = _KEY.match(line.text) if line is not None and ":" in line.text[:100] else None
        if match is None or line is None:
            _configuration(block, found)
            block = []
        else:
            block.append((line, len(match["indent"]), match["key"], (match["value"] or "").strip()))


def _configuration(block: Sequence[tuple[Line, int, str, str]], found: Findings) -> None:
    keys = {key for _, _, key, _ in block}
    if "distributed_type" not in keys or not keys & {"compute_environment", "num_processes", "num_machines"}:
        return
    settings = _settings(block)
    config = LaunchConfig("accelerate's configuration", settings, lambda keys: f"accelerate's configuration: {keys[-1]}")
    count = None if config.processes is UNKNOWN else config.processes
    workload = config.draft.workload()
    found.workloads.append(replace(workload, launcher="accelerate", processes=count if config.several else 1))
    found.used.update(line.number for line, _, _, _ in block)
    devices = config.gpu_ids
    if devices is not None and re.fullmatch(r"\d{1,3}(?:, ?\d{1,3}){0,63}", devices):
        found.variable("CUDA_VISIBLE_DEVICES", devices.replace(" ", ""))
    found.note(
        "the workload is read from accelerate's configuration, which only applies if the job is started with accelerate launch"
    )


def _settings(block: Sequence[tuple[Line, int, str, str]]) -> dict[str, Any]:
    """Keys and plain values; a value of the wrong type is left out."""
    settings: dict[str, Any] = {}
    table: dict[str, Any] | None = None
    depth = 0
    for _, indent, key, written in block:
        if table is not None and indent > depth:
            table[key] = _value(written)
            continue
        table = None
        if key in _TABLES:
            value = _literal(written) if written.startswith("{") else {}
            settings[key] = value
            table, depth = (value, indent) if not written else (None, 0)
        else:
            settings[key] = _value(written)
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
    if whole((settings.get("fsdp_config") or {}).get("fsdp_version")) not in (1, 2):
        (settings.get("fsdp_config") or {}).pop("fsdp_version", None)
    return settings


def _value(written: str) -> Any:
    word = written.partition(" #")[0].strip().strip("'\"")
    if word in ("True", "true"):
        return True
    if word in ("False", "false"):
        return False
    if word in ("null", "None", "~", ""):
        return None
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else word[:200]


def _literal(written: str) -> dict[str, Any]:
    """A Python dictionary as accelerate prints it; an empty one for what is none."""
    if len(written) > _LITERAL or written.count("{") + written.count("[") + written.count("(") > _DEEPEST:
        return {}
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return {}
    return {key: each for key, each in value.items() if isinstance(key, str)} if isinstance(value, dict) else {}
