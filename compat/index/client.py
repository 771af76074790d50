"""Client for the simple API of package indexes: pages, and the metadata of files. Only imported when needed."""

from __future__ import annotations

import hashlib
import threading

from compat.index import archives
from compat.index.address import beside, page_of, path_of
from compat.index.configuration import uv_default_index
from compat.index.metadata import LARGEST, parse_metadata
from compat.index.pages import ACCEPT, listed_names, parse_page
from compat.index.records import File, Page, Reading, Unread, Unusable
from compat.index.settings import Settings, Source
from compat.index.transport import Answer, TooLarge, Transport

LARGEST_PAGE = 32 << 20
_ABSENT = (404, 410)


class Client:
    """Reads indexes; thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.transport = Transport(settings)
        self._listed: dict[str, set[str]] = {}
        self._default: str | None = None
        self._lock = threading.Lock()
        self._parsing = threading.Lock()
        """Pages are parsed one at a time: at once they take as long, and the rows of large ones several times the memory."""

    def page(self, source: Source, name: str | None, kept: Page | None = None) -> Page | None:
        """A package's page on an index, or the page of a flat index (``name`` is then ``None``).

        ``None`` if the cached page ``kept`` is still current. :class:`Unread` if the page cannot be read.
        """
        index = source.url or self._default_index()
        url = index if name is None else page_of(index, name)
        revalidated = {"If-None-Match": kept.etag, "If-Modified-Since": kept.modified} if kept else {}
        answer = self._page(url, {header: value for header, value in revalidated.items() if value})
        if answer.status == 304 and kept is not None:
            return None
        if name is not None and (answer.status in (*_ABSENT, *source.absent) or self._refused(answer, index, name)):
            return Page(None)
        if answer.status != 200:
            raise Unread(f"{url} answers HTTP {answer.status}")
        with self._parsing:
            files = parse_page(answer.body, answer.headers.get("Content-Type", ""), answer.url, source.key, name)
        return Page(files, answer.headers.get("ETag", ""), answer.headers.get("Last-Modified", ""))

    def metadata(self, file: File) -> Reading:
        """The metadata of a file, or why it is unusable; :class:`Unread` if that is unknown."""
        path = path_of(file.url)
        origin = file.kind
        try:
            if path is not None:
                body = archives.local_metadata(path, file)
            elif file.metadata_sha is not None and (served := self._served(file)) is not None:
                body, origin = served, "metadata"
            elif not file.filename.endswith((".whl", ".zip")):
                body = self._from_tar(file)
            else:
                body, whole = archives.remote_metadata(self.transport, file)
                if whole is not None:
                    _check(whole, file.sha256, file, file.filename)
        except Unusable as problem:
            return Reading(problem, "")
        try:
            return Reading(parse_metadata(body, file, origin), _digest(body))
        except Unusable as problem:
            return Reading(problem, _digest(body))

    def close(self) -> None:
        self.transport.close()

    def _page(self, url: str, headers: dict[str, str]) -> Answer:
        try:
            return self.transport.get(url, limit=LARGEST_PAGE, headers={"Accept": ACCEPT, **headers})
        except TooLarge:
            raise Unread(f"{url} is larger than {LARGEST_PAGE >> 20} MB") from None

    def _refused(self, answer: Answer, index: str, name: str) -> bool:
        """Whether a 403 means "not found", as in object stores: the root page then lists packages, but not this one."""
        if answer.status != 403:
            return False
        if index not in self._listed:
            first = self._page(f"{index}/", {})
            self._listed[index] = (
                listed_names(first.body, first.headers.get("Content-Type", "")) if first.status == 200 else set()
            )
        return bool(self._listed[index]) and name not in self._listed[index]

    def _served(self, file: File) -> bytes | None:
        """The metadata served next to a file; ``None`` if the index announced it but does not provide it."""
        url = beside(file.url, ".metadata")
        try:
            answer = self.transport.get(url, limit=LARGEST)
        except TooLarge:
            raise Unread(f"{url} is larger than {LARGEST >> 20} MB") from None
        if answer.status != 200:
            return None
        _check(answer.body, file.metadata_sha, file, f"{file.filename}.metadata")
        return answer.body

    def _from_tar(self, file: File) -> bytes:
        try:
            body = self.transport.stream(file.url, limit=archives.LARGEST_SDIST)
        except TooLarge:
            raise Unread(f"{file.filename} is too large to be searched") from None
        try:
            return archives.tar_metadata(body, file)
        finally:
            body.close()

    def _default_index(self) -> str:
        """uv's default index, if none is configured: uv verifies the plans, so both must read the same index."""
        with self._lock:
            if self._default is None:
                self._default = uv_default_index()
            if self._default is None:
                raise Unread("no index is configured, and uv's default is unknown: pass --index-url")
            return self._default


def _check(body: bytes, sha256: str | bool | None, file: File, what: str) -> None:
    if isinstance(sha256, str) and _digest(body) != sha256:
        raise Unread(f"{what} does not match the sha256 given by {file.index or 'the default index'}")


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
