"""Files and metadata from the configured indexes, from the cache if fresh and from the network otherwise; in batches.

Failures are of two kinds: :attr:`Index.problems` holds what could not be read (it is unknown, so no conflict may be
concluded from it), :attr:`Index.unusable` files that were read but cannot be candidates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from compat.index.metadata import Absent, File, Metadata, Page, Reading, Unread
from compat.index.settings import THREADS, Settings, Source, path_of
from compat.index.store import Pin, Pinned, Store
from compat.model import normalized

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from compat.index.client import Client

J = TypeVar("J")
FRESH = 600.0
"""Seconds before a page is revalidated; the ``max-age`` of most indexes."""
_EVERY = ""
"""The name under which the page of a flat index, which lists all packages, is cached."""
_Job = tuple[Source, str]


class Index:
    """The configured indexes combined. Not thread-safe; reads with several threads internally.

    ``before`` excludes files uploaded after that day or time (``2025-11-02`` or ``2025-11-02T10:00:00Z``).
    ``progress(what, done, wanted)`` is called as pages and metadata arrive. ``max_age`` is in seconds.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        offline: bool = False,
        before: str | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        max_age: float = FRESH,
        root: Index | None = None,
    ) -> None:
        """``root`` is an index whose connections are reused."""
        self.settings, self.store, self.offline = settings, store, offline
        self.problems: dict[str, str] = {}
        self.unusable: dict[str, str] = {}
        self.undated: set[str] = set()
        """Packages with files of unknown upload time, to which ``before`` cannot be applied; these files are kept."""
        self.before = before
        self._before = before.rstrip("Z") if before else None
        self._progress = progress
        self._max_age = float("inf") if offline else max_age
        self._pages: dict[_Job, tuple[File, ...] | Unread | None] = {}
        self._flat: dict[Source, dict[str, list[File]]] = {}
        self._stale: dict[_Job, Page] = {}
        self._files: dict[str, tuple[File, ...] | None] = {}
        self._metadata: dict[File, Metadata | None] = {}
        self._notes: list[str] = []
        self._root = root
        self._client: Client | None = None
        self._pool: ThreadPoolExecutor | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user: folders that do not exist, and problems with the cache."""
        return (*self._notes, *([self.store.note] if self.store.note else []))

    def files(self, name: str) -> tuple[File, ...] | None:
        """All files of a package; ``()`` if no index has it, ``None`` if that is unknown (:attr:`problems`)."""
        return self.files_many([name])[normalized(name)]

    def files_many(self, names: Iterable[str]) -> dict[str, tuple[File, ...] | None]:
        """:meth:`files` of many packages, read concurrently; keys are normalized names."""
        wanted = list(dict.fromkeys(map(normalized, names)))
        missing = [name for name in wanted if name not in self._files]
        while jobs := list(dict.fromkeys(job for name in missing for job in self._unread_pages(name))):
            self._fetch("pages", jobs, partial(_read_page, self._reader(), self._stale), self._keep_page)
        for name in missing:
            self._files[name] = self._merged(name)
        return {name: self._files[name] for name in wanted}

    def files_of_pins(self, pins: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[File, ...] | None]:
        """The files of exact releases (name and version): from the cache in one query, together with their cached metadata.

        A page is only read if the release is not cached, or if an index of higher priority might have the package.
        """
        wanted = {pin: (normalized(pin[0]), pin[1]) for pin in pins}
        places = [
            _place(source, *pin) for pin in wanted.values() for source in self.settings.sources_of(pin[0]) if not source.local
        ]
        kept = self.store.pinned(places) if places else {}
        found: dict[tuple[str, str], tuple[File, ...] | None] = {}
        for asked, (name, version) in wanted.items():
            files = self._walked(name, partial(self._pinned, name=name, version=version, kept=kept))
            if not isinstance(files, Unread):
                found[asked] = files
        pages = self.files_many(name for asked, (name, _) in wanted.items() if asked not in found)
        for asked, (name, version) in wanted.items():
            if asked not in found:
                page = pages[name]
                found[asked] = None if page is None else tuple(file for file in page if file.version == version)
        return found

    def versions(self, name: str) -> tuple[str, ...] | None:
        """The versions of a package, consistent with :meth:`files`; a fresh cached page does not have to be decoded."""
        name = normalized(name)
        sources = self.settings.sources_of(name)
        if name not in self._files and self._before is None and len(sources) == 1 and not (sources[0].flat or sources[0].local):
            read, versions = self.store.versions(sources[0].key, name)
            if versions and self._is_fresh(read):
                return versions
        files = self.files(name)
        return None if files is None else tuple(dict.fromkeys(file.version for file in files))

    def metadata(self, file: File) -> Metadata | None:
        """The metadata of a file; ``None`` if it is unknown (:attr:`problems`) or unusable (:attr:`unusable`)."""
        return self._metadata[file] if file in self._metadata else self.metadata_many([file])[0]

    def metadata_stored(self, files: Iterable[File]) -> dict[File, Metadata]:
        """The metadata of those files for which it is cached; nothing is fetched."""
        wanted = dict.fromkeys(files)
        missing = [file for file in wanted if file not in self._metadata]
        for file, row in (self.store.metadata(missing) if missing else {}).items():
            if row.holds_for(file, self._max_age):
                self._take(file, row.reading)
        found = ((file, self._metadata.get(file)) for file in wanted)
        return {file: metadata for file, metadata in found if metadata is not None}

    def metadata_many(self, files: Sequence[File]) -> list[Metadata | None]:
        """:meth:`metadata` of many files, read concurrently, in the same order."""
        self.metadata_stored(files)
        missing = [file for file in dict.fromkeys(files) if file not in self._metadata]
        if self.offline:
            for file in missing:
                if path_of(file.url) is None:
                    self._metadata[file] = None
                    self.problems[file.filename] = f"{file.filename} is not in the cache, and --offline was given"
            missing = [file for file in missing if file not in self._metadata]
        if missing:
            self._fetch("metadata", missing, self._reader().metadata, self._keep_metadata)
        return [self._metadata[file] for file in files]

    def beside(self, url: str) -> Index:
        """Another index with the same connections and cache."""
        settings = replace(self.settings, sources=(Source(url),), pinned={})
        root = self._root or self
        return Index(settings, self.store, offline=self.offline, before=self._before, max_age=self._max_age, root=root)

    def unpinned(self) -> Index:
        """The indexes not restricted to specific packages, for packages whose pinned index cannot be reached."""
        sources = tuple(source for source in self.settings.sources if not source.explicit)
        settings = replace(self.settings, sources=sources or (Source(None),), pinned={})
        root = self._root or self
        return Index(settings, self.store, offline=self.offline, before=self._before, max_age=self._max_age, root=root)

    def lost(self) -> frozenset[str]:
        """The packages whose pinned indexes cannot be read."""
        return frozenset(name for name, files in self.files_many(self.settings.pinned).items() if files is None)

    def reached(self) -> Settings:
        """The settings for another client, without pinned indexes that cannot be read."""
        lost = self.lost()
        if not lost:
            return self.settings
        kept = {name: own for name, own in self.settings.pinned.items() if name not in lost}
        wanted = {index for own in kept.values() for index in own}
        sources = tuple(each for each in self.settings.sources if not each.explicit or each.name in wanted)
        return replace(self.settings, sources=sources or (Source(None),), pinned=kept)

    def close(self) -> None:
        """Stop the threads and close the connections and the cache."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()
        self.store.close()

    # Pages

    def _unread_pages(self, name: str) -> list[_Job]:
        """The pages that must be read to know all files of a package."""
        jobs = []
        for source in self.settings.sources_of(name):
            job = source, _EVERY if source.flat else name
            known = job in self._pages or self._from_store(job)
            if not known:
                jobs.append(job)
            if not source.flat and self._one_is_enough(name) and (not known or self._pages[job]):
                break
        return jobs

    def _one_is_enough(self, name: str) -> bool:
        """Whether uv's first-index strategy applies: only the first index that has a package is used for it."""
        return self.settings.strategy == "first-index" and name not in self.settings.pinned

    def _from_store(self, job: _Job) -> bool:
        """Whether a page does not have to be fetched: it is fresh, local, or unavailable offline."""
        source, name = job
        if source.local:
            self._keep_page(job, self._local_page(source, name))
            return True
        kept = self.store.page(source.key, name)
        if kept is not None and self._is_fresh(kept.read):
            self._pages[job] = kept.files
        elif self.offline:
            self._pages[job] = Unread(f"{'its page' if name else source.url} is not in the cache, and --offline was given")
        elif kept is not None:
            self._stale[job] = kept
        return job in self._pages

    def _is_fresh(self, read: float) -> bool:
        return abs(time.time() - read) < self._max_age  # a clock may have been set back

    def _local_page(self, source: Source, name: str) -> Page | Unread:
        from compat.index.client import local_files

        folder = path_of(source.key)
        assert folder is not None
        try:
            return Page(local_files(folder, source.key, name or None))
        except Absent:
            return Page(None)
        except Unread as problem:
            return problem

    def _keep_page(self, job: _Job, found: Page | Unread | None) -> None:
        """Store a fetched page; ``None`` means that the cached page is still current."""
        source, name = job
        if isinstance(found, Unread):
            self._pages[job] = found
        elif found is None:
            self._pages[job] = self._stale[job].files
            self.store.touch(source.key, name)
        else:
            self._pages[job] = found.files
            if found.files is None and source.flat:
                self._notes.append(f"{source.url} does not exist: no files are found there")
            if not source.local:
                self.store.keep_page(source.key, name, found)

    def _merged(self, name: str) -> tuple[File, ...] | None:
        """All files of a package without duplicates; ``None`` if any source could not be read."""
        found = self._walked(name, lambda source: self._on_page(source, name))
        if isinstance(found, Unread):
            self.problems[name] = str(found)
            return None
        self.problems.pop(name, None)
        return found

    def _walked(self, name: str, of: Callable[[Source], tuple[bool, Sequence[File]] | Unread]) -> tuple[File, ...] | Unread:
        """The files of all sources without duplicates; ``of`` returns whether a source has the package, and its files."""
        found: dict[str, File] = {}
        for source in self.settings.sources_of(name):
            page = of(source)
            if isinstance(page, Unread):
                return page
            there, files = page
            for file in files:
                found.setdefault(file.filename, file)
            if there and not source.flat and self._one_is_enough(name):
                break
        return tuple(self._in_time(found.values()))

    def _on_page(self, source: Source, name: str) -> tuple[bool, Sequence[File]] | Unread:
        """Whether a page that was read lists a package, and its files."""
        page = self._pages[source, _EVERY if source.flat else name]
        if isinstance(page, Unread):
            return page
        if not source.flat:
            return bool(page), page or ()
        if source not in self._flat:
            self._flat[source] = {}
            for file in page or ():
                self._flat[source].setdefault(file.name, []).append(file)
        files = self._flat[source].get(name, ())
        return bool(files), files

    def _pinned(
        self, source: Source, name: str, version: str, kept: Mapping[Pin, Pinned]
    ) -> tuple[bool, Sequence[File]] | Unread:
        """The cached files of a release; :class:`Unread` if its page has to be read."""
        if source.local:
            job = source, _EVERY if source.flat else name
            if job not in self._pages:
                self._from_store(job)
            page = self._on_page(source, name)
            return page if isinstance(page, Unread) else (page[0], [file for file in page[1] if file.version == version])
        pin = kept.get(_place(source, name, version))
        if pin is None or not (pin.there or self._is_fresh(pin.read)):
            return Unread()  # the index may have gained the release since
        by_url = {file.url: file for file in pin.files}
        for row in pin.rows:
            if row.url in by_url and row.holds_for(by_url[row.url], self._max_age):
                self._take(by_url[row.url], row.reading)
        return pin.exists, pin.files

    def _in_time(self, files: Iterable[File]) -> Iterator[File]:
        """The files uploaded no later than ``before``."""
        for file in files:
            if self._before is not None and file.uploaded is None:
                self.undated.add(file.name)
            elif self._before is not None and file.uploaded is not None:
                moment = file.uploaded.rstrip("Z")
                if (moment[:10] if len(self._before) == 10 else moment) > self._before:
                    continue
            yield file

    # Metadata

    def _take(self, file: File, reading: Reading) -> None:
        if isinstance(reading.found, Metadata):
            self._metadata[file] = reading.found
        else:
            self._metadata[file] = None
            self.unusable[file.filename] = str(reading.found)

    def _keep_metadata(self, file: File, found: Reading | Unread) -> None:
        if isinstance(found, Unread):
            self._metadata[file] = None
            self.problems[file.filename] = str(found)
        else:
            self._take(file, found)
            self.store.keep_metadata(file, found)

    # Reading

    def _reader(self) -> Client:
        if self._root is not None:
            return self._root._reader()
        if self._client is None:
            from compat.index.client import Client

            self._client = Client(self.settings)
        return self._client

    def _fetch(self, what: str, jobs: Sequence[J], read: Callable[[J], Any], keep: Callable[[J, Any], None]) -> None:
        """Read in threads and store results in this one as they arrive, so that an interruption loses nothing already read."""
        if len(jobs) == 1:
            keep(jobs[0], _outcome(partial(read, jobs[0])))
            return
        from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait  # only needed for several jobs

        owner = self._root or self
        pool = owner._pool = owner._pool or ThreadPoolExecutor(THREADS, "index")
        running = {pool.submit(read, job): job for job in jobs}
        try:
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    keep(running.pop(future), _outcome(future.result))
                if self._progress is not None:
                    self._progress(what, len(jobs) - len(running), len(jobs))
        except BaseException:
            owner._pool = None
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _place(source: Source, name: str, version: str) -> Pin:
    """The key of the files of a release in the cache."""
    return Pin(source.key, _EVERY, name, name, version) if source.flat else Pin(source.key, name, version, name, version)


def _read_page(client: Client, stale: Mapping[_Job, Page], job: _Job) -> Page | None:
    source, name = job
    return client.page(source, name or None, stale.get(job))


def _outcome(read: Callable[[], object]) -> object:
    """The result of a read, or the :class:`Unread` it raised."""
    try:
        return read()
    except Unread as problem:
        return problem
