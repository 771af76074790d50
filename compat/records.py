"""Frozen records, cached functions and methods: the equivalents of frozen dataclasses and of :func:`functools.cache`.

Importing :mod:`dataclasses` pulls in :mod:`inspect`, :mod:`ast` and :mod:`re`, and takes about as long as all of
``uv pip check``; ``compat check`` must not be slower than that (``make bench``). :mod:`functools` takes an eighth of it. Type
checkers see the originals.
"""

from __future__ import annotations

__all__ = ["cached", "create_unchecked", "kept", "of_values", "record", "replace", "values_of"]


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass as record
    from dataclasses import replace
    from functools import cache as cached
    from typing import Any, TypeVar

    T = TypeVar("T")
    Method = TypeVar("Method", bound=Callable[..., Any])

    def kept(method: Method) -> Method: ...

else:

    class _Frozen:
        """The methods every record gets; ``_names`` and ``_defaults`` are set by the decorator."""

        def __init__(self, *args, **values):
            # a lock file creates thousands of records: every step here is one call into C
            cls, filled = type(self), self.__dict__
            filled.update(cls._defaults)
            if args:
                if len(args) > len(cls._names) or (values and not values.keys().isdisjoint(cls._names[: len(args)])):
                    raise TypeError(f"{cls.__name__}: too many values, or a field given twice")
                filled.update(zip(cls._names, args))
            filled.update(values)
            if filled.keys() != cls._known:
                raise TypeError(f"{cls.__name__}: missing or unknown fields {', '.join(sorted(filled.keys() ^ cls._known))}")

        def __setattr__(self, name, value):
            raise AttributeError(f"{type(self).__name__} is frozen: cannot set {name}")

        def __delattr__(self, name):
            raise AttributeError(f"{type(self).__name__} is frozen: cannot delete {name}")

        def __eq__(self, other):
            return self.__dict__ == other.__dict__ if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self):
            return hash((type(self), *values_of(self)))

        def __repr__(self):
            fields = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._names)
            return f"{type(self).__name__}({fields})"

    _METHODS = ("__init__", "__setattr__", "__delattr__", "__eq__", "__hash__", "__repr__")

    def record(*, frozen: bool):
        """Class decorator equivalent to ``dataclass(frozen=True)``: fields are the annotated names, in order.

        Defaults must be immutable: they are shared by all instances.
        """
        if not frozen:
            raise TypeError("records are frozen")

        def decorate(cls):
            cls._names = cls.__match_args__ = tuple(cls.__annotations__)
            cls._known = frozenset(cls._names)
            cls._defaults = {name: cls.__dict__[name] for name in cls._names if name in cls.__dict__}
            for method in _METHODS:
                setattr(cls, method, _Frozen.__dict__[method])
            return cls

        return decorate

    def replace(instance, /, **changes):
        """A copy of a record with some fields changed, like :func:`dataclasses.replace`."""
        cls = type(instance)
        if not hasattr(cls, "_known"):  # a real dataclass
            return cls(**{**instance.__dict__, **changes})
        if not changes.keys() <= cls._known:
            raise TypeError(f"{cls.__name__}: unknown fields {', '.join(sorted(changes.keys() - cls._known))}")
        copy = cls.__new__(cls)
        copy.__dict__.update(instance.__dict__, **changes)
        return copy

    def cached(function):
        """Decorator: keep the result for each combination of positional arguments, which must be hashable."""
        results = {}

        def call(*args):
            if args not in results:
                results[args] = function(*args)
            return results[args]

        return call

    def kept(method):
        """Decorator: keep the result of a method as long as its instance, for each combination of positional arguments."""
        name = f"_kept_by_{method.__name__}"

        def call(self, *args):
            results = getattr(self, name, None)  # asking for its __dict__ would make all its attributes slower
            if results is None:
                results = {}
                setattr(self, name, results)
            if args not in results:
                results[args] = method(self, *args)
            return results[args]

        call.__doc__ = method.__doc__
        return call


def values_of(instance: Any) -> tuple[Any, ...]:
    """A record's values, in the order of its fields."""
    return tuple(getattr(instance, name) for name in type(instance).__annotations__)


def create_unchecked(cls: type[T], values: dict[str, Any]) -> T:
    """Create a record without validation, for code that creates thousands; ``values`` has every field without a default."""
    instance = cls.__new__(cls)
    instance.__dict__.update(cls._defaults)  # type: ignore[attr-defined]
    instance.__dict__.update(values)
    return instance


def of_values(cls: type[T], values: Iterable[Any]) -> T:
    """The opposite of :func:`values_of`, without validation: a check reads hundreds of conditions of rules."""
    instance = cls.__new__(cls)
    instance.__dict__.update(zip(cls.__annotations__, values))
    return instance
