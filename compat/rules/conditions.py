"""Parse the conditions of a rule from TOML tables into plain tuples (*atoms*).

An atom is a tuple whose first element is its form; ``compat.rules.logic`` evaluates it:

========================================  ====================================================================
``("word", path, values)``                the fact at ``path`` is one of the words
``("range", path, ranges)``               the fact, a version or a number, lies in the ranges
``("feature", name)``                     the workload has that feature
``("variable", name, how, values)``       an environment variable is set, unset, or has or contains a value
``("accelerators", count, device)``       the number of visible devices that match lies in ``count``
``("package", name, how, ranges)``        a distribution is ``in`` the ranges, ``present`` or ``absent``
``("source", name, kinds)``               the distribution was installed from one of these kinds of source
``("code", name, detector, commits, repository)``  the installed code is one of these commits or contains the text
``("any", atoms)``                        at least one of the atoms holds
========================================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from compat.model import LAUNCHERS, SYSTEMS, normalized
from compat.versions import ranges_of, written

if TYPE_CHECKING:
    Atom: TypeAlias = tuple[Any, ...]


WORDS = {
    "os": "os",
    "machine": "machine",
    "platform": "platform",
    "driver_state": "driver_state",
    "task": "workload.task",
    "trainer": "workload.trainer",
    "model": "workload.model",
    "launcher": "workload.launcher",
    "precision": "workload.precision",
    "quantization": "workload.quantization",
}
RANGES = {
    "python": "python",
    "glibc": "glibc",
    "driver": "driver",
    "cuda_toolkit": "cuda_toolkit",
    "processes": "workload.processes",
    "batch_size": "workload.batch_size",
}
_VOCABULARY = {"launcher": LAUNCHERS, "os": SYSTEMS}
_DEVICE_KEYS = ("count", "vendor", "capability", "name", "gfx", "memory_mib")
_CODE_KEYS = ("detector", "file", "text", "commits", "repository")


def atoms_of(table: Mapping[str, object]) -> tuple[Atom, ...]:
    """Return the atoms of a ``[rule.when]`` or ``[[rule.unless]]`` table; raises ``ValueError`` if the table is invalid."""
    if not table:
        raise ValueError("a table of conditions is empty")
    found: list[Atom] = []
    for key, value in table.items():
        if key in WORDS:
            found.append(("word", WORDS[key], _vocabulary(key, words(key, value))))
        elif key in RANGES:
            found.append(("range", RANGES[key], _ranges(key, value)))
        elif key in _FORMS:
            found.extend(_FORMS[key](value))
        else:
            raise ValueError(f"unknown condition {key!r} (known: {', '.join(sorted({*WORDS, *RANGES, *_FORMS}))})")
    return tuple(found)


def package_atoms(value: object) -> list[Atom]:
    """Parse ``{trl = ">=0.14.0,<0.16.0", vllm = "!", torch = "*"}``: in range, absent, present in any version."""
    found: list[Atom] = []
    for name, specifier in table_of("packages", value).items():
        if not isinstance(specifier, str):
            raise ValueError(f"packages.{name}: expected a specifier set, '*' or '!', not {specifier!r}")
        if specifier in ("!", "*"):
            found.append(("package", normalized(name), "absent" if specifier == "!" else "present", ()))
        else:
            found.append(("package", normalized(name), "in", _ranges(f"packages.{name}", specifier)))
    return found


def words(key: str, value: object) -> tuple[str, ...]:
    """Check that ``value`` is a non-empty list of strings and return it as a tuple; raises ``ValueError`` otherwise."""
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise ValueError(f"{key}: expected a list of words, not {value!r}")
    return tuple(value)


def table_of(key: str, value: Any) -> dict[str, Any]:
    """Check that ``value`` is a non-empty table and return it; raises ``ValueError`` otherwise."""
    if not isinstance(value, dict) or not value:
        raise ValueError(f"{key}: expected a table, not {value!r}")
    return value


def known_keys(key: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
    """Raise ``ValueError`` if a table has an unknown key."""
    for name in table:
        if name not in known:
            raise ValueError(f"{key}: unknown key {name!r} (known: {', '.join(known)})")


def _vocabulary(key: str, values: tuple[str, ...]) -> tuple[str, ...]:
    known = _VOCABULARY.get(key)
    for value in values:
        if known and value not in known:
            raise ValueError(f"{key}: {value!r} is not one of {', '.join(known)}")
    return tuple(value.lower() for value in values)


def _ranges(key: str, value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(f"{key}: expected a range such as '>=2', not {value!r}")
    try:
        ranges = ranges_of(value)
    except ValueError as problem:
        raise ValueError(f"{key}: {problem}") from None
    if not ranges:
        raise ValueError(f"{key}: no version matches {value!r}")
    return ranges


def _features(value: object) -> list[Atom]:
    return [("feature", name) for name in words("features", value)]


def _any_feature(value: object) -> list[Atom]:
    return [("any", tuple(("feature", name) for name in words("any_feature", value)))]


def _variables(value: object) -> list[Atom]:
    found: list[Atom] = []
    for name, wanted in table_of("variables", value).items():
        if wanted in ("set", "unset"):
            found.append(("variable", name, wanted, ()))
        elif isinstance(wanted, dict):
            known_keys(f"variables.{name}", wanted, ("contains",))
            texts = wanted.get("contains")
            texts = texts if isinstance(texts, list) else [texts]
            found.append(("variable", name, "contains", words(f"variables.{name}", texts)))
        else:
            found.append(("variable", name, "in", words(f"variables.{name}", wanted)))
    return found


def _accelerators(value: object) -> list[Atom]:
    table = table_of("accelerators", value)
    known_keys("accelerators", table, _DEVICE_KEYS)
    device = (
        words("accelerators.vendor", table["vendor"]) if "vendor" in table else None,
        _ranges("accelerators.capability", table["capability"]) if "capability" in table else None,
        words("accelerators.name", table["name"]) if "name" in table else None,
        words("accelerators.gfx", table["gfx"]) if "gfx" in table else None,
        _ranges("accelerators.memory_mib", table["memory_mib"]) if "memory_mib" in table else None,
    )
    return [("accelerators", _ranges("accelerators.count", table.get("count", ">=1")), device)]


def _source(value: object) -> list[Atom]:
    return [("source", normalized(name), words(f"source.{name}", kinds)) for name, kinds in table_of("source", value).items()]


def _code(value: object) -> list[Atom]:
    return [code_atom(name, spec) for name, spec in table_of("code", value).items()]


def code_atom(name: str, spec: object) -> Atom:
    """Return the atom of one ``code`` condition; its ``file`` and ``text`` are read by :func:`detectors_of`."""
    table = table_of(f"code.{name}", spec)
    known_keys(f"code.{name}", table, _CODE_KEYS)
    for key in ("detector", "file", "text", "repository"):
        if not isinstance(table.get(key), str) or not table[key]:
            raise ValueError(f"code.{name}: {key} is missing")
    if table["file"].startswith(("/", "\\")) or ".." in table["file"].split("/"):
        raise ValueError(f"code.{name}: file must lie inside the installed package, not {table['file']!r}")
    commits = words(f"code.{name}.commits", table.get("commits"))
    for commit in commits:
        if len(commit) < 10 or set(commit) - set("0123456789abcdef"):
            raise ValueError(f"code.{name}: {commit!r} is not a commit (at least 10 lower-case hex digits)")
    return "code", normalized(name), table["detector"], commits, table["repository"].lower()


def detectors_of(table: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return (package, detector, file, text) for each ``code`` condition in a table of conditions."""
    return [(normalized(name), spec["detector"], spec["file"], spec["text"]) for name, spec in table.get("code", {}).items()]


_FORMS: dict[str, Callable[[object], list[Atom]]] = {
    "packages": package_atoms,
    "features": _features,
    "any_feature": _any_feature,
    "variables": _variables,
    "accelerators": _accelerators,
    "source": _source,
    "code": _code,
}


# --- Conditions as text.


def condition(atom: Atom) -> str:
    """Return one condition as text."""
    form = atom[0]
    if form == "package":
        return f"{atom[1]} {written(atom[3])}" if atom[2] == "in" else f"{atom[1]} {atom[2]}"
    if form == "word":
        return f"{_fact(atom[1])} is {' or '.join(atom[2])}"
    if form == "range":
        return f"{_fact(atom[1])} {written(atom[2])}"
    if form == "feature":
        return str(atom[1])
    if form == "variable":
        return f"{atom[1]} {atom[2]} {', '.join(atom[3])}".rstrip()
    if form == "source":
        return f"{atom[1]} installed from {' or '.join(atom[2])}"
    if form == "code":
        return f"{atom[1]} at one of {len(atom[3])} commits of {atom[4]}, or its files say so ({atom[2]})"
    if form == "any":
        return " or ".join(condition(each) for each in atom[1])
    return _devices(atom)


def _devices(atom: Atom) -> str:
    _, count, (vendors, capability, names, gfx, memory) = atom
    of = [
        vendors and " or ".join(vendors), names and f"named {' or '.join(names)}", gfx and " or ".join(gfx),
        capability and f"of compute capability {written(capability)}", memory and f"with {written(memory)} MiB",
    ]  # fmt: skip
    return " ".join(["accelerators", written(count), *(part for part in of if part)])


def _fact(path: str) -> str:
    return path.removeprefix("workload.").replace("_", " ")
