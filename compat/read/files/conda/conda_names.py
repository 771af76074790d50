"""conda's names of Python distributions that are called otherwise by pip."""

from __future__ import annotations

from compat.environment import normalized

_NAMES = {"pytorch": "torch"}
"""Only what rules ask about; everything else keeps the name it is listed under."""


def distribution_name(conda_name: str) -> str:
    """The normalised name of the distribution in a conda package: ``pytorch`` → ``torch``; most are called the same."""
    name = normalized(conda_name)
    return _NAMES.get(name, name)
