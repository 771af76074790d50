"""Python's messages in the words of a title: "X was removed from Y", "unexpected keyword z", "Y has no method x"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.workload.trainers import CONFIGS, TASKS

_Q = r"[`'\"]{0,2}"
_NAME = rf"{_Q}(?P<name>[A-Za-z_]\w{{2,80}})(?:\(\))?{_Q}"
_OWNER = rf"{_Q}(?P<owner>[A-Za-z_]\w{{1,60}}(?:\.\w{{1,60}}){{0,8}})(?:\(\))?{_Q}"
_MODULE = rf"{_Q}(?P<owner>[a-z_][a-z0-9_]{{1,40}}(?:\.\w{{1,60}}){{1,8}}){_Q}"
_VERSION = r"(?:[ =-]{1,3}(?:v|version )?\d[\w.]{0,20})?"
_IS = r"(?:is|was|were|are|has been|have been|got|is now|seems? to be)"
_GONE = r"(?:gone|removed|dropped|renamed|moved|deleted|missing)"
_NO_MORE = r"(?:no longer|does(?: not|n't)(?: seem to)?) (?:exists?|available|there|present|defined|importable)"
_REMOVED = r"(?:removed|dropped|renamed|moved|gone)"
_REMOVES = r"(?:removed|removes|dropped|drops|renamed|renames)"
_CANNOT = r"(?:[Cc]an(?:no|')t|[Cc]an not|[Cc]ould not|[Uu]nable to|[Ff]ail(?:s|ed)? to)"
_KIND = "the|class|classes|function|method|argument|attribute|name|module|old|legacy|deprecated|private|public"
_LACKED = "(?:dependency|package|module|requirement)"
_FORMS = (
    ("keyword", ("unexpected",),
        rf"unexpected (?:keyword|kwarg)s?(?: arg(?:ument)?s?| parameters?)?:? {_Q}(?!arg)(?P<name>[a-z_]\w{{2,60}})"),
    ("module", (" gone", " removed", " dropped", " renamed", " moved", " deleted", " missing"), rf"{_MODULE} {_IS} {_GONE}\b"),
    ("module", (" no longer ", " exist", " available"), rf"{_MODULE} (?:is )?{_NO_MORE}\b"),
    ("name", (" removed", " dropped", " renamed", " moved", " gone"),
        rf"{_NAME} (?:{_IS} )?{_REMOVED} (?:from|in|since|with|as of|after|by) {_OWNER}{_VERSION}"),
    ("name", (" removed ", " removes ", " dropped ", " drops ", " renamed "),
        rf"(?<![\w.]){_OWNER}{_VERSION} (?:has )?{_REMOVES}(?: (?:{_KIND}))* {_NAME}(?![\w.])"),
    ("name", (" import ",), rf"{_CANNOT} import (?:the )?(?:name |class |function )?{_NAME} from {_OWNER}"),
    ("attribute", (" no attribute ", " no method ", " no member ", " no function "),
        rf"(?<![\w.]){_OWNER} (?:object |class |module )?(?:has|have) no (?:attribute|method|member|function) {_NAME}"),
    ("attribute", ("o attribute ", "o method "), rf"[Nn]o (?:attribute|method) {_NAME} (?:in|on|for|of) {_OWNER}"),
    ("package", ("issing ",),
        rf"[Mm]issing (?:\w{{2,12}} )?{_LACKED}(?: on)?:? {_Q}(?P<name>[A-Za-z][\w-]{{2,40}}){_Q}(?![\w-])"),
)  # fmt: skip
"""What each form is about, words of which one is in every sentence of it, and its pattern."""
_COMPILED = tuple((kind, hints, re.compile(pattern)) for kind, hints, pattern in _FORMS)


def paraphrased(text: str) -> Iterator[tuple[str, str]]:
    """Yield the class and the message of the exceptions that a sentence tells of in other words than Python's own.

    Whether a dotted name is a module, or a name of one, only the tables of published source know: both are yielded.
    """
    for kind, hints, pattern in _COMPILED:
        match = pattern.search(text) if any(hint in text for hint in hints) else None
        if match is None:
            continue
        name, owner = match.groupdict().get("name") or "", match.groupdict().get("owner") or ""
        if not _is_code(name, owner, kind):
            continue
        if kind == "keyword":
            called = next((f"{word}.__init__() " for word in _WORD.findall(text) if word in TASKS or word in CONFIGS), "")
            yield "TypeError", f"{called}got an unexpected keyword argument '{name}'"
        elif kind == "package":
            yield "ModuleNotFoundError", f"No module named '{name.replace('-', '_')}'"
        elif kind == "name":
            yield "ImportError", f"cannot import name '{name}' from '{owner}'"
        elif kind == "module":
            module, _, last = owner.rpartition(".")
            yield "ModuleNotFoundError", f"No module named '{owner}'"
            yield "ImportError", f"cannot import name '{last}' from '{module}'"
        elif owner[:1].isupper():
            yield "AttributeError", f"'{owner}' object has no attribute '{name}'"
        else:
            yield "AttributeError", f"module '{owner}' has no attribute '{name}'"
        return


def _is_code(name: str, owner: str, kind: str) -> bool:
    """Whether words of a sentence are names of code: a class, or something with an underscore or a dot."""
    if kind == "keyword":
        return "_" in name or name not in _AFTER
    if kind in ("module", "package"):
        return True
    of_class = kind == "attribute" and _is_camel_case(owner)
    return (of_class or "_" in name or _is_camel_case(name)) and owner.lower() not in _NO_OWNERS


def _is_camel_case(name: str) -> bool:
    return name[:1].isupper() and any(map(str.islower, name)) and any(map(str.isupper, name[1:]))


_WORD = re.compile(r"[A-Z]\w{4,60}")
_AFTER = frozenset(
    ("and", "are", "but", "does", "error", "errors", "for", "from", "has", "issue", "not", "was", "were", "when", "with")
)
"""Words that follow "unexpected keyword" in sentences."""
_NO_OWNERS = frozenset(
    ("the", "this", "that", "it", "version", "main", "master", "release", "latest", "newer", "recent", "update", "pip")
)
