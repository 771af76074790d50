"""Commands that install something in a way that is not read: they are named instead of being passed over."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compat.errors import InputError
from compat.formats.installs.command import is_pip_name
from compat.syntax.shell_commands import ShellCommand
from compat.workload.wrappers import ELSEWHERE, SHELLS, program_name, unwrapped

_INSTALLERS = ("uv", "conda", "mamba", "micromamba", "poetry", "pdm", "pipenv", "pixi")
_HARMLESS = (
    *ELSEWHERE, "cat", "tee", "grep", "sed", "which", "alias", "test", "[", "[[", "apt", "apt-get", "apk", "dnf", "microdnf",
    "yum", "zypper", "brew", "npm", "rm", "ls",
)  # fmt: skip
"""Programs to which the name of an installer is data, or a package of the system."""
_COMMAND = re.compile(r"(?:^|[\s;&|(\"'/])(?:pip[\d.]*|uv pip|conda|mamba|micromamba)[\"',\s]+(?:-\S+\s+)*install\b")


def mentions_install(text: str) -> bool:
    """Whether a text contains what looks like an install command."""
    return "install" in text and _COMMAND.search(text) is not None


def installs_unread(command: ShellCommand) -> str | None:
    """Return the program that installs something unread, of a command that no reader of install commands understood."""
    try:
        rest = unwrapped(command.words, {})
    except InputError:
        rest = list(command.words)
    name = program_name(rest[0]) if rest else ""
    if not name or name in _HARMLESS:
        return None
    if any(_installs(rest[at + 1 : at + 7]) for at, word in enumerate(rest) if at and _is_installer(word)):
        return name
    runs_code = name in SHELLS or name.rstrip("0123456789.") in ("python", "perl")
    texts = [word for word in rest[1:] if " " in word] if runs_code else []
    return name if any(map(mentions_install, [*texts, *([command.taken or ""] if runs_code else [])])) else None


def _is_installer(word: str) -> bool:
    name = program_name(word)
    return name in _INSTALLERS or is_pip_name(name)


def _installs(words: Sequence[str]) -> bool:
    """Whether the words behind the name of an installer install something."""
    commands = [word for word in words if not word.startswith("-")][:2]
    return (commands[1:] if commands[:1] == ["pip"] else commands)[:1] in (["install"], ["add"], ["sync"])
