"""What the loader of Linux resolves in a shared library: needed libraries, symbol versions, undefined and exported symbols."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ENTRY = struct.Struct("<qQ")
_NEED = struct.Struct("<HHIII")
_NEED_VERSION = struct.Struct("<IHHII")
_DYNAMIC, _DYNSYM, _VERSION_NEEDS = 6, 11, 0x6FFFFFFE
_NEEDED, _SONAME = 1, 14
_WEAK = 2


@dataclass(frozen=True)
class Dynamic:
    """``versions`` are those it asks of other libraries (``GLIBC_2.17``); ``undefined`` has no weak symbols."""

    soname: str
    needed: tuple[str, ...]
    versions: frozenset[str]
    undefined: frozenset[str]
    exported: frozenset[str]


@dataclass(frozen=True)
class _Section:
    kind: int
    start: int
    size: int
    link: int
    count: int


def dynamic_of(content: memoryview) -> Dynamic:
    """Read a 64-bit little-endian library; raises :class:`ValueError` for anything else."""
    try:
        return _read(content)
    except (struct.error, IndexError) as problem:
        raise ValueError(f"damaged ELF file ({problem})") from None


def _read(content: memoryview) -> Dynamic:
    header = _HEADER.unpack_from(content)
    if header[0][:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    start, size, count = header[6], header[11], header[12]
    sections = [_section(content, start + at * size) for at in range(count)]
    needed: list[str] = []
    soname = ""
    versions: set[str] = set()
    undefined: set[str] = set()
    exported: set[str] = set()
    for section in sections:
        if section.kind not in (_DYNAMIC, _DYNSYM, _VERSION_NEEDS):
            continue
        names = _Names(content, sections[section.link])
        body = content[section.start : section.start + section.size]
        if section.kind == _DYNAMIC:
            for tag, value in _ENTRY.iter_unpack(body):
                if tag == _NEEDED:
                    needed.append(names.at(value))
                elif tag == _SONAME:
                    soname = names.at(value)
        elif section.kind == _VERSION_NEEDS:
            versions.update(_needed_versions(body, names, section.count))
        else:
            for at, info, _, index, _, _ in _SYMBOL.iter_unpack(body):
                if index:
                    exported.add(names.at(at))
                elif info >> 4 != _WEAK and at:
                    undefined.add(names.at(at))
    return Dynamic(soname, tuple(needed), frozenset(versions), frozenset(undefined), frozenset(exported))


def _section(content: memoryview, at: int) -> _Section:
    _, kind, _, _, start, size, link, count, _, _ = _SECTION.unpack_from(content, at)
    return _Section(kind, start, size, link, count)


class _Names:
    """The strings of a section, by their place in it."""

    def __init__(self, content: memoryview, section: _Section) -> None:
        self._text = bytes(content[section.start : section.start + section.size])

    def at(self, place: int) -> str:
        return self._text[place : self._text.index(b"\0", place)].decode("ascii", "replace")


def _needed_versions(body: memoryview, names: _Names, count: int) -> Iterator[str]:
    at = 0
    for _ in range(count):
        _, number, _, first, step = _NEED.unpack_from(body, at)
        inner = at + first
        for _ in range(number):
            _, _, _, name, inner_step = _NEED_VERSION.unpack_from(body, inner)
            yield names.at(name)
            inner += inner_step
        at += step
