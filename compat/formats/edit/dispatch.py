"""Edits of files for a plan, verified by reading them back, and the commands to run afterwards. Nothing is run here."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Sequence

from compat.errors import InputError
from compat.formats.edit.changes import Change, checked, inverse, requirement_for
from compat.formats.edit.files import Edit
from compat.formats.listing import Listing
from compat.formats.registry import Commands, Format, format_of, read_content
from compat.formats.specifiers import admits
from compat.model import Distribution
from compat.records import record

_INDEXED = ("index", "nightly", None)


def problem_of(edit: Edit, form: Format, changes: Sequence[Change]) -> str | None:
    """Return what is wrong with an edit, or ``None``. ``changes`` are those that belong to this file."""
    try:
        after = form.listings(edit.path, edit.after)
    except InputError as problem:
        return f"it could no longer be read ({problem.message})"
    before = form.listings(edit.path, edit.before)
    if len(before) != len(after):
        return "it would list something else"
    others = (_problem_of_others(_own([old]), _own([new]), changes) for old, new in zip(before, after))
    return next(filter(None, others), None) or _problem_of_changes(_own(before), _own(after), changes)


def _own(listings: Sequence[Listing]) -> list[Distribution]:
    """Return what a file states itself, without its includes."""
    return [entry.distribution for listing in listings for entry in listing.entries if entry.file is None]


def problem_of_statements(old: Sequence[Distribution], new: Sequence[Distribution], changes: Sequence[Change]) -> str | None:
    """Like :func:`problem_of`, for one file's own requirements without its includes."""
    return _problem_of_others(old, new, changes) or _problem_of_changes(old, new, changes)


def _problem_of_others(old: Sequence[Distribution], new: Sequence[Distribution], changes: Sequence[Change]) -> str | None:
    named = {change.name for change in changes}
    different = Counter(_key(each) for each in old if each.name not in named)
    different.subtract(_key(each) for each in new if each.name not in named)
    changed = [stated[0] for stated, count in different.items() if count]
    return f"{min(changed)} would change too" if changed else None


def _key(found: Distribution) -> tuple[str, ...]:
    kind = None if found.source is None else found.source.kind
    source = "" if kind in _INDEXED else str(found.source)
    extras = ",".join(found.extra.get("extras", ()))
    return found.name, found.version or "", found.specifier or "", found.marker or "", extras, source


def _problem_of_changes(old: Sequence[Distribution], new: Sequence[Distribution], changes: Sequence[Change]) -> str | None:
    for change in changes:
        before, after = ([each for each in all_ if each.name == change.name] for all_ in (old, new))
        if change.after is None:
            if before and len(after) >= len(before):
                return f"{change.name} would stay"
            continue
        if change.is_direct_url:
            here = any(each.source is not None and each.source.kind not in _INDEXED for each in after)
        else:
            here = any(_admits_release(each, change.after) for each in after)
        if not here and (before or after):  # a constraint on a transitive dependency is not an entry
            return f"{change.name} would not be at {change.after}"
    return None


def _admits_release(found: Distribution, after: str) -> bool:
    if found.version is not None:
        return found.version == after or found.version == after.partition("+")[0]
    return found.specifier is None or admits(found.specifier, after)


# --- Edits of a file and its includes; each result is verified by reading it back.


def edits_for(path: str, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
    """Return the edits that apply ``changes`` to a file, sorted by path; none if nothing changes. ``depth`` counts includes.

    For a lock file, its source file is edited. :class:`InputError`, with file and line, if a change cannot be written
    safely. Nothing is written to disk.
    """
    wanted = checked(changes)
    if not wanted:
        return ()
    content = read_content(path)
    form = format_of(path, content)
    if form.sources:
        return edits_for(form.source_of(path), wanted, depth)
    built = next((change.name for change in wanted if change.no_binary), None)
    if built is not None and not form.says_build:
        raise InputError(f"cannot say that {built} is built from source: add --no-binary {built} to its install command", path)
    return _merged(form.edit(path, content, wanted, depth))


def verified(edits: tuple[Edit, ...], form: Format, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """Return the edits unchanged; :class:`InputError` if a file would not list what it should afterwards."""
    for edit in edits:
        problem = problem_of(edit, form, changes)
        if problem is not None:
            raise InputError(f"cannot be changed safely: {problem}", edit.path)
    return edits


def _merged(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the effective edits, each file once; :class:`InputError` if a file would change in two ways."""
    found: dict[str, Edit] = {}
    for edit in edits:
        other = found.setdefault(os.path.realpath(edit.path), edit)
        if other.after != edit.after:
            raise InputError("is included twice, with edits that contradict each other", edit.path)
    return tuple(sorted((edit for edit in found.values() if edit.before != edit.after), key=lambda edit: edit.path))


# --- Commands that lock, install and roll back. Nothing is run here.


_MIXED = "--index-strategy unsafe-best-match"
"""Without it uv takes every package available on a vendor's index from there, even if no release of it fits."""


def commands_for(
    path: str | None, changes: Sequence[Change], *, installer: str = "uv", python: str | None = None,
    architectures: Sequence[str] = (),
) -> Commands:  # fmt: skip
    """Return the commands that lock, install and roll back ``changes``; :class:`InputError` for an unreadable file.

    ``path`` is the edited file, ``None`` for an environment. ``installer`` is ``uv`` or ``pip``, ``python`` the
    interpreter of the environment, ``architectures`` are the compute capabilities to compile source installs for.
    """
    wanted = checked(changes)
    if not wanted:
        return Commands()
    pip = Installer(installer, python, tuple(architectures))
    moved = [change for change in wanted if change.direct or not change.implied] or wanted
    back = tuple(pip.commands([inverse(change) for change in moved])) if all(map(_can_roll_back, moved)) else ()
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
        return shlex.quote(text)

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


def _can_roll_back(change: Change) -> bool:
    """Whether the source of the previous version is known, so that it can be reinstalled."""
    source = change.before_source
    return source is None or source.kind in ("index", "nightly") or (source.kind in ("vcs", "url") and "url" in source.details)


def _quoted_requirement(requirement: str) -> str:
    """Return a requirement in double quotes, or shell-quoted if those do not protect all its characters."""
    return shlex.quote(requirement) if re.search(r'["$`\\!]', requirement) else f'"{requirement}"'
