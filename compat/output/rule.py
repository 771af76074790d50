"""A rule of the matrix for people (``compat rules``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compat.output.terminal import wrapped
from compat.rules.conditions import condition
from compat.rules.evidence import FIELDS

if TYPE_CHECKING:
    from compat.rules.evidence import BoundEvidence
    from compat.rules.rule import Example, FixTemplate, Rule


def listed(rules: Sequence[Rule]) -> str:
    """One rule in two lines: id, severity and confidence, then its title."""
    lines = []
    for rule in rules:
        lines += [f"{rule.id} ({rule.severity}, {rule.confidence})", *wrapped(rule.title, "    ", "    ")]
    lines += ["", f"{len(rules)} rules; 'compat rules show ID' tells why, with evidence, fixes and examples"]
    return "\n".join(lines)


def shown(rule: Rule, bounds: Sequence[BoundEvidence] = ()) -> str:
    """Everything about one rule; ``bounds`` is what its ranges rest on."""
    lines = [rule.id, *wrapped(rule.title, "  ", "  "), "", *wrapped(rule.why, "  ", "  "), ""]
    lines += _row("level", f"{rule.severity}, {rule.effect}, {rule.confidence}")
    for label, atoms in (("with", rule.packages), ("when", rule.when), *(("unless", each) for each in rule.unless)):
        if atoms:
            lines += _row(label, "; ".join(condition(atom) for atom in atoms))
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
    """A rule as plain JSON values."""
    return {
        "id": rule.id, "title": rule.title, "severity": rule.severity, "effect": rule.effect,
        "confidence": rule.confidence, "why": rule.why, "evidence": list(rule.evidence),
        "with": [condition(atom) for atom in rule.packages], "when": [condition(atom) for atom in rule.when],
        "unless": [[condition(atom) for atom in atoms] for atoms in rule.unless], "presume": dict(rule.presume),
        "errors": [{"exception": s.exception, "message": s.message, "frames": list(s.frames)} for s in rule.errors],
        "fixes": [
            {"kind": f.kind, "packages": dict(f.packages), "along": dict(f.along), "value": f.value, "text": f.text}
            for f in rule.fixes
        ],
        "examples": [{e.verdict: e.environment} for e in rule.examples],
        "bounds": [{name: getattr(each, name) for name in FIELDS} for each in bounds],
    }  # fmt: skip


def presumed_words(rule: Rule) -> str:
    """What a rule takes as given where nothing is known."""
    return "; ".join(f"{key} {_words(value)}" for key, value in rule.presume) + ", where unknown"


def fix_words(fix: FixTemplate) -> str:
    """A fix as the rule states it, in a line."""
    between = " @ " if fix.kind == "source-install" else ""
    what = ", ".join(f"{name}{between}{spec}" for name, spec in fix.packages) or fix.value
    along = ", ".join(name + spec for name, spec in fix.along)
    return f"{fix.kind} {what}{f', and {along} where it is installed' if along else ''}" + (
        f" ({fix.text})" if fix.text else ""
    )


def example_words(example: Example) -> str:
    """An example's environment in a line."""
    environment = dict(example.environment)
    parts = [f"{d['name']} {d['version']}" for d in environment.get("distributions", ())]
    names = [str(device.get("name")) for device in environment.get("accelerators", ())]
    parts += [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    parts += [f"{key} {_words(value)}" for key, value in environment.get("workload", {}).items()]
    parts += [f"{key}={value}" for key, value in environment.get("variables", {}).items()]
    parts += [f"{d['name']} from {_words(d['source'])}" for d in environment.get("distributions", ()) if "source" in d]
    return ", ".join(parts)


def _words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "+".join(map(str, value))
    return " ".join(f"{k} {_words(v)}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def _row(label: str, text: str) -> list[str]:
    return wrapped(text, f"  {label:<10}", " " * 12)
