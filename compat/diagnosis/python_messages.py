"""Python's own messages about missing names, modules and attributes, and about rejected calls."""

from __future__ import annotations

import re

from compat.records import record

NAME, MODULE, ATTRIBUTE, MEMBER, KEYWORD, CALL, GLOBAL = "name", "module", "attribute", "member", "keyword", "call", "global"


@record(frozen=True)
class Lack:
    """What an error reports as missing: ``name`` of ``owner``, which is a module, class or function as spelled in the message.

    ``kind``: NAME and ATTRIBUTE of a module, MODULE (its name is ``owner``), MEMBER of a class's instances, KEYWORD of a
    function, CALL that a function rejects (``name`` is the argument, if the message names one), or GLOBAL name.
    """

    kind: str
    owner: str
    name: str

    @property
    def what(self) -> str:
        """The missing name in full: ``transformers.Cache``, ``Trainer.__init__(processing_class=)``, ``forward()``."""
        if self.kind in (KEYWORD, CALL):
            return f"{self.owner}({self.name}{'=' if self.kind == KEYWORD else ''})"
        return ".".join(filter(None, (self.owner, self.name)))


_Q = r"['\"`]?"
_F = r"(?<![\w.])(?P<owner>[\w.]*\w)(?:\.<locals>\.[\w.]+)?\(\)"
_MESSAGES = (
    (NAME, "cannot import name",
        rf"cannot import name {_Q}(?P<name>\w+){_Q} from {_Q}(?P<owner>[\w.]+)(?!.*\(unknown location\))"),
    (MODULE, "No module named", rf"No module named {_Q}(?P<owner>\w+(?:\.\w+)*)"),
    # transformers' lazy modules write it without quotes
    (ATTRIBUTE, "has no attribute", rf"\b[Mm]odule {_Q}(?P<owner>\w[\w.]*){_Q} has no attribute {_Q}(?P<name>\w+)"),
    (ATTRIBUTE, "was removed in the NumPy", r"`(?P<owner>np)\.(?P<name>\w+)` was removed in the NumPy"),
    (MEMBER, "has no attribute", r"['\"](?P<owner>\w+)['\"](?: object)? has no attribute ['\"](?P<name>\w+)['\"]"),
    # transformers' tokenizers also omit the word "object"
    (MEMBER, "has no attribute", r"(?:^|: )(?P<owner>[A-Z]\w{0,60}[a-z]\w{0,60}) has no attribute (?P<name>\w+)$"),
    (KEYWORD, "unexpected keyword argument", rf"{_F} got an unexpected keyword argument ['\"](?P<name>\w+)"),
    (CALL, "positional argument",
        rf"{_F} takes [^\n]{{0,60}}?positional arguments? but \d+ [^\n]{{0,90}}?(?:was|were) given"),
    (CALL, "missing ", rf"{_F} missing \d+ required (?:positional|keyword-only) arguments?: ['\"](?P<name>\w+)"),
    (CALL, "multiple values", rf"{_F} got multiple values for (?:keyword )?argument ['\"](?P<name>\w+)"),
    (CALL, "positional-only", rf"{_F} got some positional-only arguments passed as keyword arguments: ['\"](?P<name>\w+)"),
    (GLOBAL, "is not defined", r"\bname ['\"](?P<name>\w+)['\"] is not defined"),
)  # fmt: skip
_COMPILED = tuple((kind, hint, re.compile(pattern)) for kind, hint, pattern in _MESSAGES)


def lack_in(message: str) -> Lack | None:
    """Return what an error message reports as missing; ``None`` for any other message and for circular imports."""
    if "partially initialized module" in message:
        return None
    for kind, hint, pattern in _COMPILED:
        match = pattern.search(message) if hint in message else None
        if match is not None:
            groups = match.groupdict()
            return Lack(kind, groups.get("owner") or "", groups.get("name") or "")
    return None
