"""A wheel on the index, read member by member with HTTP range requests, within a byte budget."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from remotezip import RemoteFetcher, RemoteIOError, RemoteZip, RemoteZipError

from scripts.refresh.updates import MIB

PIECE = 256 * 1024


class UnreadableError(Exception):
    """A file of the index could not be read; the message says which and why."""


class OverBudgetError(UnreadableError):
    """The requested members of a wheel exceed the byte budget."""


class Wheel:
    """Members of a wheel by name; received bytes are counted, and :class:`OverBudgetError` is raised over budget."""

    def __init__(self, name: str, archive: zipfile.ZipFile, meter: Meter) -> None:
        self.name = name
        self._archive = archive
        self._meter = meter

    def members(self) -> dict[str, int]:
        """Return the transfer size of each member in bytes."""
        return {member.filename: member.compress_size for member in self._archive.infolist()}

    def affordable(self, names: Iterable[str]) -> bool:
        """Return whether these members fit the remaining budget."""
        sizes = self.members()
        return sum(sizes[name] for name in names) <= self._meter.left

    def text(self, name: str) -> str:
        """Return the text of a small member; raises :class:`UnreadableError` if it does not exist."""
        if name not in self._archive.NameToInfo:
            raise UnreadableError(f"{self.name}: holds no {name}")
        self.require((name,))
        return self._archive.read(name).decode("utf-8", "replace")

    def pieces(self, name: str) -> Iterator[bytes]:
        """Stream a large member; fetching stops when the caller stops."""
        with self._archive.open(name) as file:
            while piece := file.read(PIECE):
                yield piece

    def require(self, names: Iterable[str]) -> None:
        """Raise :class:`OverBudgetError` if these members exceed the remaining budget."""
        wanted = tuple(names)
        if not self.affordable(wanted):
            sizes = self.members()
            total = sum(sizes[name] for name in wanted)
            what = ", ".join(wanted) if len(wanted) < 4 else f"{len(wanted)} members"
            raise OverBudgetError(
                f"{self.name}: {what} would take {_mib(total)} MiB, and {_mib(self._meter.left)} of "
                f"{_mib(self._meter.budget)} are left"
            )


class Meter:
    """Counts the bytes received of one wheel."""

    def __init__(self, name: str, budget: int, total: Callable[[int], None]) -> None:
        self.name = name
        self.budget = budget
        self.left = budget
        self._total = total

    def count(self, received: int) -> None:
        self.left -= received
        self._total(received)
        if self.left < -PIECE:  # headers of members come on top
            raise OverBudgetError(f"{self.name}: more than {_mib(self.budget)} MiB")


@contextmanager
def opened(name: str, url: str, session: Any, tail: int, meter: Meter) -> Iterator[Wheel]:
    """Open a wheel at a URL; file and server errors raise :class:`UnreadableError`.

    Broken connections raise the client's own exceptions, so that the caller can retry.
    """

    def fetcher(url: str, session: Any, **words: Any) -> _Fetcher:
        return _Fetcher(RemoteFetcher(url, session, **words), meter)

    try:
        with RemoteZip(url, initial_buffer_size=tail, session=session, fetcher=fetcher, timeout=120) as archive:
            yield Wheel(name, archive, meter)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as problem:
        raise UnreadableError(f"{name}: is no archive that can be read ({problem})") from None
    except RemoteIOError:
        raise
    except RemoteZipError as problem:
        raise UnreadableError(f"{name}: {problem}") from None


class _Fetcher:
    """Fetches ranges and counts their bytes: streamed ones as they are read, others immediately."""

    def __init__(self, fetcher: Any, meter: Meter) -> None:
        self._fetcher = fetcher
        self._meter = meter

    def fetch(self, data_range: tuple[int, int | None], stream: bool = False) -> Any:
        part = self._fetcher.fetch(data_range, stream)
        if stream:
            part.buffer = _Counted(part.buffer, self._meter)
        else:
            self._meter.count(len(part))
        return part


class _Counted:
    """A response whose body is counted as it is read."""

    def __init__(self, response: Any, meter: Meter) -> None:
        self._response = response
        self._meter = meter

    def read(self, size: int) -> bytes:
        piece: bytes = self._response.read(size)
        self._meter.count(len(piece))
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)


def _mib(count: int) -> str:
    return f"{max(count, 0) / MIB:.1f}"
