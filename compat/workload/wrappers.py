"""Programs that start another program: the command that they run follows their options."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.records import record
from compat.redact import excerpt

if TYPE_CHECKING:
    Options = list[tuple[str, str]]
    """(name without dashes, ``_`` for ``-``; value, empty for a flag) in order."""


DEPTH = 16
"""Maximum nesting of programs that start other programs."""
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")
_LIKE_SHELLS = (*SHELLS, "su", "runuser", "flock")
"""Programs that pass the text after ``-c`` to a shell."""
_MOST_OPTIONS = 30
"""Words in which ``-c`` is searched for."""
CONTAINERS = ("docker", "podman", "nerdctl")
"""Programs that run a command in a container of an image."""
ELSEWHERE = (*CONTAINERS, "kubectl", "ssh", "pdsh", "gcloud", "echo", "printf")
"""Programs that run the command after them on another machine, in a container, or not at all."""

_UV = frozenset((
    "with", "with_requirements", "with_editable", "python", "p", "extra", "group", "only_group", "no_group", "no_extra",
    "env_file", "index", "index_url", "i", "default_index", "extra_index_url", "find_links", "f", "project", "directory",
    "package", "config_file", "cache_dir", "index_strategy", "keyring_provider", "resolution", "prerelease",
    "exclude_newer", "link_mode", "refresh_package", "reinstall_package", "upgrade_package", "P", "config_setting", "C",
    "color", "from", "w", "torch_backend", "python_platform",
))  # fmt: skip
_CONDA = frozenset(("n", "name", "p", "prefix", "cwd", "e", "env"))
_CONTAINER = frozenset((
    "B", "bind", "env", "env_file", "H", "home", "pwd", "W", "workdir", "overlay", "o", "S", "scratch", "network", "app",
))  # fmt: skip


@record(frozen=True)
class _Wrapper:
    """How a program runs another one.

    ``subcommands`` are those that run it, ``valued`` the options that take a value, ``operands`` the number of words between
    the options and the other program.
    """

    subcommands: tuple[str, ...] = ()
    valued: frozenset[str] = frozenset()
    operands: int = 0


_WRAPPERS = {
    "nohup": _Wrapper(),
    "time": _Wrapper(valued=frozenset("fo")),
    "nice": _Wrapper(valued=frozenset(("n", "adjustment"))),
    "ionice": _Wrapper(valued=frozenset(("c", "n", "class", "classdata"))),
    "chrt": _Wrapper(operands=1),
    "timeout": _Wrapper(valued=frozenset(("s", "k", "signal", "kill_after")), operands=1),
    "stdbuf": _Wrapper(valued=frozenset(("i", "o", "e", "input", "output", "error"))),
    "setsid": _Wrapper(),
    "exec": _Wrapper(valued=frozenset("a")),
    "command": _Wrapper(),
    "sudo": _Wrapper(valued=frozenset(("u", "g", "user", "group", "h", "host", "C", "p", "r", "t", "D", "chdir"))),
    "doas": _Wrapper(valued=frozenset("uC")),
    "gosu": _Wrapper(operands=1),
    "su-exec": _Wrapper(operands=1),
    "runuser": _Wrapper(valued=frozenset(("u", "user", "g", "group", "G", "supp_group"))),
    "fakeroot": _Wrapper(),
    "eatmydata": _Wrapper(),
    "torsocks": _Wrapper(),
    "proxychains": _Wrapper(valued=frozenset("f")),
    "proxychains4": _Wrapper(valued=frozenset("f")),
    "unbuffer": _Wrapper(),
    "catchsegv": _Wrapper(),
    "xvfb-run": _Wrapper(valued=frozenset(("n", "s", "e", "f", "w", "server_args", "server_num"))),
    "numactl": _Wrapper(valued=frozenset(("N", "m", "C", "i", "p", "cpunodebind", "membind", "physcpubind", "interleave"))),
    "taskset": _Wrapper(operands=1),
    "nsys": _Wrapper(subcommands=("profile", "launch"), valued=frozenset("otwcsdfxn")),
    "ncu": _Wrapper(valued=frozenset("okcsf")),
    "py-spy": _Wrapper(
        subcommands=("record", "top"), valued=frozenset(("o", "output", "r", "rate", "d", "duration", "f", "format")),
    ),
    "uv": _Wrapper(subcommands=("run", "tool run"), valued=_UV),
    "uvx": _Wrapper(valued=_UV),
    "pipx": _Wrapper(subcommands=("run",), valued=frozenset(("spec", "python", "pip_args"))),
    "poetry": _Wrapper(subcommands=("run",), valued=frozenset(("C", "directory", "P", "project"))),
    "pdm": _Wrapper(subcommands=("run",), valued=frozenset(("p", "project"))),
    "pipenv": _Wrapper(subcommands=("run",)),
    "rye": _Wrapper(subcommands=("run",)),
    "hatch": _Wrapper(subcommands=("run",), valued=frozenset(("e", "env"))),
    "pixi": _Wrapper(subcommands=("run",), valued=frozenset(("e", "environment", "manifest_path"))),
    "conda": _Wrapper(subcommands=("run",), valued=_CONDA),
    "mamba": _Wrapper(subcommands=("run",), valued=_CONDA),
    "micromamba": _Wrapper(subcommands=("run",), valued=_CONDA),
    "singularity": _Wrapper(subcommands=("exec",), valued=_CONTAINER, operands=1),
    "apptainer": _Wrapper(subcommands=("exec",), valued=_CONTAINER, operands=1),
}  # fmt: skip
_NO_OPTIONS_BEHIND = ("poetry", "pdm", "pipenv", "rye")
"""Programs whose subcommand takes no options of its own."""


def take_options(
    words: Sequence[str], *, flags: Collection[str] | None = None, valued: Collection[str] = ()
) -> tuple[Options, list[str]]:
    """Split a command line into its leading options and the rest, from the first operand or after ``--``.

    With ``flags`` every other option takes a value; without, only those in ``valued`` do.
    """
    found: Options = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if not word.startswith("-") or word == "-":
            break
        at += 1
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
        else:
            name, equals, value = _short(word, flags, valued)
        name = name.replace("-", "_")
        takes_value = name not in flags if flags is not None else name in valued
        if takes_value and not equals and at < len(words):
            value = words[at]
            at += 1
        found.append((name, value))
    return found, list(words[at:])


def _short(word: str, flags: Collection[str] | None, valued: Collection[str]) -> tuple[str, str, str]:
    """``-n4`` and ``-n=4`` as (name, sign that a value was attached, value); ``-nproc=4`` is a long one."""
    name, equals, value = word[1:].partition("=")
    takes_value = name[:1] not in flags if flags is not None else name[:1] in valued
    if not equals and len(name) > 1 and takes_value and not name[1:2].isalpha():
        return name[0], "=", name[1:]
    return name, equals, value


def assignment(word: str) -> tuple[str, str] | None:
    """Parse ``NAME=VALUE`` like a shell; ``None`` for any other word."""
    name, equals, value = word.partition("=")
    if equals and name and name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit():
        return name, value
    return None


def program_name(word: str) -> str:
    """Return the name of a program without its folder: ``"/usr/bin/env"`` → ``"env"``."""
    name = os.path.basename(word.replace("\\", "/"))
    return name[:-4] if name.lower().endswith(".exe") else name


def is_python(name: str) -> bool:
    """Whether a program is a Python interpreter."""
    return name.rstrip("0123456789.") in ("python", "pythonw", "py", "pypy", "ipython")


def unwrapped(words: Sequence[str], assignments: dict[str, str]) -> list[str]:
    """Strip leading assignments and wrapper programs from a command; assigned variables are added to ``assignments``."""
    rest = list(words)
    for _ in range(DEPTH):
        while rest and (found := assignment(rest[0])):
            assignments[found[0]] = found[1]
            rest.pop(0)
        if not rest:
            return []
        name = program_name(rest[0])
        if name == "env":
            rest = _behind_env(rest[1:], assignments)
        elif name in _WRAPPERS:
            inner = _behind(name, rest[1:])
            if inner is None:
                return rest
            rest = inner
        else:
            return rest
    raise InputError(f"the command wraps one program in another more than {DEPTH} times")


def _behind(name: str, words: list[str]) -> list[str] | None:
    """Return the command that a wrapper program runs; ``None`` if it runs none (``uv pip``)."""
    wrapper = _WRAPPERS[name]
    _, rest = take_options(words, valued=wrapper.valued)
    if wrapper.subcommands:
        chosen = next((s.split() for s in wrapper.subcommands if rest[: len(s.split())] == s.split()), None)
        if chosen is None:
            return None
        rest = rest[len(chosen) :]
        if name not in _NO_OPTIONS_BEHIND:
            options, rest = take_options(rest, valued=wrapper.valued)
            if name == "uv" and any(option in ("m", "module") for option, _ in options):
                rest = ["python", "-m", *rest]
    rest = rest[wrapper.operands :]
    if name == "hatch" and rest and ":" in rest[0]:
        rest[0] = rest[0].partition(":")[2]
    return rest


def _behind_env(words: list[str], assignments: dict[str, str]) -> list[str]:
    options, rest = take_options(words, valued=frozenset(("u", "unset", "C", "chdir", "S", "split_string")))
    for name, value in options:
        if name in ("S", "split_string"):
            rest = [*split_words(value), *rest]
        elif name in ("u", "unset"):
            assignments.pop(value, None)
    return rest


def split_words(text: str) -> list[str]:
    """Split text into words like a shell; :class:`InputError` if a quote is not closed."""
    from compat.syntax.shell import shell_words

    try:
        return shell_words(text)
    except ValueError as problem:
        raise InputError(f"{excerpt(text, 60)!r} is not a shell command: {problem}") from None


def handed_to_shell(words: Sequence[str]) -> str | None:
    """Return the text that a command passes to a shell (``srun bash -c TEXT``, ``eval TEXT``), or ``None``."""
    try:
        rest = unwrapped(words, {})
    except InputError:
        return None
    if not rest or program_name(rest[0]) in ELSEWHERE:
        return None
    if rest[0] == "eval":
        return " ".join(rest[1:])
    shells = (at for at, word in enumerate(rest[:-2]) if program_name(word) in _LIKE_SHELLS)
    return next((text for at in shells if (text := _shell_text(rest[at : at + _MOST_OPTIONS])) is not None), None)


def _shell_text(words: Sequence[str]) -> str | None:
    """Return the text behind ``-c`` of a shell, or of a program that starts one."""
    name = program_name(words[0])
    if name not in _LIKE_SHELLS:
        return None
    is_value = False
    for flag, text in itertools.pairwise(words[1:]):
        is_option = flag.startswith(("-", "+")) and len(flag) > 1
        if flag == "--command" or (is_option and flag[1] != "-" and "c" in flag):
            return text
        if not is_option and not is_value and name in SHELLS:
            return None  # a script
        is_value = is_option and flag.endswith(("o", "O"))
    return None


def reads_script(words: Sequence[str]) -> bool:
    """Whether a command is a shell that reads its script from standard input."""
    try:
        rest = unwrapped(words, {})
    except InputError:
        return False
    if not rest or program_name(rest[0]) not in SHELLS or _shell_text(rest) is not None:
        return False
    return "-s" in rest or all(word.startswith(("-", "+")) for word in rest[1:])
