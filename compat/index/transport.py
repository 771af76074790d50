"""HTTP for many threads: certificates, credentials, bounded redirects, retries, sizes and time; every failure is one line."""

from __future__ import annotations

import importlib
import io
import time
from collections import Counter
from collections.abc import Callable
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import get_netrc_auth

from compat import __version__
from compat.index.address import NETWORK, Credentials, host_of, without_credentials
from compat.index.records import Unread
from compat.index.settings import THREADS, Settings
from compat.records import record

T = TypeVar("T")
MOST_REDIRECTS = 10
LARGEST_PAGE = 64 << 20
CONNECT_TIMEOUT = 20.0
GIVES_UP_AFTER = 3
"""Failures to reach a host, each with all its retries, after which it is asked no more."""
_AGAIN = (408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 524)
_REDIRECTS = (301, 302, 303, 307, 308)
_CHUNK = 1 << 16


@record(frozen=True)
class Answer:
    """What a host sent; ``url`` is where it came from after redirects."""

    status: int
    headers: Any
    body: bytes
    url: str


class TooLarge(Exception):
    """A body that was not read because it is larger than wanted; ``size`` where the host tells it."""

    def __init__(self, size: int | None) -> None:
        super().__init__(size)
        self.size = size


class Transport:
    """Reads addresses; safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session = requests.Session()
        self._session.headers["User-Agent"] = f"compat-doctor/{__version__}"
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = HTTPAdapter(pool_connections=THREADS, pool_maxsize=THREADS)
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
        """The answer, whatever its status below 500; :class:`Unread` where there is none.

        :class:`TooLarge` where a body has more than ``limit`` bytes.
        """
        return self._tried(url, lambda: self._whole(url, headers or {}, limit))

    def stream(self, url: str) -> Body:
        """A body that is read as far as wanted; :class:`Unread` where there is none."""
        response = self._tried(url, lambda: self._open(url, {"Accept-Encoding": "identity"}))
        if response.status_code != 200:
            response.close()
            raise Unread(f"{_short(url)} answers HTTP {response.status_code}")
        return Body(response, self)

    def close(self) -> None:
        self._session.close()

    def _tried(self, url: str, once: Callable[[], T]) -> T:
        host = host_of(url)
        attempt = 0
        while self._failures[host] < GIVES_UP_AFTER:
            try:
                answer = once()
            except _Passing as problem:
                if attempt == self._settings.retries:
                    self._failures[host] += problem.unreachable
                    raise Unread(f"{_short(url)} {problem}") from None
                time.sleep(min(0.25 * 2**attempt, 8.0))
                attempt += 1
            else:
                self._failures[host] = 0
                return answer
        raise Unread(f"{host} did not answer")

    def _whole(self, url: str, headers: dict[str, str], limit: int) -> Answer:
        response = self._open(url, headers)
        try:
            told = response.headers.get("Content-Length", "")
            size = int(told) if told.isdigit() else None
            if size is not None and size > limit:
                raise TooLarge(size)
            body = Body(response, self)
            read = io.BytesIO()
            while chunk := body.read(_CHUNK):
                read.write(chunk)
                if read.tell() > limit:
                    raise TooLarge(size)
        finally:
            response.close()
        return Answer(response.status_code, response.headers, read.getvalue(), response.url)

    def _open(self, url: str, headers: dict[str, str]) -> Any:
        """A response whose body is still to be read, after redirects; each host gets its own credentials and trust."""
        for _ in range(MOST_REDIRECTS + 1):
            response = self._send(url, headers)
            if response.status_code == 401 and self._auth.ask_keyring(url):
                response.close()
                response = self._send(url, headers)
            if response.status_code in _AGAIN:
                response.close()
                raise _Passing(f"answers HTTP {response.status_code}")
            target = response.headers.get("Location")
            if response.status_code not in _REDIRECTS or not target:
                return response
            response.close()
            url = self._redirected(url, target)
        raise Unread(f"{_short(url)} redirects more than {MOST_REDIRECTS} times")

    def _send(self, url: str, headers: dict[str, str]) -> Any:
        self.requests += 1
        seconds = self._settings.timeout
        try:
            return self._session.get(
                url, headers=headers, stream=True, allow_redirects=False, verify=self._verify(url),
                timeout=(min(seconds, CONNECT_TIMEOUT), seconds),
            )  # fmt: skip
        except requests.exceptions.SSLError as problem:
            raise Unread(f"{_short(url)}: its certificate is not accepted ({_reason(problem)})") from None
        except requests.Timeout:
            raise _Passing(f"did not answer within {seconds:g} s", unreachable=True) from None
        except requests.ConnectionError as problem:
            raise _Passing(f"cannot be reached ({_reason(problem)})", unreachable=True) from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as problem:
            raise Unread(f"{_short(url)} cannot be read ({_reason(problem)})") from None

    def _verify(self, url: str) -> bool | str:
        parts = urlsplit(url)
        if parts.hostname in self._settings.trusted or parts.netloc.rpartition("@")[2].lower() in self._settings.trusted:
            return False
        return self._settings.certificates or True

    def _redirected(self, url: str, target: str) -> str:
        try:
            there = urljoin(url, target)
            before, after = urlsplit(url).scheme, urlsplit(there).scheme
        except ValueError:
            raise Unread(f"{_short(url)} redirects to an address that cannot be read") from None
        if after not in NETWORK or (before, after) == ("https", "http"):
            raise Unread(f"{_short(url)} redirects to {after or 'nothing'}:, which is not followed")
        return there


class Body:
    """A response's body: :meth:`read` gives what has come, and nothing may take longer than four timeouts."""

    def __init__(self, response: Any, transport: Transport) -> None:
        self._response, self._transport = response, transport
        self._seconds = 4 * transport._settings.timeout
        self._until = time.monotonic() + self._seconds

    def read(self, size: int = _CHUNK) -> bytes:
        raw = self._response.raw
        if time.monotonic() > self._until:
            raise _Passing(f"took longer than {self._seconds:g} s", unreachable=True)
        try:
            # read1 comes back with what one packet brought: a host that drips is noticed
            chunk: bytes = (
                raw.read1(size, decode_content=True) if hasattr(raw, "read1") else raw.read(4096, decode_content=True)
            )
        except urllib3.exceptions.TimeoutError:
            raise _Passing("stopped in the middle", unreachable=True) from None
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as problem:
            raise _Passing(f"broke off in the middle ({_reason(problem)})") from None
        self._transport.bytes += len(chunk)
        return chunk

    def close(self) -> None:
        self._response.close()


class _Passing(Unread):
    """A failure that may be over the next time."""

    def __init__(self, text: str, *, unreachable: bool = False) -> None:
        super().__init__(text)
        self.unreachable = unreachable


class _Auth(AuthBase):
    """Basic authentication by host: the address of the index, then ``.netrc``, then the keyring once it was asked."""

    def __init__(self, settings: Settings) -> None:
        self._known = dict(settings.credentials)
        self._keyring = settings.keyring
        self._asked: set[str] = set()

    def __call__(self, request: Any) -> Any:
        known = self._known.get(host_of(request.url))
        pair = (known.user, known.password) if known else get_netrc_auth(request.url)
        return HTTPBasicAuth(*pair)(request) if pair else request

    def ask_keyring(self, url: str) -> bool:
        """Whether the keyring, where one is installed, has credentials that were not tried."""
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
            return False  # backends raise whatever they like, and without one there are no credentials
        return False


def _short(url: str) -> str:
    """An address for a message: no credentials, no query."""
    return without_credentials(url).partition("?")[0]


def _reason(problem: BaseException) -> str:
    """The innermost cause of a failure, in a few words."""
    inner: Any = problem
    for _ in range(8):
        causes = (getattr(inner, "reason", None), *inner.args, inner.__cause__)
        deeper = next((each for each in causes if isinstance(each, BaseException)), None)
        if deeper is None:
            break
        inner = deeper
    text = getattr(inner, "strerror", None) or (inner.args[-1] if inner.args and isinstance(inner.args[-1], str) else "")
    return without_credentials(" ".join((text or type(inner).__name__).split()))[:160]
