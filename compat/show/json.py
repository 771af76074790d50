"""Reports as JSON."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def dumped(value: Any) -> str:
    """Indented JSON with the keys in the order of the contract."""
    import json

    return json.dumps(value, indent=2, ensure_ascii=False)
