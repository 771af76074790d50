"""``compat rules``: list the matrix, show a rule, check rule files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from compat.api.commands import Options
from compat.errors import InputError
from compat.output.stream import emit, emit_json
from compat.output.terminal import wrap_text
from compat.rules.compiled import EVIDENCE_FIELDS, BoundEvidence, evidence_of, open_matrix, source_folder
from compat.rules.rule import Example, FixTemplate, Rule, in_words


def run(options: Options) -> int:
    """``list`` (the default), ``show ID…`` or ``lint [FILE…]``."""
    action, *operands = options.operands or ("list",)
    extra = options.values.get("rules", ())
    if action == "list":
        if operands:
            raise InputError(f"unexpected argument {operands[0]!r} for 'compat rules list'")
        return _list(extra, options)
    if action == "show":
        return _show(extra, operands, options)
    if action == "lint":
        return _lint((*extra, *operands))
    raise InputError(f"expected 'compat rules list', 'show' or 'lint', not {action!r}")


def _list(extra: Sequence[str], options: Options) -> int:
    rules = open_matrix(extra).rules()
    if options.one("format") == "json":
        emit_json([as_json(rule) for rule in rules])
        return 0
    lines = []
    for rule in rules:
        lines += [f"{rule.id} ({rule.severity}, {rule.confidence})", *wrap_text(rule.title, "    ", "    ")]
    emit("\n".join([*lines, "", f"{len(rules)} rules; 'compat rules show ID' shows why, evidence, fixes and examples"]))
    return 0


_MOST_LIKE = 3


def _like(name: str, known: Iterable[str]) -> str:
    """What to say after an unknown id: the closest one by spelling, those that share two of its words, or how to find one."""
    import difflib

    ids = list(known)
    near = difflib.get_close_matches(name, ids, 1, 0.8)
    if not near:
        words = set(name.lower().replace("_", "-").split("-"))
        sharing = [each for each in ids if len(words & set(each.split("-"))) > 1]
        near = sorted(sharing, key=lambda each: -len(words & set(each.split("-"))))[:_MOST_LIKE]
    near = near or difflib.get_close_matches(name, ids, 1)
    first = name.lower().partition("-")[0]
    count = sum(each.startswith(f"{first}-") for each in ids)
    about = f" ({count} begin with {first}-)" if count else ""
    return f"; did you mean {' or '.join(near)}?" if near else f"; 'compat rules list' prints all{about}"


def _show(extra: Sequence[str], names: Sequence[str], options: Options) -> int:
    if not names:
        raise InputError("expected a rule id ('compat rules list' prints them)")
    rules = {rule.id: rule for rule in open_matrix(extra).rules()}
    found = []
    for name in names:
        rule = rules.get(name)
        if rule is None:
            raise InputError(f"unknown rule {name!r}{_like(name, rules)}")
        found.append(rule)
    if options.one("format") == "json":
        emit_json([as_json(rule, evidence_of(rule.id)) for rule in found])
    else:
        emit("\n\n".join(shown(rule, evidence_of(rule.id)) for rule in found))
    return 0


def _lint(files: Sequence[str]) -> int:
    """Check the given files together with the matrix; returns 1 if a rule is wrong, 2 if a file is invalid.

    A file of the matrix itself takes the place of its compiled rules, so that a rule is checked before it is compiled.
    """
    from compat.checks.lint import problems_of
    from compat.rules.loader import load_file, unique

    mine = [rule for file in files for rule in load_file(file)]
    folder = source_folder()
    own = {os.path.basename(file) for file in files if folder and os.path.realpath(os.path.dirname(file)) == folder}
    rules = unique([*(rule for rule in open_matrix().rules() if rule.file not in own), *mine])
    problems = problems_of(mine or rules, among=rules)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        count = len(mine or rules)
        emit(f"{count} rule{'s' if count != 1 else ''} checked: all examples hold, and no fix triggers another rule")
    return int(bool(problems))


def shown(rule: Rule, bounds: Sequence[BoundEvidence] = ()) -> str:
    """Render one rule in full; ``bounds`` is the evidence for its ranges."""
    lines = [rule.id, *wrap_text(rule.title, "  ", "  "), "", *wrap_text(rule.why, "  ", "  "), ""]
    level = f"{rule.severity}, {rule.effect}, {rule.confidence}"
    lines += _row("level", f"{level}; {rule.presumed_severity} where a fact is presumed" if rule.presumed_severity else level)
    for label, conditions in (("with", rule.packages), ("when", rule.when), *(("unless", each) for each in rule.unless)):
        if conditions:
            lines += _row(label, "; ".join(map(in_words, conditions)))
    if rule.presume:
        lines += _row("taken as", presumed_words(rule))
    for signature in rule.errors:
        lines += _row("shows", f"{signature.exception or 'text'}: {signature.message}")
        for frame in signature.frames:
            lines += _row("", f"in {frame}")
    for fix in rule.fixes:
        lines += _row("fix", fix_words(fix))
    for address in rule.evidence:
        lines.append(f"  {'evidence':<10}{address}")
    for bound in bounds:
        beyond = f"{bound.inside}, not {bound.outside}" if bound.outside else bound.inside
        seen = f": {bound.seen}" if bound.seen else ""
        lines += _row("bound", f"{bound.package} {bound.bound} ({beyond}) {bound.how}{seen} ({bound.date})")
    for example in rule.examples:
        lines += _row(example.verdict, example_words(example))
    return "\n".join(lines)


def as_json(rule: Rule, bounds: Sequence[BoundEvidence] = ()) -> dict[str, Any]:
    """Return a rule as plain JSON values."""
    return {
        "id": rule.id, "title": rule.title, "severity": rule.severity, "presumed_severity": rule.presumed_severity or None,
        "effect": rule.effect,
        "confidence": rule.confidence, "why": rule.why, "evidence": list(rule.evidence),
        "with": list(map(in_words, rule.packages)), "when": list(map(in_words, rule.when)),
        "unless": [list(map(in_words, group)) for group in rule.unless], "presume": dict(rule.presume),
        "errors": [{"exception": s.exception, "message": s.message, "frames": list(s.frames)} for s in rule.errors],
        "fixes": [
            {"kind": f.kind, "packages": dict(f.packages), "along": dict(f.along), "value": f.value, "text": f.text}
            for f in rule.fixes
        ],
        "examples": [{e.verdict: e.environment} for e in rule.examples],
        "bounds": [{name: getattr(each, name) for name in EVIDENCE_FIELDS} for each in bounds],
    }  # fmt: skip


def presumed_words(rule: Rule) -> str:
    """Describe the facts that a rule presumes if they are unknown."""
    return "; ".join(f"{key} {_words(value)}" for key, value in rule.presume) + ", where unknown"


def fix_words(fix: FixTemplate) -> str:
    """Describe a fix of a rule on one line."""
    between = " @ " if fix.kind == "source-install" else ""
    what = ", ".join(f"{name}{between}{spec}" for name, spec in fix.packages) or fix.value
    along = ", ".join(name + spec for name, spec in fix.along)
    return f"{fix.kind} {what}{f', and {along} if installed' if along else ''}" + (f" ({fix.text})" if fix.text else "")


def example_words(example: Example) -> str:
    """Describe an example's environment on one line."""
    environment = dict(example.environment)
    parts = [f"{d['name']} {d['version']}" for d in environment.get("distributions", ())]
    names = [str(device.get("name")) for device in environment.get("accelerators", ())]
    parts += [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    parts += [f"{key} {_words(value)}" for key, value in environment.get("workload", {}).items()]
    parts += [f"{key}={value}" for key, value in environment.get("variables", {}).items()]
    parts += [f"{d['name']} from {_words(d['source'])}" for d in environment.get("distributions", ()) if "source" in d]
    return ", ".join(parts)


def _words(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "+".join(map(str, value))
    return " ".join(f"{k} {_words(v)}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def _row(label: str, text: str) -> list[str]:
    return wrap_text(text, f"  {label:<10}", " " * 12)
