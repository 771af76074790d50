"""Serialise records with ``marshal``, in a format version that every supported Python shares."""

from __future__ import annotations

import marshal
import zlib
from typing import Any

from compat.interfaces.source.records import (
    Call,
    Class,
    Function,
    Import,
    Imported,
    Module,
    Rename,
    SelfCall,
    Signature,
    Use,
    Value,
)
from compat.records import values_of

_KINDS: tuple[Any, ...] = (Function, Class, Imported, Value)


def pack_module(module: Module) -> bytes:
    values = list(values_of(module))
    names = list(Module.__annotations__)
    values[names.index("definitions")] = {name: _plain(each) for name, each in module.definitions.items()}
    for kind in ("imports", "calls", "uses", "renames"):
        values[names.index(kind)] = tuple(map(values_of, getattr(module, kind)))
    return zlib.compress(marshal.dumps(tuple(values[:-2]), 4), 6)


def _plain(definition: Any) -> tuple[Any, ...]:
    kind = _KINDS.index(type(definition))
    if kind == 0:
        return kind, definition.line, values_of(definition.signature)
    if kind == 1:
        values = dict(definition.__dict__)
        values["methods"] = {name: (each.line, values_of(each.signature)) for name, each in definition.methods.items()}
        values["self_calls"] = tuple(map(values_of, definition.self_calls))
        return kind, *(values[name] for name in Class.__annotations__ if name != "partial")
    return kind, *values_of(definition)


def unpack_module(body: bytes, *, uses: bool = True) -> Module:
    """Return the record packed by :func:`pack_module`, without ``uses`` only its definitions and renames.

    Invalid input raises the exceptions of ``zlib`` and ``marshal``.
    """
    values = dict(zip(Module.__annotations__, marshal.loads(zlib.decompress(body))))
    values["definitions"] = {name: _definition(each) for name, each in values["definitions"].items()}
    for name, kind in (("imports", Import), ("calls", Call), ("uses", Use), ("renames", Rename)):
        values[name] = tuple(kind(*each) for each in values[name]) if uses or kind is Rename else ()
    return Module(**values)


def _definition(values: tuple[Any, ...]) -> Any:
    kind = values[0]
    if kind == 0:
        return Function(values[1], Signature(*values[2]))
    if kind == 1:
        named = dict(zip(Class.__annotations__, values[1:]))
        named["methods"] = {name: Function(line, Signature(*each)) for name, (line, each) in named["methods"].items()}
        named["self_calls"] = tuple(SelfCall(*each) for each in named["self_calls"])
        return Class(**named)
    return _KINDS[kind](*values[1:])
