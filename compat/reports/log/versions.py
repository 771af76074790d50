"""Package versions that a log or an issue states unambiguously."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.model import normalized
from compat.reports.lines import read_lines
from compat.reports.words import distribution_of, is_version
from compat.versions import key_of

# how much a line counts: a program about itself at run time, an installer, a list of installed packages, a requirement
_RUNNING, _INSTALLED, _LISTED, _WRITTEN = 0, 1, 2, 3

_V = r"(v?\d[\w.!+-]{0,80})"
_NAME = r"([A-Za-z0-9](?:[\w.-]{0,80}[A-Za-z0-9])?)"
_PIN = re.compile(rf"(?:\[pip3?\] +|[-*+] +|\$? ?)?`?{_NAME}(?:\[[\w,. -]{{0,100}}\])?==={{0,1}}{_V}`?(?: *[;\\#].*)?,?$")
_PINS = re.compile(rf"{_NAME}(?:\[[\w,.-]{{0,100}}\])?=={_V}$")
_M = r"[`*]{0,3}"  # Markdown's marks around a name
_SAYS = re.compile(
    rf"(?:[-*] +)?{_M}([A-Za-z][\w -]{{0,40}}?){_M} [Vv]ersion(?: \([\w ?]{{1,30}}\))?{_M} ?[:=]{_M} *[`\"']?{_V}"
)
_PLAIN = re.compile(rf"(?:[-*+] +)?{_M}([A-Za-z][\w-]{{1,40}}){_M}(?: ?[:=] ?| {{2,}}|\t+){_M}[`\"']?{_V}[`\"'*]{{0,3}}$")
_OF_ITSELF = re.compile(rf">?>?>? ?(?:print\()?(\w{{1,40}})\.__version__\)? {{0,2}}(?:[:=]+ ?|-> ?)['\"]?{_V}")
_DS_REPORT = re.compile(rf"(torch|deepspeed) (?:info|version) \.{{3,60}} {_V}")
_SATISFIED = re.compile(rf"Requirement already satisfied: {_NAME}.{{0,400}} \({_V}\)$")
_BUILT_INS = re.compile(rf"\b(Unsloth|Transformers|vLLM|Torch|Pytorch|Triton|Xformers) ?[:=]? {_V}")

# programs' messages: distribution, words of the message, pattern
_SPOKEN: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("vllm", "engine (v", re.compile(rf"Initializing an? (?:V[01] )?LLM engine \({_V}\)")),
    ("vllm", "API server version", re.compile(rf"vLLM API server version {_V}")),
    ("deepspeed", "info: version", re.compile(rf"DeepSpeed info: version={_V}")),
    ("torch", "(you have ", re.compile(rf"^\s*PyTorch .{{0,60}}\(you have {_V}\)")),
    ("torch", "Disabling PyTorch because", re.compile(rf"Disabling PyTorch because .{{0,80}} but found {_V}")),
    ("numpy", "NumPy ", re.compile(r"(?:cannot be run in )?\bNumPy (\d+\.\d+\.\d+\w{0,20}) as it may crash")),
    ("wandb", "wandb version", re.compile(rf"Tracking run with wandb version {_V}")),
    ("flashinfer-cubin", "flashinfer-cubin version", re.compile(rf"flashinfer-cubin version \({_V}\)")),
    ("flashinfer-python", "does not match flashinfer", re.compile(rf"does not match flashinfer version \({_V}\)")),
)
_NUMBER = r"v?\d[\w.!+-]{0,80}"
_OF = r"[A-Za-z][\w-]{1,30}"
_JUDGED = re.compile(
    rf"\b(?:incompatible|untested|unsupported|detected|found|current|installed) `?(?P<name>{_OF})`? (?:version|==)[ :=(]{{0,3}}"
    rf"(?P<version>{_NUMBER})(?: for (?P<other>{_OF}) version (?P<of_other>{_NUMBER}))?"
    rf"|`?\b(?P<judged>{_OF})`? version [('`]?(?P<as>{_NUMBER})['`)]? (?:exceeds|below|installed|(?:is|are|was) (?:"
    r"too (?:old|new)|not (?:supported|tested|sufficient|compatible)|incompatible|below|older|unsupported))",
    re.IGNORECASE,
)
"""The running release in a program's sentence about it: ``incompatible torch version 2.7.1 for torchao version 0.15.0``."""
_HINTS = ("==", "ersion", "engine (v", "Unsloth", "Torch:", "Pytorch:", "Xformers", "nstalled ", "satisfied", "(you have ",
          "PyTorch ", "NumPy ", "Name: ", "Version: ", "[conda]", "flashinfer")  # fmt: skip


def versions_in(text: str) -> dict[str, str]:
    """Distribution (normalized as in PEP 503) → version.

    A program's own report counts more than an installer's, that more than a list of installed packages, and that more than a
    requirement. A distribution about which equally good lines contradict each other is left out.
    """
    stated: dict[str, dict[int, dict[str, None]]] = {}
    for name, version, weight in _all(text):
        version = version.removeprefix("v").rstrip(".,;:)-_")
        if name and "." in version and is_version(version):
            versions = stated.setdefault(normalized(name), {}).setdefault(weight, {})
            versions.pop(version, None)
            versions[version] = None
    found = {name: _agreed(by_weight) for name, by_weight in stated.items()}
    return {name: version for name, version in sorted(found.items()) if version is not None}


def _agreed(by_weight: dict[int, dict[str, None]]) -> str | None:
    """Return the single version on the best lines, with its local label (``+cu124``) if any line has one."""
    best = min(by_weight)
    versions = list(by_weight[best])
    if best == _INSTALLED:
        versions = versions[-1:]  # an installer's last word
    distinct = {key_of(version) for version in versions}
    if len(distinct) > 1:
        return None
    everything = [version for stated in by_weight.values() for version in stated if key_of(version) in distinct]
    labels = {version for version in everything if "+" in version}
    return labels.pop() if len(labels) == 1 else versions[0]


def _all(text: str) -> Iterator[tuple[str, str, int]]:
    uv_changes = re.search(r"^[ \t]{0,8}\+ [\w.-]{1,80}==", text, re.MULTILINE) is not None
    table, shown, asked = 0, "", ""
    for line in read_lines(text):
        stripped = line.text.strip()
        if table:
            row = _row(stripped, table)
            if row is not None:
                yield *row, _LISTED
                continue
            table = table if _is_rule(stripped) else 0
        table = table or _table_begins(stripped)
        if asked and (plain := re.match(rf"'?{_V}'?$", stripped)):
            yield asked, plain.group(1), _RUNNING
        asked = _asked(stripped)
        if not any(hint in stripped for hint in _HINTS):
            # name and version of a line that has nothing else (trl: 0.19.1)
            if len(stripped) < 80 and (match := _PLAIN.match(stripped)) and (name := distribution_of(match[1])):
                yield name, match[2], _LISTED
            continue
        if stripped.startswith("Name: "):
            shown = stripped[6:].strip()
        elif stripped.startswith("Version: ") and shown:
            yield shown, stripped[9:].strip(), _LISTED
            shown = ""
        else:
            yield from _line(stripped, uv_changes)


def _asked(stripped: str) -> str:
    """Return the module whose version is printed, at a Python prompt or in a notebook; the output is the next line."""
    if "__version__" not in stripped:
        return ""
    match = re.match(r"(?:>>> (?:print\()?|print\()(\w{1,40})\.__version__\)?$", stripped)
    return match.group(1) if match else ""


def _line(text: str, uv_changes: bool) -> Iterator[tuple[str, str, int]]:
    text = text[:8000]
    for name, hint, pattern in _SPOKEN:
        if hint in text and (match := pattern.search(text)):
            yield name, match.group(1), _RUNNING
    yield from _judged(text)
    if ("Unsloth" in text and "==((" in text) or "Xformers = " in text or text.startswith(("O^O/", "Unsloth 20")):
        for match in _BUILT_INS.finditer(text):  # unsloth's banner
            yield distribution_of(match[1]) or match[1], match[2], _RUNNING
    elif "Successfully installed " in text:
        for word in text.partition("Successfully installed ")[2].split():
            yield word.rpartition("-")[0], word.rpartition("-")[2], _INSTALLED
    elif match := _SATISFIED.match(text):
        yield match.group(1), match.group(2), _INSTALLED
    elif match := _SAYS.match(text) or _DS_REPORT.match(text) or _OF_ITSELF.match(text):
        yield distribution_of(match[1].strip()) or "", match[2], _RUNNING  # "CUDA version: 12.4" names none
    elif text.startswith("[conda] "):
        fields = text.split()
        if len(fields) == 5 and fields[4] == "pypi":
            yield fields[1], fields[2], _LISTED
    elif "==" in text:
        yield from _pins(text, uv_changes)


def _judged(text: str) -> Iterator[tuple[str, str, int]]:
    for match in _JUDGED.finditer(text) if "ersion" in text else ():
        for stated, version in (("name", "version"), ("other", "of_other"), ("judged", "as")):
            if match[stated] and (name := distribution_of(match[stated])):
                yield name, match[version], _RUNNING


def _pins(text: str, uv_changes: bool) -> Iterator[tuple[str, str, int]]:
    """Read lines that consist of ``name==version``; uv prints ``-`` before removed packages."""
    if uv_changes and text.startswith("- "):
        return
    weight = _INSTALLED if uv_changes and text.startswith("+ ") else _LISTED if text.startswith("[pip") else _WRITTEN
    if match := _PIN.match(text):
        yield match.group(1), match.group(2), weight
        return
    words = [word.strip("`'\"") for word in re.split(r"[,\s]+", text) if word.strip("`'\"")]
    matches = [_PINS.match(word) for word in words]
    if all(matches):
        for pin in matches:
            if pin is not None:
                yield pin.group(1), pin.group(2), _WRITTEN


_PIP, _CONDA = 1, 2


def _table_begins(stripped: str) -> int:
    """Return the kind of table whose header a line is: pip's, conda's, or 0 for neither."""
    words = stripped.split()
    if words[:2] == ["Package", "Version"]:
        return _PIP
    return _CONDA if words[:4] == ["#", "Name", "Version", "Build"] else 0


def _is_rule(stripped: str) -> bool:
    return bool(stripped) and not stripped.strip("- ")


def _row(stripped: str, table: int) -> tuple[str, str] | None:
    """Parse a table row into name and version; no version for conda's own packages, whose names may differ."""
    fields = stripped.split()
    if len(fields) < 2 or not re.match(rf"{_NAME}$", fields[0]) or not ("." in fields[1] and is_version(fields[1])):
        return None
    if table == _CONDA and (len(fields) < 4 or fields[3] != "pypi"):
        return fields[0], ""
    return fields[0], fields[1]
