"""Programs that start another program: the command that they run follows their options."""

from __future__ import annotations

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

UV_VALUED = frozenset((
    "with", "with-requirements", "with-editable", "python", "p", "extra", "group", "only-group", "no-group", "no-extra",
    "env-file", "index", "index-url", "i", "default-index", "extra-index-url", "find-links", "f", "project", "directory",
    "package", "config-file", "cache-dir", "index-strategy", "keyring-provider", "resolution", "prerelease", "exclude-newer",
    "link-mode", "refresh-package", "reinstall-package", "upgrade-package", "P", "config-setting", "C", "color", "from", "w",
    "torch-backend", "python-platform",
))  # fmt: skip
"""Options of uv with a value, wherever it takes them."""
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


_UV_VALUED = frozenset(name.replace("-", "_") for name in UV_VALUED)
"""Names of options as :func:`take_options` compares them."""


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
    "uv": _Wrapper(subcommands=("run", "tool run"), valued=_UV_VALUED),
    "uvx": _Wrapper(valued=_UV_VALUED),
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
"""Programs whose subcommand takes no options."""


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
    if equals and name and name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdecimal():
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


@record(frozen=True)
class ShellCall:
    """What a shell runs: the ``text`` after ``-c``, a ``script``, or with neither its standard input; and their arguments."""

    text: str | None = None
    script: str | None = None
    arguments: tuple[str, ...] = ()


_SHELL_VALUED = ("--rcfile", "--init-file")
"""Options of shells with a value, besides those that end with an ``o`` (``-o pipefail``, ``-euo pipefail``, ``-O extglob``)."""


def shell_call(words: Sequence[str]) -> ShellCall | None:
    """Return what ``bash -c TEXT``, ``bash FILE`` or ``su USER -c TEXT`` runs; ``None`` for a program that is no shell."""
    name = program_name(words[0]) if words else ""
    if name not in _LIKE_SHELLS:
        return None
    from_input = False
    at = 1
    while at < len(words):
        word = words[at]
        is_option = word.startswith(("-", "+")) and len(word) > 1
        is_short = is_option and word[1] != "-"
        if word == "--command" or (is_short and "c" in word):
            return ShellCall("".join(words[at + 1 : at + 2]), None, tuple(words[at + 3 :]))
        if word in ("-", "--") and name in SHELLS:  # the end of the options
            rest = words[at + 1 :]
            return ShellCall(None, rest[0], tuple(rest[1:])) if rest and not from_input else ShellCall()
        if not is_option and name in SHELLS:  # the others take operands first: su USER -c TEXT
            return ShellCall() if from_input else ShellCall(None, word, tuple(words[at + 1 :]))
        from_input = from_input or word == "-s"
        at += 2 if word in _SHELL_VALUED or (is_short and word.endswith(("o", "O"))) else 1
    return ShellCall()


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
    calls = (shell_call(rest[at : at + _MOST_OPTIONS]) for at in range(len(rest) - 2))
    return next((call.text for call in calls if call is not None and call.text), None)


def reads_script(words: Sequence[str]) -> bool:
    """Whether a command is a shell that reads its script from standard input."""
    try:
        rest = unwrapped(words, {})
    except InputError:
        return False
    return bool(rest) and program_name(rest[0]) in SHELLS and shell_call(rest) == ShellCall()


def with_input_named(words: Sequence[str], source: str | None) -> list[str]:
    """Return the words of a command; a shell or Python that reads its program from the file on its standard input names it."""
    if source is None or "$" in source or "`" in source or source.startswith("/dev/"):
        return list(words)
    try:
        rest = unwrapped(words, {})
    except InputError:
        return list(words)
    reads = reads_script(rest) or (bool(rest) and is_python(program_name(rest[0])) and rest[1:] in ([], ["-"]))
    return [rest[0], source] if reads else list(words)


def shell_script(words: Sequence[str]) -> str | None:
    """Return the shell script that a command runs: ``bash FILE``, ``source FILE``, ``FILE.sh``; ``None`` if it runs none."""
    name = program_name(words[0]) if words else ""
    if name in SHELLS:
        call = shell_call(words)
        return None if call is None else call.script
    if name in ("source", "."):
        return next((word for word in words[1:] if not word.startswith(("-", "+"))), None)
    return words[0] if name.endswith((".sh", ".bash")) else None
