"""What the indexes offer, from the store where it is fresh and from the network where it is not; many at a time.

Two kinds of "no" are kept apart: :attr:`Index.problems` holds what could not be read (it is unknown, and no conflict may
be concluded from it), :attr:`Index.unusable` files that were read and are no candidates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from compat.environment import EMPTY, normalized
from compat.index.address import path_of
from compat.index.local import changed, find_page
from compat.index.records import Absent, File, Metadata, Unread, Unusable
from compat.index.settings import THREADS, Settings, Source
from compat.index.store import Store
from compat.records import replace

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from compat.index.client import Client

J = TypeVar("J")
DAY = 86400.0
_EVERY = ""
"""The name under which the page of a flat index, which holds every package, is kept."""


class Index:
    """The configured indexes as one; for one thread, which reads with several.

    ``before`` leaves out files uploaded after that day or moment (``2025-11-02`` or ``2025-11-02T10:00:00Z``).
    ``progress(what, done, wanted)`` is called as pages and metadata come in.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        offline: bool = False,
        before: str | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        max_age: float = DAY,
    ) -> None:
        self.settings, self.store, self.offline = settings, store, offline
        self.problems: dict[str, str] = {}
        self.unusable: dict[str, str] = {}
        self.undated: set[str] = set()
        """Packages with files of unknown upload time, which ``before`` could not judge; they are kept."""
        self._before = before.rstrip("Z") if before else None
        self._progress = progress
        self._max_age = 0.0 if offline else max_age
        self._pages: dict[tuple[Source, str], tuple[File, ...] | Unread | None] = {}
        self._flat: dict[Source, dict[str, list[File]] | Unread] = {}
        self._files: dict[str, tuple[File, ...] | None] = {}
        self._metadata: dict[tuple[str, str | None], Metadata | None] = {}
        self._stamps: dict[tuple[Source, str], float] = {}
        self._notes: list[str] = []
        self._beside: list[Index] = []
        self._client: Client | None = None
        self._pool: ThreadPoolExecutor | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know besides the answers: folders that are not there, the state of the cache."""
        return (*self._notes, *([self.store.note] if self.store.note else []))

    def files(self, name: str) -> tuple[File, ...] | None:
        """Every file of a package; ``()`` where no index has it, ``None`` where that is not known (:attr:`problems`)."""
        name = normalized(name)
        return self._files[name] if name in self._files else self.files_many([name])[name]

    def files_many(self, names: Iterable[str]) -> dict[str, tuple[File, ...] | None]:
        """:meth:`files` of many packages, read at once; keys are normalised names."""
        wanted = list(dict.fromkeys(map(normalized, names)))
        missing = [name for name in wanted if name not in self._files]
        needed = {name: self._needed(name) for name in missing}
        jobs = list(dict.fromkeys(job for pages in needed.values() for job in pages))
        while jobs:
            self._read("pages", jobs, _page, self._keep_page)
            jobs = list(dict.fromkeys(job for name in missing for job in self._needed(name)))
        for name in missing:
            self._files[name] = self._judged(name)
        return {name: self._files[name] for name in wanted}

    def metadata(self, file: File) -> Metadata | None:
        """What a file requires; ``None`` where it is not known (:attr:`problems`) or no use (:attr:`unusable`)."""
        key = file.url, file.sha256
        return self._metadata[key] if key in self._metadata else self.metadata_many([file])[0]

    def metadata_many(self, files: Sequence[File]) -> list[Metadata | None]:
        """:meth:`metadata` of many files, read at once, in their order."""
        missing = [file for file in dict.fromkeys(files) if not self._known(file)]
        if missing:
            self._read("metadata", missing, _metadata, self._keep_metadata)
        return [self._metadata[file.url, file.sha256] for file in files]

    def beside(self, url: str) -> Index:
        """One other index, reached in the same way and kept in the same store; it is closed with this one."""
        settings = replace(self.settings, sources=(Source(url),), pinned=EMPTY)
        found = Index(settings, self.store, offline=self.offline, before=self._before, max_age=self._max_age)
        self._beside.append(found)
        return found

    def close(self) -> None:
        """Ends the threads and closes connections and the store."""
        for index in (self, *self._beside):
            if index._pool is not None:
                index._pool.shutdown(wait=False, cancel_futures=True)
            if index._client is not None:
                index._client.close()
        self.store.close()

    # Pages

    def _needed(self, name: str) -> list[tuple[Source, str]]:
        """The pages that must be read before it is known what there is of a package."""
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
        """uv's first-index: whoever has the package first is the only one that is asked."""
        return self.settings.strategy == "first-index" and name not in self.settings.pinned

    def _from_store(self, job: tuple[Source, str]) -> bool:
        source, name = job
        if source.local:
            return self._from_local(job)
        kept = self.store.page(source.url or "", name)
        if kept is not None and (self.offline or abs(time.time() - kept[0]) < self._max_age):
            self._pages[job] = kept[1]
            return True
        if self.offline:
            self._pages[job] = Unread(f"{'its page' if name else source.url} is not in the cache, and --offline was given")
            return True
        return False

    def _from_local(self, job: tuple[Source, str]) -> bool:
        """What lies on this machine is read again when it has changed: it is kept under its own time."""
        source, name = job
        folder = path_of(source.url or "")
        assert folder is not None
        try:
            stamp = self._stamps[job] = changed(find_page(folder, name or None))
        except (Absent, Unread) as problem:
            self._keep_page(job, problem)
            return True
        kept = self.store.page(source.url or "", name)
        if kept is None or kept[0] != stamp:
            return False
        self._pages[job] = kept[1]
        return True

    def _keep_page(self, job: tuple[Source, str], found: tuple[File, ...] | Absent | Unread) -> None:
        source, name = job
        if isinstance(found, Unread):
            self._pages[job] = found
            return
        if isinstance(found, Absent) and source.flat:
            self._notes.append(f"{source.url} does not exist, and no files are found there")
        files = None if isinstance(found, Absent) else found
        self._pages[job] = files
        if files is not None or not source.local:
            self.store.keep_page(source.url or "", name, files, self._stamps.get(job))

    def _judged(self, name: str) -> tuple[File, ...] | None:
        """All files of a package, each once; a source that could not be read makes the whole unknown."""
        found: dict[str, File] = {}
        for source in self.settings.sources_of(name):
            page = self._of_flat(source, name) if source.flat else self._pages[source, name]
            if isinstance(page, Unread):
                self.problems[name] = str(page)
                return None
            for file in page or ():
                found.setdefault(file.filename, file)
            if page and not source.flat and self._one_is_enough(name):
                break
        self.problems.pop(name, None)
        return tuple(found.values()) if self._before is None else tuple(filter(self._in_time, found.values()))

    def _of_flat(self, source: Source, name: str) -> list[File] | Unread:
        if source not in self._flat:
            page = self._pages[source, _EVERY]
            if isinstance(page, Unread):
                self._flat[source] = page
            else:
                grouped: dict[str, list[File]] = {}
                for file in page or ():
                    grouped.setdefault(file.name, []).append(file)
                self._flat[source] = grouped
        flat = self._flat[source]
        return flat if isinstance(flat, Unread) else flat.get(name, [])

    def _in_time(self, file: File) -> bool:
        assert self._before is not None
        if file.uploaded is None:
            self.undated.add(file.name)
            return True
        moment = file.uploaded.rstrip("Z")
        return moment[: len(self._before)] <= self._before if len(self._before) == 10 else moment <= self._before

    # Metadata

    def _known(self, file: File) -> bool:
        """Whether the answer is here, or in the store, or cannot be had."""
        key = file.url, file.sha256
        if key in self._metadata:
            return True
        try:
            found = self.store.metadata(file, float("inf") if self.offline else self._max_age)
        except Unusable as problem:
            self._metadata[key] = None
            self.unusable[file.filename] = str(problem)
            return True
        if found is not None:
            self._metadata[key] = found
        elif self.offline and path_of(file.url) is None:
            self._metadata[key] = None
            self.problems[file.filename] = f"{file.filename} is not in the cache, and --offline was given"
        return key in self._metadata

    def _keep_metadata(self, file: File, found: Metadata | Unread | Unusable) -> None:
        key = file.url, file.sha256
        self._metadata[key] = found if isinstance(found, Metadata) else None
        if isinstance(found, Unread):
            self.problems[file.filename] = str(found)
        elif isinstance(found, Unusable):
            self.unusable[file.filename] = str(found)
        if not isinstance(found, Unread):
            self.store.keep_metadata(file, found)

    # Reading

    def _reader(self) -> Client:
        if self._client is None:
            from compat.index.client import Client  # a third of a second, and a warm run needs none of it

            self._client = Client(self.settings)
        return self._client

    def _read(self, what: str, jobs: Sequence[J], read: Callable[[Client, J], Any], keep: Callable[[J, Any], None]) -> None:
        """Reads in threads, keeps in this one as answers come: what was read before an interruption is kept."""
        client = self._reader()
        if len(jobs) == 1:
            keep(jobs[0], read(client, jobs[0]))
            return
        from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait  # not needed where nothing is read

        pool = self._pool = self._pool or ThreadPoolExecutor(THREADS, "index")
        running = {pool.submit(read, client, job): job for job in jobs}
        try:
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    keep(running.pop(future), future.result())
                if self._progress is not None:
                    self._progress(what, len(jobs) - len(running), len(jobs))
        except BaseException:
            self._pool = None
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _page(client: Client, job: tuple[Source, str]) -> tuple[File, ...] | Absent | Unread:
    """What was read, or why not: threads raise nothing."""
    try:
        return client.page(job[0], job[1] or None)
    except (Absent, Unread) as problem:
        return problem


def _metadata(client: Client, file: File) -> Metadata | Unread | Unusable:
    try:
        return client.metadata(file)
    except (Unread, Unusable) as problem:
        return problem
