"""Addresses of indexes and files: credentials taken out, paths made absolute, folders read as ``file:``."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from compat.errors import InputError

NETWORK = ("http", "https")


class Credentials:
    """A user and a password for one host; its text shows neither, so no message or trace can."""

    __slots__ = ("password", "user")

    def __init__(self, user: str, password: str) -> None:
        self.user, self.password = user, password

    def __repr__(self) -> str:
        return "Credentials(***)"


def parse_address(text: str, folder: str, said: str) -> tuple[str, Credentials | None]:
    """An address without its credentials, and these; a path counts from ``folder``. ``said`` is where it was read.

    :class:`InputError` where it is neither ``http:``, ``https:``, ``file:`` nor a path.
    """
    text = text.strip()
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port  # both may raise
    except ValueError:
        raise InputError(f"{said}: expected an address of an index, got one that cannot be read") from None
    if parts.scheme in NETWORK:
        if not host:
            raise InputError(f"{said}: expected an address of an index with a host")
        return without_credentials(text), _credentials(parts.username, parts.password)
    if parts.scheme == "file":
        return text, None
    if len(parts.scheme) > 1:  # one letter is a drive
        raise InputError(f"{said}: expected an address that begins with https:, http: or file:, or a path")
    return (Path(folder).absolute() / Path(text).expanduser()).as_uri(), None


def _credentials(user: str | None, password: str | None) -> Credentials | None:
    if user is None and password is None:
        return None
    return Credentials(unquote(user or ""), unquote(password or ""))


def without_credentials(url: str) -> str:
    """The same address with nothing before the host."""
    head, at, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{head}{at}{place.rpartition('@')[2]}{slash}{path}" if "@" in place else url


def host_of(url: str) -> str:
    """Scheme, host and port: what credentials and trust are given for."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


def path_of(url: str) -> Path | None:
    """The path of a ``file:`` address, ``None`` for every other."""
    parts = urlsplit(url)
    if parts.scheme != "file":
        return None
    if sys.platform == "win32":
        from urllib.request import url2pathname

        return Path(url2pathname(parts.path))
    return Path(unquote(parts.path))


def page_of(index: str, name: str) -> str:
    """The address of a package's page on an index."""
    parts = urlsplit(index)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}/"))


def beside(url: str, suffix: str) -> str:
    """The address of a file that lies beside another one (``….whl.metadata``), as PEP 658 has it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path + suffix, fragment=""))


def joined(base: str, link: str) -> str | None:
    """A link on a page, without credentials and fragment; ``None`` where a page on the network points elsewhere."""
    try:
        url = urljoin(base, link.strip())
        scheme = urlsplit(url).scheme
    except ValueError:
        return None
    here = urlsplit(base).scheme
    if scheme not in NETWORK and not (scheme == here == "file"):
        return None
    return without_credentials(url.partition("#")[0])
