"""Which lines of a compiled requirements file somebody asked for: pip-compile and uv say so behind each line."""

from __future__ import annotations

import re

from compat.environment import normalized

_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[^\]]*\])?\s*(?:==|@)")
_ASKED = re.compile(r"#\s*(?:via\s+)?(?:-r |.*\((?:pyproject\.toml|setup\.py|setup\.cfg)\))")


def asked_for(text: str) -> frozenset[str]:
    """The normalised names that the comments (``# via -r requirements.in``) say are asked for; empty where none says so."""
    found = set()
    name = None
    for line in text.splitlines():
        start = _NAME.match(line)
        if start is not None:
            name = normalized(start[1])
        comment = line[line.find(" #") + 1 :] if " #" in line else ""  # those of the tools are indented
        if name is not None and _ASKED.match(comment):
            found.add(name)
        elif not line.strip():
            name = None
    return frozenset(found)
