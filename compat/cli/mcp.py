"""``compat mcp``: serve the commands as tools for agents over standard input and output."""

from __future__ import annotations

from compat.api.commands import Options
from compat.errors import InputError


def run(options: Options) -> int:
    """Serve until the client disconnects; returns 2 if the extra ``mcp`` is not installed."""
    try:
        from compat.integrations.mcp import server
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise InputError("requires mcp 2 or later: pip install 'compat-doctor[mcp]'") from None
    server(allow_write=options.flag("allow-write")).run("stdio")
    return 0
