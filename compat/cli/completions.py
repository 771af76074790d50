"""``compat completions bash|zsh|fish``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.output.stream import emit

if TYPE_CHECKING:
    from compat.api.words import Words


def run(words: Words) -> int:
    """Prints the completion script of a shell."""
    from compat.cli.help import SHELLS

    if not words.operands or words.operands[0] not in SHELLS:
        raise InputError(f"expected one of {', '.join(SHELLS)}")
    emit(SHELLS[words.operands[0]]())
    return 0
