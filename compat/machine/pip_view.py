"""Compare pip's own view of the running environment with what was read. This starts pip."""

from __future__ import annotations

from compat.errors import Undecided
from compat.model import Environment, normalized


def disagreements(environment: Environment) -> tuple[str, ...]:
    """Return one line for every distribution that pip lists differently; :class:`Undecided` if pip cannot be run."""
    try:
        import pip_api

        listed = pip_api.installed_distributions()  # type: ignore[attr-defined]
    except Exception as problem:  # pip_api raises any kind of exception
        reason = str(problem).strip().splitlines()
        raise Undecided(
            f"pip's view of the environment is not available ({reason[-1] if reason else type(problem).__name__})"
        ) from None
    theirs = {normalized(name): str(found.version) for name, found in listed.items()}
    ours: dict[str, set[str]] = {}
    for copy in environment.distributions or ():
        ours.setdefault(copy.name, set()).add(copy.version or "unknown")
    lines = []
    for name in sorted({*theirs, *ours}):
        if name not in ours:
            lines.append(f"{name}: pip lists {theirs[name]}, but its files were not found on the path")
        elif name not in theirs:
            lines.append(f"{name}: found in version {' and '.join(sorted(ours[name]))}, but pip does not list it")
        elif not _same(theirs[name], ours[name]):
            lines.append(f"{name}: pip lists {theirs[name]}, but its files say {' and '.join(sorted(ours[name]))}")
    return tuple(lines)


def _same(theirs: str, ours: set[str]) -> bool:
    from compat.versions import key_of

    return len(ours) == 1 and all(version != "unknown" and key_of(version) == key_of(theirs) for version in ours)
