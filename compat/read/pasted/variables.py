"""Environment variables that a report lists, that a shell command sets, or that stand before a command."""

from __future__ import annotations

import re

from compat.read.pasted.findings import Findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.read.pasted.plain_lines import Line

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
    """Names and values; a value with a shell's ``$`` in it is not known here."""
    for line in lines:
        text = line.text
        if "=" not in text and "env" not in text.lower():
            continue
        text = text.strip(" `")
        listed = _LISTED.match(text) if text[:1].isupper() else None
        before = _BEFORE.match(text) if "=" in text else None
        if before is not None:
            for match in _ASSIGNED.finditer(before["set"]):
                _say(found, match[1], match[2])
        elif listed is not None and " " not in text[: listed.end("name")]:
            _say(found, listed["name"], listed["value"])
        elif (assigned := _SET.match(text) or (_PYTHON.match(text) if "environ" in text else None)) is not None:
            _say(found, assigned[1], assigned[2])
        else:
            continue
        found.used.add(line.number)


def _say(found: Findings, name: str, value: str) -> None:
    value = value.strip().strip("'\"")
    if "$" not in value and "<" not in value and "{" not in value:
        found.variable(name, value)
