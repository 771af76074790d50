"""``compat run``: check a Python program and this machine, then replace this process with the program.

``torchrun --nproc-per-node 8 -m compat run train.py`` checks once, on rank 0, without changes to ``train.py``.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

from compat.api.commands import Options
from compat.errors import InputError, complain
from compat.integrations.guard import GUARDED, KnownBad, check_command


def run(options: Options) -> int:
    """Print the certain findings and start the program; returns 1 without starting it if ``--fail-on`` is reached."""
    program = options.rest or ()
    if not program:
        raise InputError("expected a script or -m MODULE: compat run train.py")
    if program[0] == "-m" and len(program) < 2:
        raise InputError("-m needs the name of a module")
    if program[0] != "-m" and not os.path.exists(program[0]):
        raise InputError("no such file", program[0])
    checked = {name.replace("-", "_"): values for name, values in options.values.items() if name != "fail-on"}
    try:
        check_command((os.path.basename(sys.executable) or "python", *program), checked, options.one("fail-on"))
    except KnownBad as problem:
        complain(f"compat: not started: {problem}")
        return 1
    return become([sys.executable, *_interpreter_options(sys.orig_argv), *program])


def become(command: list[str]) -> NoReturn:
    """Replace this process with a command, and turn off the command's own ``compat.guard()``."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or on a full disk
            stream.flush()
    variables = {**os.environ, GUARDED: str(os.getpid())}
    if os.name == "nt":  # there, exec starts a second process and returns to the shell immediately
        import subprocess

        os._exit(subprocess.call(command, env=variables))
    os.execve(command[0], command, variables)


def _interpreter_options(started: list[str]) -> list[str]:
    """Return the interpreter's own options before the program, such as ``-u`` or ``-X dev``."""
    options: list[str] = []
    words = iter(started[1:])
    for word in words:
        if not word.startswith("-") or word == "-" or word.startswith("-m"):
            break
        options.append(word)
        if word in ("-X", "-W"):
            options.append(next(words, ""))
    return options
