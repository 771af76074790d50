"""Index settings: URLs, credentials and network options from the command line, then uv's configuration, then pip's.

No index is hard-coded: if none is configured, uv's default is used (``url`` is ``None``). Credentials are removed from URLs,
paths are made absolute and converted to ``file:`` URLs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from compat.errors import InputError
from compat.index.configuration import Table, pip_options, uv_tables
from compat.model import normalized
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


def adjacent_url(url: str, suffix: str) -> str:
    """The URL of a file next to another one (``….whl.metadata``), as defined by PEP 658."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path + suffix, fragment=""))


@lru_cache(maxsize=64)
def _folder(base: str, steps: str) -> str:
    """The absolute URL of ``../../`` on a page: the same for all its links."""
    return urljoin(base, steps or "./")


def resolve_link(base: str, link: str) -> str | None:
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


THREADS = 16
"""Maximum number of concurrent requests."""
STRATEGIES = ("first-index", "unsafe-first-match", "unsafe-best-match")
_TRUE = ("1", "y", "yes", "t", "true", "on")
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


@dataclass(frozen=True)
class Source:
    """One index. ``flat``: a page or folder of links to files of any package. ``absent``: HTTP statuses for "not found"."""

    url: str | None
    name: str | None = None
    flat: bool = False
    explicit: bool = False
    absent: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """The key of its pages and files in the cache."""
        return self.url or ""

    @cached_property
    def local(self) -> bool:
        """Whether it is on the local file system: it is then read each time, even offline."""
        return path_of(self.key) is not None


@dataclass(frozen=True)
class Settings:
    """The settings of a client; ``sources`` by descending priority, ``pinned`` maps packages to their own indexes."""

    sources: tuple[Source, ...] = (Source(None),)
    strategy: str = "first-index"
    pinned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    credentials: Mapping[str, Credentials] = field(default_factory=dict)
    trusted: tuple[str, ...] = ()
    certificates: str | None = None
    client_certificate: str | None = None
    proxy: str | None = None
    timeout: float = 15.0
    deadline: float | None = None
    """Nothing more is read from the network after that (monotonic seconds)."""
    retries: int = 3
    keyring: bool = True

    def sources_of(self, name: str) -> tuple[Source, ...]:
        """The indexes for a package: its own if it is pinned, else all that are not explicit."""
        own = self.pinned.get(name)
        if own:
            return tuple(source for source in self.sources if source.name in own or (source.flat and not source.explicit))
        return tuple(source for source in self.sources if not source.explicit)


def gather(
    folder: str = ".",
    *,
    environ: Mapping[str, str] | None = None,
    prefix: str | None = None,
    index_url: str | None = None,
    extra_index_urls: Sequence[str] = (),
    find_links: Sequence[str] = (),
) -> Settings:
    """The settings for a project in ``folder``; ``prefix`` is the environment whose ``pip.conf`` is read.

    Raises :class:`InputError` with the option, and the file, of an invalid value.
    """
    environ = os.environ if environ is None else environ
    pip = pip_options(environ, prefix or environ.get("VIRTUAL_ENV") or sys.prefix)
    tables = uv_tables(folder, environ)
    found = _Indexes(folder, environ)
    found.add("default", [index_url], "--index-url")
    found.add("extra", extra_index_urls, "--extra-index-url")
    found.add("links", find_links, "--find-links")
    before = found.count()
    found.add("default", [environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")], "UV_DEFAULT_INDEX")
    for variable in ("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        found.add("extra", environ.get(variable, "").split(), variable)
    found.add("links", environ.get("UV_FIND_LINKS", "").split(","), "UV_FIND_LINKS")
    for table in tables:
        found.add_uv(table)
    # uv uses the first index that has a package. If extra indexes are only configured for pip, all are used, as pip does:
    # the first alone would hide releases that pip installs. An explicit index hides nothing, so it does not count.
    merged = pip.get("extra-index-url") and before == found.count()
    found.add("default", [pip.get("index-url") or pip.get("pypi-url")], "pip's index-url")
    found.add("extra", pip.get("extra-index-url", "").split(), "pip's extra-index-url")
    found.add("links", pip.get("find-links", "").split(), "pip's find-links")

    strategy = environ.get("UV_INDEX_STRATEGY") or _first(tables, "index-strategy")
    strategy = strategy or ("unsafe-best-match" if merged else "first-index")
    if strategy not in STRATEGIES:
        raise InputError(f"index-strategy: expected one of {', '.join(STRATEGIES)}")
    flags = (environ.get("UV_NO_INDEX", ""), pip.get("no-index", ""))
    no_index = any(text.strip().lower() in _TRUE for text in flags) or any(table.one("no-index", bool) for table in tables)
    hosts = [*pip.get("trusted-host", "").split(), *environ.get("UV_INSECURE_HOST", "").split()]
    hosts += [host for table in tables for host in table.many("allow-insecure-host", str)]
    timeout = environ.get("UV_HTTP_TIMEOUT") or pip.get("timeout") or pip.get("default-timeout")
    retries = environ.get("UV_HTTP_RETRIES") or pip.get("retries")
    keyring = environ.get("UV_KEYRING_PROVIDER") or _first(tables, "keyring-provider") or pip.get("keyring-provider")
    return Settings(
        sources=found.sources(no_index=no_index), strategy=strategy, pinned=found.pinned(tables), credentials=found.credentials,
        trusted=tuple(host.lower() for host in hosts), proxy=pip.get("proxy"),
        certificates=pip.get("cert") or next((environ[name] for name in _CERTIFICATES if environ.get(name)), None),
        client_certificate=pip.get("client-cert") or environ.get("SSL_CLIENT_CERT"),
        timeout=_number(timeout, "timeout", 15.0) or 15.0, retries=int(_number(retries, "retries", 3.0)),
        keyring=keyring != "disabled",
    )  # fmt: skip


class _Indexes:
    """Collects indexes by descending priority: a ``default`` one, ``extra`` ones, and ``links`` to files."""

    def __init__(self, folder: str, environ: Mapping[str, str]) -> None:
        self._folder, self._environ = folder, environ
        self._found: dict[str, list[Source]] = {"links": [], "extra": [], "default": []}
        self.credentials: dict[str, Credentials] = {}

    def add(self, kind: str, texts: Iterable[str | None], option: str, folder: str | None = None) -> None:
        for text in filter(None, texts):
            if kind != "default" or not self._found[kind]:
                self._found[kind].append(self._source(text, option, kind == "links", folder))

    def add_uv(self, table: Table) -> None:
        """Add the indexes of one uv configuration file."""
        for index in table.many("index", dict):
            url, name, codes = index.get("url"), index.get("name"), index.get("ignore-error-codes", [])
            if not isinstance(url, str) or not isinstance(name, str | None):
                raise InputError("index: expected a url, and a name that is a string", table.file)
            source = self._source(url, f"{table.file}: index", index.get("format") == "flat", table.folder)
            self._keep(source.key, None, name)
            absent = tuple(code for code in codes if isinstance(code, int)) if isinstance(codes, list) else ()
            kind = "default" if index.get("default") is True else "extra"
            if kind == "extra" or not self._found[kind]:
                explicit = index.get("explicit") is True
                self._found[kind].append(replace(source, name=name, explicit=explicit, absent=absent))
        self.add("default", [table.one("index-url", str)], f"{table.file}: index-url", table.folder)
        self.add("extra", table.many("extra-index-url", str), f"{table.file}: extra-index-url", table.folder)
        self.add("links", table.many("find-links", str), f"{table.file}: find-links", table.folder)

    def count(self) -> int:
        """The number of indexes that are not explicit, without links."""
        return sum(not source.explicit for kind in ("extra", "default") for source in self._found[kind])

    def sources(self, *, no_index: bool) -> tuple[Source, ...]:
        """The indexes without duplicates, links first and the default index last."""
        indexes = [] if no_index else [*self._found["extra"], *(self._found["default"] or [Source(None)])]
        seen: dict[tuple[str | None, bool], Source] = {}
        for source in (*self._found["links"], *indexes):
            seen.setdefault((source.url, source.flat), source)
        return tuple(seen.values())

    def pinned(self, tables: list[Table]) -> dict[str, tuple[str, ...]]:
        """The packages pinned to indexes in ``[tool.uv.sources]``; several entries differ by marker, so all are kept."""
        known = {source.name for kind in ("extra", "default") for source in self._found[kind]}
        pinned: dict[str, tuple[str, ...]] = {}
        for table in tables:
            for package, value in table.sources.items():
                entries = value if isinstance(value, list) else [value]
                names = [entry["index"] for entry in entries if isinstance(entry, dict) and "index" in entry]
                missing = next((name for name in names if name not in known), None)
                if missing is not None:
                    raise InputError(f"tool.uv.sources: {package}: there is no index named {missing!r}", table.file)
                if names:
                    pinned.setdefault(normalized(package), tuple(names))
        return pinned

    def _source(self, text: str, option: str, flat: bool, folder: str | None) -> Source:
        name, equals, rest = text.strip().partition("=")
        if not equals or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            name, rest = "", text
        url, credentials = parse_address(rest, folder or self._folder, option)
        self._keep(url, credentials, name)
        return Source(url if flat else url.rstrip("/"), name or None, flat)

    def _keep(self, url: str, credentials: Credentials | None, name: str | None) -> None:
        """Record credentials from the URL, or from ``UV_INDEX_<NAME>_USERNAME`` and ``_PASSWORD``."""
        if name:
            stem = "UV_INDEX_" + "".join(c if c.isalnum() else "_" for c in name.upper())
            user, password = self._environ.get(f"{stem}_USERNAME"), self._environ.get(f"{stem}_PASSWORD")
            if user is not None or password is not None:
                credentials = Credentials(user or "", password or "")
        if credentials is not None:
            self.credentials.setdefault(host_of(url), credentials)


def _first(tables: list[Table], option: str) -> str | None:
    return next((text for table in tables if (text := table.one(option, str)) is not None), None)


def _number(text: str | None, option: str, default: float) -> float:
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise InputError(f"{option}: expected a number of seconds or tries, got {text!r}")
    return value
