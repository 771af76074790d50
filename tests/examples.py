"""How many examples a property test draws: few in ``make test``, all of them in ``make test-all``."""

from __future__ import annotations

import os

THOROUGH = bool(os.environ.get("COMPAT_THOROUGH"))


def examples(number: int) -> int:
    """A quarter of ``number``, and all of it in a thorough run."""
    return number if THOROUGH else max(1, number // 4)
