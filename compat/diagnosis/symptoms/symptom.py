"""A message that says what is wrong whichever release is at fault, and what it means in terms of builds."""

from __future__ import annotations

import re

from compat.model import Fix
from compat.records import record


@record(frozen=True)
class Symptom:
    """A message, the derived findings that explain it (by the beginning of their rule), and what it means without them.

    ``packages`` are what it is about; ``else_packages`` where neither the message nor its frames name one. Where there
    are ``hints``, each such message has one of them. Groups of the pattern are named in braces in texts, commands, packages
    and the releases of fixes; an alternative's group is called as the first one's with a number (``name_2``). ``general``:
    what another line of the same text says is more particular.
    """

    name: str
    pattern: re.Pattern[str]
    title: str
    why: str
    effect: str = "crash"
    explained_by: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    else_packages: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    evidence: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    general: bool = False
