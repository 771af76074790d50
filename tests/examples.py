"""What runs in ``make test-all`` only: most examples of property tests, and the slowest tests."""

from __future__ import annotations

import os

import pytest

THOROUGH = bool(os.environ.get("COMPAT_THOROUGH"))


def examples(number: int) -> int:
    """A quarter of ``number``, and all of it in a thorough run."""
    return number if THOROUGH else max(1, number // 4)


slow = pytest.mark.skipif(not THOROUGH, reason="takes long, and a quicker test covers the same code: make test-all")
"""For tests of ten seconds and more."""
