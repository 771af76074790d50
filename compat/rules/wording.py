"""The text of findings: the facts that a finding is based on, and its fixes with commands."""

from __future__ import annotations

from compat.model import Fix
from compat.records import replace
from compat.rules.facts import ABSENT, Facts, has_more
from compat.rules.logic import conjunction, holds
from compat.versions import contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.rules.conditions import Atom
    from compat.rules.rule import FixTemplate, Rule


_LABELS = {
    "python": "Python", "glibc": "glibc", "driver": "driver", "cuda_toolkit": "CUDA toolkit", "os": "", "machine": "",
    "platform": "", "driver_state": "driver", "workload.launcher": "", "workload.task": "task", "workload.trainer": "",
    "workload.model": "model", "workload.processes": "processes", "workload.batch_size": "batch size",
    "workload.precision": "", "workload.quantization": "",
}  # fmt: skip


def packages_of(rule: Rule, facts: Facts) -> dict[str, str | None]:
    """Return the distributions that the rule concerns, with their installed versions; ``None`` if unknown."""
    found: dict[str, str | None] = {}
    for atom in rule.packages:
        copies = facts.package(atom[1])
        if isinstance(copies, list):
            found[atom[1]] = copies[0].version
        elif atom[2] != "absent":
            found[atom[1]] = None
    return found


def rests_on(rule: Rule) -> tuple[str, ...]:
    """Return the facts other than packages that a rule depends on, in the vocabulary of the report."""
    found: dict[str, None] = {}
    for atom in (*rule.when, *(atom for atoms in rule.unless for atom in atoms)):
        for name in _fact_names(atom):
            found[name] = None
    return tuple(found)


def _fact_names(atom: Atom) -> tuple[str, ...]:
    form = atom[0]
    if form == "any":
        return tuple(name for each in atom[1] for name in _fact_names(each))
    if form == "package":
        return ()
    if form in ("source", "code"):
        return ("install",)
    if form == "feature":
        return ("workload",)
    if form == "variable":
        return ("variables",)
    return ("accelerators",) if form == "accelerators" else (str(atom[1]).partition(".")[0],)


def here(rule: Rule, facts: Facts) -> str:
    """Format the facts that make the rule apply: "transformers 4.51.3, plain python, 2 × NVIDIA A100"."""
    parts = [text for atom in (*rule.packages, *rule.when) if holds(atom, facts) for text in said(atom, facts)]
    if facts.is_presumed("workload.task") and facts.value("workload.task"):
        parts.append(f"task taken as {facts.value('workload.task')}")
    return ", ".join(dict.fromkeys(parts))


def said(atom: Atom, facts: Facts) -> tuple[str, ...]:
    """Format the environment's value of the fact that an atom depends on."""
    form = atom[0]
    if form == "package":
        return (_package(atom[1], facts),)
    if form in ("word", "range"):
        value = facts.value(atom[1])
        text = f"{_LABELS.get(atom[1], atom[1])} {value}".strip()
        if facts.is_presumed(atom[1]):
            text += " (the default)"
        if text == "python":
            text = "accelerate with one process" if facts.workload.launcher == "accelerate" else "plain python"
        return (text,)
    if form == "feature":
        return (atom[1],)
    if form == "any":
        return tuple(text for each in atom[1] if holds(each, facts) for text in said(each, facts))
    if form == "variable":
        return (f"{atom[1]} {'is not set' if atom[2] == 'unset' else 'is set'}",)
    if form in ("source", "code"):
        return (f"{atom[1]} {_origin(atom[1], facts)}",)
    return (devices(facts),)


def _package(name: str, facts: Facts) -> str:
    copies = facts.package(name)
    if copies == ABSENT or copies is None:
        return f"no {name}"
    versions = {copy.version or copy.specifier or "of unknown version" for copy in copies}  # type: ignore[union-attr]
    return f"{name} {' and '.join(sorted(versions))}"


def _origin(name: str, facts: Facts) -> str:
    copies = facts.package(name)
    source = copies[0].source if isinstance(copies, list) else None
    if source is None:
        return "from an unknown source"
    commit = source.details.get("commit")
    return f"at commit {str(commit)[:12]}" if commit else f"installed from {source.kind}"


def devices(facts: Facts) -> str:
    """Format the accelerators: "2 × NVIDIA A100-SXM4-80GB"."""
    found = facts.accelerators() or ()
    names = [device.name or device.compute_capability or device.gfx or "GPU" for device in found]
    least = {name for device, name in zip(found, names) if has_more(device)}
    told = (f"{'at least ' if name in least else ''}{names.count(name)} × {name}" for name in dict.fromkeys(names))
    return ", ".join(told) or "no accelerator"


def fixes_for(rule: Rule, facts: Facts) -> tuple[Fix, ...]:
    """Return the rule's fixes that may apply in this environment, best first."""
    return tuple(
        fix_of(template, facts) for template in rule.fixes if conjunction(holds(a, facts) for a in template.when) is not False
    )


def fix_of(template: FixTemplate, facts: Facts) -> Fix:
    """Convert a rule's fix for the report; its text includes any details that its command lacks."""
    along = tuple(pair for pair in template.along if _is_elsewhere(*pair, facts))
    if along:
        template = replace(template, packages=(*template.packages, *along))
    package, spec = template.packages[0] if template.packages else (None, None)
    if template.kind == "source-install":
        spec = None
    command = template.command or _command(template, facts)
    text = template.text or _described(template)
    if any(part not in f"{command} {text}" for part in content_of(template)):
        text = f"{_described(template)} ({text})"
    return Fix(kind=template.kind, package=package, spec=spec or None, text=text, command=command)


def _is_elsewhere(name: str, specifier: str, facts: Facts) -> bool:
    """Whether a distribution is installed in a version outside the specifier."""
    copies = facts.package(name)
    ranges = ranges_of(specifier)
    return isinstance(copies, list) and any(each.version and not contains(ranges, key_of(each.version)) for each in copies)


def content_of(template: FixTemplate) -> tuple[str, ...]:
    """Return the details needed to apply a fix: packages with versions, words of the command, or the setting."""
    if template.kind == "source-install":
        return tuple(where for _, where in template.packages)
    if template.packages:
        return tuple(name + spec for name, spec in template.packages)
    if template.kind == "launch":
        return tuple(word for word in template.value.split() if word != "SCRIPT")
    return (template.value,)


def quoted(word: str) -> str:
    """Quote a word for the shell; :mod:`shlex` is imported only if quoting is needed."""
    if all(letter.isalnum() or letter in "/._-+@%" for letter in word):
        return word
    import shlex

    return shlex.quote(word)


def _described(template: FixTemplate) -> str:
    if template.kind == "uninstall":
        return f"remove {', '.join(name for name, _ in template.packages)}"
    if template.kind == "source-install":
        return f"install {', '.join(name for name, _ in template.packages)} from source"
    if template.packages:
        return f"{template.kind} to {', '.join(name + spec for name, spec in template.packages)}"
    return template.value


def _command(template: FixTemplate, facts: Facts) -> str | None:
    if template.kind == "uninstall":
        return f"pip uninstall {' '.join(name for name, _ in template.packages)}"
    if template.kind == "source-install":
        return "pip install " + " ".join(f'"{name} @ {where}"' for name, where in template.packages)
    if template.packages:
        return "pip install " + " ".join(f'"{name}{spec}"' for name, spec in template.packages)
    if template.kind == "launch":
        script = facts.workload.script
        return template.value.replace("SCRIPT", quoted(script) if script and script.endswith(".py") else "train.py")
    if template.kind == "env-var":
        return f"export {template.value}"
    return None
