"""A wheel on the index, read member by member with HTTP ranges, and never more of it than a number of bytes."""

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
    """A file of the index could not be read; the text says which and why."""


class OverBudgetError(UnreadableError):
    """What is wanted of a wheel takes more bytes than may be read of it."""


class Wheel:
    """Members of a wheel by name; what is received is counted, and :class:`OverBudgetError` ends it."""

    def __init__(self, name: str, archive: zipfile.ZipFile, meter: Meter) -> None:
        self.name = name
        self._archive = archive
        self._meter = meter

    def members(self) -> dict[str, int]:
        """The bytes that each member takes on the way."""
        return {member.filename: member.compress_size for member in self._archive.infolist()}

    def affordable(self, names: Iterable[str]) -> bool:
        """Whether these members can still be read as a whole."""
        sizes = self.members()
        return sum(sizes[name] for name in names) <= self._meter.left

    def text(self, name: str) -> str:
        """A small member; :class:`UnreadableError` where there is none of that name."""
        if name not in self._archive.NameToInfo:
            raise UnreadableError(f"{self.name}: holds no {name}")
        self.require((name,))
        return self._archive.read(name).decode("utf-8", "replace")

    def pieces(self, name: str) -> Iterator[bytes]:
        """A large member as it comes; nothing more is fetched once the caller stops."""
        with self._archive.open(name) as file:
            while piece := file.read(PIECE):
                yield piece

    def require(self, names: Iterable[str]) -> None:
        """:class:`OverBudgetError` where these members cannot be read as a whole."""
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
    """Counts what is received of one wheel."""

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
    """A wheel at an address; what is wrong with the file or its server is an :class:`UnreadableError`.

    Connections that break raise what the client raises: trying again may help there.
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
    """Fetches ranges and counts them: those that stream as they are read, others at once."""

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
