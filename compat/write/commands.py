"""What to run when files are edited, and instead: lock, install, take back. Nothing is run here."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from compat.read.files.kinds import kind_of, read_content
from compat.read.files.requirements.requirement_lines import decode, header
from compat.records import record
from compat.write.changes import Change, checked, inverse
from compat.write.kinds import LOCK_KINDS, source_of_lock
from compat.write.pyproject import lock_tool
from compat.write.requirement_text import requirement_for

_MIXED = "--index-strategy unsafe-best-match"
"""uv otherwise takes everything that a vendor's index has from there, also in a release that does not fit."""
_SYNC = {"uv": "uv sync", "poetry": "poetry install", "pdm": "pdm sync", "pipenv": "pipenv sync", "pixi": "pixi install"}
_COMPILERS = ("uv pip compile", "pip-compile")


@record(frozen=True)
class Commands:
    """Lines for a shell, in order. ``lock`` brings the lock file up to the edited file and moves nothing else, ``install``
    changes the environment, ``rollback`` brings the releases back that were there before."""

    lock: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()


def commands(
    path: str | None, changes: Sequence[Change], *, installer: str = "uv", python: str | None = None,
    architectures: Sequence[str] = (),
) -> Commands:  # fmt: skip
    """See :func:`compat.write.commands_for`; :class:`InputError` for a file that cannot be read."""
    wanted = checked(changes)
    if not wanted:
        return Commands()
    pip = _Installer(installer, python, tuple(architectures))
    moved = [change for change in wanted if change.direct or not change.implied] or wanted
    back = tuple(pip.commands([inverse(change) for change in moved])) if all(map(_can_come_back, moved)) else ()
    here = tuple(pip.commands(moved))
    if path is None:
        return Commands(install=here, rollback=back)
    lock, install = _for_file(path, wanted, pip)
    if any(change.is_built for change in wanted):
        install = tuple(f"{pip.variables()}{line}" for line in install)
    return Commands(lock, install or here, back)


@record(frozen=True)
class _Installer:
    """uv or pip, for one interpreter."""

    name: str
    python: str | None
    architectures: tuple[str, ...]

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
                words = " ".join(_word(requirement_for(change)) for change in together)
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
        """What a build is told: the GPUs to compile for."""
        listed = ";".join(self.architectures)
        return f'TORCH_CUDA_ARCH_LIST="{listed}" ' if listed else ""

    def index_options(self, changes: Sequence[Change]) -> str:
        """The options that name the vendors' indexes."""
        urls = dict.fromkeys(change.index_url for change in changes if change.index_url is not None)
        options = "".join(f" --extra-index-url {shlex.quote(url)}" for url in urls)
        return f"{options} {_MIXED}" if options and self.name == "uv" else options

    def _build(self, change: Change) -> str:
        binary = "" if change.is_direct_url else f" --no-binary {change.name}"
        words = f"{self._again(change)}{binary} {_word(requirement_for(change))}{self.index_options([change])}"
        return f"{self.variables()}{self.start('install')} --no-build-isolation{words}"


def _can_come_back(change: Change) -> bool:
    """Whether it is known where what was there came from."""
    source = change.before_source
    return source is None or source.kind in ("index", "nightly") or (source.kind in ("vcs", "url") and "url" in source.details)


def _word(requirement: str) -> str:
    """A requirement in double quotes, as people write them; in the shell's own where that would not do."""
    return shlex.quote(requirement) if re.search(r'["$`\\!]', requirement) else f'"{requirement}"'


def _for_file(path: str, changes: Sequence[Change], pip: _Installer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    content = read_content(path)
    kind = "Pipfile" if os.path.basename(path) == "Pipfile" else kind_of(path, content)
    word = shlex.quote(path)
    if kind == "requirements":
        return _requirements(path, decode(content, path), changes, pip)
    if kind == "script":
        lock = _uv_lock(changes, f" --script {word}") if os.path.isfile(f"{path}.lock") else ()
        return lock, (f"uv run {word}",)
    if kind == "conda":
        return _conda(path, changes), (f"conda env update --file {word}",)
    if kind == "dockerfile":
        return (), (f"docker build --file {word} {shlex.quote(os.path.dirname(path) or '.')}",)
    if kind == "shell":
        return (), (f"bash {word}",)
    if kind == "conda-lock":
        return _conda(source_of_lock(path, kind), changes), (f"conda-lock install {word}",)
    tool = LOCK_KINDS.get(kind) or ("pipenv" if kind == "Pipfile" else lock_tool(path))
    if kind == "uv" and path.endswith(".py.lock"):
        script = shlex.quote(path.removesuffix(".lock"))
        return _uv_lock(changes, f" --script {script}"), (f"uv run {script}",)
    return _project(path, tool, changes, pip)


def _project(
    path: str, tool: str | None, changes: Sequence[Change], pip: _Installer
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    folder = os.path.dirname(path)
    here = f"cd {shlex.quote(folder)} && " if folder else ""
    if tool == "pylock":
        source = os.path.basename(source_of_lock(path, "pylock"))
        name = os.path.basename(path) if path.endswith(".toml") and "pylock" in path else "pylock.toml"
        options = f" --output-file {name}{_upgrades(changes)}{pip.index_options(changes)}"
        return (f"{here}uv pip compile {source}{options}",), (f"{here}uv pip sync {name}",)
    sync = _SYNC.get(tool or "")
    return tuple(f"{here}{each}" for each in _lock(tool, changes)), (f"{here}{sync}",) if sync else ()


def _lock(tool: str | None, changes: Sequence[Change]) -> tuple[str, ...]:
    """The command that locks: only what changes moves."""
    names = [change.name for change in changes if change.after is not None]
    listed = " ".join(names)
    if tool == "uv":
        return _uv_lock(changes, "")
    if tool == "poetry":
        return (f"poetry update --lock {listed}" if names else "poetry lock",)
    if tool == "pdm":
        return ("pdm lock --update-reuse",)  # what is pinned anew moves, everything else stays
    if tool == "pipenv":
        words = " ".join(_word(requirement_for(change)) for change in changes if change.after is not None)
        return (f"pipenv upgrade --lock-only {words}" if names else "pipenv lock",)
    if tool == "pixi":
        return (f"pixi update --no-install {listed}" if names else "pixi lock",)
    return ()


def _uv_lock(changes: Sequence[Change], options: str) -> tuple[str, ...]:
    return (f"uv lock{options}{_upgrades(changes)}",)


def _upgrades(changes: Sequence[Change]) -> str:
    found = (c.name if c.is_direct_url else f"{c.name}=={c.after}" for c in changes if c.after is not None)
    return "".join(f" --upgrade-package {_word(each)}" for each in found)


def _conda(path: str, changes: Sequence[Change]) -> tuple[str, ...]:
    folder = os.path.dirname(path)
    for name in ("conda-lock.yml", "conda-lock.yaml"):
        lock = os.path.join(folder, name)
        if os.path.isfile(lock):
            names = "".join(f" --update {change.name}" for change in changes if change.after is not None)
            return (f"conda-lock lock --file {shlex.quote(path)} --lockfile {shlex.quote(lock)}{names}",)
    return ()


def _requirements(path: str, text: str, changes: Sequence[Change], pip: _Installer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What was compiled is compiled again, with the command it says it was made by."""
    word = shlex.quote(path)
    built = pip.build_options(changes)
    install = f"{pip.start('install')} -r {word}{built}"
    if any(change.index_url is not None for change in changes) and pip.name == "uv":
        install += f" {_MIXED}"
    stem, ending = os.path.splitext(path)
    if ending == ".in" and os.path.isfile(f"{stem}.txt"):
        output = shlex.quote(f"{stem}.txt")
        lock = f"uv pip compile {word} --output-file {output}{_upgrades(changes)}{pip.index_options(changes)}"
        return (lock,), (f"{pip.start('install')} -r {output}{built}",)
    made = next((line for line in header(text.splitlines()) if line.startswith((*_COMPILERS, "uv export"))), None)
    if made is None or not re.fullmatch(r"[\w ./=:,@+'\"\[\]<>!~-]+", made):
        return (), (install,)
    if made.startswith("uv export"):
        return (*_uv_lock(changes, ""), made), (install,)
    return (f"{made}{_upgrades(changes)}",), (install,)
