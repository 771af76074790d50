"""A package index client: lists releases, and reads members of their wheels without downloading the wheels.

The index is the one that uv's or pip's configuration names, else uv's default one. What it offers is used
(PEP 691 JSON, PEP 658 metadata files), and nothing of it is needed: HTML pages and ranged reads do.
"""

from __future__ import annotations

import io
import re
import tarfile
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from packaging.version import InvalidVersion, Version
from pypi_simple import ACCEPT_HTML_ONLY, DistributionPackage, PyPISimple, RepositoryPage
from pypi_simple.errors import NoMetadataError
from remotezip import RemoteIOError
from requests import ConnectionError as NoConnection
from requests import HTTPError, Timeout
from urllib3.exceptions import HTTPError as BrokenBody

from compat.index import gather
from compat.index.configuration import uv_default_index
from compat.index.settings import host_of
from scripts.refresh.updates import MIB
from scripts.refresh.wheel import Meter, UnreadableError, Wheel, opened

T = TypeVar("T")
TAIL = 65536
"""Bytes at the end of a wheel that hold the directory of most."""
LARGEST_SDIST = 32 * MIB
LARGEST_METADATA = 64 * MIB
TRIES = 4


@dataclass(frozen=True)
class Release:
    """Every file of one version; ``version`` as the index writes it."""

    version: str
    wheels: tuple[DistributionPackage, ...]
    sdist: DistributionPackage | None

    @property
    def key(self) -> Version:
        return Version(self.version)

    @property
    def files(self) -> tuple[DistributionPackage, ...]:
        return (*self.wheels, self.sdist) if self.sdist is not None else self.wheels

    @property
    def yanked(self) -> bool:
        """Whether every file is yanked."""
        return all(file.is_yanked for file in self.files)

    @property
    def reason(self) -> str:
        return next((" ".join(file.yanked_reason.split()) for file in self.files if file.yanked_reason), "")


class Index:
    """A client that counts the bytes it reads; not thread-safe."""

    def __init__(self) -> None:
        self._client = _client()
        self.requests = 0
        self.received = 0
        """Bytes of wheels."""

    def releases(self, name: str, *, early: bool = False) -> list[Release]:
        """Return final and post releases, oldest first; raises :class:`UnreadableError` if the index is unreachable.

        ``early``: with the pre-releases after the newest of them, all that some packages have.
        """
        page = self.tried(lambda: self._client.get_project_page(name, timeout=60), name)
        every: dict[Version, list[DistributionPackage]] = {}  # files of one release may spell it in two ways: 69.3, 69.3.0
        for file in page.packages:
            try:
                every.setdefault(Version(file.version or ""), []).append(file)
            except InvalidVersion:
                continue
        last = max((version for version in every if not version.is_prerelease), default=Version("0.dev0"))
        found = {version: files for version, files in every.items() if not version.is_prerelease or (early and version > last)}
        made = [_release(str(files[0].version), files) for files in found.values()]
        return sorted((release for release in made if release.files), key=lambda release: release.key)

    def uploaded(self, name: str) -> dict[str, str]:
        """Return each file's upload day (``2025-11-02``) by file name; empty if the index does not provide it."""

        def read() -> dict[str, str]:
            answer = self._client.s.get(self._client.get_project_url(name), headers={"Accept": ACCEPT_HTML_ONLY}, timeout=60)
            answer.raise_for_status()
            links = RepositoryPage.from_html(answer.text, base_url=answer.url).links
            return {link.text.strip(): str(told)[:10] for link in links if (told := link.attrs.get("data-upload-time"))}

        page = self.tried(lambda: self._client.get_project_page(name, timeout=60), name)
        told = {file.filename: file.upload_time.date().isoformat() for file in page.packages if file.upload_time}
        return told or self.tried(read, name)

    def metadata(self, release: Release, wheel: DistributionPackage | None = None) -> str:
        """Return METADATA of a wheel (the first by default), or PKG-INFO if there is only an sdist."""
        if wheel is None:
            wheel = release.wheels[0] if release.wheels else None
        if wheel is None:
            assert release.sdist is not None
            return self._pkg_info(release.sdist)
        if wheel.has_metadata:
            try:
                return self.tried(lambda: str(self._client.get_package_metadata(wheel, verify=False)), wheel.filename)
            except NoMetadataError:
                pass  # the advertised metadata file is missing

        def ranged() -> str:
            with self.wheel(wheel, LARGEST_METADATA) as archive:
                found = [each for each in archive.members() if each.endswith(".dist-info/METADATA")]
                if not found:
                    raise UnreadableError(f"{wheel.filename}: holds no METADATA")
                return archive.text(min(found, key=len))

        return self.tried(ranged, wheel.filename)

    def wheel(self, file: DistributionPackage, budget: int) -> AbstractContextManager[Wheel]:
        """Open a wheel whose members are read by HTTP range requests, at most ``budget`` bytes in total."""
        self.requests += 1
        return opened(file.filename, file.url, self._client.s, TAIL, Meter(file.filename, budget, self._count))

    def _count(self, received: int) -> None:
        self.received += received

    def _pkg_info(self, sdist: DistributionPackage) -> str:
        def read() -> str:
            with self._opened(sdist) as archive:
                found = [each for each in archive if each.name.endswith(("/PKG-INFO", ".egg-info/requires.txt"))]
                text = _text_in(archive, [each for each in found if each.name.endswith("/PKG-INFO")])
                if _REQUIRES.search(text):
                    return text
                return required(_text_in(archive, [each for each in found if each.name.endswith(".txt")])) + text

        return self.tried(read, sdist.filename)

    def modules(self, sdist: DistributionPackage) -> dict[str, bytes]:
        """The Python files of a source distribution by their path in it, with their SHA-256."""

        def read() -> dict[str, bytes]:
            with self._opened(sdist) as archive:
                files = (
                    (each.name, archive.extractfile(each)) for each in archive if each.isfile() and each.name.endswith(".py")
                )
                return {name.partition("/")[2]: sha256(file.read()).digest() for name, file in files if file is not None}

        return self.tried(read, sdist.filename)

    def _opened(self, sdist: DistributionPackage) -> tarfile.TarFile:
        answer = self._client.s.get(sdist.url, timeout=120)
        answer.raise_for_status()
        if len(answer.content) > LARGEST_SDIST:
            raise UnreadableError(f"{sdist.filename}: larger than {LARGEST_SDIST} bytes")
        return tarfile.open(fileobj=io.BytesIO(answer.content))

    def tried(self, what: Callable[[], T], name: str) -> T:
        """Return the result of a read, with retries for broken connections; raises :class:`UnreadableError`."""
        for attempt in range(TRIES):
            self.requests += 1
            try:
                return what()
            except NoMetadataError:
                raise
            except (NoConnection, Timeout, RemoteIOError, HTTPError, BrokenBody, OSError, EOFError) as problem:
                if attempt == TRIES - 1:
                    raise UnreadableError(f"{name}: {type(problem).__name__}") from None
                time.sleep(2**attempt)
        raise AssertionError


_REQUIRES = re.compile(r"^Requires-Dist:", re.MULTILINE)


def _text_in(archive: tarfile.TarFile, members: Iterable[tarfile.TarInfo]) -> str:
    """Return the text of the member with the shortest name; empty if there is none."""
    member = min(members, key=lambda each: len(each.name), default=None)
    file = None if member is None else archive.extractfile(member)
    return "" if file is None else file.read().decode("utf-8", "replace")


def required(text: str) -> str:
    """Return ``requires.txt`` of setuptools as lines of metadata: older releases of it leave them out of ``PKG-INFO``.

    A section is ``[extra]``, ``[:marker]`` or ``[extra:marker]``.
    """
    made, condition = [], ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("["):
            extra, _, marker = line.strip("[]").partition(":")
            parts = (*((f"({marker})",) if marker else ()), *((f'extra == "{extra}"',) if extra else ()))
            condition = " and ".join(parts)
            continue
        requirement, _, own = line.partition(";")
        joined = " and ".join(each for each in (f"({own.strip()})" if own and condition else own.strip(), condition) if each)
        made.append(f"Requires-Dist: {requirement.strip()}{' ; ' + joined if joined else ''}\n")
    return "".join(made)


def _client() -> PyPISimple:
    """Return a client for the index configured for uv or pip, else for uv's default index."""
    settings = gather()
    url = settings.sources[-1].url or uv_default_index()
    if url is None:
        raise UnreadableError("no index is configured, and uv's default is unknown")
    known = settings.credentials.get(host_of(url))
    return PyPISimple(endpoint=url, auth=(known.user, known.password) if known else None)


def _release(version: str, files: list[DistributionPackage]) -> Release:
    wheels = sorted((file for file in files if file.package_type == "wheel"), key=_preference)
    sdists = [file for file in files if file.package_type == "sdist" and file.filename.endswith((".tar.gz", ".tgz"))]
    return Release(version, tuple(wheels), sdists[0] if sdists else None)


def _preference(wheel: DistributionPackage) -> tuple[bool, bool, str]:
    """Sort key: Linux on x86_64 first, the main training platform with the most complete metadata."""
    name = wheel.filename
    return "x86_64" not in name and "none-any" not in name, "linux" not in name and "none-any" not in name, name
