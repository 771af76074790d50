"""A set of releases, one per package: resolves names, classes with their bases, and whether a call is valid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compat.interfaces.release import (
    KEPT_ALIVE,
    OUTSIDE,
    UNKNOWN,
    VALUE,
    Complaint,
    Meaning,
    Names,
    Surface,
    absent,
    is_converter,
)
from compat.interfaces.source.records import Class, Function, Signature

_DATACLASSES = frozenset(("dataclass", "dataclass_transform"))
_GETTERS = frozenset(("__getattr__", "__getattribute__"))
_OTHER_CONSTRUCTORS = frozenset(
    ("config", "define", "attrs", "frozen", "s", "attrib", "Struct", "add_start_docstrings_to_class")
)
_WRAPPERS = frozenset(("strict",))
"""Decorators that replace the constructor of a dataclass and add methods to it (huggingface_hub's)."""
_UNREADABLE = frozenset(("overload", "jit", "property", "cached_property", "contextmanager_property", "singledispatch", "?"))
_PLAIN_BASES = frozenset((
    "builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol", "typing_extensions.Protocol",
    "typing_extensions.Generic",
))  # fmt: skip
_WITHOUT_FIELDS = ("PushToHubMixin",)
"""Bases in other packages that no release makes a dataclass: the constructor of a dataclass gets no field from them."""
_MOST_BASES = 60
_DEEPEST_FORWARD = 5


class World:
    """At most one release of each package; other packages are unknown."""

    def __init__(self, surfaces: Iterable[Surface]) -> None:
        self.surfaces = tuple(surfaces)
        self._by_top: dict[str, Surface] = {}
        for surface in self.surfaces:
            for top in surface.tops:
                if top not in self._by_top or top.replace("_", "-").lower() == surface.package:
                    self._by_top[top] = surface
        self._names: dict[int, Names] = {}
        self._found: dict[str, Meaning] = {}
        self._mro: dict[tuple[str, str], tuple[tuple[Meaning, ...], bool]] = {}
        self._constructors: dict[tuple[str, str], tuple[Signature, Meaning] | None] = {}

    def surface_of(self, dotted: str) -> Surface | None:
        return self._by_top.get(dotted.partition(".")[0])

    def names(self, surface: Surface) -> Names:
        found = self._names.get(id(surface))
        if found is None:
            found = self._names[id(surface)] = Names(surface)
        return found

    # Names

    def find(self, dotted: str) -> Meaning:
        """Resolve a dotted name; ``unknown`` unless it is certain."""
        found = self._found.get(dotted)
        if found is None:
            self._found[dotted] = UNKNOWN
            found = self._found[dotted] = self._find(dotted)
        return found

    def _find(self, dotted: str) -> Meaning:
        parts = dotted.split(".")
        surface = self._by_top.get(parts[0])
        if surface is None or len(parts) > 30:
            return UNKNOWN
        if surface.holds(parts[0]) != "source" and len(parts) > 1 and surface.holds(parts[0]) != "folder":
            return UNKNOWN
        found = Meaning("module", surface, parts[0])
        for at, part in enumerate(parts[1:], 1):
            found = self.attribute(found, part)
            if found.kind == OUTSIDE:
                beyond = self.find(".".join((found.module, *parts[at + 1 :])))
                # a re-export of a name missing from the other package is reported for that package
                return beyond if beyond.kind not in ("absent", "never") or at < len(parts) - 1 else UNKNOWN
            if found.kind in ("unknown", "absent", "never", VALUE, "function", "method") and at < len(parts) - 1:
                return found if found.kind in ("absent", "never") else UNKNOWN
        return found

    def imported(self, module: str, name: str | None) -> Meaning:
        """Resolve ``from module import name`` (``name`` ``None`` or ``*``: the module)."""
        surface = self.surface_of(module)
        if surface is None:
            return UNKNOWN
        parts = module.split(".")
        for at in range(1, len(parts) + 1):
            holds = surface.holds(".".join(parts[:at]))
            if holds == "opaque":
                return UNKNOWN
            if holds is None:
                return self._no_module(surface, ".".join(parts[: at - 1]), parts[at - 1])
        if name is None or name == "*":
            return Meaning("module", surface, module)
        found = self.names(surface).get(module, name)
        if found.kind == "absent" and surface.holds(module) == "folder":
            return self._no_module(surface, module, name)
        if found.kind != OUTSIDE:
            return found
        beyond = self.find(found.module)
        return (
            beyond
            if beyond.kind not in ("absent", "never", "unknown")
            else Meaning(VALUE, surface, module, name, None, found.line)
        )

    def _no_module(self, surface: Surface, package: str, name: str) -> Meaning:
        """Resolve a module without a file: unknown if the package may keep it alive as a name, otherwise absent."""
        if not package:  # before it is added here, it may belong to another distribution
            return absent(surface, "", name) if surface.had(name) else UNKNOWN
        record = surface.module(package)
        if record is not None and (name in record.definitions or name in record.lazy):
            return UNKNOWN
        if any(name.endswith(ending) for ending in KEPT_ALIVE.get(surface.package, ())) or is_converter(name):
            return UNKNOWN
        if surface.holds(package) == surface.holds(package.partition(".")[0]) == "folder" and not surface.had(
            f"{package}.{name}"
        ):
            return UNKNOWN  # another distribution may add it to this namespace package
        return absent(surface, package, name)

    def shares(self, top: str) -> bool:
        """Whether a top-level module is a folder without ``__init__``, into which other distributions put modules as well."""
        surface = self.surface_of(top)
        return surface is not None and surface.holds(top) == "folder"

    def attribute(self, of: Meaning, name: str) -> Meaning:
        if of.kind == "module" and of.surface is not None:
            return self.names(of.surface).get(of.module, name)
        if of.kind == "class":
            return self.member(of, name)
        return UNKNOWN

    # Classes

    def bases(self, of: Meaning) -> tuple[tuple[Meaning, ...], bool]:
        """Return a class and its bases in the order of lookup, and whether all of them are known."""
        key = of.module, of.name
        found = self._mro.get(key)
        if found is None:
            self._mro[key] = (of,), False
            found = self._mro[key] = self._bases(of)
        return found

    def _bases(self, of: Meaning) -> tuple[tuple[Meaning, ...], bool]:
        assert isinstance(of.definition, Class)
        chains: list[tuple[Meaning, ...]] = []
        complete = True
        for base in of.definition.bases:
            if base in _PLAIN_BASES:
                continue
            meaning = self.find(base)
            if meaning.kind == "class" and meaning.dotted != of.dotted and sum(map(len, chains)) < _MOST_BASES:
                more, known = self.bases(meaning)
                chains.append(more)
                complete = complete and known
            else:
                complete = False
                chains.append((Meaning("unknown", None, base),))
        return (of, *_linearized(chains)), complete

    def member(self, of: Meaning, name: str) -> Meaning:
        """Resolve an attribute of a class; ``absent`` only if all bases of the class are known."""
        for each in self.bases(of)[0]:
            definition = each.definition
            if not isinstance(definition, Class):
                return UNKNOWN
            method = definition.methods.get(name)
            if method is not None:
                return Meaning("method", each.surface, each.module, f"{each.name}.{name}", method, method.line)
            if (
                name in definition.attributes
                or name in definition.instance
                or any(name == field for field, _ in definition.fields)
            ):
                return Meaning(VALUE, each.surface, each.module, f"{each.name}.{name}", None, definition.line)
            if definition.dynamic or definition.partial or _WRAPPERS & set(definition.decorators):
                return UNKNOWN
        if name.startswith("__"):
            return UNKNOWN
        assert of.surface is not None
        return absent(of.surface, of.dotted, name)

    def constructor(self, of: Meaning, *, after: Meaning | None = None) -> tuple[Signature, Meaning] | None:
        """Return the signature of calling a class, including ``self``, and the class that defines it; ``None`` if unknown.

        ``after``: resolve as ``super().__init__`` in that class does.
        """
        if after is not None:
            chain = self.bases(of)[0]
            return _constructor(chain[chain.index(after) + 1 :] if after in chain else chain[1:])
        key = of.module, of.name
        if key not in self._constructors:
            self._constructors[key] = _constructor(self.bases(of)[0])
        return self._constructors[key]

    # Calls

    def callee(self, found: Meaning) -> tuple[Signature, int, Meaning] | None:
        """Return the signature of a callable, the number of already bound parameters and its place; ``None`` if unknown."""
        if found.kind == "class":
            made = self.constructor(found)
            return _of_constructor(made) if made is not None else None
        if isinstance(found.definition, Function):
            signature = found.definition.signature
            if found.kind == "function":
                return signature, 0, found
            if found.kind == "method":
                return signature, int("classmethod" in signature.decorators), found
        return None

    def rejected(
        self, signature: Signature, bound: int, callee: Meaning, positional: int, keywords: Iterable[str], *, depth: int = 0
    ) -> tuple[Complaint, ...]:
        """Return why a call with this many positional and these keyword arguments is invalid; ``()`` if it may be valid."""
        if set(signature.decorators) & _UNREADABLE:
            return ()
        if "staticmethod" in signature.decorators:
            bound = 0
        taken = signature.positional[bound:]
        complaints = [
            Complaint("keyword", keyword, callee)
            for keyword in keywords
            if keyword not in taken and keyword not in signature.keyword_only and keyword not in signature.extra
            and (not signature.double_star or self._forwarded(signature, callee, keyword, depth))
        ]  # fmt: skip
        if positional > len(taken) and not signature.star and not _takes_positional(signature):
            complaints.append(Complaint("positional", str(positional), callee))
        return self._past_decorators(signature, callee, tuple(complaints)) if complaints else ()

    def _past_decorators(
        self, signature: Signature, callee: Meaning, complaints: tuple[Complaint, ...]
    ) -> tuple[Complaint, ...]:
        """Drop complaints about keywords that decorators may consume, such as old names."""
        for decorator in signature.decorators if callee.surface is not None else ():
            found = self.find(f"{callee.module}.{decorator}")
            record = found.surface.module(found.module) if found.surface is not None and found.name else None
            taken = record.wrappers.get(found.name, ()) if record is not None else ()
            if taken is None:
                return ()
            complaints = tuple(each for each in complaints if each.kind != "keyword" or each.what not in taken)
        return complaints

    def _forwarded(self, signature: Signature, callee: Meaning, keyword: str, depth: int) -> bool:
        """Return whether ``**kwargs`` certainly forwards a keyword to a callee that rejects it."""
        if not signature.forwards or len(signature.forwards) != 1 or depth > _DEEPEST_FORWARD:
            return False
        target = signature.forwards[0]
        if target.startswith("super()."):
            owner = self.find(f"{callee.module}.{callee.name.rpartition('.')[0]}")
            made = self.inherited(owner, target.removeprefix("super().")) if owner.kind == "class" else None
        elif target.partition(".")[0] in ("self", "cls"):
            return False
        else:
            found = UNKNOWN if callee.surface is None else self.find(f"{callee.module}.{target}")
            made = self.callee(self.find(found.module) if found.kind == OUTSIDE else found)
        if made is None:
            return False
        return bool(self.rejected(made[0], made[1], made[2], 0, (keyword,), depth=depth + 1))

    def inherited(self, of: Meaning, method: str) -> tuple[Signature, int, Meaning] | None:
        """Return the method that ``super().method`` in a class calls; ``None`` if unknown."""
        if method == "__init__":
            made = self.constructor(of, after=of)
            return _of_constructor(made) if made is not None else None
        for each in self.bases(of)[0][1:]:
            definition = each.definition
            if not isinstance(definition, Class):
                return None
            found = definition.methods.get(method)
            if found is not None:
                meaning = Meaning("method", each.surface, each.module, f"{each.name}.{method}", found, found.line)
                return found.signature, 1, meaning
        return None

    def override_complaints(self, of: Meaning, method: str, signature: Signature) -> tuple[tuple[Complaint, int], ...]:
        """Return the ``self.method(…)`` calls in the bases of a class that an override with this signature would reject.

        Each comes with the line of the call; calls under a version test or in a ``try`` are ignored.
        """
        found = []
        for each in self.bases(of)[0]:
            if not isinstance(each.definition, Class):
                continue
            for call in each.definition.self_calls:
                if call.method == method and not call.flags & 7:
                    where = Meaning("method", each.surface, each.module, each.name, None, call.line)
                    found += [(one, call.line) for one in self.rejected(signature, 1, where, call.positional, call.keywords)]
        return tuple(found)


def _linearized(chains: list[tuple[Meaning, ...]]) -> Iterator[Meaning]:
    """Yield classes in the order in which Python looks them up (C3), given those of each base; a contradiction is ignored."""
    left = [*chains, tuple(chain[0] for chain in chains)] if len(chains) > 1 else chains
    while left:
        behind = {(each.module, each.name) for chain in left for each in chain[1:]}
        first = next((chain[0] for chain in left if (chain[0].module, chain[0].name) not in behind), left[0][0])
        yield first
        rest = (tuple(each for each in chain if (each.module, each.name) != (first.module, first.name)) for chain in left)
        left = [chain for chain in rest if chain]


def _constructor(chain: tuple[Meaning, ...]) -> tuple[Signature, Meaning] | None:
    fields: dict[str, None] = {}
    is_dataclass = False
    for each in chain:
        definition = each.definition
        if is_dataclass and each.kind == "unknown" and each.module.rpartition(".")[2] in _WITHOUT_FIELDS:
            continue
        if not isinstance(definition, Class) or (definition.dynamic and not _GETTERS & definition.methods.keys()):
            return None  # a metaclass may call it in another way; what attributes it has does not matter here
        marked = bool(_DATACLASSES & set(definition.decorators))
        if _WRAPPERS & set(definition.decorators):
            return None
        if not marked and set(definition.decorators) & _OTHER_CONSTRUCTORS:
            return None
        if "__new__" in definition.methods and not is_dataclass:
            return None
        own = definition.methods.get("__init__")
        if own is not None and not is_dataclass:
            return own.signature, each
        if each is not chain[0] and not fields and _makes_subclasses(definition):
            return None  # its subclasses are dataclasses without being marked, and what they accept is up to it
        if marked:
            is_dataclass = True
            fields.update(dict.fromkeys(field for field, _ in definition.fields))
    if is_dataclass:
        return Signature(("self", *fields), len(fields)), chain[0]
    return None


def _makes_subclasses(definition: Class) -> bool:
    """Return whether a class turns its subclasses into dataclasses (PEP 681), as transformers' configurations are since 5.4."""
    decorators = set(definition.decorators)
    return "dataclass_transform" in decorators or ("__init_subclass__" in definition.methods and "dataclass" in decorators)


def _of_constructor(made: tuple[Signature, Meaning]) -> tuple[Signature, int, Meaning]:
    of = made[1]
    return made[0], 1, Meaning("method", of.surface, of.module, f"{of.name}.__init__", None, of.line)


def _takes_positional(signature: Signature) -> bool:
    """Return whether a decorator still accepts keyword-only parameters by position."""
    return any("positional" in decorator for decorator in signature.decorators)
