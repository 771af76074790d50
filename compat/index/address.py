"""URLs of indexes and files: credentials are removed, paths made absolute and converted to ``file:`` URLs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from compat.errors import InputError
from compat.redact import without_credentials

NETWORK = ("http", "https")
_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9._~!+=,@%-]*"
_PLAIN = re.compile(rf"((?:\.\./)*|/)((?:{_SEGMENT}/)*{_SEGMENT})(?:#\S*)?")
"""A relative link without query, scheme and further dots, as on the pages of most proxies."""


@dataclass(frozen=True)
class Credentials:
    """User and password for one host; both are hidden in its ``repr``, so that no message or traceback shows them."""

    user: str = field(repr=False)
    password: str = field(repr=False)


def parse_address(text: str, folder: str, option: str) -> tuple[str, Credentials | None]:
    """Split a URL into the URL without credentials, and the credentials; paths are relative to ``folder``.

    :class:`InputError`, which names ``option``, if it is neither an ``http:``, ``https:`` or ``file:`` URL nor a path.
    """
    text = text.strip()
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port  # both may raise
    except ValueError:
        raise InputError(f"{option}: expected the address of an index, got one that cannot be parsed") from None
    if parts.scheme in NETWORK:
        if not host:
            raise InputError(f"{option}: expected the address of an index with a host")
        stated = parts.username is not None or parts.password is not None
        known = Credentials(unquote(parts.username or ""), unquote(parts.password or "")) if stated else None
        return without_credentials(text), known
    if parts.scheme == "file":
        return text, None
    if len(parts.scheme) > 1:  # a single letter is a Windows drive
        raise InputError(f"{option}: expected an address that begins with https:, http: or file:, or a path")
    return (Path(folder).absolute() / Path(text).expanduser()).as_uri(), None


def host_of(url: str) -> str:
    """Scheme, host and port: the unit for which credentials and trust are configured."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


def path_of(url: str) -> Path | None:
    """The path of a ``file:`` URL, ``None`` for any other URL."""
    if not url.startswith("file:"):
        return None
    path = urlsplit(url).path
    if os.name == "nt":
        from urllib.request import url2pathname  # imports an HTTP client

        return Path(url2pathname(path))
    return Path(unquote(path))


def page_of(index: str, name: str) -> str:
    """The URL of a package's page on an index."""
    parts = urlsplit(index)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}/"))


def beside(url: str, suffix: str) -> str:
    """The URL of a file next to another one (``….whl.metadata``), as defined by PEP 658."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path + suffix, fragment=""))


@lru_cache(maxsize=64)
def _folder(base: str, steps: str) -> str:
    """The absolute URL of ``../../`` on a page: the same for all its links."""
    return urljoin(base, steps or "./")


def joined(base: str, link: str) -> str | None:
    """The absolute URL of a link on a page, without credentials and fragment; ``None`` if its scheme is not allowed."""
    if link.startswith("https://") and link.isprintable():  # fast path for nearly all of the thousands of links on a page
        return without_credentials(link.partition("#")[0])
    plain = _PLAIN.fullmatch(link)
    if plain is not None and base.startswith(("https://", "http://")):
        return without_credentials(f"{_folder(base, plain[1])}{plain[2]}")
    try:
        url = urljoin(base, link.strip())
        scheme = urlsplit(url).scheme
    except ValueError:
        return None
    if scheme not in NETWORK and not (scheme == "file" and base.startswith("file:")):
        return None
    return without_credentials(url.partition("#")[0])
