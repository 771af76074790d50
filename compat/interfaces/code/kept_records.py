"""What a script was read as the last time, in the user's cache beside the hash of the source that it is true of."""

from __future__ import annotations

import marshal
import os
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from compat.files import keep, kept, place_in_cache, stamp_of
from compat.interfaces.code.records import Bound, Field
from compat.records import values_of

if TYPE_CHECKING:
    from compat.interfaces.source.records import Module


if TYPE_CHECKING:
    Said: TypeAlias = tuple[str | None, str, bool, bytes]
    Record: TypeAlias = tuple[Module, tuple[Bound, ...], tuple[Field, ...]]


def kept_record(source: bytes, name: str, path: str, read: Callable[[], Record], *, is_package: bool = False) -> Record:
    """What ``read`` gives for a source, which is asked where it is not kept; what that raises is raised."""
    here = os.path.dirname(__file__)
    whose = os.path.abspath(path).encode(errors="surrogateescape")
    place = place_in_cache("scripts", f"{zlib.crc32(whose):08x}")  # the latest of each path: it does not grow with every change
    said = stamp_of(here, os.path.join(os.path.dirname(here), "source")), name, is_package, _hash(source)
    found = _opened(kept(place), said, path)
    if found is None:
        found = read()
        keep(place, _packed(said, found))
    return found


def _hash(source: bytes) -> bytes:
    try:
        from _blake2 import blake2b  # hashlib opens OpenSSL, which costs as much as reading the script
    except ImportError:
        from hashlib import blake2b
    return blake2b(source, digest_size=32).digest()


def _packed(said: Said, record: Record) -> bytes:
    from compat.interfaces.source.packed import pack_module

    module, bounds, fields = record
    plain = ([values_of(each) for each in bounds], [values_of(each) for each in fields])
    return marshal.dumps((said, pack_module(module), *plain), 4)


def _opened(content: bytes | None, said: Said, path: str) -> Record | None:
    """The record; ``None`` where it is of something else: all that it is true of is compared."""
    from compat.interfaces.source.packed import unpack_module

    try:
        before, module, bounds, fields = marshal.loads(content or b"")
        if before != said:
            return None
        stated = tuple(Bound(package, specifier, path, line) for package, specifier, _, line in bounds)
        return unpack_module(module), stated, tuple(Field(*each) for each in fields)
    except (ValueError, EOFError, TypeError, KeyError, IndexError, zlib.error):
        return None
