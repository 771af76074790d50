"""What conda, poetry, pdm, pipenv and pixi install; ``install_command`` beside this hands their commands over."""

from __future__ import annotations

from collections.abc import Sequence

from compat.formats.conda.spec import conda_distribution, parse_match_spec
from compat.formats.installs.words import (
    Install,
    LockInstall,
    Options,
    has,
    is_unresolved,
    names_of,
    sorted_out,
    split_options,
    values,
)
from compat.formats.registry import PROGRAMS
from compat.model import Distribution
from compat.records import replace

_CONDA_VALUED = frozenset((
    "n", "name", "p", "prefix", "c", "channel", "file", "f", "solver", "experimental-solver", "platform", "subdir", "clone",
    "repodata-fn", "environment", "e", "manifest-path", "feature", "r", "root-prefix", "rc-file", "channel-priority",
))  # fmt: skip
_PROJECT_VALUED = frozenset((
    "E", "extras", "G", "group", "groups", "with", "without", "only", "only-root", "python", "source", "p", "project",
    "C", "directory", "platform", "markers", "L", "lockfile", "save-path", "categories", "i", "index", "platforms",
    "pypi-mirror",
))  # fmt: skip


def conda(words: Sequence[str]) -> Install | None:
    """conda, mamba and micromamba: what they install, ``None`` for their other commands."""
    options, operands = split_options(words, _CONDA_VALUED)
    command = " ".join(operands[:2]) if operands[:1] == ["env"] else "".join(operands[:1])
    if command in ("env create", "env update"):
        return Install(manager="conda", locks=(LockInstall((values(options, "f", "file") or ["environment.yml"])[-1]),))
    if command in ("remove", "uninstall"):
        return Install(removed=tuple(each.name for each in _conda_specs(operands[1:]).requirements), manager="conda")
    if command not in ("install", "create", "update", "upgrade"):
        return None
    files = values(options, "file", "f")
    environments = [file for file in files if file.endswith((".yml", ".yaml", ".lock"))]
    return replace(
        _conda_specs(operands[1:]),
        locks=tuple(LockInstall(file) for file in environments),
        files=tuple((file, False) for file in files if file not in environments),
    )


def _conda_specs(specs: Sequence[str]) -> Install:
    requirements: list[Distribution] = []
    notes: list[str] = []
    python = None
    for text in specs:
        try:
            spec = parse_match_spec(text.partition("$")[0].rstrip("=<>!~ ") if is_unresolved(text) else text)
        except ValueError:
            notes.append(f"{text}: not read, expected a conda package")
            continue
        if is_unresolved(text):
            notes.append(f"{text}: its version is only known at run time")
        if spec.name == "python":
            python = spec.version or _family(spec.specifier) or python
        else:
            details = {"channel": spec.channel, "spec": spec.unclear}
            requirements.append(conda_distribution(spec.name, spec.version, spec.build, details, spec.specifier))
    return Install(requirements=tuple(requirements), manager="conda", notes=tuple(dict.fromkeys(notes)), python=python)


def _family(specifier: str | None) -> str | None:
    """``==3.11.*`` → ``3.11``."""
    text = (specifier or "").removeprefix("==").removesuffix(".*")
    return text if all(part.isascii() and part.isdigit() for part in text.split(".")) else None


def project(manager: str, words: Sequence[str]) -> Install | None:
    """poetry, pdm, pipenv and pixi: they add to a project, or install what its lock file says."""
    lock = PROGRAMS[manager]
    options, operands = split_options(words, _PROJECT_VALUED)
    command = "".join(operands[:1])
    if command == "remove" or command == "uninstall":
        return Install(removed=names_of(operands[1:]), manager=manager)
    if command == "add" or (command == "install" and manager == "pipenv" and len(operands) > 1):
        if manager == "pixi" and not has(options, "pypi"):
            return replace(_conda_specs(operands[1:]), manager=manager)
        return replace(sorted_out([_pinned(word) for word in operands[1:]], ()), manager=manager)
    if command not in ("install", "sync"):
        return None
    folder = "/".join(values(options, "C", "directory", "project")[-1:])
    extras = [name for value in values(options, "E", "extras") for name in value.replace(",", " ").split()]
    groups = _comma(options, "with", "only", "G", "group", "groups")
    dev_off = has(options, "no-dev", "prod", "production")
    if has(options, "dev", "d") and manager in ("pipenv", "pdm"):
        groups = (*groups, "develop" if manager == "pipenv" else "dev")
    chosen = LockInstall(
        file=f"{folder.rstrip('/')}/{lock}" if folder else lock,
        extras=tuple(extras),
        groups=groups,
        without=(*_comma(options, "without"), *(("dev",) if dev_off else ())),
        all_extras=has(options, "all-extras"),
        all_groups=has(options, "all-groups"),
        default_groups=not has(options, "only", "only-main"),
        only_groups=has(options, "only"),
        environment="".join(values(options, "e", "environment")[-1:]) or None,
    )
    return Install(manager=manager, locks=(chosen,))


def _comma(options: Options, *names: str) -> tuple[str, ...]:
    return tuple(name.strip() for value in values(options, *names) for name in value.split(",") if name.strip())


def _pinned(word: str) -> str:
    """Poetry's ``torch@2.6.0`` and ``torch@^2.6``: a plain version is a pin, a caret or tilde a lower bound."""
    name, sign, version = word.partition("@")
    if not sign or "://" in version or not version[:1].isdecimal():
        return name if sign and "://" not in version and version[:1] in ("l", "^", "~") else word
    return f"{name}=={version}"
