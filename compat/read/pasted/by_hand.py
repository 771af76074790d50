"""What people write without a form: "torch 2.6.0, vllm 0.8.4 on 2x A100, CUDA 12.4, Ubuntu 22.04"; ``uname``; prompts."""

from __future__ import annotations

import re

from compat.environment import EMPTY
from compat.read.pasted.findings import BY_HAND, HINTED, WRITTEN, Findings
from compat.read.pasted.gpu_words import devices_in, is_phrase
from compat.read.pasted.nvidia_tools import say_driver
from compat.read.pasted.system_words import machine_of, say_python, say_system, system_of
from compat.read.pasted.words import distribution_of, is_name, range_at, short_version, version_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.read.pasted.plain_lines import Line

_LONGEST = 200  # characters of a line that somebody wrote as a list
_ITEM = re.compile(
    r"[\s`*_\"'(]{0,6}(?P<name>[A-Za-z][\w -]{0,40}?)[`*]{0,3}(?: version| ver\.?)?"
    r"(?:\s{1,40}| ?={1,2} ?| ?: ?| ?- ?(?=v?\d)| ?@ ?)"
    r"`{0,2}(?P<version>(?:[<>~!=]=? ?)?v?\d[\w.!+-]{0,60})[`*)\"']{0,4}[.;]?(?: \([^()]{0,60}\))?$"
)
_BULLET = re.compile(r"[\s>|]{0,10}(?:[-*+•·]\s{1,4}|\d{1,2}[.)] )?")
_PARTS = re.compile(r"[,;/|、，]\s|\s(?:and|with|\+|on)\s|\s{3,}(?=[A-Za-z])")
_IN_WORDS = re.compile(r"(?: package)? \(version:? ?(v?\d[\w.!+-]{0,60})\)")
_OWN = ("python", "cuda", "cuda toolkit", "nvcc", "nvidia driver", "driver", "cudatoolkit", "nvidia-driver")
_UNAME = re.compile(r"(?:Linux|Darwin) \S{1,80} (?P<release>\d[\w.+~-]{2,80}) .{5,200}$")
_PROMPT = re.compile(r"Python (?P<version>[23]\.\d{1,2}\.\d{1,3}\S{0,10})(?P<rest> [|(].{0,200})?$")
_ON = re.compile(r"\bon (linux|win32|darwin)$")
_BOX = re.compile(r" {0,4}[-*] \[(?P<mark>[xX ])\] {1,2}(?P<text>.{1,200})$")
_PATH = re.compile(r"[/\\][Pp]ython(?P<version>3\.?\d{1,2})[/\\](?:[Ll]ib[/\\])?(?:site|dist)-packages[/\\]")
_FRAME = re.compile(r"File \"(?P<path>/home/|/root/|/Users/|[A-Z]:[\\/])")
_SYSTEMS = {"/home/": "linux", "/root/": "linux", "/Users/": "darwin"}


def read_by_hand(lines: Sequence[Line], found: Findings) -> None:
    """Short lines that say nothing else; a sentence is not taken apart."""
    above = ""
    seen: set[tuple[str, str]] = set()
    for line in lines:
        text = line.text
        if line.number in found.used or not text or len(text) > _LONGEST:
            above = ""
            continue
        if (above, text) not in seen:  # logs repeat themselves
            seen.add((above, text))
            _read(text, above, found)
        above = text
    _hinted(lines, found)


def _read(text: str, above: str, found: Findings) -> None:
    if text.startswith(("Linux ", "Darwin ")) and _UNAME.match(text):
        _uname(text, found)
    elif "Welcome to Ubuntu" in text:
        say_system(found, text)
    elif "Python " in text and (prompt := _PROMPT.match(text.strip(" >`"))):
        _prompt(prompt, found)
    elif "] " in text and (box := _BOX.match(text)):
        if box["mark"] != " " and len(box["text"]) < 60:
            say_system(found, box["text"], WRITTEN)
    elif text[:1].isdecimal() and above and _kind(f"{above} {text}") == "item":
        _item(f"{above} {text}", found)  # a name, and below it its version
    elif any(character.isdecimal() for character in text):
        _written(text, found)


def _uname(text: str, found: Findings) -> None:
    say_system(found, text)
    found.say("machine", machine_of(text, "linux" if text.startswith("Linux") else "darwin"))


def _prompt(match: re.Match[str], found: Findings) -> None:
    say_python(found, match["version"] + (match["rest"] or ""))
    on = _ON.search(match["rest"] or "")
    if on is not None:
        found.say("os", {"win32": "windows"}.get(on[1], on[1]))


def _written(text: str, found: Findings) -> None:
    """The parts of a line: names with a version, devices, systems; a line that mostly says something else is a sentence."""
    text = _BULLET.sub("", text, count=1).strip(" .`*|")
    text = _IN_WORDS.sub(r" \1", text) if "(version" in text else text
    parts = [part.strip() for part in _PARTS.split(text) if part.strip()]
    told = [(part, _kind(part)) for part in parts]
    if not told or sum(kind is None for _, kind in told) * 2 > len(told) - 1:
        return
    groups = []
    for part, kind in told:
        if kind == "item":
            _item(part, found)
        elif kind == "system":
            say_system(found, part, WRITTEN)
        elif kind == "gpu" and (group := devices_in(part)):
            groups.append(group)
    if groups:
        devices = tuple(device for group, _ in groups for device in group)
        found.accelerators(devices, BY_HAND, counted=len(groups) > 1 or groups[0][1])


def _kind(part: str) -> str | None:
    if len(part) > 80:
        return None
    match = _ITEM.match(part)
    if match is not None and (_is_own(match["name"]) or distribution_of(match["name"])):
        return "item"
    if len(part) < 80 and is_phrase(part):
        return "gpu"
    if len(part) < 40 and len(part.split()) < 6 and system_of(part) is not None and version_at(part.split()[-1]) is not None:
        return "system"
    return None


def _is_own(name: str) -> bool:
    return name.strip(" `*_").lower().removesuffix(" version") in _OWN


def _item(part: str, found: Findings) -> None:
    match = _ITEM.match(part)
    if match is None:
        return
    name, text = match["name"].strip(" `*_").lower().removesuffix(" version"), match["version"]
    if name == "python":
        say_python(found, text, WRITTEN)
    elif "driver" in name:
        say_driver(found, text, WRITTEN)
    elif name in _OWN:
        version = short_version(text)
        found.say("cuda_toolkit", version if version and "." in version and float(version) < 30 else None, WRITTEN)
    else:
        _package(name, text, found)


def _package(words: str, text: str, found: Findings) -> None:
    name = distribution_of(words)
    specifier = range_at(text)
    version = version_at(text) if specifier is None else None
    if name is None or not is_name(name) or (version is not None and "." not in version):
        return
    found.package(name, version, WRITTEN, None, EMPTY, specifier)


def _hinted(lines: Sequence[Line], found: Findings) -> None:
    """Python and the system by the paths in a traceback, where all of them agree and nothing else says it."""
    pythons: set[str] = set()
    systems: set[str] = set()
    for line in lines:
        text = line.text
        if "-packages" in text:
            pythons.update(_minor(match["version"]) for match in _PATH.finditer(text))
        if 'File "' in text and (frame := _FRAME.search(text)):
            systems.add(_SYSTEMS.get(frame["path"], "windows"))
    if len(pythons) == 1 and "python" not in found.values:
        version = pythons.pop()
        found.say("python", version, HINTED)
        found.note(f"Python {version} is read from paths in the text")
    if len(systems) == 1 and "os" not in found.values:
        found.say("os", systems.pop(), HINTED)


def _minor(digits: str) -> str:
    """``3.10`` and Windows' ``310``."""
    return digits if "." in digits else f"{digits[0]}.{digits[1:]}"
