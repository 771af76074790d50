"""One index after another over the simple API: pages, and the metadata of files. Loaded only when something must be read."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pypi_simple import ACCEPT_JSON_PREFERRED, PYPI_SIMPLE_ENDPOINT

from compat.index import archives
from compat.index.address import beside, page_of, path_of
from compat.index.core_metadata import LARGEST, parse_metadata
from compat.index.local import find_page
from compat.index.pages import folder_files, listed_names, parse_page
from compat.index.records import Absent, File, Metadata, Unread
from compat.index.settings import Settings, Source
from compat.index.transport import LARGEST_PAGE, Answer, TooLarge, Transport

_NOT_THERE = (404, 410)


class Client:
    """Reads indexes; safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self.transport = Transport(settings)
        self._listed: dict[str, set[str]] = {}

    def page(self, source: Source, name: str | None) -> tuple[File, ...]:
        """The files of a package on an index, or every file of a flat one (``name`` is then ``None``).

        :class:`Absent` where the index has no such page, :class:`Unread` where that is not known.
        """
        index = (source.url or PYPI_SIMPLE_ENDPOINT).rstrip("/")
        folder = path_of(index)
        if folder is not None:
            return _local_page(folder, source.url or "", name)
        url = source.url or index if name is None else page_of(index, name)
        answer = self._page(url)
        if answer.status in (*_NOT_THERE, *source.absent) and name is not None:
            raise Absent
        if answer.status == 403 and name is not None and self._lists_others(index, name):
            raise Absent
        if answer.status != 200:
            raise Unread(f"{url} answers HTTP {answer.status}")
        return parse_page(answer.body, answer.headers.get("Content-Type", ""), answer.url, index, name)

    def metadata(self, file: File) -> Metadata:
        """What a file requires; :class:`Unread` and :class:`Unusable` say why that cannot be told."""
        path = path_of(file.url)
        if path is not None:
            return parse_metadata(archives.local_metadata(path, file), file, file.kind)
        if file.metadata_sha is not None:
            served = self._served(file)
            if served is not None:
                return parse_metadata(served, file, "metadata")
        if not file.filename.endswith((".whl", ".zip")):
            return parse_metadata(self._from_tar(file), file, file.kind)
        body, whole = archives.remote_metadata(self.transport, file)
        if whole is not None:
            _check(whole, file.sha256, file.filename)
        return parse_metadata(body, file, file.kind)

    def close(self) -> None:
        self.transport.close()

    def _page(self, url: str) -> Answer:
        try:
            return self.transport.get(url, limit=LARGEST_PAGE, headers={"Accept": ACCEPT_JSON_PREFERRED})
        except TooLarge:
            raise Unread(f"{url} is larger than {LARGEST_PAGE >> 20} MB") from None

    def _lists_others(self, index: str, name: str) -> bool:
        """Indexes in object stores answer 403 for what they do not have; their first page tells it apart from a refusal."""
        if index not in self._listed:
            answer = self._page(f"{index}/")
            if answer.status != 200:
                return False
            self._listed[index] = listed_names(answer.body, answer.headers.get("Content-Type", ""), answer.url)
        return bool(self._listed[index]) and name not in self._listed[index]

    def _served(self, file: File) -> bytes | None:
        """The metadata beside a file; ``None`` where the index promised it and has none."""
        url = beside(file.url, ".metadata")
        try:
            answer = self.transport.get(url, limit=LARGEST)
        except TooLarge:
            raise Unread(f"{url} is larger than {LARGEST >> 20} MB") from None
        if answer.status != 200:
            return None
        if isinstance(file.metadata_sha, str):
            _check(answer.body, file.metadata_sha, f"{file.filename}.metadata")
        return answer.body

    def _from_tar(self, file: File) -> bytes:
        if file.size is not None and file.size > archives.LARGEST_SDIST:
            raise Unread(f"{file.filename} is too large to be looked through ({file.size >> 20} MB)")
        body = self.transport.stream(file.url)
        try:
            return archives.tar_metadata(archives.Limited(body, archives.LARGEST_SDIST), file)
        finally:
            body.close()


def _local_page(folder: Path, index: str, name: str | None) -> tuple[File, ...]:
    place = find_page(folder, name)
    if place.is_dir():
        return folder_files(place, index, name)
    try:
        body = place.read_bytes()
    except OSError as problem:
        raise Unread(f"{place} cannot be read: {problem.strerror}") from None
    return parse_page(body, "text/html", place.as_uri(), index, name)


def _check(body: bytes, sha256: str | None, what: str) -> None:
    if sha256 is not None and hashlib.sha256(body).hexdigest() != sha256:
        raise Unread(f"{what} has another hash than its index says")
