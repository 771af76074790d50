"""Known-bad combinations of packages, GPUs, drivers and launchers, for people who train or serve language models.

``compat.check``, ``compat.diagnose`` and ``compat.fix`` do what the commands of these names do, as functions that return a
typed report or plan; see :mod:`compat.api.public`.
``compat.guard()`` as the first line of a script checks the job that is starting; see :mod:`compat.integrations.guard`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # nothing is imported here: this runs before every command
if TYPE_CHECKING:
    from compat.api.public import check as check
    from compat.api.public import diagnose as diagnose
    from compat.api.public import doctor as doctor
    from compat.api.public import fix as fix
    from compat.integrations.guard import KnownBad as KnownBad
    from compat.integrations.guard import guard as guard

__all__ = ["KnownBad", "__version__", "check", "diagnose", "doctor", "fix", "guard"]
__version__ = "0.1.0"
_PLACES = {
    **dict.fromkeys(("check", "diagnose", "doctor", "fix"), "api.public"),
    **dict.fromkeys(("guard", "KnownBad"), "integrations.guard"),
}


def __getattr__(name: str) -> object:
    """Import public names on first use."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"compat.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'compat' has no attribute {name!r}")
