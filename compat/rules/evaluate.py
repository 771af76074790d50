"""Evaluate curated rules: whether a rule holds or may hold, which unknown facts would decide it, and the finding about it."""

from __future__ import annotations

from compat.model import Distribution, Environment, Finding, Fix
from compat.records import record, replace
from compat.rules.facts import Facts, device_counts
from compat.rules.logic import asked_twice, conjunction, holds, paths
from compat.rules.rule import (
    OF_PACKAGES,
    AnyOf,
    Condition,
    FixTemplate,
    HasCode,
    HasFeature,
    HasPackage,
    HasVariable,
    InRange,
    InstalledFrom,
    IsOneOf,
    Rule,
    kinds_of,
)
from compat.rules.unknown import completions, of_conditions
from compat.versions import contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from compat.rules.compiled import Matrix


@record(frozen=True)
class Verdict:
    """``hit``, ``clear`` or ``possible``; the latter with the paths of the facts that decide it and its likelihood (0 to 1)."""

    word: str
    unknown: tuple[str, ...] = ()
    likelihood: float | None = None


_FEW = 10
HIT, CLEAR = Verdict("hit"), Verdict("clear")


def judge(
    environment: Environment, matrix: Matrix, only: frozenset[str] | None = None, answers: Answers | None = None
) -> tuple[Finding, ...]:
    """Return the findings of every rule that holds or may hold.

    ``only`` limits them to the rules with these ids. ``answers`` caches results across environments.
    """
    facts = Facts(environment)
    found = []
    # looking up which rules concern an environment costs more than evaluating a few
    few = only is not None and len(only) <= _FEW
    numbers = matrix.numbers(only or ()) if few else matrix.concerned(facts.keys(), complete=environment.distributions_complete)
    for number in numbers:
        rule = matrix.rule(number)
        if only is None or rule.id in only:
            found.append(_judged(rule, facts) if answers is None else answers.of(number, rule, facts))
    return tuple(finding for finding in found if finding is not None)


def errors_with(names: Iterable[str], environment: Environment, matrix: Matrix, answers: Answers) -> Iterator[Finding]:
    """Yield the errors that certainly hold, of the rules that depend on one of these distributions."""
    facts = Facts(environment)
    for number in _errors_about(names, facts, matrix):
        finding = answers.of(number, matrix.rule(number), facts)
        if finding is not None and finding.verdict == "hit" and finding.severity == "error":
            yield finding


def errors_about(names: Iterable[str], facts: Facts, matrix: Matrix) -> list[frozenset[str]]:
    """Return the packages of every error that certainly holds, of the rules that depend on one of these distributions."""
    return [
        frozenset(packages_of(rule, facts)) for rule in map(matrix.rule, _errors_about(names, facts, matrix))
        if not (rule.effect == "install" and _installed(rule, facts))
        and _evaluated(rule, facts.presuming(defaults_of(rule, facts)))[0] and severity_of(rule, facts) == "error"
    ]  # fmt: skip


def _errors_about(names: Iterable[str], facts: Facts, matrix: Matrix) -> list[int]:
    """The rules that may apply, of those that depend on one of these distributions, and whose findings are errors."""
    among = matrix.errors_about(names)  # opening the others would cost more than judging
    return matrix.concerned(facts.keys(), among, complete=facts.environment.distributions_complete) if among else []


def _judged(rule: Rule, facts: Facts) -> Finding | None:
    if rule.effect == "install" and _installed(rule, facts):
        return None
    verdict = verdict_of(rule, facts)
    return None if verdict.word == "clear" else finding_of(rule, verdict, facts)


def _installed(rule: Rule, facts: Facts) -> bool:
    """Whether what a rule says cannot be installed was read from the metadata of installed distributions."""
    copies = [facts.package(each.name) for each in rule.packages if each.how != "absent"]
    return all(isinstance(each, list) and all(copy.requires is not None for copy in each) for each in copies)


def _dependencies(rule: Rule) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The distributions, the variables and the other facts on which the finding of a rule, with its fixes, depends."""
    of_fixes = tuple(each for fix in rule.fixes for each in fix.when)
    conditions = (*rule.packages, *rule.when, *(each for group in rule.unless for each in group), *of_fixes)
    flat = [part for each in conditions for part in (each.conditions if isinstance(each, AnyOf) else (each,))]
    names = {each.name for each in flat if isinstance(each, OF_PACKAGES)}
    names |= {name for fix in rule.fixes for name, _ in fix.along}
    roots = {name for each in flat for name in _fact_names(each)} - {"install", "variables"}
    roots |= {"workload", "python", "os", "machine"}  # these decide how likely an open release is, too
    variables = {each.name for each in flat if isinstance(each, HasVariable)}
    return tuple(sorted(names)), tuple(sorted(variables)), tuple(sorted(roots))


_PLAIN = ("python", "os", "machine", "platform", "glibc", "driver", "driver_state", "cuda_toolkit")


_MOST_ANSWERS = 200_000


class Answers:
    """A cache of rule results: a rule is evaluated again only if a distribution or another fact that it depends on differs."""

    def __init__(self) -> None:
        self._asked: dict[int, tuple[tuple[str, ...], ...]] = {}
        self._given: dict[tuple[object, ...], tuple[object, Finding | None]] = {}
        self._read: tuple[Environment, dict[str, object]] | None = None
        self._same: dict[str, Distribution] = {}

    def same(self, distribution: Distribution) -> Distribution:
        """Return the first distribution that is equal to this one: results are found by identity, which is fast to compare."""
        return self._same.setdefault(repr(distribution), distribution)

    @property
    def is_full(self) -> bool:
        """Whether so many results are kept that a new cache should be used."""
        return len(self._given) > _MOST_ANSWERS

    def of(self, number: int, rule: Rule, facts: Facts) -> Finding | None:
        """Return the finding of the rule with this number; ``None`` if it is clear."""
        if number not in self._asked:
            self._asked[number] = _dependencies(rule)
        names, variables, roots = self._asked[number]
        copies = [facts.package(name) for name in names]
        states = (tuple(map(id, each)) if isinstance(each, list) else each for each in copies)
        here = self._here(facts)
        asked = (number, *states, *map(facts.variable, variables), *(here[name] for name in roots))
        if asked not in self._given:
            self._given[asked] = copies, _judged(rule, facts)  # keep the copies alive, so that their ids are not reused
        return self._given[asked][1]

    def _here(self, facts: Facts) -> dict[str, object]:
        """The facts of an environment other than its packages, in a form that can be compared."""
        environment = facts.environment
        if self._read is None or self._read[0] is not environment:
            values = {name: getattr(environment, name) for name in _PLAIN}
            values["accelerators"] = repr(environment.accelerators)
            values["workload"] = repr(environment.workload), facts.tools
            self._read = environment, values
        return self._read[1]


def verdict_of(rule: Rule, facts: Facts) -> Verdict:
    """Evaluate a rule: *hit* if it holds for all values of the unknown facts, *clear* if it holds for none.

    Unknown facts for which the rule declares a default (``presume``) take that default.
    """
    if any(holds(each, facts) is False for each in rule.packages):
        return CLEAR  # most rules end here; a default never replaces a known fact
    facts = facts.presuming(defaults_of(rule, facts))
    answer, unsettled = _evaluated(rule, facts)
    if answer is not None:
        return HIT if answer else CLEAR
    found: set[bool | None] = set()
    for completed in completions(unsettled, facts) if asked_twice(unsettled) else ():
        found.add(_evaluated(rule, completed)[0])
        if None in found or len(found) > 1:
            break
    if found == {True}:
        return HIT
    if found == {False}:
        return CLEAR
    unknown = tuple(dict.fromkeys(path for each in unsettled for path in paths(each, facts)))
    # undecided exemptions do not lower the likelihood
    required = [each for each in unsettled if each in rule.packages or each in rule.when]
    return Verdict("possible", unknown, of_conditions(required, facts))


def defaults_of(rule: Rule, facts: Facts) -> tuple[tuple[str, object], ...]:
    """The values that unknown facts take for a rule: its own, and the job of a package that has only one.

    A rule on every training job holds in an environment with trl, whichever of its trainers will run. A rule on some of them
    stays a question.
    """
    jobs = {word for each in rule.when if isinstance(each, IsOneOf) and each.path == "workload.task" for word in each.words}
    if not jobs.isdisjoint(("train", *kinds_of("train"))) and facts.has_trainers:
        return (("task", "train"), *rule.presume)
    return rule.presume


def _evaluated(rule: Rule, facts: Facts) -> tuple[bool | None, list[Condition]]:
    """Whether a rule holds in Kleene's logic, and if that is not decided, the conditions on which it depends."""
    unsettled: list[Condition] = []
    for each in (*rule.packages, *rule.when):
        state = holds(each, facts)
        if state is False:
            return False, []
        if state is None:
            unsettled.append(each)
    for group in rule.unless:
        states = []
        for each in group:
            states.append(exempts(each, facts, group))
            if states[-1] is False:
                break
        else:
            if None not in states:
                return False, []
            unsettled += [each for each, state in zip(group, states) if state is None]
    return (None if unsettled else True), unsettled


_WITHOUT_A_JOB = frozenset(("build", "import", "install"))
"""Tasks that do not run anything."""


_WITHOUT_VLLM = HasFeature("vllm", on=False)


def exempts(condition: Condition, facts: Facts, group: tuple[Condition, ...]) -> bool | None:
    """Like :func:`holds`, but ``False`` for variables and distributions that are not mentioned: they do not exempt.

    Nor does a job that is not known: it is not presumed that it only installs, builds or imports. A script that generates with
    vLLM is exempt wherever a server is: in both, the engine has its own models and kernels. The server of another engine is
    exempt wherever scripts without vLLM are.
    """
    answer = holds(condition, facts)
    if answer is False and isinstance(condition, IsOneOf) and condition.path == "workload.task":
        if "serve" in condition.words:
            return facts.value("workload.task") == "inference" and facts.generates_with_vllm
        return facts.serves_without_vllm and "inference" in condition.words and _WITHOUT_VLLM in group
    if answer is not None:
        return answer
    if isinstance(condition, IsOneOf) and condition.path == "workload.task" and _WITHOUT_A_JOB.issuperset(condition.words):
        return False
    if isinstance(condition, HasVariable):
        return None if condition.how == "unset" else False
    if not isinstance(condition, OF_PACKAGES) or facts.package(condition.name) is not None:
        return None
    return None if isinstance(condition, HasPackage) and condition.how == "absent" else False


def finding_of(rule: Rule, verdict: Verdict, facts: Facts) -> Finding:
    return Finding(
        rule=rule.id, origin="rule", verdict=verdict.word, severity=severity_of(rule, facts), effect=rule.effect,
        title=rule.title, why=rule.why, confidence=rule.confidence, packages=packages_of(rule, facts), facts=rests_on(rule),
        missing=contract_names(verdict.unknown), unknown=verdict.unknown, fixes=fixes_for(rule, facts),
        evidence=rule.evidence, here=applying_facts(rule, facts.presuming(defaults_of(rule, facts))),
        likelihood=verdict.likelihood,
    )  # fmt: skip


_OF_NO_JOB = ("absent", "variables_unset")
"""Presumed facts that say nothing about what the job does."""


def severity_of(rule: Rule, facts: Facts) -> str:
    """The severity of a rule's finding: that of presumed facts as long as one of them says what the job does."""
    if not rule.presumed_severity:
        return rule.severity
    presumed = defaults_of(rule, facts)
    presuming = facts.presuming(presumed)
    says = (name for name, value in presumed if name not in _OF_NO_JOB and (name, value) != ("quantization", "none"))
    in_use = any(presuming.is_presumed(f"workload.{name}") for name in says)
    return rule.presumed_severity if in_use else rule.severity


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
    for each in rule.packages:
        copies = facts.package(each.name)
        if isinstance(copies, list):
            found[each.name] = copies[0].version
        elif each.how != "absent":
            found[each.name] = None
    return found


def rests_on(rule: Rule) -> tuple[str, ...]:
    """Return the facts other than packages that a rule depends on, in the vocabulary of the report."""
    conditions = (*rule.when, *(each for group in rule.unless for each in group))
    return tuple(dict.fromkeys(name for each in conditions for name in _fact_names(each)))


def _fact_names(condition: Condition) -> tuple[str, ...]:
    if isinstance(condition, AnyOf):
        return tuple(name for each in condition.conditions for name in _fact_names(each))
    if isinstance(condition, HasPackage):
        return ()
    if isinstance(condition, (InstalledFrom, HasCode)):
        return ("install",)
    if isinstance(condition, HasFeature):
        return ("workload",)
    if isinstance(condition, HasVariable):
        return ("variables",)
    return (condition.path.partition(".")[0],) if isinstance(condition, (IsOneOf, InRange)) else ("accelerators",)


def applying_facts(rule: Rule, facts: Facts) -> str:
    """Format the facts that make the rule apply: "transformers 4.51.3, plain python, 2 × NVIDIA A100"."""
    # the package version already says it if the feature is the use of that package
    used = {each.name for each in rule.packages}.intersection(dict(rule.presume).get("features", ()))
    conditions = (each for each in (*rule.packages, *rule.when) if not (isinstance(each, HasFeature) and each.name in used))
    parts = [text for each in conditions if holds(each, facts) for text in value_text(each, facts)]
    if facts.is_presumed("workload.task") and facts.value("workload.task"):
        parts.append(f"task taken as {facts.value('workload.task')}")
    return ", ".join(dict.fromkeys(parts))


def value_text(condition: Condition, facts: Facts) -> tuple[str, ...]:
    """Format the environment's value of the fact that a condition depends on."""
    if isinstance(condition, AnyOf):
        return tuple(text for each in condition.conditions if holds(each, facts) for text in value_text(each, facts))
    if isinstance(condition, HasPackage):
        copies = facts.package(condition.name)
        if not isinstance(copies, list):
            return (f"no {condition.name}",)
        versions = {copy.version or copy.specifier or "of unknown version" for copy in copies}
        return (f"{condition.name} {' and '.join(sorted(versions))}",)
    if isinstance(condition, (IsOneOf, InRange)):
        if condition.path == "workload.task" and facts.is_presumed(condition.path):
            return ()  # the text on all facts ends with it
        text = f"{_LABELS.get(condition.path, condition.path)} {facts.value(condition.path)}".strip()
        if facts.is_presumed(condition.path):
            text += " (the default)"
        if text == "python":
            text = "accelerate with one process" if facts.workload.launcher == "accelerate" else "plain python"
        return (text,)
    if isinstance(condition, HasFeature):
        return (condition.name if condition.on else f"no {condition.name}",)
    if isinstance(condition, HasVariable):
        return (f"{condition.name} {'is not set' if condition.how == 'unset' else 'is set'}",)
    if isinstance(condition, (InstalledFrom, HasCode)):
        copies = facts.package(condition.name)
        source = copies[0].source if isinstance(copies, list) else None
        if source is None:
            return (f"{condition.name} from an unknown source",)
        commit = source.details.get("commit")
        return (f"{condition.name} {f'at commit {str(commit)[:12]}' if commit else f'installed from {source.kind}'}",)
    return (devices(facts),)


def devices(facts: Facts) -> str:
    """Format the accelerators: "2 × NVIDIA A100-SXM4-80GB"."""
    found = facts.accelerators() or ()
    names = [device.name or device.compute_capability or device.gfx or "GPU" for device in found]
    return ", ".join(device_counts(found, names)) or "no accelerator"


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
