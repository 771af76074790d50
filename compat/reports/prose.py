"""Hand-written text: "torch 2.6.0, vllm 0.8.4 on 2x A100, CUDA 12.4, Ubuntu 22.04"; also ``uname``, prompts and variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compat.model import EMPTY, Accelerator
from compat.reports.findings import (
    BY_HAND,
    HINTED,
    WRITTEN,
    Findings,
    machine_of,
    record_driver,
    record_python,
    record_system,
    system_of,
)
from compat.reports.lines import Line
from compat.reports.words import devices_in, distribution_of, is_phrase, range_at, short_version, version_at
from compat.versions import key_of

_LONGEST = 200  # characters of a line that is a list
_ITEM = re.compile(
    r"[\s`*_\"'(]{0,6}(?P<name>[A-Za-z][\w -]{0,40}?)[`*]{0,3}(?: version| ver\.?)?"
    r"(?:\s{1,40}| ?={1,2} ?| ?: ?| ?- ?(?=v?\d)| ?@ ?|(?<=[A-Za-z]{3})(?=\d{1,4}\.\d))"
    r"`{0,2}(?P<version>(?:[<>~!=]=? ?)?v?\d[\w.!+-]{0,60})[`*)\"']{0,4}[.;]?(?: \([^()]{0,60}\))?$"
)
_BULLET = re.compile(r"[\s>|]{0,10}(?:[-*+•·]\s{1,4}|\d{1,2}[.)] )?")
_PARTS = re.compile(r"[,;/|、，]\s|\s(?:and|with|\+|on)\s|\+(?=[A-Z][a-z])|(?<!\s)\s{2,}(?=[A-Za-z])")
_LABEL = re.compile(
    r"(?:(?:my|our|the|current|runtime|software|hardware|system|test|full) ){0,2}"
    r"(?:environments?|env|set-?up|config(?:uration)?|specs?|versions?|stack|system|hardware|platform|machine|software|packages?"
    r"|dependencies|gpus?|devices?|os)(?: (?:info(?:rmation)?|details|used))?(?:\*{0,2} ?[:：]\*{0,2}| is| are)\s{1,4}(?=\S)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:i|we) (?:have|use|run|got)|(?:i'?m |i am |we are )?(?:using|running(?: on)?)"
    r"|my (?:machine|system|setup) (?:has|is|runs)) (?:an? |the )?(?=\S)",
    re.IGNORECASE,
)
_FIELD = re.compile(r"(?:gpus?|cards?|devices?|os|system) ?(?:={1,2}|[:：]) ?(?=\S)", re.IGNORECASE)
_UNSTATED = re.compile(
    r"(?P<name>[A-Za-z][\w-]{0,40})`?"
    r"(?:[ :=(]{1,3}(?:the )?(?:latest|newest|nightly|main|master)(?: \w{1,12})?\)?| from source)$",
    re.IGNORECASE,
)
"""A package without its release in a list: it states nothing, but does not make the list a sentence either."""
_IN_WORDS = re.compile(r"(?: package)? \(version:? ?(v?\d[\w.!+-]{0,60})\)")
_OWN = ("python", "cuda", "cuda toolkit", "nvcc", "nvidia driver", "driver", "cudatoolkit", "nvidia-driver")
_UNAME = re.compile(r"(?:Linux|Darwin) \S{1,80} (?P<release>\d[\w.+~-]{2,80}) .{5,200}$")
_PROMPT = re.compile(r"Python (?P<version>[23]\.\d{1,2}\.\d{1,3}\S{0,10})(?P<rest> [|(].{0,200})?$")
_ON = re.compile(r"\bon (linux|win32|darwin)$")
_BOX = re.compile(r" {0,4}[-*] \[(?P<mark>[xX ])\] {1,2}(?P<text>.{1,200})$")


def read_by_hand(lines: Sequence[Line], found: Findings) -> None:
    """Record short lines that are lists, then pins and devices in sentences, then hints in tracebacks."""
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
    _mentioned(lines, found)


_INSTEAD = re.compile(r"\s*(?P<name>PyTorch|Python) .{1,80}\(you have v?(?P<version>\d[\w.+]{1,40})\)$")
"""A message that names the release a package was built for and the installed one."""


def _read(text: str, above: str, found: Findings) -> None:
    if text.startswith(("Linux ", "Darwin ")) and _UNAME.match(text):
        record_system(found, text)
        found.record("machine", machine_of(text, "linux" if text.startswith("Linux") else "darwin"))
    elif "(you have " in text:
        if (instead := _INSTEAD.match(text)) is not None:
            _item(f"{instead['name']} {instead['version']}", found)
    elif "Welcome to Ubuntu" in text:
        record_system(found, text)
    elif "Python " in text and (prompt := _PROMPT.match(text.strip(" >`"))):
        record_python(found, prompt["version"] + (prompt["rest"] or ""))
        if (on := _ON.search(prompt["rest"] or "")) is not None:
            found.record("os", {"win32": "windows"}.get(on[1], on[1]))
    elif "] " in text and (box := _BOX.match(text)):
        if box["mark"] != " " and len(box["text"]) < 60:
            record_system(found, box["text"], WRITTEN)
    elif text[:1].isdecimal() and above and _kind(f"{above} {text}") == "item":
        _item(f"{above} {text}", found)  # a name, with its version below
    elif any(character.isdecimal() for character in text):
        _written(text, found)


def _written(text: str, found: Findings) -> None:
    """Read a line if at least half of its parts are names with a version, devices or systems; other lines are sentences."""
    text = _BULLET.sub("", text, count=1).strip(" .`*|")
    text = _IN_WORDS.sub(r" \1", text) if "(version" in text else text
    if (label := _LABEL.match(text)) is not None:
        text = text[label.end() :]
    text = _LEAD.sub("", text, count=1) if _LEAD.match(text) else text
    parts = [_FIELD.sub("", part.strip(), count=1) for part in _PARTS.split(text) if part.strip()]
    parts = [part for part in parts if (bare := _UNSTATED.match(part)) is None or distribution_of(bare["name"]) is None]
    kinds = [_kind(part) for part in parts]
    if not kinds or kinds.count(None) * 2 > len(kinds) - 1:
        return
    groups = []
    for part, kind in zip(parts, kinds):
        if kind == "item":
            _item(part, found)
        elif kind == "system":
            record_system(found, part, WRITTEN)
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
    words = part.replace("-", " ").split() if len(part) < 40 else ()
    if 0 < len(words) < 6 and system_of(part) is not None and version_at(words[-1]) is not None:
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
        record_python(found, text, WRITTEN)
    elif "driver" in name:
        record_driver(found, text, WRITTEN)
    elif name in _OWN:
        version = short_version(text)
        found.record("cuda_toolkit", version if version and "." in version and float(version) < 30 else None, WRITTEN)
    elif (distribution := distribution_of(name)) is not None:
        specifier = range_at(text)
        version = version_at(text) if specifier is None else None
        if version is None or "." in version:
            found.package(distribution, version, WRITTEN, None, EMPTY, specifier)


_PIN = re.compile(
    r"(?<![\w.`-])`{0,2}(?P<name>[A-Za-z][\w-]{1,30})`{0,2}(?: ?==? ?| {1,2}(?:[Vv]ersion:? )?v?| \(v?(?=[\w.+]{3,30}\)))"
    r"(?P<version>\d{1,4}\.\d{1,4}(?:\.\w{1,12}){0,3}(?:\+\w{1,12})?)(?![\w.]*\d)"
)
_RELEASE_OF = re.compile(
    r"\b(?:[Vv]ersion |v)(?P<version>\d{1,4}\.\d{1,4}(?:\.\w{1,12}){0,3}(?:\+\w{1,12})?) of `{0,2}(?P<name>[A-Za-z][\w-]{1,30})"
)
_MACHINE = re.compile(
    r"\b(?:on|using|with|have|own) (?P<devices>(?:(?!\bon\b|\bdrivers?\b|\bcuda version\b)[^,.;]){2,60})", re.IGNORECASE
)
_STATED = (
    ("driver", r"drivers?(?: version)?:? v?(?P<value>\d{3}(?:\.\d{1,3}){0,2})"),
    ("python", r"python ?v?(?P<value>3\.\d{1,2}(?:\.\d{1,2})?)"),
    ("cuda_toolkit", r"cuda(?: version| toolkit)? ?v?(?P<value>1\d\.\d)"),
)
_FACTS = tuple((field, re.compile(rf"(?<![/\\\w.+-]){name}(?![\d.]*\d)", re.IGNORECASE)) for field, name in _STATED)
_COMPARES = re.compile(
    r"\b(?:work(?:s|ed|ing)?|fine(?![- ]?tun)|downgrad\w{0,4}|before|previous\w{0,2}|older|newer|fix\w{0,2}|instead|until"
    r"|should|requir\w{0,3}|support\w{0,2}|expect\w{0,2}|need\w{0,2}|would|could|if|than|other|another|whereas|earlier|only)\b|n[o']t\b",
    re.IGNORECASE,
)
"""Words of a sentence about another release, another machine, or what ought to be."""
_UNCLEAR = re.compile(r"\b(?:upgrad\w{0,4}|updat\w{0,3}|since|after|releas\w{0,2}|tr(?:y|ied)|latest|from|to)\b", re.IGNORECASE)
"""Words of a sentence in which a release may be another than the installed one; GPUs, drivers and Python do not change so."""
_NOW = re.compile(
    r"\b(?:(?:up(?:grad|dat)|bump|mov|switch)(?:ed|ing)|(?:I|we) (?:upgrade|update|bump|move|switch)) "
    r"(?:(?:my|the|our) )?(?:(?P<before>[\w-]{2,30}) (?:from \S{1,20} )?)?to "
    r"(?:the )?(?:(?:latest|newest|new) )?(?:version )?(?:`?(?P<name>[A-Za-z][\w-]{1,30})`?(?: ?==? ?| (?:version )?v?))?"
    r"(?P<version>\d{1,4}\.\d{1,4}(?:\.\w{1,12}){0,3})(?![\w.]*\d)"
    r"|\b(?:using|running|have|installed|with|on) (?:the )?(?:latest|newest|current) (?:version |release )?(?:of )?"
    r"[`*]{0,3}(?P<name_2>(?:HF )?[A-Za-z][\w-]{1,30})[`*]{0,3}(?: ?==? ?| (?:version )?v?|, v?| \(v?)"
    r"(?P<version_2>\d{1,4}\.\d{1,4}(?:\.\w{1,12}){0,3})(?![\w.]*\d)"
    r"|\b(?:my|our|the|installed) (?P<name_3>[A-Za-z][\w-]{1,30}) version(?: is|:) (?:the (?:latest|newest|current) )?\(?v?"
    r"(?P<version_3>\d{1,4}\.\d{1,4}(?:\.\w{1,12}){0,3})(?![\w.]*\d)",
    re.IGNORECASE,
)
"""``after upgrading vllm to 0.8.3``, ``the latest trl (0.20.0)``: the release after the move is the installed one."""
_STEP = re.compile(
    r"`?(?P<name>[A-Za-z][\w-]{1,30})`?(?: (?:moved|went|goes|was (?:upgraded|updated|bumped)))?"
    r" from `?v?(?P<before>\d[\w.]{1,20}?)(?:\.x)?`? to `?v?(?P<version>\d{1,4}\.\d{1,4}(?:\.\w{1,12}){0,3})(?![\w.]*\d)"
)
"""``transformers from 4.51.3 to 4.52.4``."""
_MOVED = re.compile(r"\b(?:up(?:grad|dat)|bump|mov(?:e|ing)|switch|went)", re.IGNORECASE)
_GLUED = re.compile(
    r"(?<![\w./-])(?P<name>[A-Za-z][A-Za-z_-]{3,30})"
    r"(?P<version>\d{1,4}\.\d{1,4}(?:\.\w{1,12}){0,3}(?:\+cu\d{3})?)(?=[+,;、 ]|$)"
)
"""``torch2.0.0+transformers4.28.0``."""
_ADVICE = re.compile(
    r"\b(?:tr(?:y|ied|ying)|recommend\w*|suggest\w*|consider\w*|please|can|will|must|might|may|planning)\b", re.IGNORECASE
)
"""Words of a sentence in which a move is proposed, and not reported."""
_BROKEN = re.compile(
    r"\b(?:stop\w* working|(?:not|never|no longer) (?:\w+ )?work\w*|\w+n['’]?t (?:\w+ )?work\w*)\b", re.IGNORECASE
)
_OTHERWISE = re.compile(
    r"\b(?:work(?:s|ed|ing)|good|work-?arounds?|(?:possible )?(?:solutions?|fix(?:es)?)|expected behaviou?r)\b", re.IGNORECASE
)
_TITLE = re.compile(r" {0,3}(?:#{1,6} .{2,60}|\*\*[^*]{2,60}\*\*:?)$")


def of_this_environment(lines: Sequence[Line]) -> list[Line]:
    """Return the lines without those about another environment: below ``Versions which worked:`` or ``### Workaround``.

    What a label ends with a colon for is the paragraph or the block below it; a heading stands above everything up to the next.
    """
    kept: list[Line] = []
    other, begun, whole = False, False, False
    for line in lines:
        title = not line.fenced and _TITLE.match(line.text) is not None
        if title or (len(line.text) < 80 and line.text.rstrip(" *`_").endswith(":")):
            other, begun, whole = _OTHERWISE.search(_BROKEN.sub("", line.text)) is not None, False, title
        elif line.text:
            begun = True
        elif other and begun and not whole and (line.edge or not line.fenced):
            other = False
        if not other or line.edge:
            kept.append(line)
    return kept


_LOGGED = re.compile(
    r"\s{0,20}(?:\[|\(\w{1,40} pid=|\d{4}-\d\d-\d\d|"
    r"(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b|Traceback|File \")"
)
_SENTENCES = 500
"""Maximum number of prose lines read."""


def _mentioned(lines: Sequence[Line], found: Findings) -> None:
    """Record releases, devices and other facts in sentences, if nothing else states them and the sentence compares nothing."""
    known = set(found.packages)
    devices: list[tuple[tuple[Accelerator, ...], bool]] = []
    facts: dict[str, set[str]] = {field: set() for field, _ in _FACTS if field not in found.values}
    prose = [
        line.text for line in lines if not line.fenced and 12 < len(line.text) <= 2 * _LONGEST and line.number not in found.used
    ]
    for text in prose[:_SENTENCES]:
        if not any(character.isdecimal() for character in text) or _LOGGED.match(text):
            continue
        for sentence in re.split(r"[.!?] ", text):
            plain = _BROKEN.sub("", sentence)
            if _COMPARES.search(plain):
                plain = _move_in(plain)
            for name, version in _releases_in(plain):
                if name not in known:
                    found.package(name, version, HINTED)
            mentions = (devices_in(match["devices"]) for match in _MACHINE.finditer(plain))
            devices += [each for each in mentions if each is not None]
            for field, pattern in _FACTS:
                if field in facts:
                    facts[field].update(match["value"] for match in pattern.finditer(plain))
    if devices and not found.devices and len({repr(each) for each, _ in devices}) == 1:
        found.accelerators(devices[0][0], BY_HAND, counted=any(counted for _, counted in devices))
    for field, values in facts.items():
        if len(values) == 1:
            found.record(field, values.pop(), HINTED)


def _move_in(sentence: str) -> str:
    """Return the clause about a move that begins a sentence: "When I upgrade to …, it does not …"; empty if there is none."""
    clause = sentence.partition(", ")[0]
    return clause if _NOW.search(clause) is not None and not _COMPARES.search(clause) else ""


def _releases_in(sentence: str) -> Iterator[tuple[str, str | None]]:
    """Return the distributions and releases that a sentence says are installed."""
    for match in () if _ADVICE.search(sentence) else _NOW.finditer(sentence):
        names = (match["name"] or match["before"] or "", match["name_2"] or match["name_3"] or "")
        name = next((known for each in names if (known := distribution_of(each))), None)
        if name is not None:
            yield name, version_at(match["version"] or match["version_2"] or match["version_3"])
    for match in _STEP.finditer(sentence) if _MOVED.search(sentence) and not _ADVICE.search(sentence) else ():
        name, before, after = (
            distribution_of(match["name"]),
            version_at(match["before"]),
            version_at(match["version"]),
        )
        if name is not None and before is not None and after is not None and key_of(before) < key_of(after):
            yield name, after
    if not _UNCLEAR.search(sentence):
        for match in (*_PIN.finditer(sentence), *_RELEASE_OF.finditer(sentence), *_GLUED.finditer(sentence)):
            if (name := distribution_of(match["name"])) is not None:
                yield name, version_at(match["version"])


# --- Environment variables in reports, shell commands and Python, and before commands


_LISTED = re.compile(r"(?P<name>[A-Z][A-Z0-9_]{2,60})=(?P<value>\S[^\n]{0,1500})$")
_SET = re.compile(
    r"\W{0,6}(?:export|set|%env|%set_env|ENV|setenv) +(?P<name>[A-Z][A-Z0-9_]{2,60})[= ](?P<value>[^\s;&|]{1,300})"
)
_COMMANDS = (
    "python3?|uv|accelerate|torchrun|deepspeed|vllm|swift|trl|llamafactory-cli|axolotl|ray|srun|mpirun|bash|sh|nohup|sglang|"
    "lmdeploy|pytest|poetry|numactl|litgpt|tune|pip3?"
)
_BEFORE = re.compile(
    r"(?:[$#>%!] ?|[-*] |`|sudo |CMD )?(?:env )?"
    rf"(?P<set>(?:[A-Z][A-Z0-9_]{{2,60}}=[^\s;&|]{{1,300}} +){{1,20}})(?=(?:{_COMMANDS})\b|\./)"
)
_ASSIGNED = re.compile(r"([A-Z][A-Z0-9_]{2,60})=(\S+)")
_PYTHON = re.compile(r"os\.environ\[[\"']([A-Z][A-Z0-9_]{2,60})[\"']\] ?= ?[\"']([^\"'\n]{1,300})[\"']")


def read_variables(lines: Sequence[Line], found: Findings) -> None:
    """Record environment variables; a value that contains a shell's ``$`` is unknown."""
    for line in lines:
        text = line.text
        if "=" not in text and "env" not in text.lower():
            continue
        text = text.strip(" `")
        listed = _LISTED.match(text) if text[:1].isupper() else None
        before = _BEFORE.match(text) if "=" in text else None
        if before is not None:
            for match in _ASSIGNED.finditer(before["set"]):
                _record(found, match[1], match[2])
        elif listed is not None and " " not in text[: listed.end("name")]:
            _record(found, listed["name"], listed["value"])
        elif (assigned := _SET.match(text) or (_PYTHON.match(text) if "environ" in text else None)) is not None:
            _record(found, assigned[1], assigned[2])
        else:
            continue
        found.used.add(line.number)


def _record(found: Findings, name: str, value: str) -> None:
    value = value.strip().strip("'\"")
    if "$" not in value and "<" not in value and "{" not in value:
        found.variable(name, value)
