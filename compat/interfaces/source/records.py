"""Records of a module's source.

Names are absolute and dotted: relative imports are resolved, and a name of the module itself is ``module.name``.
``flags`` describe the conditions under which code runs; 0 is "always, when the module is imported".
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Mapping
from typing import Any, TypeAlias

from compat.records import record, values_of

TRY = 1
"""In a ``try`` whose handlers catch the failure and continue, or under ``contextlib.suppress``."""
HANDLER = 2
"""In an ``except`` block: runs after another failure."""
VERSION = 4
"""Under a test of a version or of availability (``hasattr``, ``find_spec``, a signature)."""
AVAILABLE = 8
"""Under a test that a package is installed (``is_peft_available()``)."""
BRANCH = 16
"""Under any other ``if``."""
TYPES = 32
"""Under ``TYPE_CHECKING``: never run."""
FUNCTION = 64
"""In a function, or under ``if __name__ == "__main__"``: run later, if at all."""
GUARDED = TRY | HANDLER | VERSION | TYPES


@record(frozen=True)
class Signature:
    """The parameters of a function.

    ``required`` are keyword-only parameters without a default, ``extra`` further accepted keywords: popped from ``**kwargs``,
    or old names that a decorator translates. ``forwards`` lists the callees that receive ``**kwargs``, ``()`` if there are
    none, ``None`` if unknown. ``super().m`` in it is the method of the next class.
    """

    positional: tuple[str, ...] = ()
    defaults: int = 0
    keyword_only: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    star: bool = False
    double_star: bool = False
    extra: tuple[str, ...] = ()
    forwards: tuple[str, ...] | None = None
    decorators: tuple[str, ...] = ()


@record(frozen=True)
class Function:
    line: int
    signature: Signature


@record(frozen=True)
class SelfCall:
    """A call ``self.method(…)`` in a class: an override in a subclass must accept it."""

    method: str
    positional: int
    keywords: tuple[str, ...]
    star: bool
    double_star: bool
    flags: int
    line: int


@record(frozen=True)
class Class:
    """``bases`` are dotted names, ``?`` for an expression. ``fields`` are annotated names, and whether each has a default.

    ``instance`` are attributes set on ``self``, ``made`` maps those assigned from a plain call to the class called.
    ``dynamic``: it has a metaclass, ``__getattr__`` or class keywords, so that its attributes are unknown. ``partial``: some of
    its methods and attributes are omitted.
    """

    line: int
    bases: tuple[str, ...] = ()
    methods: Mapping[str, Function] = {}
    fields: tuple[tuple[str, bool], ...] = ()
    attributes: tuple[str, ...] = ()
    instance: tuple[str, ...] = ()
    made: Mapping[str, str] = {}
    self_calls: tuple[SelfCall, ...] = ()
    decorators: tuple[str, ...] = ()
    dynamic: bool = False
    partial: bool = False


@record(frozen=True)
class Imported:
    """``from module import name`` (``name`` is ``None``: the module itself) bound in the module's namespace."""

    line: int
    module: str
    name: str | None
    flags: int = 0


@record(frozen=True)
class Value:
    line: int


@record(frozen=True)
class Import:
    """``name`` is ``None`` for ``import module``, ``*`` for a star import; ``scope`` is the enclosing class and function.

    ``asks`` are the packages whose installation is tested around it (:data:`AVAILABLE`), as named in the tests.
    """

    module: str
    name: str | None
    flags: int
    line: int
    scope: str = ""
    asks: tuple[str, ...] = ()


@record(frozen=True)
class Call:
    """A call whose callee may belong to another package.

    ``kind``: ``name`` (``target`` is dotted), ``super`` and ``self`` (``target`` is the attribute, ``of`` the class in this
    module), ``made`` and ``typed`` (``target`` is the method, ``of`` the class the object was created from or annotated with).
    """

    kind: str
    target: str
    of: str
    positional: int
    keywords: tuple[str, ...]
    star: bool
    double_star: bool
    flags: int
    line: int
    scope: str = ""


@record(frozen=True)
class Use:
    """A dotted name that is read, or assigned to if ``stored``, which is how frameworks patch other packages."""

    target: str
    flags: int
    line: int
    scope: str = ""
    stored: bool = False
    asks: tuple[str, ...] = ()


@record(frozen=True)
class Rename:
    """A rename of a keyword, announced by a message or decorator; ``new`` is ``None`` if it is removed without replacement.

    ``owner`` is the class or function in this module, ``until`` the announced last version with it or first without it.
    """

    owner: str
    old: str
    new: str | None
    until: str | None
    line: int


@record(frozen=True)
class Module:
    """One module. ``problem`` explains why it could not be parsed: its contents are then unknown.

    ``lazy`` maps names provided on demand to their dotted places (``""`` if unknown). ``listed``: names in the ``__all__`` of
    every module below it are provided too. ``open``: names may exist that cannot be determined (``globals().update``, a
    ``__getattr__`` that looks elsewhere). ``wrappers`` maps decorators to the keywords that they may consume (``None``:
    unknown), ``aliases`` are modules made importable without a file. ``all`` is ``__all__`` if it is a plain list.
    ``getter`` is the module of the function that creates its ``__getattr__``, ``gives`` the names that such a function in this
    module provides to others (``"module:name"``). ``known``, in a shipped table: the names that any release has here; any other
    name is in no release or, if ``partial``, was omitted from the table. ``unsure``: names that compiled code may provide.
    """

    name: str
    is_package: bool
    problem: str | None = None
    definitions: Mapping[str, Definition] = {}
    stars: tuple[str, ...] = ()
    all: tuple[str, ...] | None = None
    lazy: Mapping[str, str] = {}
    listed: bool = False
    open: bool = False
    imports: tuple[Import, ...] = ()
    calls: tuple[Call, ...] = ()
    uses: tuple[Use, ...] = ()
    renames: tuple[Rename, ...] = ()
    wrappers: Mapping[str, tuple[str, ...] | None] = {}
    aliases: tuple[str, ...] = ()
    getter: str = ""
    gives: tuple[str, ...] = ()
    known: frozenset[str] | None = None
    partial: bool = False
    unsure: frozenset[str] = frozenset()

    @property
    def path(self) -> str:
        """The path of its file in the release."""
        return self.name.replace(".", "/") + ("/__init__.py" if self.is_package else ".py")


Definition: TypeAlias = "Function | Class | Imported | Value"


# --- Serialise records with ``marshal``, in a format version that every supported Python shares.


_KINDS: tuple[Any, ...] = (Function, Class, Imported, Value)


def pack_module(module: Module) -> bytes:
    values = list(values_of(module))
    names = list(Module.__annotations__)
    values[names.index("definitions")] = {name: _plain(each) for name, each in module.definitions.items()}
    for kind in ("imports", "calls", "uses", "renames"):
        values[names.index(kind)] = tuple(map(values_of, getattr(module, kind)))
    return zlib.compress(marshal.dumps(tuple(values[: names.index("known")]), 4), 6)


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
