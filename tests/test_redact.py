"""Credentials in addresses: what stands before a host, wherever in a text the address begins."""

from __future__ import annotations

import pytest

from compat.redact import redacted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("https://bob:pw@host/x", "https://****@host/x"),
        ("https://u:p/a@host/x", "https://****@host/x"),
        ("https://proxy.example/https://bob:pw@host", "https://proxy.example/https://****@host"),
        ("https://u:p@proxy.example/https://bob:pw@host", "https://****@proxy.example/https://****@host"),
        ("git+ssh://git@host/x.git", "git+ssh://git@host/x.git"),
        ("https://host:8080/simple", "https://host:8080/simple"),
    ],
)
def test_what_stands_before_a_host_is_hidden(text: str, wanted: str) -> None:
    assert redacted(text) == wanted
    assert redacted(f"see <{text}> for it") == f"see <{wanted}> for it"
