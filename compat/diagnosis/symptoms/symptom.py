"""An error message that identifies a problem whichever release is at fault, and its explanation in terms of builds."""

from __future__ import annotations

import re

from compat.model import Fix
from compat.records import record


@record(frozen=True)
class Symptom:
    """A message, the derived findings that explain it (by prefix of their rule), and its explanation without them.

    ``packages`` are the affected packages; ``else_packages`` apply if neither the message nor its frames name one. If
    ``hints`` are given, every such message contains one of them. Texts, commands, packages and the releases of fixes may
    refer to the pattern's groups in braces; the same group in another alternative has a numeric suffix (``name_2``).
    ``{package}`` in a text or a fix stands for the first affected package ("a package" in texts if there is none).
    ``general``: another line of the same text may be more specific.
    ``kernels``: the failing code is a compiled kernel, so the only extension that is installed is its package.
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
    kernels: bool = False
