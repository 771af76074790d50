"""A package index on this machine, for tests: packages as Python data, what it offers as options, what goes wrong as faults.

    with IndexServer({"a": {"1.0": {"requires": ["b>1"]}}, "b": {"2.0": {}}}) as server:
        index = Index(Settings((Source(server.url),)), Store(":memory:"))

Faults are set for a package's page by its name and for a file by its file name (``*``: for everything):
``500``, ``403``, ``slow`` (answers after ``seconds``), ``held`` (answers while :attr:`IndexServer.turns` last, then waits for
more), ``drip`` (a byte now and then), ``truncated`` (half of it, as if it were whole), ``broken-off`` (half of it, then the
connection ends), ``wrong-hash`` (the page tells another), ``redirect-loop``, ``no-metadata`` (promised, then 404),
``wrong-metadata`` (other text than its hash says), ``not-a-page``, ``once-500``, ``to URL`` (redirects there),
``slow-headers`` (a byte of them now and then), ``429`` and ``503`` (with ``Retry-After: 3600``), ``other-range`` (another part
of a file than was asked for), ``cut-range`` (half of it), ``bomb`` (a page that unpacks to 64 MB),
``encoded CODING`` (a page packed twice, said to be in this encoding).
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import json
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from tests.index.archives import Release, metadata_text, sdist, sdist_name, wheel, wheel_names

Packages = Mapping[str, Mapping[str, Release]]
JSON = "application/vnd.pypi.simple.v1+json"


class Hosted(NamedTuple):
    """A file of the index; its bytes are made when they are first asked for."""

    package: str
    version: str
    filename: str
    release: Release

    @property
    def body(self) -> bytes:
        return _body(self.package, self.version, self.filename.endswith(".whl"), json.dumps(self.release))

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()

    @property
    def metadata(self) -> bytes:
        return metadata_text(self.package, self.version, self.release).encode()


@functools.lru_cache(maxsize=4096)
def _body(package: str, version: str, is_wheel: bool, release: str) -> bytes:
    return (wheel if is_wheel else sdist)(package, version, json.loads(release))


class IndexServer:
    """Serves ``/simple/NAME/``, ``/files/FILE``, and ``/flat/`` with everything on one page."""

    def __init__(
        self,
        packages: Packages,
        *,
        metadata: bool = True,
        json: bool = True,
        ranges: str | bool = True,
        hashes: bool = True,
        faults: Mapping[str, str] | None = None,
        seconds: float = 1.0,
        login: tuple[str, str] | None = None,
        certificate: tuple[str, str] | None = None,
        root: str = "simple",
        validators: str = "",
    ) -> None:
        """``root`` is the folder of its pages. ``certificate`` and its key make it speak TLS. ``validators``: "etag" or "modified"

        for pages that can be revalidated. ``ranges``: True, False, or "absolute" for a host that knows none that count from the end.
        """
        self.metadata, self.json, self.ranges, self.hashes = metadata, json, ranges, hashes
        self.faults = dict(faults or {})
        self.seconds, self.login, self.root, self.validators = seconds, login, root, validators
        self.turns = threading.Semaphore(0)
        self.counting = threading.Lock()
        self.waiting, self.busiest = 0, 0
        """How many slow answers are under way, and the most that were so far."""
        self.dripped = 0
        """How many bytes were sent now and then."""
        self.full: list[str] = []
        """Every path that was answered with a body, not with 304."""
        self.requests: list[str] = []
        """Every path that was asked for, with the range: ``/files/a-1.0-py3-none-any.whl bytes=-65536``."""
        self.files: dict[str, Hosted] = {}
        self.pages: dict[str, list[str]] = {}
        for name, versions in packages.items():
            self.add(name, versions)
        server = self
        self._http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"index": server}))
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def add(self, name: str, versions: Mapping[str, Release]) -> None:
        page = self.pages.setdefault(name, [])
        for version, release in versions.items():
            names = [*wheel_names(name, version, release), sdist_name(name, version, release)]
            for filename in filter(None, names):
                self.files[filename] = Hosted(name, version, filename, release)
                page.append(filename)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_port}"

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self.host}/{self.root}"

    @property
    def flat(self) -> str:
        return f"{self._scheme}://{self.host}/flat/"

    def fault(self, *keys: str) -> str | None:
        return next((self.faults[key] for key in (*keys, "*") if key in self.faults), None)

    def __enter__(self) -> IndexServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def rows(self, page: list[str]) -> list[dict[str, Any]]:
        """The page as PEP 691 has it."""
        made = []
        for filename in page:
            file = self.files[filename]
            row: dict[str, Any] = {
                "filename": filename,
                "url": f"/files/{quote(filename)}",
                "hashes": {},
                "size": len(file.body),
            }
            if self.hashes:
                row["hashes"] = {"sha256": "0" * 64 if self.fault(filename) == "wrong-hash" else file.sha256}
            if file.release.get("requires_python"):
                row["requires-python"] = file.release["requires_python"]
            if file.release.get("yanked"):
                row["yanked"] = file.release["yanked"]
            if file.release.get("uploaded"):
                row["upload-time"] = file.release["uploaded"]
            if self.metadata and filename.endswith(".whl"):
                row["core-metadata"] = {"sha256": hashlib.sha256(file.metadata).hexdigest()}
            made.append(row)
        return made


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    index: IndexServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two packets

    def log_message(self, *_: object) -> None:
        """Tests look at ``server.requests``."""

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        span = self.headers.get("Range")
        self.index.requests.append(f"{path} {span}" if span else path)
        if self.index.login is not None and not self._may():
            self._answer(401, b"who are you?", {"WWW-Authenticate": 'Basic realm="index"'})
            return
        parts = path.strip("/").split("/")
        if parts[0] == self.index.root and len(parts) <= 2:
            self._page(parts[1] if len(parts) == 2 else None)
        elif parts[0] == "flat":
            self._listing("everything", list(self.index.files))
        elif parts[0] == "files" and len(parts) == 2:
            self._file(parts[1], span)
        else:
            self._answer(404, b"there is nothing here")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _may(self) -> bool:
        user, password = self.index.login or ("", "")
        expected = base64.b64encode(f"{user}:{password}".encode()).decode()
        return self.headers.get("Authorization") == f"Basic {expected}"

    def _page(self, name: str | None) -> None:
        if name is None:
            names = "".join(f'<a href="/{self.index.root}/{name}/">{name}</a>' for name in self.index.pages)
            self._answer(200, names.encode(), {"Content-Type": "text/html"})
        elif self._fails(self.index.fault(name), name):
            pass
        elif name not in self.index.pages:
            self._answer(404, b"no such package")
        else:
            self._listing(name, self.index.pages[name])

    def _listing(self, name: str, page: list[str]) -> None:
        rows = self.index.rows(page)
        if self.index.json and JSON in self.headers.get("Accept", "") and name != "everything":
            body = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": rows}).encode()
            self._answer(200, body, {"Content-Type": JSON})
            return
        links = "\n".join(map(_link, rows))
        self._answer(200, f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), {"Content-Type": "text/html"})

    def _file(self, filename: str, span: str | None) -> None:
        file = self.index.files.get(filename.removesuffix(".metadata"))
        fault = self.index.fault(filename.removesuffix(".metadata"))
        if file is None or (filename.endswith(".metadata") and (not self.index.metadata or fault == "no-metadata")):
            self._answer(404, b"no such file")
        elif filename.endswith(".metadata"):
            self._answer(200, file.metadata.replace(b"This is", b"This was") if fault == "wrong-metadata" else file.metadata)
        elif not self._fails(fault, filename):
            self._body(file.body[: len(file.body) // 2] if fault == "truncated" else file.body, span, fault)

    def _body(self, body: bytes, span: str | None, fault: str | None) -> None:
        first, _, last = (span or "").removeprefix("bytes=").partition("-")
        if span is None or not self.index.ranges or (self.index.ranges == "absolute" and not first):
            self._answer(200, body, {"Accept-Ranges": "bytes"} if self.index.ranges else {})
            return
        start = int(first) if first else max(0, len(body) - int(last))
        end = min(len(body) - 1, int(last)) if first and last else len(body) - 1
        if start >= len(body):
            self._answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
            return
        part = body[start : end + 1]
        if fault == "other-range":
            start = end = 0
            part = body[:1]
        elif fault == "cut-range":
            part = part[: len(part) // 2]
        self._answer(206, part, {"Content-Range": f"bytes {start}-{end}/{len(body)}"})

    def _fails(self, fault: str | None, name: str) -> bool:
        """Whether something went wrong, and was answered."""
        if fault in ("500", "403", "429", "503"):
            self._answer(int(fault), b"not today", {"Retry-After": "3600"} if fault in ("429", "503") else {})
        elif fault in ("drip", "slow-headers"):
            self._drip(in_headers=fault == "slow-headers")
        elif fault == "bomb":
            packed = gzip.compress(b" " * (64 << 20))
            self._answer(200, packed, {"Content-Type": JSON, "Content-Encoding": "gzip"})
        elif fault is not None and fault.startswith("encoded "):
            packed = gzip.compress(gzip.compress(b" " * (1 << 16)))
            self._answer(200, packed, {"Content-Type": JSON, "Content-Encoding": fault.partition(" ")[2]})
        elif fault == "once-500":
            self.index.faults.pop(name)
            self._answer(500, b"not now")
        elif fault == "redirect-loop":
            self._answer(302, b"", {"Location": f"{self.path.partition('?')[0]}?again={time.monotonic_ns()}"})
        elif fault is not None and fault.startswith("to "):
            self._answer(302, b"", {"Location": fault.removeprefix("to ")})
        elif fault == "not-a-page":
            self._answer(200, b'{"files": [{"filename": 7}]}', {"Content-Type": JSON})
        elif fault == "broken-off":
            self._answer(200, b"half of it", {"Content-Length": "1000", "Content-Type": "text/html"})
            self.close_connection = True
        elif fault == "slow":
            with self.index.counting:
                self.index.waiting += 1
                self.index.busiest = max(self.index.busiest, self.index.waiting)
            time.sleep(self.index.seconds)
            with self.index.counting:
                self.index.waiting -= 1
            return False
        elif fault == "held":
            self.index.turns.acquire()
            return False
        else:
            return False
        return True

    def _drip(self, *, in_headers: bool) -> None:
        """A byte now and then, of the headers or of the body."""
        if not in_headers:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "1000")
            self.end_headers()
        try:
            for byte in b"HTTP/1.1 200 OK\r\nX-Padding: " + b"x" * 1000:
                self.wfile.write(bytes((byte,)))
                self.index.dripped += 1
                time.sleep(0.05)
        except OSError:
            self.close_connection = True

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        validators = {}
        if self.index.validators and status == 200 and "Content-Type" in (headers or {}):
            kind, value = self.index.validators, hashlib.sha256(body).hexdigest()
            validators = {"ETag": f'"{value}"'} if kind == "etag" else {"Last-Modified": "Mon, 03 Nov 2025 10:00:00 GMT"}
            if validators.get("ETag") == self.headers.get("If-None-Match", "") or (
                kind == "modified" and self.headers.get("If-Modified-Since") == validators["Last-Modified"]
            ):
                status, body = 304, b""
        if status == 200:
            self.index.full.append(self.path)
        self.send_response(status)
        for header, value in {"Content-Length": str(len(body)), **validators, **(headers or {})}.items():
            self.send_header(header, value)
        self.end_headers()
        try:
            self.wfile.write(body if self.command == "GET" else b"")
        except OSError:
            self.close_connection = True


def _link(row: Mapping[str, Any]) -> str:
    """A row of a page as PEP 503, 592, 658 and 714 have it."""
    sha = row["hashes"].get("sha256")
    yanked = row.get("yanked")
    attributes = {
        "href": row["url"] + (f"#sha256={sha}" if sha else ""), "data-requires-python": row.get("requires-python"),
        "data-upload-time": row.get("upload-time"), "data-yanked": "" if yanked is True else yanked or None,
        "data-core-metadata": f"sha256={row['core-metadata']['sha256']}" if "core-metadata" in row else None,
    }  # fmt: skip
    said = " ".join(f'{key}="{html.escape(value)}"' for key, value in attributes.items() if value is not None)
    return f"<a {said}>{html.escape(row['filename'])}</a><br/>"
