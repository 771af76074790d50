"""Load rules from TOML files. Strict: anything unknown is an error that names the file and the rule."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Mapping
from typing import Any

from compat.errors import InputError
from compat.model import CONFIDENCES, EFFECTS, FIX_KINDS, SCHEMA, SEVERITIES
from compat.records import values_of
from compat.rules.parsing import conditions_of, detectors_of, known_keys, package_conditions, table_of, words
from compat.rules.rule import RELATIONS, Example, FixTemplate, Rule, Signature
from compat.syntax.toml import parse_toml
from compat.versions import is_version, key_of, ranges_of

_KEYS = (
    "id", "title", "severity", "effect", "confidence", "packages", "errors", "evidence", "why",
    "when", "unless", "presume", "presumed_severity", "fix", "example", "source",
)  # fmt: skip
_REQUIRED = ("id", "title", "severity", "effect", "confidence", "evidence", "why", "fix", "example")
_PRESUMABLE = ("task", "trainer", "model", "launcher", "processes", "batch_size", "precision", "quantization",
               "features", "features_absent", "absent", "variables_unset")  # fmt: skip
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")


def load_folder(folder: str) -> tuple[Rule, ...]:
    """Load all rules from the ``*.toml`` files in a folder, by file and position; ids must be unique in the folder."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".toml"))
    except OSError as problem:
        raise InputError(f"cannot read the folder: {problem.strerror}", folder) from None
    rules: list[Rule] = []
    for name in names:
        rules.extend(load_file(os.path.join(folder, name)))
    return unique(rules)


def load_assessed(folder: str) -> dict[str, str]:
    """Return the newest assessed release of each package; ``assessed.toml`` takes precedence over ``facts/releases.csv``."""
    matrix = os.path.dirname(folder)
    path = os.path.join(matrix, "assessed.toml")
    newest = {**_newest_followed(os.path.join(matrix, "facts", "releases.csv")), **parse_toml(path)[1].get("newest", {})}
    for name, version in newest.items():
        try:
            key_of(version)
        except (ValueError, AttributeError, TypeError):
            raise InputError(f"newest.{name}: {version!r} is not a version (PEP 440)", path) from None
    return dict(newest)


def _newest_followed(path: str) -> dict[str, str]:
    """The newest final release of each package in the table of releases; empty if there is no table."""
    import csv

    newest: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                name, version = row["package"], row["version"]
                final = is_version(version) and key_of(version)[2:] == key_of("1")[2:]
                if final and (name not in newest or key_of(version) > key_of(newest[name])):
                    newest[name] = version
    except FileNotFoundError:
        return {}
    return newest


def unique(rules: list[Rule]) -> tuple[Rule, ...]:
    """Return the rules as a tuple; raises :class:`InputError` if two of them have the same id."""
    seen: dict[str, Rule] = {}
    for rule in rules:
        if rule.id in seen:
            raise InputError(f"rule {rule.id}: the id is already used in {seen[rule.id].file}", rule.file, rule.line)
        seen[rule.id] = rule
    return tuple(rules)


def load_file(path: str) -> tuple[Rule, ...]:
    """Load the rules from one file; raises :class:`InputError` with file, line and rule if it is invalid."""
    text, document = parse_toml(path)
    for key in document:
        if key != "rule":
            raise InputError(f"unknown key {key!r}: a rule file only contains [[rule]] tables", path, _line_of(text, key))
    tables = document.get("rule")
    if not isinstance(tables, list) or not tables:
        raise InputError("expected at least one [[rule]] table", path)
    starts = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == "[[rule]]"]
    rules = []
    for position, table in enumerate(tables):
        line = starts[position] if position < len(starts) else 1
        name = table.get("id") if isinstance(table, dict) else None
        try:
            rules.append(rule_of(table, os.path.basename(path), line))
        except ValueError as problem:
            raise InputError(f"rule {name or f'number {position + 1}'}: {problem}", path, line) from None
    return tuple(rules)


def rule_of(table: Any, file: str = "", line: int = 0) -> Rule:
    """Convert a ``[[rule]]`` table to a rule; raises ``ValueError`` if the table is invalid."""
    known_keys("rule", table_of("rule", table), _KEYS)
    for key in _REQUIRED:
        if key not in table:
            raise ValueError(f"{key} is missing")
    if not isinstance(table["id"], str) or not _ID.match(table["id"]):
        raise ValueError(f"id {table['id']!r} is not lower-case words joined by '-'")
    for key, known in (("severity", SEVERITIES), ("effect", EFFECTS), ("confidence", CONFIDENCES)):
        if table[key] not in known:
            raise ValueError(f"{key} {table[key]!r} is not one of {', '.join(known)}")
    evidence = words("evidence", table["evidence"])
    for address in evidence:
        if not address.startswith("https://"):
            raise ValueError(f"evidence {address!r} is not an https address")
    packages = tuple(package_conditions(table["packages"])) if "packages" in table else ()
    when_table = table.get("when", {})
    unless_tables = _tables("unless", table.get("unless", []))
    if not packages and not when_table:
        raise ValueError("a rule needs packages or [rule.when]")
    examples = [values_of(example_of(each)) for each in _tables("example", table["example"])]
    rule = Rule(
        id=table["id"], title=_text("title", table["title"]), severity=table["severity"], effect=table["effect"],
        confidence=table["confidence"], why=_text("why", table["why"]), evidence=evidence, packages=packages,
        when=conditions_of(when_table) if when_table else (), unless=tuple(conditions_of(each) for each in unless_tables),
        presume=_presume(table.get("presume", {})), presumed_severity=_presumed_severity(table),
        errors=tuple(map(_signature, _tables("errors", table.get("errors", [])))),
        fixes=tuple(map(_fix, _tables("fix", table["fix"]))),
        packed_examples=zlib.compress(json.dumps(examples, default=str).encode()),
        detectors=tuple(d for each in (when_table, *unless_tables) for d in detectors_of(each)), file=file, line=line,
    )  # fmt: skip
    if "source" in table:
        _text("source", table["source"])  # why the rule stands where mined source says otherwise; read by the audit
    verdicts = {example.verdict for example in rule.examples}
    if not {"hit", "clear"} <= verdicts:
        raise ValueError("at least one 'hit' and one 'clear' example are needed")
    if not rule.fixes:
        raise ValueError("at least one [[rule.fix]] is needed")
    return rule


def _presume(value: object) -> tuple[tuple[str, object], ...]:
    if not isinstance(value, dict):
        raise ValueError(f"presume: expected a table, not {value!r}")
    known_keys("presume", value, _PRESUMABLE)
    found: list[tuple[str, object]] = []
    for key, given in value.items():
        if key in ("features", "features_absent", "absent", "variables_unset"):
            found.append((key, words(f"presume.{key}", given)))
        elif isinstance(given, int if key in ("processes", "batch_size") else str) and not isinstance(given, bool):
            found.append((key, given))
        else:
            raise ValueError(f"presume.{key}: {given!r} has the wrong type")
    return tuple(found)


def _presumed_severity(table: Mapping[str, object]) -> str:
    given = table.get("presumed_severity", "")
    if given and (given not in SEVERITIES or given == table["severity"] or not table.get("presume")):
        raise ValueError("presumed_severity: expected another severity than that of the rule, and [rule.presume]")
    return str(given)


def _signature(table: Mapping[str, object]) -> Signature:
    known_keys("errors", table, ("exception", "message", "frames", "relation"))
    message = _text("errors.message", table.get("message"))
    frames = words("errors.frames", table["frames"]) if "frames" in table else ()
    exception = table.get("exception")
    if exception is not None and not (isinstance(exception, str) and exception.replace(".", "").isidentifier()):
        raise ValueError(f"errors.exception: expected a class name, not {exception!r}")
    for pattern in (message, *frames):
        try:
            re.compile(pattern)
        except re.error as problem:
            raise ValueError(f"errors: {pattern!r} is not a regular expression ({problem})") from None
    relation = table.get("relation", "")
    if relation not in RELATIONS or (relation and {"a", "b"} - set(re.compile(message).groupindex)):
        raise ValueError(
            f"errors.relation: {relation!r} is not one of {', '.join(filter(None, RELATIONS))} between groups a and b"
        )
    return Signature(exception=exception, message=message, frames=frames, relation=relation)


def _fix(table: Mapping[str, Any]) -> FixTemplate:
    kinds = [key for key in table if key in FIX_KINDS]
    known_keys("fix", table, (*FIX_KINDS, "text", "command", "when", "version", "along"))
    if len(kinds) != 1:
        raise ValueError(f"fix: expected exactly one of {', '.join(FIX_KINDS)}")
    kind = kinds[0]
    value = table[kind]
    packages: tuple[tuple[str, str], ...] = ()
    if kind in ("upgrade", "downgrade", "pin"):
        packages, value = _moved(f"fix.{kind}", value), ""
    elif kind == "source-install":
        packages, value = tuple((name, _text(f"fix.{kind}", at)) for name, at in table_of(f"fix.{kind}", value).items()), ""
    elif kind == "uninstall":
        packages, value = tuple((name, "") for name in words("fix.uninstall", value)), ""
    return FixTemplate(
        kind=kind, packages=packages, value=_text(f"fix.{kind}", value) if not packages else "",
        text=table.get("text", ""), command=table.get("command", ""), version=_version(kind, table.get("version", "")),
        when=conditions_of(table["when"]) if "when" in table else (),
        along=_moved("fix.along", table["along"]) if "along" in table else (),
    )  # fmt: skip


def _moved(key: str, value: Any) -> tuple[tuple[str, str], ...]:
    """The packages of a fix, with the specifiers they are changed to."""
    for name, specifier in table_of(key, value).items():
        if not isinstance(specifier, str) or not ranges_of(specifier):
            raise ValueError(f"{key}.{name}: no version matches {specifier!r}")
    return tuple(value.items())


def _version(kind: str, value: object) -> str:
    """The version that a commit declares; only allowed for a source install."""
    if value != "" and (kind != "source-install" or not isinstance(value, str) or not is_version(value)):
        raise ValueError(f"fix.version: expected the version of the commit of a source-install, not {value!r}")
    return str(value)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key}: expected a string, not {value!r}")
    return " ".join(value.split())


def _tables(key: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError(f"{key}: expected [[rule.{key}]] tables")
    return value


def _line_of(text: str, word: str) -> int | None:
    return next((number for number, line in enumerate(text.splitlines(), 1) if word in line), None)


# --- Examples of a rule: convert a short table in the rule file to a described environment.
#
# ``{ packages = { trl = "0.17.0" }, gpus = "A100:2", launcher = "python" }`` lists all installed distributions unless
# ``complete = false``; everything else is unknown, as in a described environment.


_MACHINE = (
    "python",
    "os",
    "machine",
    "platform",
    "glibc",
    "driver",
    "driver_state",
    "cuda_toolkit",
    "variables",
    "accelerators",
)
_WORKLOAD = ("task", "trainer", "model", "launcher", "processes", "batch_size", "precision", "quantization",
             "features", "features_absent", "features_complete")  # fmt: skip
VERDICTS = ("hit", "clear", "possible")


def example_of(table: Mapping[str, object]) -> Example:
    """Convert a ``[[rule.example]]`` table to an example; raises ``ValueError`` if the table is invalid."""
    known_keys("example", table, VERDICTS)
    if len(table) != 1:
        raise ValueError("example: expected exactly one of hit, clear, possible")
    (verdict, described), *_ = table.items()
    return Example(verdict=verdict, environment=_environment(table_of("example", described)))


def _environment(table: Mapping[str, Any]) -> dict[str, Any]:
    known_keys("example", table, ("packages", "sources", "gpus", "complete", *_MACHINE, *_WORKLOAD))
    found: dict[str, object] = {"schema": SCHEMA}
    sources = table.get("sources", {})
    found["distributions"] = [
        {"name": name, "version": version, **({"source": sources[name]} if name in sources else {})}
        for name, version in table.get("packages", {}).items()
    ]
    found["distributions_complete"] = bool(table.get("complete", True))
    if "gpus" in table:
        found["accelerators"] = accelerators_of(table["gpus"])
    found.update({key: table[key] for key in _MACHINE if key in table})
    workload = {key: table[key] for key in _WORKLOAD if key in table}
    if workload:
        found["workload"] = workload
    return found


def accelerators_of(text: str) -> list[dict[str, object]]:
    """Parse ``"A100:2"`` or ``"A100:2,T4"`` into a list of accelerators by name; ``"none"`` gives an empty list."""
    if text == "none":
        return []
    found: list[dict[str, object]] = []
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        if not name.strip() or (count and not count.isdecimal()):
            raise ValueError(f"gpus: expected NAME or NAME:COUNT, not {part.strip()!r}")
        found += [{"name": name.strip()}] * int(count or 1)
    return found
