"""A described environment (JSON, contract ``compat/environment/1``) → :class:`Environment`."""

from __future__ import annotations

from compat.errors import InputError
from compat.model import (
    DRIVER_STATES,
    LAUNCHERS,
    SCHEMA,
    SOURCE_KINDS,
    SYSTEMS,
    Accelerator,
    Distribution,
    Environment,
    Source,
    Workload,
    normalized,
)
from compat.syntax.json import line_of, parse_json, read_standard_input, read_text
from compat.versions import key_of
from compat.workload.vocabulary import of_features, recognised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    T = TypeVar("T")
    Path = tuple[str | int, ...]
    _Reader = Callable[[object, Path, list[str]], object]


class _Wrong(Exception):
    """A value that violates the contract, with its path."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path


def read_described(path: str) -> tuple[Environment, tuple[str, ...]]:
    """Return the environment in a JSON file, and notes about unknown keys.

    Raises :class:`InputError` with file, line and key for a wrong type, an invalid version, or invalid JSON.
    """
    text = read_standard_input() if path == "-" else read_text(path)
    document = parse_json(text, path)
    if isinstance(document, dict) and "schema" not in document and _ENVIRONMENT.keys().isdisjoint(document):
        raise InputError(f"expected a described environment, as 'compat facts' prints: it has none of {_KEYS}", path)
    try:
        return environment_of(document)
    except _Wrong as problem:
        raise InputError(f"{_written(problem.path)}: {problem}", path, line_of(text, problem.path)) from None


def parse_described(document: object, file: str) -> tuple[Environment, tuple[str, ...]]:
    """Like :func:`read_described`, for a parsed document."""
    try:
        return environment_of(document)
    except _Wrong as problem:
        raise InputError(f"{_written(problem.path)}: {problem}", file) from None


def environment_of(document: object) -> tuple[Environment, tuple[str, ...]]:
    """Return the environment of a parsed document; ``_Wrong`` (with the path of the value) if it violates the contract."""
    notes: list[str] = []
    table = _table(document, (), notes)
    schema = table.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise _Wrong(("schema",), f"expected {SCHEMA!r}, not {schema!r}")
    values, extra = _fields(table, _ENVIRONMENT, (), notes)
    extra.pop("schema", None)
    return Environment(**values, extra=extra), tuple(notes)


def _fields(
    table: Mapping[str, object], known: Mapping[str, _Reader], path: Path, notes: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in table.items():
        reader = known.get(key)
        if reader is None:
            extra[key] = value
            if key != "schema" and key not in _PRINTED:
                notes.append(f"{_written((*path, key))}: unknown key, ignored")
        elif value is not None:
            values[key] = reader(value, (*path, key), notes)
    return values, extra


def _typed(kind: type[T], expected: str) -> Callable[[object, Path, list[str]], T]:
    def read(value: object, path: Path, notes: list[str]) -> T:
        if not isinstance(value, kind):
            raise _Wrong(path, f"expected {expected}, not {_kind(value)}")
        return value

    return read


_table: Callable[[object, Path, list[str]], dict[str, object]] = _typed(dict, "an object")
_list: Callable[[object, Path, list[str]], list[object]] = _typed(list, "a list")
_string = _typed(str, "a string")
_flag = _typed(bool, "true or false")


def _number(value: object, path: Path, notes: list[str]) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _Wrong(path, f"expected a whole number, not {value if isinstance(value, (int, float)) else _kind(value)}")
    return value


def _version(value: object, path: Path, notes: list[str]) -> str:
    text = _string(value, path, notes)
    try:
        key_of(text)
    except ValueError:
        raise _Wrong(path, f"{text!r} is not a version (PEP 440)") from None
    return text


def _capability(value: object, path: Path, notes: list[str]) -> str:
    text = _string(value, path, notes)
    major, dot, minor = text.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        raise _Wrong(path, f"{text!r} is not a compute capability such as '9.0'")
    return text


def _word(*known: str) -> _Reader:
    def read(value: object, path: Path, notes: list[str]) -> str:
        text = _string(value, path, notes)
        text = _ALIASES.get(text, text)
        if text not in known:
            notes.append(f"{_written(path)}: {text!r} is kept as is (known values: {', '.join(known)})")
        return text

    return read


_ALIASES = {"macos": "darwin", "macOS": "darwin"}


def _spelled(key: str) -> Callable[[object, Path, list[str]], str]:
    """A word of the vocabulary in any spelling. Other words are kept, for the rules of a user may know them."""

    def read(value: object, path: Path, notes: list[str]) -> str:
        text = _string(value, path, notes)
        word, near = recognised(key, text)
        if near is not None:
            notes.append(f"{_written(path)}: unknown value {text!r}; did you mean {near}?")
        return word

    return read


def _features(value: object, path: Path, notes: list[str]) -> tuple[str, ...]:
    read = _spelled("features")
    return tuple(read(each, (*path, position), notes) for position, each in enumerate(_list(value, path, notes)))


def _variables(value: object, path: Path, notes: list[str]) -> dict[str, str | None]:
    table = _table(value, path, notes)
    return {key: None if each is None else _string(each, (*path, key), notes) for key, each in table.items()}


_SOURCE_WORDS = (
    ("nightly", frozenset(("nightly", "nightlies"))),
    ("image", frozenset(("container", "docker", "image", "ngc"))),
    ("conda", frozenset(("conda", "mamba", "micromamba", "miniforge"))),
    ("vcs", frozenset(("git", "github", "commit", "main", "master"))),
    ("directory", frozenset(("source", "sdist", "built", "build", "compiled", "editable", "local"))),
    ("index", frozenset(("pip", "uv", "index", "poetry"))),
)
"""Kinds of sources and the words by which people describe them; the first that one of its words names counts."""


def _source(value: object, path: Path, notes: list[str]) -> Source:
    if isinstance(value, str):
        if value in SOURCE_KINDS:
            return Source(value)
        import re  # imported late: it takes half as long as a check

        meant = next((kind for kind, words in _SOURCE_WORDS if not words.isdisjoint(re.findall("[a-z]+", value.lower()))), None)
        if meant is not None:
            return Source(meant, {"written": value})
        notes.append(f"{_written(path)}: {value!r} is kept as is (known values: {', '.join(SOURCE_KINDS)})")
        return Source(value)
    table = dict(_table(value, path, notes))
    kind = table.pop("kind", None)
    if not isinstance(kind, str):
        raise _Wrong((*path, "kind"), "expected a string such as 'index' or 'vcs'")
    return Source(kind, table)


_BUILT_FOR_CUDA = ("torch", "torchvision", "torchaudio")
"""Distributions whose index in words (``pip cu130 index``) names their build."""


def _build(written: str) -> dict[str, str]:
    """The build that the words for an index name, as keys of a distribution: ``cuda`` or ``rocm``."""
    from compat.formats.installs.words import backend_of

    words = written.lower().replace("=", " ").replace("(", " ").replace(")", " ").split()
    return next((build for word in words if (build := backend_of(word))), {})


def _distributions(value: object, path: Path, notes: list[str]) -> tuple[Distribution, ...]:
    found = []
    for position, each in enumerate(_list(value, path, notes)):
        text = repr(each)  # the nodes of a fleet list the same releases
        if text in _read_before:
            found.append(_read_before[text])
            continue
        at, before = (*path, position), len(notes)
        table = _table(each, at, notes)
        values, extra = _fields(table, _DISTRIBUTION, at, notes)
        if not values.get("name"):
            raise _Wrong((*at, "name"), "a distribution needs a name")
        values["name"] = normalized(values["name"])
        source = values.get("source")
        if source is None or source.kind != "conda":  # conda versions need not follow PEP 440, such as 1.1.1w
            _version(values.get("version", "0"), (*at, "version"), notes)
        if values["name"] in _BUILT_FOR_CUDA and source is not None and source.kind == "index" and "written" in source.details:
            extra = {**_build(str(source.details["written"])), **extra}
        found.append(Distribution(**values, extra=extra))
        if len(notes) == before and len(_read_before) < _MOST_KEPT:
            _read_before[text] = found[-1]
    return tuple(found)


_MOST_KEPT = 20_000
_read_before: dict[str, Distribution] = {}
"""Distributions by the text of their entry, those with notes apart."""


def _accelerators(value: object, path: Path, notes: list[str]) -> tuple[Accelerator, ...]:
    found = []
    for position, each in enumerate(_list(value, path, notes)):
        at = (*path, position)
        values, extra = _fields(_table(each, at, notes), _ACCELERATOR, at, notes)
        if values.pop("more", False):
            extra["more"] = True
        found.append(Accelerator(**values, extra=extra))
    return tuple(found)


def _workload(value: object, path: Path, notes: list[str]) -> Workload:
    values, extra = _fields(_table(value, path, notes), _WORKLOAD, path, notes)
    for key, word in of_features(values.get("features") or ()).items():
        values.setdefault(key, word)
    return Workload(**values, extra=extra)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: f"the string {value!r}"[:60], bool: "true or false", type(None): "null"}
    return names.get(type(value), f"the number {value!r}")


def _written(path: Path) -> str:
    """``("distributions", 2, "version")`` → ``distributions[2].version``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.lstrip(".") or "the document"


_PRINTED = ("extras", "cuda", "rocm", "files", "node")
"""Keys of a distribution, and of the environment of a node, that ``compat facts`` prints and no rule uses."""
_DISTRIBUTION: Mapping[str, _Reader] = {
    "name": _string, "version": _string, "source": _source, "marker": _string, "specifier": _string,
}  # fmt: skip
_ACCELERATOR: Mapping[str, _Reader] = {
    "vendor": _string, "name": _string, "compute_capability": _capability, "memory_mib": _number, "gfx": _string,
    "more": _flag,
}  # fmt: skip
_WORKLOAD: Mapping[str, _Reader] = {
    "task": _spelled("task"), "trainer": _string, "model": _string, "model_type": _string, "launcher": _word(*LAUNCHERS),
    "processes": _number, "nodes": _number, "rank": _number, "batch_size": _number, "precision": _spelled("precision"),
    "quantization": _spelled("quantization"),
    "features": _features, "features_absent": _features, "features_complete": _flag,
}  # fmt: skip
_ENVIRONMENT: Mapping[str, _Reader] = {
    "python": _version, "os": _word(*SYSTEMS), "machine": _string, "platform": _string, "glibc": _version,
    "distributions": _distributions, "distributions_complete": _flag, "accelerators": _accelerators, "driver": _version,
    "driver_state": _word(*DRIVER_STATES), "cuda_toolkit": _version, "variables": _variables,
    "workload": _workload,
}  # fmt: skip

_KEYS = f"{', '.join(list(_ENVIRONMENT)[:-1])} and {list(_ENVIRONMENT)[-1]}"
