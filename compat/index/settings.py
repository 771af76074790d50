"""Which indexes there are and how they are reached: the command line, then uv's configuration, then pip's.

No index is named here: where nothing is configured it is the client library's own default (``url`` is ``None``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compat.environment import EMPTY, normalized
from compat.errors import InputError
from compat.index.address import Credentials, host_of, parse_address, path_of
from compat.index.pip_settings import pip_options
from compat.index.uv_settings import Table, uv_tables
from compat.records import record, replace

THREADS = 16
"""Requests under way at once."""
STRATEGIES = ("first-index", "unsafe-first-match", "unsafe-best-match")
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


@record(frozen=True)
class Source:
    """One index. ``flat``: a page or folder of links to files of any package. ``absent``: statuses that mean "no page"."""

    url: str | None
    name: str | None = None
    flat: bool = False
    explicit: bool = False
    absent: tuple[int, ...] = ()

    @property
    def local(self) -> bool:
        """Whether it lies on this machine: it is then read each time, and offline too."""
        return self.url is not None and path_of(self.url) is not None


@record(frozen=True)
class Settings:
    """Everything a client needs; ``sources`` in order of priority, ``pinned`` a package's own indexes by name."""

    sources: tuple[Source, ...] = (Source(None),)
    strategy: str = "first-index"
    pinned: Mapping[str, tuple[str, ...]] = EMPTY
    credentials: Mapping[str, Credentials] = EMPTY
    trusted: tuple[str, ...] = ()
    certificates: str | None = None
    client_certificate: str | None = None
    proxy: str | None = None
    timeout: float = 15.0
    retries: int = 3
    keyring: bool = True

    def sources_of(self, name: str) -> tuple[Source, ...]:
        """The indexes that are asked for a package: its own, else all that are not kept for others."""
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
    """The settings that hold for a project in ``folder``; ``prefix`` is the environment whose ``pip.conf`` counts.

    :class:`InputError` names the option, and the file, of what cannot be used.
    """
    environ = os.environ if environ is None else environ
    prefix = prefix or environ.get("VIRTUAL_ENV") or sys.prefix
    given = _Sources(folder, pip_options(environ, prefix), uv_tables(folder, environ), environ)
    given.command_line(index_url, extra_index_urls, find_links)
    given.uv()
    given.pip()
    return _transport(given.settings(), given)


class _Sources:
    """Collects indexes, strongest first."""

    def __init__(self, folder: str, pip: dict[str, str], tables: list[Table], environ: Mapping[str, str]) -> None:
        self.folder, self.pip_given, self.tables, self.environ = folder, pip, tables, environ
        self.extra: list[Source] = []
        self.links: list[Source] = []
        self.default: Source | None = None
        self.credentials: dict[str, Credentials] = {}
        self.uv_names_an_index = False

    def command_line(self, index_url: str | None, extra: Iterable[str], links: Iterable[str]) -> None:
        if index_url:
            self.default = self._source(index_url, "--index-url")
        self._add(self.extra, extra, "--extra-index-url")
        self._add(self.links, links, "--find-links", flat=True)

    def uv(self) -> None:
        before = len(self.extra), self.default
        self._default(self.environ.get("UV_DEFAULT_INDEX") or self.environ.get("UV_INDEX_URL"), "UV_DEFAULT_INDEX")
        self._add(self.extra, self.environ.get("UV_INDEX", "").split(), "UV_INDEX")
        self._add(self.extra, self.environ.get("UV_EXTRA_INDEX_URL", "").split(), "UV_EXTRA_INDEX_URL")
        self._add(self.links, filter(None, self.environ.get("UV_FIND_LINKS", "").split(",")), "UV_FIND_LINKS", flat=True)
        for table in self.tables:
            for index in table.tables("index"):
                self._uv_index(index, table)
            self._default(table.text("index-url"), f"{table.file}: index-url", table.folder)
            self._add(self.extra, table.texts("extra-index-url"), f"{table.file}: extra-index-url", folder=table.folder)
            where = f"{table.file}: find-links"
            self._add(self.links, table.texts("find-links"), where, flat=True, folder=table.folder)
        self.uv_names_an_index = before != (len(self.extra), self.default)

    def pip(self) -> None:
        given = self.pip_given
        self._default(given.get("index-url") or given.get("pypi-url"), "pip's index-url")
        self._add(self.extra, given.get("extra-index-url", "").split(), "pip's extra-index-url")
        self._add(self.links, given.get("find-links", "").split(), "pip's find-links", flat=True)

    def settings(self) -> Settings:
        """pip asks all indexes, uv the first that has the package: which of them holds is told by who is configured."""
        strategy = self.environ.get("UV_INDEX_STRATEGY") or self.first("index-strategy")
        if strategy is None:
            merged = self.pip_given.get("extra-index-url") and not self.uv_names_an_index
            strategy = "unsafe-best-match" if merged else "first-index"
        if strategy not in STRATEGIES:
            raise InputError(f"index-strategy: expected one of {', '.join(STRATEGIES)}")
        indexes = [] if self._no_index() else [*self.extra, self.default or Source(None)]
        return Settings(
            sources=tuple(_distinct([*self.links, *indexes])), strategy=strategy, pinned=self._pinned(),
            credentials=self.credentials,
        )  # fmt: skip

    def _no_index(self) -> bool:
        said = [self.environ.get("UV_NO_INDEX"), self.pip_given.get("no-index")]
        return any(truth(text) for text in said if text) or any(table.flag("no-index") for table in self.tables)

    def first(self, option: str) -> str | None:
        return next((text for table in self.tables if (text := table.text(option)) is not None), None)

    def _default(self, text: str | None, said: str, folder: str | None = None) -> None:
        if text and self.default is None:
            self.default = self._source(text, said, folder=folder)

    def _add(self, to: list[Source], texts: Iterable[str], said: str, *, flat: bool = False, folder: str | None = None) -> None:
        to.extend(self._source(text, said, flat=flat, folder=folder) for text in texts)

    def _source(self, text: str, said: str, *, flat: bool = False, folder: str | None = None) -> Source:
        name, equals, rest = text.strip().partition("=")
        if not equals or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            name, rest = "", text
        url, credentials = parse_address(rest, folder or self.folder, said)
        self._keep(url, credentials, name)
        return Source(url if flat else url.rstrip("/"), name or None, flat)

    def _uv_index(self, index: dict[str, Any], table: Table) -> None:
        url, name = index.get("url"), index.get("name")
        if not isinstance(url, str) or not isinstance(name, str | None):
            raise InputError("index: expected a url, and a name that is text", table.file)
        source = self._source(url, f"{table.file}: index", flat=index.get("format") == "flat", folder=table.folder)
        self._keep(source.url or "", None, name)
        codes = index.get("ignore-error-codes", [])
        absent = tuple(code for code in codes if isinstance(code, int)) if isinstance(codes, list) else ()
        source = replace(source, name=name, explicit=index.get("explicit") is True, absent=absent)
        if index.get("default") is not True:
            self.extra.append(source)
        elif self.default is None:
            self.default = source

    def _keep(self, url: str, credentials: Credentials | None, name: str | None) -> None:
        """Credentials in the address, or in ``UV_INDEX_<NAME>_USERNAME`` and ``_PASSWORD``."""
        if name:
            stem = "UV_INDEX_" + "".join(c if c.isalnum() else "_" for c in name.upper())
            user, password = self.environ.get(f"{stem}_USERNAME"), self.environ.get(f"{stem}_PASSWORD")
            if user is not None or password is not None:
                credentials = Credentials(user or "", password or "")
        if credentials is not None:
            self.credentials.setdefault(host_of(url), credentials)

    def _pinned(self) -> dict[str, tuple[str, ...]]:
        """``[tool.uv.sources]`` that name an index; where several hold, markers tell them apart, and all may count."""
        pinned: dict[str, tuple[str, ...]] = {}
        for table in self.tables:
            for package, said in table.sources.items():
                entries = said if isinstance(said, list) else [said]
                names = [entry["index"] for entry in entries if isinstance(entry, dict) and "index" in entry]
                known = {source.name for source in (*self.extra, *([self.default] if self.default else []))}
                missing = next((name for name in names if name not in known), None)
                if missing is not None:
                    raise InputError(f"tool.uv.sources: {package}: there is no index named {missing!r}", table.file)
                if names:
                    pinned.setdefault(normalized(package), tuple(names))
        return pinned


def _distinct(sources: list[Source]) -> list[Source]:
    seen: dict[tuple[str | None, bool], Source] = {}
    for source in sources:
        seen.setdefault((source.url, source.flat), source)
    return list(seen.values())


def _transport(settings: Settings, given: _Sources) -> Settings:
    """How indexes are reached: certificates, proxy, patience."""
    pip, environ = given.pip_given, given.environ
    hosts = [*pip.get("trusted-host", "").split(), *environ.get("UV_INSECURE_HOST", "").split()]
    hosts += [host for table in given.tables for host in table.texts("allow-insecure-host")]
    timeout = environ.get("UV_HTTP_TIMEOUT") or pip.get("timeout") or pip.get("default-timeout")
    retries = environ.get("UV_HTTP_RETRIES") or pip.get("retries")
    bundle = pip.get("cert") or next((environ[name] for name in _CERTIFICATES if environ.get(name)), None)
    keyring = environ.get("UV_KEYRING_PROVIDER") or given.first("keyring-provider") or pip.get("keyring-provider")
    return replace(
        settings, trusted=tuple(host.lower() for host in hosts), certificates=bundle, proxy=pip.get("proxy"),
        client_certificate=pip.get("client-cert") or environ.get("SSL_CLIENT_CERT"),
        timeout=_number(timeout, "timeout", 15.0) or 15.0, retries=int(_number(retries, "retries", 3.0)),
        keyring=keyring != "disabled",
    )  # fmt: skip


def _number(text: str | None, said: str, default: float) -> float:
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise InputError(f"{said}: expected a number of seconds or tries, got {text!r}")
    return value


def truth(text: str) -> bool:
    """pip's idea of a flag."""
    return text.strip().lower() in ("1", "y", "yes", "t", "true", "on")
