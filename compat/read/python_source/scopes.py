"""What a name stands for at a place in a module: imports, local classes, objects made from classes."""

from __future__ import annotations

UNKNOWN = ""


class Scope:
    """One namespace. ``names`` to dotted places (:data:`UNKNOWN` for a variable), ``types`` to the class of an object."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names: dict[str, str] = {}
        self.types: dict[str, tuple[str, str]] = {}
        self.tables: dict[str, list[tuple[str, int]]] = {}
        """Keys of local dictionaries, with the flags under which each is set."""


class Scopes:
    """The namespaces around a place, the module's first."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.all = [Scope("module")]

    @property
    def here(self) -> Scope:
        return self.all[-1]

    def bind(self, name: str, place: str = UNKNOWN, *, kind: str | None = None, of: str = "") -> None:
        """A name gets a meaning here; ``kind`` says it is an object ``made`` from or ``typed`` as class ``of``."""
        here = self.here
        here.names[name] = place
        here.tables.pop(name, None)
        if kind is not None:
            here.types[name] = (kind, of)
        else:
            here.types.pop(name, None)

    def place(self, dotted: str) -> str | None:
        """A chain of names as an absolute one; ``None`` where it starts at a variable or at nothing known."""
        first, _, rest = dotted.partition(".")
        found = self._scope_of(first)
        place = found.names[first] if found is not None else UNKNOWN
        if not place:
            return None
        return f"{place}.{rest}" if rest else place

    def type_of(self, name: str) -> tuple[str, str] | None:
        """The class of the object that a variable holds, and how that is known."""
        found = self._scope_of(name)
        return found.types.get(name) if found is not None else None

    def keys_of(self, name: str) -> list[tuple[str, int]] | None:
        found = self._scope_of(name)
        return found.tables.get(name) if found is not None else None

    def _scope_of(self, name: str) -> Scope | None:
        """Names of a class body are seen in that body alone."""
        for scope in reversed(self.all):
            if name in scope.names and (scope.kind != "class" or scope is self.all[-1]):
                return scope
        return None
