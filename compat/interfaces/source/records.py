"""What a module's source says: the records.

Names are absolute and dotted: relative imports are resolved, and a name of the module itself is ``module.name``.
``flags`` say under which conditions something is reached; 0 is "when the module is imported, always".
"""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

TRY = 1
"""In a ``try`` whose handlers catch the failure and go on, or under ``contextlib.suppress``."""
HANDLER = 2
"""In an ``except`` block: it runs when something else failed."""
VERSION = 4
"""Under a test of a version or of availability (``hasattr``, ``find_spec``, a signature)."""
AVAILABLE = 8
"""Under a test whether a package is installed (``is_peft_available()``)."""
BRANCH = 16
"""Under another ``if``."""
TYPES = 32
"""Under ``TYPE_CHECKING``: never run."""
FUNCTION = 64
"""In a function, or under ``if __name__ == "__main__"``: run later, if at all."""
GUARDED = TRY | HANDLER | VERSION | TYPES


@record(frozen=True)
class Signature:
    """The parameters of a function.

    ``required`` are keyword-only ones without a default, ``extra`` keywords accepted besides: popped from ``**kwargs``, or an
    old name that a decorator translates. ``forwards`` is where ``**kwargs`` goes when it goes nowhere else, ``()`` when nothing
    reads it, ``None`` if unknown. ``super().m`` in it is the next class's method.
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
    """``self.method(…)`` in a class: a subclass that overrides the method has to accept it."""

    method: str
    positional: int
    keywords: tuple[str, ...]
    star: bool
    double_star: bool
    flags: int
    line: int


@record(frozen=True)
class Class:
    """``bases`` are dotted, ``?`` where an expression. ``fields`` are annotated names with whether each has a default.

    ``instance`` are attributes set on ``self``, ``made`` the class each was made from where it is a plain call.
    ``dynamic``: it has a metaclass, ``__getattr__`` or class keywords, so that its attributes are unknown. ``partial``: not all
    of its methods and attributes are here.
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
    """``name`` is ``None`` for ``import module`` and ``*`` for a star import; ``scope`` is the class and function it is in.

    ``asks`` are the packages whose presence is tested around it (:data:`AVAILABLE`), as the tests name them.
    """

    module: str
    name: str | None
    flags: int
    line: int
    scope: str = ""
    asks: tuple[str, ...] = ()


@record(frozen=True)
class Call:
    """A call of something that may belong to another package.

    ``kind``: ``name`` (``target`` is dotted), ``super`` and ``self`` (``target`` is the attribute, ``of`` the class in this
    module), ``made`` and ``typed`` (``target`` is the method, ``of`` the class an object was made from or annotated with).
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
    """A dotted name that is read; ``stored`` where it is assigned to instead, which is how frameworks patch others."""

    target: str
    flags: int
    line: int
    scope: str = ""
    stored: bool = False
    asks: tuple[str, ...] = ()


@record(frozen=True)
class Rename:
    """A message or decorator that says a keyword has another name now; ``new`` is ``None`` where it only goes away.

    ``owner`` is the class or function in this module, ``until`` the version named as the last or the first without it.
    """

    owner: str
    old: str
    new: str | None
    until: str | None
    line: int


@record(frozen=True)
class Module:
    """One module. ``problem`` says why it could not be parsed: everything in it is then unknown.

    ``lazy`` are names provided on demand, with the dotted place where that is known (else ``""``). ``listed``: the ``__all__``
    of every module below it is provided too. ``open``: names may exist that cannot be seen (``globals().update``, a
    ``__getattr__`` that asks elsewhere). ``wrappers`` are decorators with the keywords that they may take themselves (``None``:
    unknown), ``aliases`` modules that are made importable without a file. ``all`` is ``__all__`` where it is a plain list.
    ``getter`` is the module of the function that makes its ``__getattr__``, ``gives`` the names that such a function of this
    module gives to others (``"module:name"``). ``known``, of a shipped table: the names that some release has here; another
    one is in no release, or where ``partial`` was left out of the table.
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

    @property
    def path(self) -> str:
        """Its file in the release."""
        return self.name.replace(".", "/") + ("/__init__.py" if self.is_package else ".py")


Definition: TypeAlias = "Function | Class | Imported | Value"
