"""The banner unsloth prints when a model is loaded; its "CUDA" is the compute capability, its "Toolkit" is torch's CUDA."""

from __future__ import annotations

import re

from compat.read.pasted.findings import SAID, VISIBLE, Findings
from compat.read.pasted.gpu_words import device, is_gpu
from compat.read.pasted.words import short_version, version_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.read.pasted.plain_lines import Line

_BUILT_IN = re.compile(r"\b(Unsloth|Transformers|vLLM|Torch|Pytorch|Triton|Xformers) ?[:=]? ?(v?\d[\w.!+-]{0,60})")
_RELEASE = re.compile(r"Unsloth: Fast \w{2,30} patching release (\d{4}\.\d{1,2}(?:\.\d{1,2})?)")
_GPU = re.compile(r"(?:/\|\s{1,20}|^\s{0,20}|GPU: ?)(?:GPU: ?)?(?P<name>[A-Za-z][^.:=]{2,60}?)\. (?:Num GPUs|Max memory)")
_NUMBER = re.compile(r"Num GPUs ?[:=] ?(\d{1,4})")
_MEMORY = re.compile(r"Max memory ?[:=] ?(\d{1,4}(?:\.\d{1,3})?) ?GB")
_CAPABILITY = re.compile(r"\bCUDA(?: Compute)? ?[:=] ?(\d{1,2}\.\d)\.")
_TOOLKIT = re.compile(r"\b(CUDA|ROCm) Toolkit ?[:=] ?(\d{1,2}\.\d{1,3})")
_PLATFORM = re.compile(r"Platform ?[:=] ?(Linux|Windows|Darwin)")
_NAMES = {"pytorch": "torch"}
_BEHIND = 5  # lines of the banner below its first


def read_banner(lines: Sequence[Line], found: Findings) -> None:
    """Versions, the GPU, how many the process sees, and its capability."""
    last, seen = -1, set()
    for position, line in enumerate(lines):
        if "==((====))==" in line.text:
            text = "\n".join(each.text for each in lines[position : position + _BEHIND])
            found.used.update(each.number for each in lines[position : position + _BEHIND])
            last = position + _BEHIND
            if text not in seen:  # every process prints it
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
        found.say("os", platform[1].lower())
    name = next((each["name"].strip() for each in _GPU.finditer(text) if is_gpu(each["name"])), None)
    if name is None:
        return
    number, memory = _NUMBER.search(text), _MEMORY.search(text)
    one = device(name, round(float(memory[1]) * 1024) if memory else None, capability[1] if capability else None)
    found.accelerators([one] * min(int(number[1]), 1024) if number else [one], VISIBLE, counted=number is not None)
