"""Addresses of package indexes: the one of a vendor that a release comes from, beside those that are named already."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from compat.redact import without_credentials

_FLAVOUR = re.compile(r"cu\d{2,4}|cpu|rocm[\d.]+|xpu")

Span = tuple[int, int]


def index_replacement(
    url: str, named: Sequence[tuple[str, Span]], kept_labels: Collection[str]
) -> tuple[Span | None, str] | None:
    """Where an address has to be written; ``None`` where it is named already.

    The place is that of the same index for another build (``…/cu121`` → ``…/cu128``), where no release that stays carries
    its label; ``(None, address)`` where it is to be added.
    """
    wanted = _same(url)
    for each, _ in named:
        if _same(each) == wanted:
            return None
    for each, span in named:
        if siblings(each, url) and flavour(each) not in kept_labels:
            return span, url
    return None, url


def siblings(one: str, other: str) -> bool:
    """Whether two addresses are one vendor's index for two builds."""
    first, second = flavour(one), flavour(other)
    if not first or not second or first == second:
        return False
    return _same(one)[: -len(first)] == _same(other)[: -len(second)]


def flavour(url: str) -> str:
    """The last part of an address, where it names a build such as ``cu128``; else ""."""
    last = _same(url).rpartition("/")[2]
    return last if _FLAVOUR.fullmatch(last) else ""


def _same(url: str) -> str:
    return without_credentials(url).rstrip("/")
