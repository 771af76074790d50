"""Which call a rejected argument was passed to, where the message does not say it and the code in the text does.

A title says ``unexpected keyword argument 'tokenizer'``, Python before 3.10 ``__init__() got …``; the report shows the call.
"""

from __future__ import annotations

import re

from compat.records import replace
from compat.reports.log.frames import RaisedError

_REFUSED = re.compile(r"unexpected (?:keyword )?argument:? [`'\"]*(?P<name>[a-z_]\w{1,60})\b")
_SAYS_WHOSE = re.compile(r"(?<![\w.>])(?!__init__\(\))[\w.>]+\(\) got an unexpected ")
_CALL = re.compile(r"(?<![\w.])(?P<class>[A-Z]\w{2,60})\(")
_LONGEST = 4000
"""Characters of a call that are read."""


def with_call(error: RaisedError, text: str) -> RaisedError:
    """Return the error with the class that is called with the rejected argument, if exactly one is in the text."""
    first = error.message.partition("\n")[0]
    match = _REFUSED.search(first) if error.exception in (None, "TypeError") else None
    if match is None or _SAYS_WHOSE.search(first) is not None or (error.frames and error.frames[-1].code):
        return error
    called = {call["class"] for call in _CALL.finditer(text) if _passes(text, call.end(), match["name"])}
    if len(called) != 1:
        return error
    message = f"{called.pop()}.__init__() got an unexpected keyword argument '{match['name']}'"
    return replace(error, exception="TypeError", message=message)


def _passes(text: str, start: int, name: str) -> bool:
    """Whether the call whose arguments begin at ``start`` passes a keyword itself, not to a call inside it."""
    depth, own = 0, []
    for character in text[start : start + _LONGEST]:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            break
        own.append(character if depth == 0 else " ")
    return re.search(rf"(?:^|[,\s]){name}\s*=(?!=)", "".join(own)) is not None
