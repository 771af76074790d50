"""What to run when files are edited, and instead: lock, install, take back. Nothing is run here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from compat.formats.edit.changes import Change, checked, inverse
from compat.formats.format import Commands
from compat.formats.registry import format_of, read_content
from compat.formats.requirements.text import requirement_for
from compat.records import record

_MIXED = "--index-strategy unsafe-best-match"
"""uv otherwise takes everything that a vendor's index has from there, also in a release that does not fit."""


def commands_for(
    path: str | None, changes: Sequence[Change], *, installer: str = "uv", python: str | None = None,
    architectures: Sequence[str] = (),
) -> Commands:  # fmt: skip
    """The commands that lock, install and take back ``changes``; :class:`InputError` for a file that cannot be read.

    ``path`` is the file that was edited, ``None`` for an environment. ``installer`` is ``uv`` or ``pip``, ``python`` the
    interpreter of the environment, ``architectures`` are the compute capabilities that source installs are built for.
    """
    wanted = checked(changes)
    if not wanted:
        return Commands()
    pip = Installer(installer, python, tuple(architectures))
    moved = [change for change in wanted if change.direct or not change.implied] or wanted
    back = tuple(pip.commands([inverse(change) for change in moved])) if all(map(_can_come_back, moved)) else ()
    here = tuple(pip.commands(moved))
    if path is None:
        return Commands(install=here, rollback=back)
    content = read_content(path)
    found = format_of(path, content).commands(path, content, wanted, pip)
    built = pip.variables() if any(change.is_built for change in wanted) else ""
    return Commands(found.lock, tuple(f"{built}{line}" for line in found.install) or here, back)


@record(frozen=True)
class Installer:
    """uv or pip, for one interpreter."""

    name: str
    python: str | None
    architectures: tuple[str, ...]

    @staticmethod
    def quoted(text: str) -> str:
        """A word that a shell takes as it is."""
        return shlex.quote(text)

    @staticmethod
    def requirement(change: Change) -> str:
        """What a change asks for, in double quotes, as people write them; in the shell's own where that would not do."""
        return _word(requirement_for(change))

    @staticmethod
    def upgrades(changes: Sequence[Change]) -> str:
        """The options that have uv (and pip-compile) move only what changes."""
        found = (c.name if c.is_direct_url else f"{c.name}=={c.after}" for c in changes if c.after is not None)
        return "".join(f" --upgrade-package {_word(each)}" for each in found)

    @property
    def mixed(self) -> str:
        """The option that has uv compare the releases of several indexes, as pip does."""
        return f" {_MIXED}" if self.name == "uv" else ""

    def start(self, verb: str) -> str:
        """``uv pip install``, for the interpreter."""
        if self.name == "uv":
            chosen = "" if self.python is None else f" --python {shlex.quote(self.python)}"
            return f"uv pip {verb}{chosen}"
        return f"{shlex.quote(self.python or 'python')} -m pip {verb}{' -y' if verb == 'uninstall' else ''}"

    def commands(self, changes: Sequence[Change]) -> list[str]:
        """First what goes, then releases together, those that violate what others require, and what is built."""
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

    def _again(self, change: Change) -> str:
        """What has an installer take the version that is there once more."""
        if change.before != change.after:
            return ""
        return f" --reinstall-package {change.name}" if self.name == "uv" else " --force-reinstall --no-deps"

    def build_options(self, changes: Sequence[Change]) -> str:
        """What an installation of many needs for those that are built against what is installed."""
        built = [change for change in changes if change.is_built]
        if self.name != "uv":
            return " --no-build-isolation" if built else ""
        return "".join(f" --no-build-isolation-package {change.name}{self._again(change)}" for change in built)

    def variables(self) -> str:
        """The variables of a build: the GPUs to compile for."""
        listed = ";".join(self.architectures)
        return f'TORCH_CUDA_ARCH_LIST="{listed}" ' if listed else ""

    def index_options(self, changes: Sequence[Change]) -> str:
        """The options that name the vendors' indexes."""
        urls = dict.fromkeys(change.index_url for change in changes if change.index_url is not None)
        options = "".join(f" --extra-index-url {shlex.quote(url)}" for url in urls)
        return options + self.mixed if options else ""

    def _build(self, change: Change) -> str:
        binary = "" if change.is_direct_url else f" --no-binary {change.name}"
        words = f"{self._again(change)}{binary} {self.requirement(change)}{self.index_options([change])}"
        return f"{self.variables()}{self.start('install')} --no-build-isolation{words}"


def _can_come_back(change: Change) -> bool:
    """Whether it is known where what was there came from."""
    source = change.before_source
    return source is None or source.kind in ("index", "nightly") or (source.kind in ("vcs", "url") and "url" in source.details)


def _word(requirement: str) -> str:
    """A requirement in double quotes, as people write them; in the shell's own where that would not do."""
    return shlex.quote(requirement) if re.search(r'["$`\\!]', requirement) else f'"{requirement}"'
