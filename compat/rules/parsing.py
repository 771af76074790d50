"""Parse the conditions of a rule from the tables of a rule file; everything unknown is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compat.model import LAUNCHERS, SYSTEMS, normalized
from compat.rules.rule import (
    AnyOf,
    Condition,
    HasCode,
    HasDevices,
    HasFeature,
    HasPackage,
    HasVariable,
    InRange,
    InstalledFrom,
    IsOneOf,
)
from compat.versions import Ranges, ranges_of

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


def conditions_of(table: Mapping[str, object]) -> tuple[Condition, ...]:
    """Return the conditions of a ``[rule.when]`` or ``[[rule.unless]]`` table; raises ``ValueError`` if it is invalid."""
    if not table:
        raise ValueError("a table of conditions is empty")
    found: list[Condition] = []
    for key, value in table.items():
        if key in WORDS:
            found.append(IsOneOf(WORDS[key], _vocabulary(key, words(key, value))))
        elif key in RANGES:
            found.append(InRange(RANGES[key], _ranges(key, value)))
        elif key in _FORMS:
            found.extend(_FORMS[key](value))
        else:
            raise ValueError(f"unknown condition {key!r} (known: {', '.join(sorted({*WORDS, *RANGES, *_FORMS}))})")
    return tuple(found)


def package_conditions(value: object) -> list[HasPackage]:
    """Parse ``{trl = ">=0.14.0,<0.16.0", vllm = "!", torch = "*"}``: in range, absent, present in any version."""
    found: list[HasPackage] = []
    for name, specifier in table_of("packages", value).items():
        if not isinstance(specifier, str):
            raise ValueError(f"packages.{name}: expected a specifier set, '*' or '!', not {specifier!r}")
        if specifier in ("!", "*"):
            found.append(HasPackage(normalized(name), "absent" if specifier == "!" else "present"))
        else:
            found.append(HasPackage(normalized(name), "in", _ranges(f"packages.{name}", specifier)))
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


def _ranges(key: str, value: object) -> Ranges:
    if not isinstance(value, str):
        raise ValueError(f"{key}: expected a range such as '>=2', not {value!r}")
    try:
        ranges = ranges_of(value)
    except ValueError as problem:
        raise ValueError(f"{key}: {problem}") from None
    if not ranges:
        raise ValueError(f"{key}: no version matches {value!r}")
    return ranges


def _features(value: object) -> list[Condition]:
    return [HasFeature(name) for name in words("features", value)]


def _features_absent(value: object) -> list[Condition]:
    return [HasFeature(name, on=False) for name in words("features_absent", value)]


def _any_feature(value: object) -> list[Condition]:
    return [AnyOf(tuple(HasFeature(name) for name in words("any_feature", value)))]


def _any(value: object) -> list[Condition]:
    """Parse ``{quantization = ["4bit"], features = ["bitsandbytes-optimizer"]}``: one of these conditions holds."""
    found = conditions_of(table_of("any", value))
    return [AnyOf(tuple(part for each in found for part in (each.conditions if isinstance(each, AnyOf) else (each,))))]


def _variables(value: object) -> list[Condition]:
    found: list[Condition] = []
    for name, wanted in table_of("variables", value).items():
        if wanted in ("set", "unset"):
            found.append(HasVariable(name, wanted))
        elif isinstance(wanted, dict):
            known_keys(f"variables.{name}", wanted, ("contains",))
            texts = wanted.get("contains")
            texts = texts if isinstance(texts, list) else [texts]
            found.append(HasVariable(name, "contains", words(f"variables.{name}", texts)))
        else:
            found.append(HasVariable(name, "in", words(f"variables.{name}", wanted)))
    return found


def _accelerators(value: object) -> list[Condition]:
    table = table_of("accelerators", value)
    known_keys("accelerators", table, _DEVICE_KEYS)
    return [
        HasDevices(
            count=_ranges("accelerators.count", table.get("count", ">=1")),
            vendors=words("accelerators.vendor", table["vendor"]) if "vendor" in table else None,
            capability=_ranges("accelerators.capability", table["capability"]) if "capability" in table else None,
            names=words("accelerators.name", table["name"]) if "name" in table else None,
            gfx=words("accelerators.gfx", table["gfx"]) if "gfx" in table else None,
            memory_mib=_ranges("accelerators.memory_mib", table["memory_mib"]) if "memory_mib" in table else None,
        )
    ]


def _source(value: object) -> list[Condition]:
    table = table_of("source", value)
    return [InstalledFrom(normalized(name), words(f"source.{name}", kinds)) for name, kinds in table.items()]


def _code(value: object) -> list[Condition]:
    return [_code_condition(name, spec) for name, spec in table_of("code", value).items()]


def _code_condition(name: str, spec: object) -> HasCode:
    """Return one ``code`` condition; its ``file`` and ``text`` are read by :func:`detectors_of`."""
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
    return HasCode(normalized(name), table["detector"], commits, table["repository"].lower())


def detectors_of(table: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return (package, detector, file, text) for each ``code`` condition in a table of conditions."""
    return [(normalized(name), spec["detector"], spec["file"], spec["text"]) for name, spec in table.get("code", {}).items()]


_FORMS: dict[str, Callable[[object], Sequence[Condition]]] = {
    "packages": package_conditions,
    "features": _features,
    "any_feature": _any_feature,
    "any": _any,
    "features_absent": _features_absent,
    "variables": _variables,
    "accelerators": _accelerators,
    "source": _source,
    "code": _code,
}
