"""The commands of uv or pip that make changes, for one interpreter."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from compat.formats.edit.changes import Change, requirement_for
from compat.records import record

_MIXED = "--index-strategy unsafe-best-match"
"""Without it uv takes every package available on a vendor's index from there, even if no release of it fits."""


@record(frozen=True)
class Installer:
    """uv or pip, for one interpreter."""

    name: str
    python: str | None
    architectures: tuple[str, ...]

    @staticmethod
    def quoted(path: str) -> str:
        """Quote a path for the shell; a tool must not take one that begins with a dash for an option."""
        return shlex.quote(f"./{path}" if path.startswith("-") else path)

    def in_folder_of(self, path: str) -> str:
        """Return what is written before a command that runs in the folder of a file."""
        folder = os.path.dirname(path)
        return f"cd {self.quoted(folder)} && " if folder else ""

    @staticmethod
    def requirement(change: Change) -> str:
        """Return the requirement of a change in double quotes, or shell-quoted if those do not protect all its characters."""
        return _quoted_requirement(requirement_for(change))

    @staticmethod
    def upgrades(changes: Sequence[Change]) -> str:
        """Return the options that make uv (and pip-compile) upgrade only what changes."""
        found = (c.name if c.is_direct_url else f"{c.name}=={c.after}" for c in changes if c.after is not None)
        return "".join(f" --upgrade-package {_quoted_requirement(each)}" for each in found)

    @property
    def mixed(self) -> str:
        """Return the option that makes uv compare the releases of several indexes, as pip does."""
        return f" {_MIXED}" if self.name == "uv" else ""

    def start(self, verb: str) -> str:
        """Return ``uv pip install``, for the interpreter."""
        if self.name == "uv":
            chosen = "" if self.python is None else f" --python {shlex.quote(self.python)}"
            return f"uv pip {verb}{chosen}"
        return f"{shlex.quote(self.python or 'python')} -m pip {verb}{' -y' if verb == 'uninstall' else ''}"

    def commands(self, changes: Sequence[Change]) -> list[str]:
        """Return the commands: removals, then all releases together, overrides with ``--no-deps``, and source builds."""
        found: list[str] = []
        gone = [change.name for change in changes if change.after is None]
        if gone:
            found.append(f"{self.start('uninstall')} {' '.join(gone)}")
        built = [change for change in changes if change.after is not None and change.is_built]
        releases = [change for change in changes if change.after is not None and change not in built]
        forced = [change for change in releases if change.override]
        for together, option in (([each for each in releases if not each.override], ""), (forced, "--no-deps ")):
            if together:
                words = " ".join(map(self.requirement, together))
                found.append(f"{self.start('install')} {option}{words}{self.index_options(together)}")
        return [*found, *map(self._build, built)]

    def _reinstall(self, change: Change) -> str:
        if change.before != change.after:
            return ""
        return f" --reinstall-package {change.name}" if self.name == "uv" else " --force-reinstall --no-deps"

    def build_options(self, changes: Sequence[Change]) -> str:
        """Return the options for packages that are built against installed ones."""
        built = [change for change in changes if change.is_built]
        if self.name != "uv":
            return " --no-build-isolation" if built else ""
        return "".join(f" --no-build-isolation-package {change.name}{self._reinstall(change)}" for change in built)

    def variables(self) -> str:
        """Return the environment variables of a build: the GPU architectures to compile for."""
        listed = ";".join(self.architectures)
        return f'TORCH_CUDA_ARCH_LIST="{listed}" ' if listed else ""

    def index_options(self, changes: Sequence[Change]) -> str:
        """Return the options for the vendors' indexes."""
        urls = dict.fromkeys(change.index_url for change in changes if change.index_url is not None)
        options = "".join(f" --extra-index-url {shlex.quote(url)}" for url in urls)
        return options + self.mixed if options else ""

    def _build(self, change: Change) -> str:
        binary = "" if change.is_direct_url else f" --no-binary {change.name}"
        words = f"{self._reinstall(change)}{binary} {self.requirement(change)}{self.index_options([change])}"
        return f"{self.variables()}{self.start('install')} --no-build-isolation{words}"


def _quoted_requirement(requirement: str) -> str:
    """Return a requirement in double quotes, or shell-quoted if those do not protect all its characters."""
    return shlex.quote(requirement) if re.search(r'["$`\\!]', requirement) else f'"{requirement}"'
