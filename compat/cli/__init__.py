"""Command-line entry points: dispatch to one command, and map its errors to exit codes."""

from __future__ import annotations

import gc
import os
import sys

from compat.api.commands import COMMANDS, Options, command_named
from compat.cli.options import asks_for_help, parse
from compat.errors import InputError, Undecided, printable, unexpected
from compat.output.stream import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def entry() -> None:
    """The command ``compat``."""
    gc.disable()  # the process is too short-lived for garbage collection to pay off
    _quiet_destructors()
    _end(main())


def doctor_entry() -> None:
    """The command ``compat-doctor``, named after the distribution: runs ``doctor`` unless another command is given.

    This lets ``uvx compat-doctor`` and ``pipx run compat-doctor`` check the current machine.
    """
    gc.disable()
    _quiet_destructors()
    words = sys.argv[1:]
    named = bool(words) and (words[0] in ("help", "-h", "--help", "-V", "--version") or words[0] in {c.name for c in COMMANDS})
    _end(main(words if named else ["doctor", *words]))


def _quiet_destructors() -> None:
    """Silence failing destructors: after an interrupt, the solver's fail on half-initialized objects and print tracebacks."""
    if not os.environ.get("COMPAT_TRACEBACK"):
        sys.unraisablehook = lambda _: None


def _end(code: int) -> None:
    """Flush and exit immediately: interpreter shutdown takes as long as checking an environment."""
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 no findings at the threshold, 1 findings, 2 invalid input, 3 undecided."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if sys.stdout is None:
            raise InputError("there is no standard output to write to")
        return _run(words)
    except InputError as problem:
        print(f"compat: {problem}", file=sys.stderr)
        return 2
    except Undecided as problem:
        print(f"compat: undecided: {printable(str(problem))}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    except Exception as problem:
        print(f"compat: {unexpected(problem)}", file=sys.stderr)
        return 2


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        from compat.cli.help import overview

        emit(overview())
        return 0
    if words[0] in ("-V", "--version"):
        from compat import __version__

        emit(f"compat {__version__}")
        return 0
    command = command_named(words[0])
    if asks_for_help(command, words[1:]):
        from compat.cli.help import help_for

        emit(help_for(command))
        return 0
    return _dispatch(parse(command, words[1:]))


def _dispatch(options: Options) -> int:
    """Import and run one command, without the import cost of the others."""
    module = __import__(f"compat.cli.{options.command}", fromlist=["run"])
    return int(module.run(options))
