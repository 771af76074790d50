"""Python's own messages about missing names, modules and attributes, and about rejected calls.

Where a message does not say which call rejected an argument (``unexpected keyword argument 'tokenizer'`` in a title,
``__init__() got …`` before Python 3.10), the code in the report shows it.
"""

from __future__ import annotations

import re

from compat.records import record, replace
from compat.reports.log.frames import RaisedError

NAME, MODULE, ATTRIBUTE, MEMBER, KEYWORD, CALL, GLOBAL = "name", "module", "attribute", "member", "keyword", "call", "global"


@record(frozen=True)
class Lack:
    """What an error reports as missing: ``name`` of ``owner``, which is a module, class or function as spelled in the message.

    ``kind``: NAME and ATTRIBUTE of a module, MODULE (its name is ``owner``), MEMBER of a class's instances, KEYWORD of a
    function, CALL that a function rejects (``name`` is the argument, if the message names one), or GLOBAL name. ``given``: the
    number of positional arguments, if they are too many. ``required``: the arguments that were not passed.
    """

    kind: str
    owner: str
    name: str
    given: int = 0
    required: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """The missing name in full: ``transformers.Cache``, ``Trainer.__init__(processing_class=)``, ``forward()``."""
        if self.required:
            return f"{self.owner}() without {' and '.join(filter(None, (', '.join(self.required[:-1]), self.required[-1])))}"
        if self.kind in (KEYWORD, CALL):
            return f"{self.owner}({self.name}{'=' if self.kind == KEYWORD else ''})"
        return ".".join(filter(None, (self.owner, self.name)))


UNKNOWN_LOCATION = " (unknown location)"
"""What Python adds if a module that lacks a name has no file."""
_Q = r"['\"`‘’]?"
_F = r"(?<![\w.])(?P<owner>[\w.]*\w)(?:\.<locals>\.[\w.]+)?\(\)"
_MESSAGES = (
    (NAME, "cannot import name",
        rf"cannot import name {_Q}(?P<name>\w+){_Q} from {_Q}(?P<owner>[\w.]+)(?![\w.]|:?[\\/])(?!.*\(unknown location\))"),
    # transformers, of a class that a model's files name
    (NAME, "neither in <module", r"Could not find (?P<name>\w+) neither in <module '(?P<owner>\w+)[\w.]*'"),
    (MODULE, "No module named", rf"No module named {_Q}(?P<owner>\w+(?:\.\w+)*)"),
    # transformers' lazy modules write it without quotes
    (ATTRIBUTE, "has no attribute", rf"\b[Mm]odule {_Q}(?P<owner>\w[\w.]*){_Q} has no attribute {_Q}(?P<name>\w+)"),
    (ATTRIBUTE, "was removed in the NumPy", r"`(?P<owner>np)\.(?P<name>\w+)` was removed in the NumPy"),
    (MEMBER, "has no attribute", r"['\"](?P<owner>\w+)['\"](?: object)? has no attribute ['\"](?P<name>\w+)['\"]"),
    # transformers' tokenizers also omit the word "object", and those who quote them add the quotes to the name alone
    (MEMBER, "has no attribute",
        rf"(?:^|: )(?P<owner>[A-Z]\w{{0,60}}[a-z]\w{{0,60}}) has no attribute {_Q}(?P<name>\w+){_Q}(?=\n|$|\. Did you mean)"),
    (KEYWORD, "unexpected keyword argument", rf"{_F} got an unexpected keyword argument ['\"](?P<name>\w+)"),
    (CALL, "positional argument",
        rf"{_F} takes [^\n]{{0,60}}?positional arguments? but (?P<given>\d{{1,3}}) [^\n]{{0,90}}?(?:was|were) given"),
    (CALL, "missing ",
        rf"{_F} missing \d+ required (?:positional|keyword-only) arguments?: (?P<required>['\"](?P<name>\w+)['\"\w, ]*)"),
    (CALL, "multiple values", rf"{_F} got multiple values for (?:keyword )?argument ['\"](?P<name>\w+)"),
    (CALL, "positional-only", rf"{_F} got some positional-only arguments passed as keyword arguments: ['\"](?P<name>\w+)"),
    (GLOBAL, "is not defined", r"\bname ['\"](?P<name>\w+)['\"] is not defined"),
)  # fmt: skip
_WRAPPED = 400
"""Characters at the start of a message in which line breaks may be the terminal's."""
_COMPILED = tuple((kind, hint, re.compile(pattern)) for kind, hint, pattern in _MESSAGES)


def lack_in(message: str) -> Lack | None:
    """Return what an error message reports as missing; ``None`` for any other message and for circular imports."""
    if "partially initialized module" in message:
        return None
    for text in dict.fromkeys((message, " ".join(message[:_WRAPPED].split()))):  # a terminal or a writer may wrap the line
        for kind, hint, pattern in _COMPILED:
            match = pattern.search(text) if hint in text else None
            if match is not None:
                groups = match.groupdict()
                required = tuple(re.findall(r"['\"](\w+)", groups.get("required") or ""))
                given = int(groups.get("given") or 0)
                return Lack(kind, groups.get("owner") or "", groups.get("name") or "", given, required)
    return None


_REFUSED_ARGUMENT = re.compile(r"unexpected (?:keyword )?argument:? [`'\"]*(?P<name>[a-z_]\w{1,60})\b")
_SAYS_WHOSE = re.compile(r"(?<![\w.>])(?!__init__\(\))[\w.>]+\(\) got an unexpected ")
_CALL = re.compile(r"(?<![\w.])(?P<class>[A-Z]\w{2,60})\(")
_LONGEST_CALL = 4000
"""Characters of a call that are read."""


def with_call(error: RaisedError, text: str) -> RaisedError:
    """Return the error with the class that is called with the rejected argument, if exactly one is in the text."""
    name = refused_argument(error)
    called = {call["class"] for call in _CALL.finditer(text) if _passes(text, call.end(), name)} if name else set()
    return by_class(error, called.pop(), name) if len(called) == 1 else error


def refused_argument(error: RaisedError) -> str:
    """Return the argument that a call rejects where neither the message nor a frame says which call; "" for other errors."""
    first = error.message.partition("\n")[0]
    match = _REFUSED_ARGUMENT.search(first) if error.exception in (None, "TypeError") else None
    says_whose = _SAYS_WHOSE.search(first) is not None or (error.frames and error.frames[-1].code)
    return "" if match is None or says_whose else match["name"]


def by_class(error: RaisedError, name: str, argument: str) -> RaisedError:
    """Return the error as the constructor of a class raises it that rejects an argument."""
    return replace(error, exception="TypeError", message=f"{name}.__init__() got an unexpected keyword argument '{argument}'")


def _passes(text: str, start: int, name: str) -> bool:
    """Whether the call whose arguments begin at ``start`` passes a keyword itself, not to a call inside it."""
    depth, own = 0, []
    for character in text[start : start + _LONGEST_CALL]:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            break
        own.append(character if depth == 0 else " ")
    return re.search(rf"(?:^|[,\s]){name}\s*=(?!=)", "".join(own)) is not None
