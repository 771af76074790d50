"""Runs in the browser: a pasted text and some options → the command that was run, and what it prints with --format html."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil

from compat.cli import main
from compat.errors import InputError
from compat.formats.registry import format_of
from compat.reports.log.traceback import parse_log

FOLDER = "/home/web_user/pasted"


def command_for(text: str, name: str) -> list[str]:
    """The command for a text: a file where it is named or recognised as one, else what it says, or what its error means."""
    if name:
        return ["check", name]
    if any(error.exception or error.frames for error in parse_log(text)):
        return ["diagnose", "pasted"]
    with contextlib.suppress(InputError):
        format_of("pasted", text.encode())
        return ["check", "pasted"]
    return ["check", "--pasted", "pasted"]


def answer(text: str, name: str, options: list[str]) -> tuple[str, int, str, str]:
    """(the command, its exit code, its page, what it says on standard error)

    The text is the only file in a new folder: nothing is left of what was pasted before.
    """
    os.chdir("/")
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    os.chdir(FOLDER)
    command = [*command_for(text, name), *options]
    with open(name or "pasted", "w", encoding="utf-8", newline="") as file:
        file.write(text)
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main([*command, "--format", "html"])
    return shlex.join(["compat", *command]), code, out.getvalue(), errors.getvalue()
