"""``compat completions bash|zsh|fish``."""

from __future__ import annotations

from compat.errors import InputError
from compat.show.output import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.options import Words


def run(words: Words) -> int:
    """Prints the completion script of a shell."""
    from compat.show.completions import SHELLS

    if not words.operands or words.operands[0] not in SHELLS:
        raise InputError(f"expected one of {', '.join(SHELLS)}")
    emit(SHELLS[words.operands[0]]())
    return 0
