"""Evaluate curated rules: whether a rule holds or may hold, which unknown facts would decide it, and the finding about it."""

from __future__ import annotations

from compat.model import Environment, Finding, Fix
from compat.records import record, replace
from compat.rules.compiled import named_distributions
from compat.rules.facts import ABSENT, Facts, has_more
from compat.rules.logic import asked_twice, conjunction, disjunction, holds, paths
from compat.rules.unknown import completions, of_atoms
from compat.versions import contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.rules.compiled import Matrix
    from compat.rules.conditions import Atom
    from compat.rules.rule import FixTemplate, Rule


@record(frozen=True)
class Verdict:
    """``hit``, ``clear`` or ``possible``; the latter with the paths of the facts that decide it and its likelihood (0 to 1)."""

    word: str
    unknown: tuple[str, ...] = ()
    likelihood: float | None = None


HIT, CLEAR = Verdict("hit"), Verdict("clear")


def judge(
    environment: Environment, matrix: Matrix, only: frozenset[str] | None = None, answers: Answers | None = None
) -> tuple[Finding, ...]:
    """Return the findings of every rule that holds or may hold.

    ``only`` limits them to the rules with these ids. ``answers`` caches results across environments that differ only in
    their distributions, interpreter and platform.
    """
    facts = Facts(environment)
    found = []
    for number in matrix.concerned(facts.keys()):
        rule = matrix.rule(number)
        if only is None or rule.id in only:
            found.append(_judged(rule, facts) if answers is None else answers.of(number, rule, facts))
    return tuple(finding for finding in found if finding is not None)


def _judged(rule: Rule, facts: Facts) -> Finding | None:
    if rule.effect == "install" and _installed(rule, facts):
        return None
    verdict = verdict_of(rule, facts)
    return None if verdict.word == "clear" else finding_of(rule, verdict, facts)


def _installed(rule: Rule, facts: Facts) -> bool:
    """Whether what a rule says cannot be installed was read from the metadata of installed distributions."""
    copies = [facts.package(name) for _, name, how, _ in rule.packages if how != "absent"]
    return all(isinstance(each, list) and all(copy.requires is not None for copy in each) for each in copies)


class Answers:
    """A cache of rule results: a rule is evaluated again only if a distribution that it names or the place differs."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, ...]] = {}
        self._given: dict[tuple[object, ...], tuple[object, Finding | None]] = {}

    def of(self, number: int, rule: Rule, facts: Facts) -> Finding | None:
        """Return the finding of the rule with this number; ``None`` if it is clear."""
        if number not in self._names:
            self._names[number] = tuple(sorted(named_distributions(rule)))
        copies = [facts.package(name) for name in self._names[number]]
        here = facts.environment
        states = (tuple(map(id, each)) if isinstance(each, list) else each for each in copies)
        asked = (number, here.python, here.os, here.machine, not here.accelerators, *states)
        if asked not in self._given:
            self._given[asked] = copies, _judged(rule, facts)  # keep the copies alive, so that their ids are not reused
        return self._given[asked][1]


def verdict_of(rule: Rule, facts: Facts) -> Verdict:
    """Evaluate a rule: *hit* if it holds for all values of the unknown facts, *clear* if it holds for none.

    Unknown facts for which the rule declares a default (``presume``) take that default.
    """
    facts = facts.presuming(rule.presume)
    answer = _kleene(rule, facts)
    if answer is not None:
        return HIT if answer else CLEAR
    unsettled = _undecided(rule, facts)
    found: set[bool | None] = set()
    for completed in completions(unsettled, facts) if asked_twice(unsettled) else ():
        found.add(_kleene(rule, completed))
        if None in found or len(found) > 1:
            break
    if found == {True}:
        return HIT
    if found == {False}:
        return CLEAR
    unknown = tuple(dict.fromkeys(path for atom in unsettled for path in paths(atom, facts)))
    # undecided exemptions do not lower the likelihood
    required = [atom for atom in unsettled if atom in rule.packages or atom in rule.when]
    return Verdict("possible", unknown, of_atoms(required, facts))


def _kleene(rule: Rule, facts: Facts) -> bool | None:
    required = conjunction(holds(atom, facts) for atom in (*rule.packages, *rule.when))
    if required is False:
        return False
    exempt = disjunction(conjunction(_exempts(atom, facts) for atom in atoms) for atoms in rule.unless)
    return conjunction((required, None if exempt is None else not exempt))


def _exempts(atom: Atom, facts: Facts) -> bool | None:
    """Like :func:`holds`, but ``False`` for variables and distributions that are not mentioned: they do not exempt."""
    answer = holds(atom, facts)
    if answer is not None:
        return answer
    unmentioned = atom[0] == "variable" or (atom[0] in ("package", "source", "code") and facts.package(atom[1]) is None)
    return False if unmentioned and atom[2] not in ("unset", "absent") else None


def _undecided(rule: Rule, facts: Facts) -> list[Atom]:
    """The atoms on which the verdict still depends."""
    open_atoms = [atom for atom in (*rule.packages, *rule.when) if holds(atom, facts) is None]
    for atoms in rule.unless:
        states = [_exempts(atom, facts) for atom in atoms]
        if False not in states:
            open_atoms += [atom for atom, state in zip(atoms, states) if state is None]
    return open_atoms


def finding_of(rule: Rule, verdict: Verdict, facts: Facts) -> Finding:
    """Return the finding for a rule and its verdict."""
    return Finding(
        rule=rule.id, origin="rule", verdict=verdict.word, severity=severity_of(rule, facts), effect=rule.effect,
        title=rule.title, why=rule.why, confidence=rule.confidence, packages=packages_of(rule, facts), facts=rests_on(rule),
        missing=contract_names(verdict.unknown), unknown=verdict.unknown, fixes=fixes_for(rule, facts),
        evidence=rule.evidence, here=here(rule, facts.presuming(rule.presume)), likelihood=verdict.likelihood,
    )  # fmt: skip


def severity_of(rule: Rule, facts: Facts) -> str:
    """The severity of a rule's finding: that of presumed facts as long as one of them is in use."""
    presuming = facts.presuming(rule.presume)
    if rule.presumed_severity and any(presuming.is_presumed(f"workload.{name}") for name, _ in rule.presume):
        return rule.presumed_severity
    return rule.severity


def contract_names(unknown: tuple[str, ...]) -> tuple[str, ...]:
    """Convert fact paths to the vocabulary of the report: the keys of a described environment, and ``install``."""
    return tuple(dict.fromkeys("install" if path.endswith(".source") else path.partition(".")[0] for path in unknown))


# --- The text of findings: the facts that a finding is based on, and its fixes with commands.


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
    parts = [text for atom in (*rule.packages, *rule.when) if holds(atom, facts) for text in value_text(atom, facts)]
    if facts.is_presumed("workload.task") and facts.value("workload.task"):
        parts.append(f"task taken as {facts.value('workload.task')}")
    return ", ".join(dict.fromkeys(parts))


def value_text(atom: Atom, facts: Facts) -> tuple[str, ...]:
    """Format the environment's value of the fact that an atom depends on."""
    form = atom[0]
    if form == "package":
        copies = facts.package(atom[1])
        if copies == ABSENT or copies is None:
            return (f"no {atom[1]}",)
        versions = {copy.version or copy.specifier or "of unknown version" for copy in copies}  # type: ignore[union-attr]
        return (f"{atom[1]} {' and '.join(sorted(versions))}",)
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
        return tuple(text for each in atom[1] if holds(each, facts) for text in value_text(each, facts))
    if form == "variable":
        return (f"{atom[1]} {'is not set' if atom[2] == 'unset' else 'is set'}",)
    if form in ("source", "code"):
        copies = facts.package(atom[1])
        source = copies[0].source if isinstance(copies, list) else None
        if source is None:
            return (f"{atom[1]} from an unknown source",)
        commit = source.details.get("commit")
        return (f"{atom[1]} {f'at commit {str(commit)[:12]}' if commit else f'installed from {source.kind}'}",)
    return (devices(facts),)


def devices(facts: Facts) -> str:
    """Format the accelerators: "2 × NVIDIA A100-SXM4-80GB"."""
    found = facts.accelerators() or ()
    names = [device.name or device.compute_capability or device.gfx or "GPU" for device in found]
    least = {name for device, name in zip(found, names) if has_more(device)}
    counted = (f"{'at least ' if name in least else ''}{names.count(name)} × {name}" for name in dict.fromkeys(names))
    return ", ".join(counted) or "no accelerator"


def fixes_for(rule: Rule, facts: Facts) -> tuple[Fix, ...]:
    """Return the rule's fixes that may apply in this environment, best first."""
    return tuple(
        fix_of(template, facts) for template in rule.fixes if conjunction(holds(a, facts) for a in template.when) is not False
    )


def fix_of(template: FixTemplate, facts: Facts) -> Fix:
    """Convert a rule's fix for the report; its text includes any details that its command lacks."""
    along = tuple((name, spec) for name, spec in template.along if _is_outside(name, spec, facts))
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


def _is_outside(name: str, specifier: str, facts: Facts) -> bool:
    """Whether a distribution is installed in a version outside the specifier."""
    copies, ranges = facts.package(name), ranges_of(specifier)
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
