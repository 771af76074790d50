"""Known-bad combinations of packages, GPUs, drivers and launchers, for people who train or serve language models.

``compat.check`` is what ``compat check`` does, as a function that returns a typed report; see :mod:`compat.api.public`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # nothing is imported here: this runs before every command
if TYPE_CHECKING:
    from typing import Any

    from compat.api.public import check as check

__all__ = ["__version__", "check"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The functions of :mod:`compat.api.public`, imported when they are used."""
    if name in __all__:
        from compat.api import public

        return getattr(public, name)
    raise AttributeError(f"module 'compat' has no attribute {name!r}")
