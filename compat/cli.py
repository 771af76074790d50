"""Words on the command line → one call. Decides nothing but the exit code of what goes wrong."""

from __future__ import annotations

import os
import sys

from compat.errors import InputError, Undecided
from compat.options import command_named, parse
from compat.show.output import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.options import Words


def entry() -> None:
    """The installed command: :func:`main`, in a process that ends with it.

    Nothing lives long enough here for the garbage collector to pay, and taking the interpreter apart at the end costs
    as much as judging an environment does.
    """
    import gc

    gc.disable()
    code = main()
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 nothing at or above the threshold, 1 findings, 2 unusable input, 3 undecided."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if sys.stdout is None:
            raise InputError("there is no standard output to write to")
        return _run(words)
    except InputError as problem:
        print(f"compat: {problem}", file=sys.stderr)
        return 2
    except Undecided as problem:
        print(f"compat: could not be decided: {problem}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        from compat.show.help import overview

        emit(overview())
        return 0
    if words[0] in ("-V", "--version"):
        from compat import __version__

        emit(f"compat {__version__}")
        return 0
    command = command_named(words[0])
    before = words[1 : words.index("--")] if "--" in words else words[1:]
    if "-h" in before or "--help" in before:
        from compat.show.help import help_for

        emit(help_for(command))
        return 0
    return _dispatch(parse(command, words[1:]))


def _dispatch(words: Words) -> int:
    """Imports the one command that is run, so that none pays for another."""
    module = __import__(f"compat.commands.{words.command.name}", fromlist=["run"])
    return int(module.run(words))
