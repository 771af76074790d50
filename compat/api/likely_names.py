"""The usual name of a file with a given text, for standard input. Apart, as regular expressions are slow to load."""

from __future__ import annotations

import re

_LIKELY_NAMES = (
    ("pyproject.toml", re.compile(r"^\[(?:project|build-system|tool\.poetry)\]", re.MULTILINE)),
    ("Dockerfile", re.compile(r"\A(?:[ \t\r]*(?:#.*)?\n|ARG .*\n)*FROM \S+", re.IGNORECASE)),
    ("environment.yml", re.compile(r"^dependencies:[ \t\r]*$", re.MULTILINE)),
)
"""The names of files that have no mark of a format, by a line in them."""
_REQUIREMENT = re.compile(r"\s*(?:$|#|-[-\w]|[A-Za-z\d][\w.-]*\s*(?:\[[^]]*\]\s*)?(?:$|[;#@]|[=<>!~]=?))")
"""A line of a requirements file; a name and a version without an operator are of ``pip list``."""


def likely_name(text: str) -> str | None:
    """Return the usual name of a file with this text; ``None`` if its format has a mark, or it is no such file."""
    name = next((name for name, first in _LIKELY_NAMES if first.search(text)), None)
    if name is None and text.strip() and all(map(_REQUIREMENT.match, text.splitlines())):
        return "requirements.txt"
    return name
