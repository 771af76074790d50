"""How the files of the surface are written: JSON text under LZMA, in parts that are opened one by one.

Text, as LZMA finds what repeats in it better than in marshal's references: the files are a sixth smaller.
"""

from __future__ import annotations

import lzma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 0, "dict_size": 4 << 20}]
_scanner: list[Callable[[str, int], tuple[Any, int]]] = []


def text_of(part: bytes) -> str:
    """The text of a part."""
    return lzma.decompress(part, lzma.FORMAT_RAW, None, FILTERS).decode("ascii")


def value_at(text: str, start: int = 0) -> Any:
    """The JSON value that begins at a place of a text."""
    if not _scanner:
        _scanner.append(_scanner_there_is())
    return _scanner[0](text, start)[0]


def value_of(part: bytes) -> Any:
    """The one value of a part."""
    return value_at(text_of(part))


def header_of(content: bytes, magic: bytes) -> tuple[Any, int]:
    """The header of a file that begins with ``magic`` and the header's length, and where what follows begins."""
    at = len(magic) + 4
    end = at + int.from_bytes(content[len(magic) : at], "little")
    return value_of(content[at:end]), end


def tuples(value: Any) -> Any:
    """Lists as tuples all through: what can be compared and hashed."""
    return tuple([tuples(each) for each in value]) if type(value) is list else value


def _scanner_there_is() -> Callable[[str, int], tuple[Any, int]]:
    try:
        from compat.read.json_text import scanner

        return scanner()
    except ImportError:
        import json

        return json.JSONDecoder().raw_decode
