"""``compat completions bash|zsh|fish``."""

from __future__ import annotations

from compat.api.commands import Options
from compat.errors import InputError
from compat.output.stream import emit


def run(options: Options) -> int:
    """Print the completion script for a shell."""
    from compat.cli.help import SHELLS

    if not options.operands or options.operands[0] not in SHELLS:
        raise InputError(f"expected one of {', '.join(SHELLS)}")
    emit(SHELLS[options.operands[0]]())
    return 0
