"""What a module needs from other packages (names, attributes, calls, methods, overrides), and whether releases meet it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from compat.interfaces.release import OUTSIDE, Complaint, Meaning, Surface, absent
from compat.interfaces.source.records import FUNCTION, GUARDED, Call, Class, Module, Signature
from compat.interfaces.world import World
from compat.records import record, values_of

_ADD_NOTHING = frozenset((
    "staticmethod", "classmethod", "abstractmethod", "no_grad", "inference_mode", "lru_cache", "wraps", "deprecate_kwarg",
    "deprecated", "auto_docstring", "add_start_docstrings", "replace_return_docstrings", "add_end_docstrings", "requires",
    "validate_hf_hub_args", "can_return_tuple", "contextmanager", "register_to_config",
))  # fmt: skip
"""Decorators that pass no arguments of their own."""
OPAQUE_BASES = ("builtins", "abc", "typing", "enum", "typing_extensions", "collections", "?")


class Need(NamedTuple):
    """A need of code; a tuple, because millions are compared when the tables are built. By ``kind``:

    - ``import``: ``from target import name`` (``name`` is ``None`` for the module itself);
    - ``attribute``: the dotted name ``target``;
    - ``call``: ``target(…)`` with this number of positional arguments and these keywords;
    - ``complete``: as ``call``, where these are all arguments: those that ``target`` requires are among them;
    - ``method``: a call of method ``name`` on an object of class ``target``;
    - ``offered``: an attribute ``name`` of an object that may be of any subclass of ``bases``, whose common name is ``target``;
    - ``inherited``: a call of ``name`` on ``self`` or ``super()``, defined by the first of ``bases`` that has it;
    - ``override``: a method ``name`` with this ``signature`` overrides that of ``bases``, which may call it.
    """

    kind: str
    target: str
    name: str | None = None
    bases: tuple[str, ...] = ()
    positional: int = 0
    keywords: tuple[str, ...] = ()
    signature: tuple[Any, ...] | None = None


@record(frozen=True)
class Place:
    """Where a need comes from; ``flags`` and ``asks`` as in :mod:`compat.interfaces.source.records`."""

    line: int
    flags: int
    scope: str = ""
    asks: tuple[str, ...] = ()


def packages_of(need: Need) -> frozenset[str]:
    """Return the top-level modules that a need refers to."""
    if need.kind in ("inherited", "override"):
        return frozenset(base.partition(".")[0] for base in need.bases)
    return frozenset((need.target.partition(".")[0],))


class Consumer:
    """The needs of one release's modules. Code in a ``try``, under a version test or for type checking is ignored."""

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self._world = World((surface,))

    def needs(self, module: Module) -> Iterator[tuple[Need, Place]]:
        """Yield the needs of a module, with repetitions."""
        yield from direct_needs(module, self.surface.tops)
        yield from self.inherited_needs(module)

    def inherited_needs(self, module: Module) -> Iterator[tuple[Need, Place]]:
        """Yield what the classes of a module need from bases in other packages."""
        for name, definition in module.definitions.items():
            if isinstance(definition, Class):
                yield from self._of_class(module, name, definition)
        for call in module.calls:
            if call.kind in ("self", "super") and not call.flags & GUARDED:
                yield from self._of_call(module, call)

    def _of_class(self, module: Module, name: str, definition: Class) -> Iterator[tuple[Need, Place]]:
        chain, outer = self._chain(module.name, name)
        if not outer or not chain:
            return
        for method, function in definition.methods.items():
            if not (method.startswith("__") and method.endswith("__")):
                need = Need("override", "", method, outer, signature=values_of(function.signature))
                yield need, Place(function.line, FUNCTION, f"{name}.{method}")

    def _of_call(self, module: Module, call: Call) -> Iterator[tuple[Need, Place]]:
        chain, outer = self._chain(module.name, call.of)
        place = Place(call.line, call.flags, call.scope)
        first, _, rest = call.target.partition(".")
        if rest:
            made = None if call.kind == "super" or "." in rest else self._made(chain, first)
            if made is not None:
                yield Need("method", made, rest, (), call.positional, call.keywords), place
            return
        own = chain[1:] if call.kind == "super" else chain
        if outer and not any(_has(each, first) for each in own):
            yield Need("inherited", "", first, outer, call.positional, call.keywords), place

    def _made(self, chain: tuple[Meaning, ...], attribute: str) -> str | None:
        for each in chain:
            assert isinstance(each.definition, Class)
            made = each.definition.made.get(attribute)
            if made is not None:
                return made if made.partition(".")[0] not in self.surface.tops else None
        return None

    def _chain(self, module: str, name: str) -> tuple[tuple[Meaning, ...], tuple[str, ...]]:
        """Return a class with its bases in the same package, and the nearest bases in other packages."""
        found = self._world.find(f"{module}.{name}")
        if found.kind != "class":
            return (), ()
        chain: list[Meaning] = []
        outer: list[str] = []
        for each in self._world.bases(found)[0]:
            if isinstance(each.definition, Class):
                chain.append(each)
                outer += self._outer(each.definition.bases)
        return tuple(chain), tuple(dict.fromkeys(outer))

    def _outer(self, bases: tuple[str, ...]) -> Iterator[str]:
        for base in bases:
            top = base.partition(".")[0]
            if top in OPAQUE_BASES:
                continue
            if top not in self.surface.tops:
                yield base
            elif (found := self._world.names(self.surface).get(*base.rpartition(".")[::2])).kind == OUTSIDE:
                yield found.module


def direct_needs(module: Module, own: frozenset[str]) -> Iterator[tuple[Need, Place]]:
    """Yield the needs in a module's own record: imports, attributes, and calls of names and of methods of objects."""
    for imported in module.imports:
        if not imported.flags & GUARDED and imported.module and imported.module.partition(".")[0] not in own:
            name = imported.name if imported.name != "*" else None
            place = Place(imported.line, imported.flags, imported.scope, imported.asks)
            yield Need("import", imported.module, name), place
    for use in module.uses:
        if not use.flags & GUARDED and not use.stored and use.target.partition(".")[0] not in own:
            yield Need("attribute", use.target), Place(use.line, use.flags, use.scope, use.asks)
    for call in module.calls:
        if call.flags & GUARDED or not (call.positional or call.keywords or call.kind != "name"):
            continue
        place = Place(call.line, call.flags, call.scope)
        if call.kind == "name" and call.target.partition(".")[0] not in own:
            yield Need("call", call.target, None, (), call.positional, call.keywords), place
        elif call.kind in ("made", "typed") and call.of.partition(".")[0] not in own:
            yield Need("method", call.of, call.target, (), call.positional, call.keywords), place


def _has(of: Meaning, name: str) -> bool:
    definition = of.definition
    assert isinstance(definition, Class)
    return definition.dynamic or _defines(definition, name)


def _defines(definition: Class, name: str) -> bool:
    return (
        name in definition.methods or name in definition.attributes or name in definition.instance
        or any(name == field for field, _ in definition.fields)
    )  # fmt: skip


# --- Whether a world of releases meets a need; ``None`` unless certain, and such a verdict is never reported.


@record(frozen=True)
class Verdict:
    """``met`` is ``None`` if unknown. ``missing`` is the missing name, or the rejected keyword or number of arguments.

    ``where`` is the definition found, or the owner that lacks it, and ``line`` the line there.
    """

    met: bool | None
    kind: str = ""
    missing: str = ""
    where: Meaning | None = None
    line: int = 0


_UNKNOWN = Verdict(None)


def verdict_on(world: World, need: Need) -> Verdict:
    """Return whether the releases of a world meet a need."""
    kind, target, name, bases, positional, keywords, signature = need
    if kind in ("import", "attribute"):
        meaning = world.imported(target, name) if kind == "import" else world.find(target)
        if meaning.kind == "absent":
            return _lacking(meaning)
        return Verdict(None if meaning.kind in ("unknown", "never") else True, where=meaning, line=meaning.line)
    if kind == "call":
        return _called(world, world.find(target), positional, keywords)
    if kind == "complete":
        return _complete(world, world.find(target), positional, keywords)
    if kind == "method":
        return _method(world, world.find(target), name or "", positional, keywords)
    if kind == "offered":
        return _offered(world, bases, name or "")
    if kind == "inherited":
        return _inherited(world, bases, name or "", positional, keywords)
    return _override(world, bases, name or "", Signature(*(signature or ())))


def _lacking(meaning: Meaning) -> Verdict:
    return Verdict(met=False, kind="name", missing=meaning.dotted, where=meaning)


def _unfit(kind: str, complaint: Complaint, line: int) -> Verdict:
    return Verdict(met=False, kind=kind, missing=complaint.what, where=complaint.callee, line=line)


def _called(world: World, meaning: Meaning, positional: int, keywords: tuple[str, ...]) -> Verdict:
    callee = world.callee(meaning)
    return _UNKNOWN if callee is None else _judged(world.rejected(*callee, positional, keywords), callee[2])


def _complete(world: World, meaning: Meaning, positional: int, keywords: tuple[str, ...]) -> Verdict:
    """Judge whether a call passes all required arguments; unknown for decorators that may add some, and for old names."""
    callee = world.callee(meaning)
    if callee is None or set(callee[0].decorators) - _ADD_NOTHING or not set(keywords).isdisjoint(callee[0].extra):
        return _UNKNOWN
    signature, bound, where = callee
    required = (*signature.positional[bound + positional : len(signature.positional) - signature.defaults], *signature.required)
    missing = [name for name in required if name not in keywords]
    if missing:
        return Verdict(met=False, kind="required", missing=", ".join(missing), where=where, line=where.line)
    return Verdict(met=True, where=where, line=where.line)


def _judged(complaints: tuple[Complaint, ...], where: Meaning) -> Verdict:
    for complaint in complaints:
        return _unfit(complaint.kind, complaint, complaint.callee.line)
    return Verdict(met=True, where=where, line=where.line)


def _method(world: World, of: Meaning, name: str, positional: int, keywords: tuple[str, ...]) -> Verdict:
    if of.kind != "class":
        return _UNKNOWN
    found = world.member(of, name)
    if found.kind == "absent":
        return _lacking(found)
    if found.kind != "method":
        return _UNKNOWN if found.kind == "unknown" else Verdict(met=True, where=found, line=found.line)
    callee = world.callee(found)
    assert callee is not None
    return _judged(world.rejected(callee[0], 1, callee[2], positional, keywords), callee[2])


def _offered(world: World, bases: tuple[str, ...], name: str) -> Verdict:
    """Judge a method of an object whose class is unknown: it is missing if no base has it, and one had it in some release."""
    had = None
    for base in bases:
        of = world.find(base)
        for each in world.bases(of)[0] if of.kind == "class" else ():
            if isinstance(each.definition, Class) and _defines(each.definition, name):
                return Verdict(met=True, where=each, line=each.line)
        surface = world.surface_of(base)
        module, _, owner = base.rpartition(".")
        if surface is not None and surface.had_method(module, owner, name):
            had = surface
    return _UNKNOWN if had is None else _lacking(absent(had, bases[0], name))


def _inherited(world: World, bases: tuple[str, ...], name: str, positional: int, keywords: tuple[str, ...]) -> Verdict:
    lacking = None
    for base in bases:
        of = world.find(base)
        if of.kind != "class":
            return _UNKNOWN
        if name == "__init__":
            return _called(world, of, positional, keywords)
        verdict = _method(world, of, name, positional, keywords)
        if verdict.met is not False or verdict.kind != "name":
            return verdict
        lacking = lacking or verdict
    return lacking or _UNKNOWN


def _override(world: World, bases: tuple[str, ...], name: str, signature: Signature) -> Verdict:
    where = None
    for base in bases:
        of = world.find(base)
        if of.kind != "class":
            return _UNKNOWN
        for complaint, line in world.override_complaints(of, name, signature):
            return _unfit(f"override-{complaint.kind}", complaint, line)
        found = world.member(of, name)
        where = where or (found if found.kind == "method" else None)
    return Verdict(met=True, where=where, line=where.line if where is not None else 0)
