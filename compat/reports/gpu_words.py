"""Names and numbers of GPUs in a report's and in people's words: "2x RTX 4090", "NVIDIA A100-SXM4-80GB (x8)"."""

from __future__ import annotations

import re

from compat.machine.gpu_names import lookup
from compat.model import Accelerator

_NAMED = re.compile(
    r"(?<![A-Za-z\d])(?:"
    r"(?:amd (?:radeon|instinct|mi)|nvidia(?![-_.\w])|geforce|tesla|quadro|radeon|instinct|jetson)"
    r"(?=[\w ()-]{0,40}?\d|[\w ()-]{0,24}(?:titan|thor|orin|graphics|device))|"
    r"titan (?:rtx|xp?|v)|rtx ?(?:pro ?)?\d{3,4}\w{0,6}|gtx ?\d{3,4}\w{0,3}|rx ?\d{3,4}\w{0,4}|gaudi ?\d?|dgx spark|"
    r"a100\w?|a800|a10g?|a16|a30|a40|h100s?|h200s?|h800|h20|gh200|gb\d{2,3}|b[123]00|v100s?|p100|p40|p4|k80|t4|l4|l40s?|"
    r"a[456]000|[2345]0[5-9]0(?: ?ti| ?super| ?d)*|mi\d{2,3}[xa]?|gfx\d[0-9a-f]{2,3}|ascend ?\w{0,6}|910b\d?|"
    r"apple m\d|intel arc|arc [ab]\d{3}|data center gpu max|(?:6000|5000) ada|pro 6000"
    r")(?![A-Za-z\d])",
    re.IGNORECASE,
)
_NUMBER = {"one": 1, "single": 1, "two": 2, "dual": 2, "three": 3, "four": 4, "quad": 4, "five": 5, "six": 6, "eight": 8}
_BEFORE = re.compile(
    r"(?:(?<![\d.])(?P<times>\d{1,3}) ?[x×*]|(?<![A-Za-z\d])[x×*] ?(?P<x>\d{1,3})|(?<![\w.])(?P<count>\d{1,3})(?!\d)|"
    r"\b(?P<word>one|single|two|dual|three|four|quad|five|six|eight))[\s-]*(?:\d{1,3} ?gi?b?\s+)?$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?:(?<=[\s(*])|(?<=\dG)|(?<=GB))[x×*]? ?(?:(?<=[x×*])|(?<=[x×*] ))(?P<times>\d{1,3})(?! ?gi?b|\d)|"
    r"(?<![\d.])(?P<cards>\d{1,3}) ?(?:gpus?\b|cards?\b|pcs\b|卡)|\((?P<count>\d{1,3}) ?x?\)",
    re.IGNORECASE,
)
_GLUED = re.compile(r"(?<![A-Za-z\d.])(\d{1,3}) ?[x×*] ?(?=[A-Za-z\d])", re.IGNORECASE)
_REMARK = re.compile(r" ?\((?:UUID|\d+ ?Gi?B|\d+ ?MiB)[^()]*\).*$")
_TARGET = re.compile(r"gfx\d[0-9a-f]{2,3}")
_BEHIND = re.compile(r"[(,;\n]| (?:with|on|gpus|cards?|each|per|and|instances?|x ?\d)\b", re.IGNORECASE)
_KINDS = re.compile(r" \+ | and (?=\d|[A-Z])|[;,](?= ?(?:\d ?[x×]|nvidia|amd|rtx|gtx|tesla))|、", re.IGNORECASE)
_WORDS = frozenset((
    "nvidia", "geforce", "rtx", "gtx", "tesla", "quadro", "titan", "gpu", "gpus", "card", "cards", "pcie", "laptop", "ti",
    "super", "ada", "generation", "blackwell", "hopper", "ampere", "hbm3", "hbm2e", "each", "with", "of", "a", "an", "on",
    "single", "dual", "vram", "memory", "ram", "pro", "workstation", "server", "edition", "max", "q", "amd", "radeon", "xt",
    "instinct", "xtx", "x", "gb", "gib", "gddr6", "gddr6x", "gddr7", "nvl", "d", "i", "have", "one", "two", "four", "eight",
))  # fmt: skip
_TOKEN = re.compile(r"\d{1,4}(?:x|gi?b?|s|ti|d)?|x\d{1,3}|sxm\d?|[a-z]{1,2}\d{1,4}[a-z]{0,3}|\d{4}\w{0,2}|mi\d{2,3}\w?")
_MOST = 1024


def is_gpu(text: str) -> bool:
    """Whether a text names a kind of accelerator."""
    return len(text) < 400 and _NAMED.search(text) is not None


def is_phrase(text: str) -> bool:
    """Whether a text names devices and says nothing else: "2x RTX 4090 24GB", not "please support the RTX 4090"."""
    words = re.split(r"[\s()*×/-]+", text.strip(" .`*()").lower())
    return len(words) < 12 and all(not word or word in _WORDS or _TOKEN.fullmatch(word) for word in words) and is_gpu(text)


def vendor_of(name: str) -> str | None:
    """nvidia, amd, intel or apple, where the name says it."""
    return lookup(((), (), {}), name).vendor


def device(name: str, memory_mib: int | None = None, capability: str | None = None) -> Accelerator:
    """One device by the name a program gives it: ``AMD Instinct MI210 (gfx90a:sramecc+:xnack-)``."""
    target = _TARGET.search(name)
    if target is not None:
        name = name.partition(f"({target[0]}")[0].strip() or target[0]
        return Accelerator("amd", name, None, memory_mib, target[0])
    name = _REMARK.sub("", name).strip(" .…,;`*\"'")[:100]
    return Accelerator(vendor_of(name), name, capability, memory_mib)


def devices_in(text: str) -> tuple[tuple[Accelerator, ...], bool] | None:
    """The devices that a person's words name, and whether they say how many; ``None`` where they name none.

    Kinds may be joined ("RTX 4090 + RTX 3090"): then each is counted as often as its own words say.
    """
    text = _GLUED.sub(r"\1x ", text.strip("`*\"' ")) if len(text) < 200 else ""
    if not is_gpu(text):
        return None
    found: list[Accelerator] = []
    counted = False
    for part in _KINDS.split(text):
        name = _NAMED.search(part)
        if name is None:
            continue
        number, kind = _counted(part, name)
        if number is not None and not 0 < number <= _MOST:
            return None
        counted = counted or number is not None
        found.extend([device(kind)] * (number or 1))
    counted = counted or len(found) > 1 or any(each.vendor == "apple" for each in found)
    return (tuple(found), counted) if 0 < len(found) <= _MOST else None


def _counted(part: str, name: re.Match[str]) -> tuple[int | None, str]:
    """The number of devices one kind is named with, and its name without the number."""
    before = _BEFORE.search(part[: name.start()])
    if before is not None:
        number = before["times"] or before["x"] or before["count"]
        return int(number) if number else _NUMBER[before["word"].lower()], _named(part[name.start() :])
    after = _AFTER.search(part, name.end())
    if after is not None:
        return int(after["times"] or after["count"] or after["cards"]), _named(part[name.start() : after.start()])
    return None, _named(part[name.start() :])


def _named(text: str) -> str:
    """A name without what people write behind it."""
    text = _BEHIND.split(text, maxsplit=1)[0]
    return re.sub(r"(?<=\d)s$", "", text.strip(" -.…*×"))
