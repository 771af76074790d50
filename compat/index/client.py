"""Client for the simple API of package indexes: pages, and the metadata of files. Only imported when needed.

Pages are JSON (PEP 691) or HTML (PEP 503), or folders of files. Does not use pypi-simple, whose import alone takes as much CPU
time as ``uv pip compile``: ``docs/architecture.md``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from packaging.version import Version

from compat.index import archives
from compat.index.configuration import uv_default_index
from compat.index.metadata import LARGEST, Absent, File, Page, Reading, Unread, Unusable, parse_metadata
from compat.index.settings import Settings, Source, adjacent_url, page_of, path_of, resolve_link
from compat.index.transport import Answer, TooLarge, Transport
from compat.model import normalized
from compat.records import kept
from compat.redact import excerpt

JSON = "application/vnd.pypi.simple.v1+json"
HTML = ("application/vnd.pypi.simple.v1+html", "text/html")
ACCEPT = f"{JSON}, {HTML[0]};q=0.2, {HTML[1]};q=0.01"
_NO_PAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, AssertionError)
"""Exceptions raised when parsing something that is not a page; :class:`HTMLParser` uses assertions."""
_SHA256 = re.compile(r"(?:^|&)sha256=([0-9a-f]{64})(?:&|$)", re.IGNORECASE)
_USUAL_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z")
_SDISTS = (".tar.gz", ".zip")
_LONGEST = 1_000
"""Maximum characters of a Requires-Python, below the number of digits that :class:`int` refuses to parse."""


def parse_page(body: bytes, content_type: str, url: str, index: str, name: str | None) -> tuple[File, ...]:
    """The files on a page, only those of ``name`` if given; :class:`Unread` if it is not an index page."""
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    try:
        if kind == JSON or (kind == "application/json" and name is not None):
            return _files(_json_rows(json.loads(body), url), url, index, name)
        if kind in HTML:
            return _files(_html_rows(body, parameters), url, index, name)
    except _NO_PAGE:
        raise Unread(f"{url} is not a page of an index") from None
    raise Unread(f"{url} answers with {kind[:60] or 'no content type'}, not with a page of an index")


def listed_names(body: bytes, content_type: str) -> set[str]:
    """The packages on the root page of an index; empty if it cannot be parsed."""
    try:
        if content_type.startswith(JSON):
            return {normalized(project["name"]) for project in json.loads(body)["projects"]}
        return {normalized(unquote(link["href"]).rstrip("/").rpartition("/")[2]) for link in _links(body, content_type)}
    except _NO_PAGE:
        return set()


def local_files(folder: Path, index: str, name: str | None) -> tuple[File, ...]:
    """The files of a package in a local index, or all files of a folder or page (``name`` is then ``None``).

    :class:`Absent` if the page does not exist, :class:`Unread` if that is unknown.
    """
    place = folder if name is None else folder / name
    page = place / "index.html" if name is not None else place
    try:
        if not place.exists():
            raise Absent if name is None or folder.exists() else Unread(f"{folder} does not exist")
        if page.is_file():
            return parse_page(page.read_bytes(), "text/html", page.as_uri(), index, name)
        if not place.is_dir():
            raise Absent
        paths = sorted(Path(entry.path).absolute() for entry in os.scandir(place) if entry.is_file())
    except OSError as problem:
        raise Unread(f"{place} cannot be read: {problem.strerror}") from None
    return _files(({"filename": path.name, "url": path.as_uri()} for path in paths), folder.as_uri(), index, name)


def _json_rows(document: Any, url: str) -> Iterator[dict[str, object]]:
    version = str(document["meta"]["api-version"])
    if version.partition(".")[0] != "1":
        raise Unread(f"{url} has version {excerpt(version, 20)} of the index protocol; only 1 is known")
    for row in document["files"]:
        # PEP 714: older servers use the original name of core-metadata
        served = row.get("core-metadata", row.get("dist-info-metadata"))
        yanked = row.get("yanked", False)
        yield {
            "filename": row["filename"], "url": row["url"], "size": row.get("size"), "sha256": row["hashes"].get("sha256"),
            "requires_python": row.get("requires-python"), "uploaded": row.get("upload-time"),
            "yanked": None if yanked is False else "" if yanked is True else yanked,
            "metadata_sha": served.get("sha256", True) if isinstance(served, dict) else served is True or None,
        }  # fmt: skip


def _html_rows(body: bytes, parameters: str) -> Iterator[dict[str, object]]:
    for link in _links(body, parameters):
        address, _, fragment = link["href"].partition("#")
        sha = _SHA256.search(fragment)
        served = link.get("data-core-metadata", link.get("data-dist-info-metadata"))
        metadata_sha = _SHA256.search(served or "")
        yield {
            "filename": unquote(urlsplit(address).path.rpartition("/")[2]), "url": address, "sha256": sha[1] if sha else None,
            "requires_python": link.get("data-requires-python"), "yanked": link.get("data-yanked"),
            "uploaded": link.get("data-upload-time"),
            "metadata_sha": metadata_sha[1] if metadata_sha else (served or "false").lower() != "false" or None,
        }  # fmt: skip


class _Links(HTMLParser):
    """Collects the attributes of all links with an ``href``, resolved against ``<base>``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []
        self._base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "base" and not self._base:
            self._base = given.get("href", "")
        elif tag == "a" and given.get("href"):
            self.found.append({**given, "href": urljoin(self._base, given["href"].strip())})


def _links(body: bytes, parameters: str) -> list[dict[str, str]]:
    charset = re.search(r'charset="?([\w-]+)', parameters)
    parser = _Links()
    parser.feed(body.decode(charset[1] if charset else "utf-8", "replace"))
    parser.close()
    return parser.found


def _files(rows: Iterable[dict[str, Any]], url: str, index: str, name: str | None) -> tuple[File, ...]:
    """The wheels and source distributions among the rows; other and unparsable file names are skipped."""
    found = []
    for row in rows:
        target = resolve_link(url, _text(row["url"]) or "")
        filename = _text(row["filename"]) or ""
        parsed = _parsed_filename(filename, name)
        python, size = _text(row.get("requires_python")) or None, row.get("size")
        # skip unprintable names; a lone surrogate could not be stored
        if target is None or parsed is None or not (filename + target).isprintable() or len(python or "") > _LONGEST:
            continue
        project, version, kind = parsed
        if name in (None, project):
            sha256, metadata_sha = (_hash(row.get(key)) for key in ("sha256", "metadata_sha"))
            yanked, uploaded = _text(row.get("yanked")), _utc(_text(row.get("uploaded")))
            size = size if isinstance(size, int) else None
            found.append(
                File(project, target, filename, version, sha256, size, python, yanked, uploaded, kind, metadata_sha, index)
            )
    return tuple(found)


def _text(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError
    return value


def _hash(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _parsed_filename(filename: str, name: str | None) -> tuple[str, str, str] | None:
    """The package, the normalized version, and the kind; the name of a source distribution may contain dashes."""
    if filename.endswith(".whl"):
        parts = filename.split("-")
        if len(parts) not in (5, 6):
            return None
        project, text, kind = parts[0], parts[1], "wheel"
    elif filename.endswith(_SDISTS):
        stem = filename.removesuffix(".zip").removesuffix(".tar.gz")
        dashes = [at for at, letter in enumerate(stem) if letter == "-"]
        at = next((at for at in dashes if normalized(stem[:at]) == name), dashes[-1] if dashes else 0)
        project, text, kind = stem[:at], stem[at + 1 :], "sdist"
    else:
        return None
    version = _version(text)
    return None if version is None else (normalized(project), version, kind)


@lru_cache(maxsize=4096)
def _version(text: str) -> str | None:
    """Normalize a version, ``None`` if invalid; cached, as a page has dozens of files with the same version."""
    try:
        return str(Version(text.replace("_", "-"))) if len(text) <= _LONGEST else None
    except ValueError:
        return None


def _utc(text: str | None) -> str | None:
    """A timestamp in UTC; ``None`` if it cannot be parsed."""
    if not text or _USUAL_TIME.fullmatch(text):
        return text or None
    six_digits = re.sub(r"\.(\d{1,6})\d*", lambda found: f".{found[1]:0<6}", text)  # required by Python 3.10
    try:
        time = datetime.fromisoformat(six_digits.replace("Z", "+00:00"))
        time = time.astimezone(timezone.utc).replace(tzinfo=None) if time.tzinfo is not None else time
    except (ValueError, OverflowError):
        return None
    return f"{time.isoformat()}Z"


LARGEST_PAGE = 32 << 20
_ABSENT = (404, 410)


class Client:
    """Reads indexes; thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.transport = Transport(settings)
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
        listed = self._listed(index)
        return bool(listed) and name not in listed

    @kept
    def _listed(self, index: str) -> set[str]:
        first = self._page(f"{index}/", {})
        return listed_names(first.body, first.headers.get("Content-Type", "")) if first.status == 200 else set()

    def _served(self, file: File) -> bytes | None:
        """The metadata served next to a file; ``None`` if the index announced it but does not provide it."""
        url = adjacent_url(file.url, ".metadata")
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
