"""Reports as JSON."""

from __future__ import annotations

from typing import Any


def dumped(value: Any) -> str:
    """Indented JSON with the keys in the order of the contract, for standard output.

    JSON is UTF-8: where the output has another encoding, or a text holds what is no character at all (a lone surrogate),
    everything outside ASCII is written as an escape.
    """
    import json

    from compat.output.stream import is_utf_8

    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode("utf-8" if is_utf_8() else "ascii")
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text
