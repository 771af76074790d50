"""Thread-safe HTTP: requests with a shared connection pool, and limits on redirects, retries, sizes and times.

Every failure is raised as a one-line :class:`Unread`. Connection failures, 429 and 5xx are retried by urllib3's ``Retry``,
which respects ``Retry-After`` up to a limit.
"""

from __future__ import annotations

import importlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import get_netrc_auth
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, InvalidHeader

from compat import __version__
from compat.index.metadata import Unread
from compat.index.settings import NETWORK, THREADS, Credentials, Settings, host_of
from compat.redact import excerpt, without_credentials

MOST_REDIRECTS = 10
CONNECT_TIMEOUT = 20.0
PATIENCE = 4
"""Time limit for headers, or for a body, as a multiple of the timeout for each packet."""
_MOST_PATIENCE = 60.0
"""Seconds to which that limit may grow; a longer timeout for each packet is the limit itself."""
_TOO_LATE = "was not read within the time limit"
LONGEST_PAUSE = 8.0
"""Maximum seconds between two attempts, even if ``Retry-After`` requests more."""
GIVES_UP_AFTER = 3
"""Number of failures of a host, each after all retries, after which it is no longer contacted."""
_OVERLOADED = (429, 503)
_AGAIN = (408, 425, *_OVERLOADED, 500, 502, 504, 520, 521, 522, 524)
_REDIRECTS = (301, 302, 303, 307, 308)
_CHUNK = 1 << 16
_CODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
"""Encodings that unpack a packet to at most a thousand times its size: others, and one within another, make gigabytes of it."""


@dataclass(frozen=True)
class Answer:
    """A response; ``url`` is the final URL after redirects."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


def _patience(settings: Settings) -> float:
    return max(settings.timeout, min(PATIENCE * settings.timeout, _MOST_PATIENCE))


class TooLarge(Exception):
    """A body exceeds its limit and was not read completely; ``size`` if the host states it."""

    def __init__(self, size: int | None) -> None:
        super().__init__(size)
        self.size = size


class BrokenOff(Unread):
    """A body ended early or stalled."""


class Transport:
    """Reads URLs; thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session = requests.Session()
        self._session.headers["User-Agent"] = f"compat-doctor/{__version__}"
        self._session.headers["Accept-Encoding"] = "gzip, deflate"
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = _Adapter(settings)
        for scheme in NETWORK:
            self._session.mount(f"{scheme}://", adapter)
        if settings.proxy:
            self._session.proxies = dict.fromkeys(NETWORK, settings.proxy)
        if settings.client_certificate:
            self._session.cert = settings.client_certificate
        if settings.trusted:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # that is what trusting a host means
        self._auth = _Auth(settings)
        self._session.auth = self._auth
        self._failures: Counter[str] = Counter()
        self.requests = 0
        self.bytes = 0

    def get(self, url: str, *, limit: int, headers: dict[str, str] | None = None) -> Answer:
        """The complete response, with any status that is not retried; :class:`Unread` if there is none.

        :class:`TooLarge` if the body has more than ``limit`` bytes.
        """
        try:
            return self._whole(url, headers or {}, limit)
        except BrokenOff:
            if not self._settings.retries:
                raise
        return self._whole(url, headers or {}, limit)  # urllib3 does not retry after the headers

    def stream(self, url: str, *, limit: int) -> Body:
        """A body that is read incrementally; :class:`Unread` unless the status is 200."""
        response = self._open(url, {"Accept-Encoding": "identity"})
        if response.status_code != 200:
            response.close()
            raise Unread(f"{_short(url)} answers HTTP {response.status_code}")
        return Body(self, response, _short(url), limit)

    def close(self) -> None:
        self._session.close()

    def failed(self, url: str) -> None:
        """Count a failure of a host."""
        self._failures[host_of(url)] += 1

    def time_limit(self) -> float:
        """Time limit for headers or a body, in seconds."""
        return _patience(self._settings)

    def time_left(self) -> float:
        """Seconds until nothing more is read."""
        deadline = self._settings.deadline
        return self.time_limit() if deadline is None else deadline - time.monotonic()

    def _whole(self, url: str, headers: dict[str, str], limit: int) -> Answer:
        response = self._open(url, headers)
        try:
            body = Body(self, response, _short(url), limit)
            whole = b"".join(iter(body.read, b""))
        finally:
            response.close()
        return Answer(response.status_code, response.headers, whole, response.url)

    def _open(self, url: str, headers: dict[str, str]) -> requests.Response:
        """A response after redirects, whose body has not been read.

        Redirects are not left to requests, which would read their bodies without a limit and use the same certificate
        verification for all hosts.
        """
        for _ in range(MOST_REDIRECTS + 1):
            response = self._send(url, headers)
            if response.status_code == 401 and self._auth.ask_keyring(url):
                response.close()
                response = self._send(url, headers)
            target = response.headers.get("Location")
            if response.status_code not in _REDIRECTS or not target:
                return response
            response.close()
            url = _redirected(url, target)
        raise Unread(f"{_short(url)} redirects more than {MOST_REDIRECTS} times")

    def _send(self, url: str, headers: dict[str, str]) -> requests.Response:
        host = host_of(url)
        if self._failures[host] >= GIVES_UP_AFTER:
            raise Unread(f"{host} did not answer")
        if self.time_left() <= 0:
            raise Unread(f"{_short(url)} {_TOO_LATE}")
        self.requests += 1
        seconds = self._settings.timeout
        try:
            response = self._session.get(
                url, headers=headers, stream=True, allow_redirects=False, verify=self._verify(url),
                timeout=(min(seconds, CONNECT_TIMEOUT), seconds),
            )  # fmt: skip
        except requests.exceptions.SSLError as problem:
            raise Unread(f"{_short(url)}: its certificate is not trusted ({_reason(problem)})") from None
        except _SlowHeadersError:
            self.failed(url)
            raise Unread(f"{_short(url)} took longer than {self.time_limit():g} s") from None
        except requests.ConnectionError as problem:
            self.failed(url)
            if isinstance(_innermost(problem), (TimeoutError, urllib3.exceptions.TimeoutError)):
                raise Unread(f"{_short(url)} did not answer within {seconds:g} s") from None
            raise Unread(f"{_short(url)} cannot be reached ({_reason(problem)})") from None
        except (requests.RequestException, HTTPError, OSError, ValueError) as problem:
            raise Unread(f"{_short(url)} cannot be read ({_reason(problem)})") from None
        if response.status_code in _AGAIN:
            response.close()
            self._failures[host] += response.status_code in _OVERLOADED
            raise Unread(f"{_short(url)} answers HTTP {response.status_code}")
        self._failures[host] = 0
        return response

    def _verify(self, url: str) -> bool | str:
        parts = urlsplit(url)
        if parts.hostname in self._settings.trusted or parts.netloc.rpartition("@")[2].lower() in self._settings.trusted:
            return False
        return self._settings.certificates or True


class Body:
    """A response body: :meth:`read` returns available bytes within the time limit; :class:`TooLarge` after ``limit`` bytes."""

    def __init__(self, transport: Transport, response: requests.Response, url: str, limit: int) -> None:
        self._transport, self._response, self._url, self._left = transport, response, url, limit
        coding = response.headers.get("Content-Encoding", "").strip().lower()
        if coding not in _CODINGS:
            raise Unread(f"{url} is encoded as {excerpt(coding, 60)!r}, which was not requested")
        self._until = time.monotonic() + min(transport.time_limit(), transport.time_left())
        stated = response.headers.get("Content-Length", "")
        self._size = int(stated) if stated.isdecimal() and len(stated) < 20 else None
        if self._size is not None and self._size > limit:
            raise TooLarge(self._size)

    def read(self, size: int = _CHUNK) -> bytes:
        raw = self._response.raw
        if time.monotonic() > self._until:
            self._transport.failed(self._response.url)
            if self._transport.time_left() <= 0:
                raise Unread(f"{self._url} {_TOO_LATE}")
            raise Unread(f"{self._url} took longer than {self._transport.time_limit():g} s")
        try:
            # read1 returns after one packet, so that a slow host is detected
            chunk: bytes = (
                raw.read1(size, decode_content=True) if hasattr(raw, "read1") else raw.read(4096, decode_content=True)
            )
        except urllib3.exceptions.TimeoutError:
            self._transport.failed(self._response.url)
            raise BrokenOff(f"{self._url} stalled") from None
        except (HTTPError, OSError, ValueError) as problem:
            raise BrokenOff(f"{self._url} was interrupted ({_reason(problem)})") from None
        self._transport.bytes += len(chunk)
        self._left -= len(chunk)
        if self._left < 0:
            raise TooLarge(self._size)
        return chunk

    def close(self) -> None:
        self._response.close()


class _Retry(urllib3.Retry):
    """Waits as long as the host requests, but at most :data:`LONGEST_PAUSE`."""

    def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
        try:
            seconds = super().get_retry_after(response)
        except InvalidHeader:
            return None
        return None if seconds is None else min(seconds, LONGEST_PAUSE)


class _Adapter(HTTPAdapter):
    """Adapter with retries, one connection pool for all threads, and a time limit for headers."""

    def __init__(self, settings: Settings) -> None:
        seconds = _patience(settings)
        kinds = {
            "http": (urllib3.HTTPConnectionPool, HTTPConnection), "https": (urllib3.HTTPSConnectionPool, HTTPSConnection)
        }  # fmt: skip
        self._pools = {}  # urllib3 finds the class of a pool by the scheme, and that of a connection in the pool
        for scheme, (pool, connection) in kinds.items():
            limited = type("Connection", (_Limited, connection), {"seconds": seconds})
            self._pools[scheme] = type("Pool", (pool,), {"ConnectionCls": limited})
        retry = _Retry(
            settings.retries, redirect=0, other=0, allowed_methods=None, status_forcelist=_AGAIN, raise_on_status=False,
            backoff_factor=0.25, backoff_max=LONGEST_PAUSE,
        )  # fmt: skip
        super().__init__(pool_connections=THREADS, pool_maxsize=THREADS, max_retries=retry)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> urllib3.ProxyManager:
        manager: urllib3.ProxyManager = super().proxy_manager_for(*arguments, **options)
        manager.pool_classes_by_scheme = self._pools
        return manager


class _SlowHeadersError(Exception):
    """Headers arrived too slowly; not an exception of urllib3, which would retry."""


class _Limited:
    """A connection that is closed if headers arrive too slowly; each packet resets the timeout of a socket."""

    seconds: float
    sock: socket.socket

    def getresponse(self) -> urllib3.HTTPResponse:
        cut = threading.Event()
        timer = threading.Timer(self.seconds, partial(_cut, self.sock, cut))
        timer.daemon = True
        timer.start()
        try:
            response: urllib3.HTTPResponse = super().getresponse()  # type: ignore[misc]
        except Exception:
            if cut.is_set():
                raise _SlowHeadersError from None
            raise
        finally:
            timer.cancel()
        if cut.is_set():  # http.client treats a connection closed within the headers as their end
            raise _SlowHeadersError
        return response


def _cut(connected: socket.socket, cut: threading.Event) -> None:
    cut.set()
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        connected.close()


class _Auth(AuthBase):
    """Basic authentication by host: credentials of the index, then ``.netrc``, then the keyring once it was queried."""

    def __init__(self, settings: Settings) -> None:
        self._known = dict(settings.credentials)
        self._keyring = settings.keyring
        self._asked: set[str] = set()

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url = request.url or ""
        known = self._known.get(host_of(url))
        pair = (known.user, known.password) if known else get_netrc_auth(url)
        return HTTPBasicAuth(*pair)(request) if pair else request

    def ask_keyring(self, url: str) -> bool:
        """Query the keyring, if installed, once per host; returns whether it has credentials."""
        host = host_of(url)
        if not self._keyring or host in self._asked:
            return False
        self._asked.add(host)
        user = known.user if (known := self._known.get(host)) else None
        try:
            keyring = importlib.import_module("keyring")
            for service in (without_credentials(url), urlsplit(host).netloc):
                found = keyring.get_credential(service, user)
                if found is not None:
                    self._known[host] = Credentials(found.username or user or "", found.password or "")
                    return True
        except Exception:
            return False  # backends raise arbitrary exceptions
        return False


def _redirected(url: str, target: str) -> str:
    try:
        there = urljoin(url, target)
        before, after = urlsplit(url).scheme, urlsplit(there).scheme
    except ValueError:
        raise Unread(f"{_short(url)} redirects to an invalid address") from None
    if after not in NETWORK or (before, after) == ("https", "http"):
        raise Unread(f"{_short(url)} redirects to {after or 'nothing'}:, which is not followed")
    return there


def _short(url: str) -> str:
    """A URL for messages, without credentials and query."""
    return without_credentials(url).partition("?")[0]


def _innermost(problem: BaseException) -> BaseException:
    """The root cause of an exception."""
    for _ in range(8):
        causes = (getattr(problem, "reason", None), *problem.args, problem.__cause__)
        deeper = next((each for each in causes if isinstance(each, BaseException)), None)
        if deeper is None:
            break
        problem = deeper
    return problem


def _reason(problem: BaseException) -> str:
    """The root cause of an exception as a short text without credentials."""
    inner = _innermost(problem)
    text = getattr(inner, "strerror", None) or (inner.args[-1] if inner.args and isinstance(inner.args[-1], str) else "")
    return without_credentials(" ".join((text or type(inner).__name__).split()))[:160]
