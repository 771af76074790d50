"""What a project chooses not to hear about: ``[[tool.compat.ignore]]``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.read.project_config import Ignore
    from compat.report import Finding


def in_force(ignore: Ignore) -> bool:
    """Whether it has not expired; the day it names is its last."""
    import time

    return ignore.until is None or ignore.until >= time.strftime("%Y-%m-%d")


def not_ignored(findings: Sequence[Finding], ignores: Sequence[Ignore]) -> tuple[tuple[Finding, ...], list[str]]:
    """What no ignore covers, and a note for every ignore that covers something, or would if it had not expired."""
    notes: list[str] = []
    kept = list(findings)
    for ignore in ignores:
        covered = [each for each in kept if each.rule == ignore.rule and ignore.target in (None, each.target)]
        if not covered:
            continue
        if not in_force(ignore):
            where = f"{ignore.file}:{ignore.line}" if ignore.line else ignore.file
            notes.append(f"the ignore of {ignore.rule} expired on {ignore.until} ({where}): it is reported again")
            continue
        kept = [each for each in kept if each not in covered]
        until = f" until {ignore.until}" if ignore.until else ""
        notes.append(f"{ignore.rule} is ignored{until}: {ignore.reason}")
    return tuple(kept), notes
