"""Which GPUs a library holds code for: the headers of its fatbins, read while it streams past.

A fatbin is a container that the CUDA compiler embeds for each source file. Its header and the headers of its entries are
never compressed, only the kernels behind them are, so nothing has to be unpacked to see for which architectures they are.
"""

from __future__ import annotations

import struct
from collections import Counter

from scripts.refresh.architectures import necessary

_MAGIC = b"\x50\xed\x55\xba"
_CONTAINER = struct.Struct("<4sHHQ")
"""Magic, version, size of the header, size of the entries."""
_ENTRY = struct.Struct("<HHIQ12xI8xQ")
"""Kind, version, size of the header, size of the payload, …, architecture, …, flags."""
_PTX, _CODE = 1, 2
_KINDS = (_PTX, _CODE, 4, 8, 16, 32)
_THIS_GPU_ONLY, _FAMILY = 0x100000, 0x200000
_LARGEST = 1 << 32


class FatbinScan:
    """Counts the fatbins of a library with code, and with PTX, for each architecture."""

    def __init__(self) -> None:
        self.fatbins = 0
        self._code: Counter[str] = Counter()
        self._ptx: Counter[str] = Counter()
        self._here: set[tuple[int, str]] = set()
        self._buffer = b""
        self._skip = 0
        self._left = 0

    def feed(self, piece: bytes) -> None:
        """Process the next bytes of the library."""
        self._buffer += piece
        position, step = 0, 1
        while step:
            step = self._step(position)
            position += step
        self._buffer = self._buffer[position:]

    def code(self) -> set[str]:
        """Architectures with code in at least 1 in 20 fatbins: fewer means a single special kernel, or noise."""
        least = max(-(-self.fatbins // 20), 2 if self.fatbins > 2 else 1)
        return necessary(code for code, count in self._code.items() if count >= least)

    def ptx(self) -> set[str]:
        """Architectures with PTX in all fatbins but one (the linker's has none): only then does it support newer GPUs."""
        return {code for code, count in self._ptx.items() if count >= self.fatbins - 1 and count * 2 > self.fatbins}

    def _step(self, position: int) -> int:
        """Return the number of bytes consumed from here; 0 if more input is needed."""
        there = len(self._buffer) - position
        if self._skip:
            done = min(self._skip, there)
            self._skip -= done
            return done
        return self._entry(position, there) if self._left > 0 else self._container(position, there)

    def _container(self, position: int, there: int) -> int:
        start = self._buffer.find(_MAGIC, position)
        if start < 0:
            return max(0, there - len(_MAGIC) + 1)
        if len(self._buffer) - start < _CONTAINER.size:
            return start - position
        _, version, header, size = _CONTAINER.unpack_from(self._buffer, start)
        if version != 1 or header != _CONTAINER.size or not 0 < size < _LARGEST:
            return start - position + len(_MAGIC)  # the magic bytes without a fatbin
        self.fatbins += 1
        self._here = set()
        self._left = size
        return start - position + _CONTAINER.size

    def _entry(self, position: int, there: int) -> int:
        if there < _ENTRY.size:
            return 0
        kind, _, header, payload, architecture, flags = _ENTRY.unpack_from(self._buffer, position)
        if kind not in _KINDS or not _ENTRY.size <= header <= 4096 or header + payload > self._left:
            self._left = 0
            self.fatbins -= not self._here
            return 1  # unexpected content: skip to the next container
        self._seen(kind, architecture, flags)
        self._skip = header + payload
        self._left -= self._skip
        return self._step(position)

    def _seen(self, kind: int, architecture: int, flags: int) -> None:
        code = f"{architecture}{'a' if flags & _THIS_GPU_ONLY else 'f' if flags & _FAMILY else ''}"
        counter = {_PTX: self._ptx, _CODE: self._code}.get(kind)
        if counter is not None and (kind, code) not in self._here:
            self._here.add((kind, code))
            counter[code] += 1
