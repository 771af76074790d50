"""Pages of an index, JSON (PEP 691) or HTML (PEP 503), and folders of files, as records."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bs4 import MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning
from packaging.version import InvalidVersion, Version
from pypi_simple import DistributionPackage, ProjectPage, RepositoryPage, UnexpectedRepoVersionWarning, parse_filename
from pypi_simple.errors import UnparsableFilenameError, UnsupportedRepoVersionError

from compat.environment import normalized
from compat.index.address import joined
from compat.index.records import File, Unread

JSON = "application/vnd.pypi.simple.v1+json"
HTML = ("application/vnd.pypi.simple.v1+html", "text/html")
for category in (UnexpectedRepoVersionWarning, XMLParsedAsHTMLWarning, MarkupResemblesLocatorWarning):
    warnings.filterwarnings("ignore", category=category)  # once: filters belong to all threads
_NO_PAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, AssertionError)
"""What pydantic and Beautiful Soup raise for something else."""
_SHA256 = re.compile(r"sha256=([0-9a-fA-F]{64})")
_ARCHIVES = (".whl", ".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz", ".tar.Z", ".tar")


def parse_page(body: bytes, content_type: str, url: str, index: str, name: str | None) -> tuple[File, ...]:
    """The files on a page, those of ``name`` only where one is given; :class:`Unread` where it is no such page."""
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    try:
        if kind == JSON or (kind == "application/json" and name is not None):
            return _files(_json_rows(body, url, name or ""), index, name)
        if kind in HTML or not kind:
            return _files(_html_rows(body, parameters, url), index, name)
    except UnsupportedRepoVersionError as problem:
        raise Unread(f"{url} speaks version {problem.declared_version} of the index protocol") from None
    except _NO_PAGE:
        raise Unread(f"{url} is no page of an index") from None
    raise Unread(f"{url} answers with {kind}, not with a page of an index")


def folder_files(folder: Path, index: str, name: str | None) -> tuple[File, ...]:
    """The files in a folder; :class:`Unread` where it cannot be listed."""
    try:
        paths = sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith(_ARCHIVES) and entry.is_file())
    except OSError as problem:
        raise Unread(f"{folder} cannot be listed: {problem.strerror}") from None
    rows = ({"filename": os.path.basename(path), "url": Path(path).as_uri()} for path in paths)
    return _files(rows, index, name)


def listed_names(body: bytes, content_type: str, url: str) -> set[str]:
    """The packages that the first page of an index lists; :class:`Unread` where it is no such page."""
    if content_type.startswith(JSON):
        try:
            return {normalized(project["name"]) for project in json.loads(body)["projects"]}
        except (ValueError, TypeError, LookupError, AttributeError):
            raise Unread(f"{url} is no page of an index") from None
    page = RepositoryPage.from_html(body, url)
    return {normalized(unquote(urlsplit(link.url).path.rstrip("/").rpartition("/")[2])) for link in page.links}


def _json_rows(body: bytes, url: str, name: str | None) -> Iterable[dict[str, Any]]:
    document = json.loads(body)
    for file in document["files"]:
        if "core-metadata" not in file and "dist-info-metadata" in file:  # PEP 714: the name it had first
            file["core-metadata"] = file["dist-info-metadata"]
    page = ProjectPage.from_json_data({"name": name, **document}, url)
    return (_json_row(file, url) for file in page.packages)


def _json_row(file: DistributionPackage, url: str) -> dict[str, Any]:
    digests = {key.lower(): value.lower() for key, value in (file.metadata_digests or {}).items()}
    return {
        "filename": file.filename, "url": joined(url, file.url), "size": file.size,
        "sha256": file.digests.get("sha256", "").lower() or None, "requires_python": file.requires_python or None,
        "yanked": (file.yanked_reason or "") if file.is_yanked else None,
        "uploaded": None if file.upload_time is None else _utc(file.upload_time),
        "metadata_sha": digests.get("sha256", True) if file.has_metadata else None,
    }  # fmt: skip


def _html_rows(body: bytes, parameters: str, url: str) -> Iterable[dict[str, Any]]:
    found = re.search(r'charset="?([\w-]+)', parameters)
    page = RepositoryPage.from_html(body, url, found[1] if found else None)
    for link in page.links:
        attributes: dict[str, Any] = link.attrs
        target = joined(url, link.url)
        if target is None:
            continue
        sha = _SHA256.search(urlsplit(link.url).fragment)
        served = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
        yield {
            "filename": unquote(urlsplit(target).path.rpartition("/")[2]), "url": target,
            "sha256": sha[1].lower() if sha else None, "requires_python": attributes.get("data-requires-python") or None,
            "yanked": attributes.get("data-yanked"), "uploaded": _upload_time(attributes.get("data-upload-time")),
            "metadata_sha": _served(served),
        }  # fmt: skip


def _served(text: str | None) -> str | bool | None:
    if text is None or text.lower() in ("false", ""):
        return None
    found = _SHA256.search(text)
    return found[1].lower() if found else True


def _upload_time(text: str | None) -> str | None:
    if not text:
        return None
    six_digits = re.sub(r"\.(\d{1,6})\d*", lambda found: f".{found[1]:0<6}", text)  # Python 3.10 takes no others
    try:
        return _utc(datetime.fromisoformat(six_digits.replace("Z", "+00:00")))
    except ValueError:
        return None


def _utc(time: datetime) -> str:
    if time.tzinfo is not None:
        time = time.astimezone(timezone.utc).replace(tzinfo=None)
    return f"{time.isoformat()}Z"


def _files(rows: Iterable[dict[str, Any]], index: str, name: str | None) -> tuple[File, ...]:
    """Wheels and source distributions whose names can be read; other things are offered beside them."""
    version_of = _versions()
    found = []
    for row in rows:
        filename = row["filename"]
        if row["url"] is None or not filename.endswith(_ARCHIVES):
            continue
        try:
            project, text, kind = parse_filename(filename, name)
        except UnparsableFilenameError:
            continue
        project, version = normalized(project), version_of(text)
        if version is None or kind not in ("wheel", "sdist") or name not in (None, project):
            continue
        said = {"sha256": None, "size": None, "requires_python": None, "yanked": None, "uploaded": None, "metadata_sha": None}
        found.append(File(**{**said, **row, "name": project, "version": version, "kind": kind, "index": index}))
    return tuple(found)


def _versions() -> Callable[[str], str | None]:
    """Versions in their normal form, each read once: a page has dozens of files of one version."""
    known: dict[str, str | None] = {}

    def version_of(text: str) -> str | None:
        if text not in known:
            try:
                known[text] = str(Version(text.replace("_", "-")))
            except InvalidVersion:
                known[text] = None
        return known[text]

    return version_of
