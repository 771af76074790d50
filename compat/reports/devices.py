"""GPUs in the output of ``rocminfo``, ``rocm-smi`` and llama.cpp."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compat.model import Accelerator
from compat.reports.findings import PHYSICAL, VISIBLE, Findings
from compat.reports.lines import Line
from compat.reports.words import vendor_of

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
