"""Lint the rules: each example must give its stated verdict, and no fix may trigger this rule or another one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from compat.checks import named_devices
from compat.formats.described import parse_described
from compat.model import Distribution, Environment, Source, Workload, normalized
from compat.records import record, replace
from compat.rules.evaluate import content_of, fix_of, verdict_of
from compat.rules.facts import MODEL_FAMILIES, OWN_TRAINER, SHARDING, WITHOUT_TRAINER, WITHOUT_TRL, Facts, number_key, visible
from compat.rules.logic import conjunction, holds
from compat.rules.rule import (
    KINDS,
    OFFLINE_TRAINING,
    ONLINE_TRAINING,
    AnyOf,
    Condition,
    Example,
    FixTemplate,
    HasDevices,
    HasFeature,
    HasPackage,
    HasVariable,
    InRange,
    InstalledFrom,
    IsOneOf,
    Rule,
    kinds_of,
)
from compat.tables.declared import Package, open_declared
from compat.versions import Key, contains, intersect, key_of, ranges_of, written

_ONE_PROCESS_EACH = {"torchrun", "accelerate", "deepspeed"}
"""Launchers that start any number of processes, each with one GPU."""
_TAKE_FLASH_ATTN = frozenset(("transformer-engine",))
"""Packages whose own attention takes flash-attn wherever it is installed."""
_ENGINES = {"vllm", "sglang", "lmdeploy"}
"""Servers that use several GPUs for one model, or for a replica each."""
_MOST_TASKS = 4
"""The tasks of one kind that an exemption may list."""
_OF_AMD = ("ROCR_", "HIP_", "HSA_")
"""How the variables begin that select AMD GPUs."""
_DERIVE_TRAINERS = {"trl", "peft", "ms-swift", "setfit", "sentence-transformers", "unsloth", "unsloth-zoo"}
"""Packages with trainers of their own, or with a part in saving that other loops call as well."""
_OF_TOOLS = {"sft", "dpo", "kto", "grpo", "reward", "ppo", "prm", "orpo", "simpo", "cpo"}
"""Tasks in which tools use trl's name for a trainer of their own."""

_WITHOUT_A_RUN = ("import", "install", "build")
"""Tasks that compute nothing."""
_OF_A_RUN = {
    *SHARDING, "deepspeed", "resume", "peft", "gradient-accumulation", "gradient-checkpointing", "device-map",
    "flash-attention", "context-parallel", "modules-to-save", "quantized-checkpoint",
}  # fmt: skip
"""Features whose code is called while a model is loaded or trained, not imported."""
_IGNORED = "-ignored"
"""How the id of a rule ends that says since which release of its package a variable is not read."""


@record(frozen=True)
class Problem:
    """A problem with a rule, as a one-line message."""

    rule: str
    message: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: rule {self.rule}: {self.message}"


def problems_of(rules: Sequence[Rule], among: Sequence[Rule] | None = None) -> list[Problem]:
    """Return all problems with ``rules``; their fixes are checked against the rules in ``among`` (default: ``rules``)."""
    about: dict[str, list[Rule]] = {}
    for other in rules if among is None else among:
        for name in dict.fromkeys(each.name for each in other.packages):
            about.setdefault(name, []).append(other)
    return [
        Problem(rule.id, message, rule.file, rule.line)
        for rule in rules
        for message in dict.fromkeys(
            (
                *_examples(rule),
                *_signatures(rule),
                *_conditions(rule),
                *_by_other_loops(rule),
                *_before_a_run(rule),
                *_by_inference(rule),
                *_twins(rule, about),
                *_unsaid(rule),
                *_fixes(rule, about),
                *_left_alone(rule),
                *_unread(rule, about),
            )
        )
    ]


def environment_of(example: Example) -> Environment:
    environment, _ = parse_described(example.environment, "example")
    return visible(named_devices(environment)[0])


def _examples(rule: Rule) -> Iterator[str]:
    for number, example in enumerate(rule.examples, 1):
        verdict = verdict_of(rule, Facts(environment_of(example)))
        if verdict.word != example.verdict:
            open_facts = f" (unknown: {', '.join(verdict.unknown)})" if verdict.unknown else ""
            yield f"example {number} says {example.verdict}, but it is {verdict.word}{open_facts}"


def _signatures(rule: Rule) -> Iterator[str]:
    for signature in rule.errors:
        if re.search(signature.message, ""):
            yield f"the message pattern {signature.message!r} matches anything"


def _conditions(rule: Rule) -> Iterator[str]:
    """Yield conditions that hold where nothing fails, or nowhere."""
    words = {each.path: each.words for each in rule.when if isinstance(each, IsOneOf)}
    models = {word for each in (*rule.when, *itertools.chain(*rule.unless)) if isinstance(each, IsOneOf) for word in each.words
              if each.path == "workload.model"}  # fmt: skip
    for word in sorted(models.difference(MODEL_FAMILIES)):
        if "/" not in word:
            yield f"no model is recognized as {word!r}: name a family of MODEL_FAMILIES, or the whole ORGANISATION/MODEL"
    for exemption in rule.unless:
        if not any(isinstance(each, HasPackage) for each in exemption):  # else it says what certain trainers of a release do
            yield from _listed(exemption)
    several = any(isinstance(each, HasDevices) and not contains(each.count, number_key(1)) for each in rule.when)
    if several and set(words.get("workload.launcher", ("python",))) <= _ONE_PROCESS_EACH:
        works = (environment_of(example).workload for example in rule.examples)
        if not any(work is not None and work.processes == 1 for work in works):
            yield "it needs several GPUs and a launcher: say in an example what one process does (processes = 1)"
    features = {each.name for each in (*rule.when, *itertools.chain(*rule.unless)) if isinstance(each, HasFeature)}
    serves = _is_about(rule, _ENGINES) and not any(ONLINE_TRAINING in kinds_of(task) for task in words.get("workload.task", ()))
    if several and serves and "workload.launcher" not in words and "tensor-parallel" not in features:
        yield "several GPUs may have a replica each: say what it needs of the feature tensor-parallel"
    trained = not _OF_TOOLS.isdisjoint(words.get("workload.task", ())) and not _is_about(rule, {"unsloth", "unsloth-zoo"})
    if trained and _is_about(rule, {"trl"}) and features.isdisjoint((OWN_TRAINER, WITHOUT_TRL)):
        yield f"tools such as verl train without trl's trainers: exempt {OWN_TRAINER}, or {WITHOUT_TRL} if trl fails to load"
    uses = any(isinstance(each, HasFeature) and each.name == "flash-attention" for each in rule.when)
    loads = rule.effect == "install" or any(each.exception == "ImportError" for each in rule.errors)
    if _is_about(rule, {"flash-attn"}) and not uses and not loads and not _is_about(rule, _TAKE_FLASH_ATTN):
        yield "installing flash-attn does not use it: ask for the feature flash-attention unless it already fails to load"
    yield from _elsewhere(rule)


def _by_other_loops(rule: Rule) -> Iterator[str]:
    """Yield a complaint about what the Trainer or accelerate's FSDP does that also holds for jobs of tools without them."""
    does = "the Trainer" in f"{rule.title} {rule.why}".replace("The", "the")
    if not (does or _shards(rule)) or _is_about(rule, _DERIVE_TRAINERS):
        return
    if "Importing" in rule.title or any(each.exception in ("ImportError", "ModuleNotFoundError") for each in rule.errors):
        return  # what imports the Trainer need not use it
    tool = Distribution(name="verl", version="1.0")
    for example in (environment_of(each) for each in rule.examples if each.verdict == "hit"):
        named = example.workload is not None and example.workload.trainer is not None
        facts = Facts(replace(example, distributions=(*(example.distributions or ()), tool)))
        if not named and _is_about(rule, {"transformers", "accelerate"}) and verdict_of(rule, facts).word == "hit":
            yield f"tools such as verl train without transformers' Trainer: exempt {WITHOUT_TRAINER}"


def _before_a_run(rule: Rule) -> Iterator[str]:
    """Yield a complaint about what a run does that also holds for jobs that compute nothing."""
    parts = itertools.chain.from_iterable(each.conditions if isinstance(each, AnyOf) else (each,) for each in rule.when)
    runs = any(isinstance(each, HasFeature) and each.name in _OF_A_RUN for each in parts)
    if rule.effect not in ("wrong-result", "hang", "memory") and not (runs and rule.effect == "crash"):
        return
    if any(each.exception in ("ImportError", "ModuleNotFoundError") for each in rule.errors):
        return
    if rule.severity == "info" and not rule.when:  # a remark on releases, which is not shown as long as it asks for no job
        return
    for example in (environment_of(each) for each in rule.examples if each.verdict == "hit"):
        work = example.workload or Workload()
        jobs = ((task, replace(example, workload=replace(work, task=task, trainer=None))) for task in _WITHOUT_A_RUN)
        held = [task for task, environment in jobs if verdict_of(rule, Facts(environment)).word == "hit"]
        if held:
            yield f"jobs that only {', '.join(held)} do not get that far: exempt these tasks"


def _shards(rule: Rule) -> bool:
    """Whether a rule is about sharding by accelerate."""
    return _is_about(rule, {"accelerate"}) and any(each in rule.title for each in ("FSDP", "Context parallelism"))


def _by_inference(rule: Rule) -> Iterator[str]:
    """Yield a complaint about sharding by accelerate that also holds for jobs that prepare no optimizer and save nothing."""
    if not _shards(rule) or any(each.exception == "ImportError" for each in rule.errors):
        return  # accelerate refuses an old torch before it knows what is sharded
    for example in (environment_of(each) for each in rule.examples if each.verdict == "hit"):
        work = replace(example.workload or Workload(), task="inference", trainer=None)
        if verdict_of(rule, Facts(replace(example, workload=work))).word == "hit":
            yield "a job that only runs a model prepares no optimizer and saves nothing: exempt the task inference"


def _elsewhere(rule: Rule) -> Iterator[str]:
    """Yield conditions that also hold on machines or for packages that the rule is not about."""
    on_amd = any(isinstance(each, HasDevices) and (each.vendors or each.gfx) for each in rule.when)
    for each in rule.when:
        if isinstance(each, HasVariable) and each.how != "unset" and each.name.startswith(_OF_AMD) and not on_amd:
            yield f"{each.name} may be set on any machine (Slurm does): say the vendor of the accelerators"
    of_python = rule.effect == "install" and any(isinstance(each, InRange) and each.path == "python" for each in rule.when)
    sources = (each for each in itertools.chain(*rule.unless) if isinstance(each, InstalledFrom))
    if of_python and not any("conda" in each.kinds for each in sources):
        yield "conda builds its packages for other Pythons than the index has wheels for: exempt the source conda"


def _is_about(rule: Rule, names: Container[str]) -> bool:
    return any(each.name in names and each.how != "absent" for each in rule.packages)


def _listed(exemption: Sequence[Condition]) -> Iterator[str]:
    """Yield the exemptions that list many tasks of a kind: they do not hold for the tasks that they forget."""
    for tasks in (set(each.words) for each in exemption if isinstance(each, IsOneOf) and each.path == "workload.task"):
        for kind in (OFFLINE_TRAINING, ONLINE_TRAINING):
            listed = sorted(task for task in tasks if task not in KINDS and kind in kinds_of(task))
            if len(listed) > _MOST_TASKS:
                yield f"it exempts {', '.join(listed)}: name a kind of tasks ({', '.join(KINDS)})"


def _twins(rule: Rule, about: Mapping[str, Sequence[Rule]]) -> Iterator[str]:
    """Yield the rules that hold for an example of this one and recognize the same error: the reader would see it twice."""
    messages = {signature.message for signature in rule.errors}
    others = {other.id: other for each in rule.packages for other in about.get(each.name, ()) if other.id != rule.id}
    same = [
        other
        for other in others.values()
        if any(signature.message in messages for signature in other.errors)
        or (not rule.errors and not other.errors and _conditions_of(other) == _conditions_of(rule))
    ]
    for number, example in enumerate(rule.examples, 1):
        if same and example.verdict == "hit":
            facts = Facts(environment_of(example))
            for other in same:
                if verdict_of(other, facts).word == "hit":
                    yield f"example {number} is reported by rule {other.id} as well"


def _conditions_of(rule: Rule) -> tuple[set[object], ...]:
    return set(rule.packages), set(rule.when), set(rule.unless)


def _unsaid(rule: Rule) -> Iterator[str]:
    """Yield fixes with incomplete output: the command that is printed (the text if there is none) must suffice to apply it."""
    for template in rule.fixes:
        fix = fix_of(template, Facts(Environment()))
        for part in content_of(template):
            if part not in (fix.command or fix.text):
                yield f"fix {fix.kind} is printed without {part!r}: {fix.command or fix.text}"


def _fixes(rule: Rule, about: Mapping[str, Sequence[Rule]]) -> Iterator[str]:
    hits = [environment_of(example) for example in rule.examples if example.verdict == "hit"]
    for fix in rule.fixes:
        said = f"fix {fix.kind} {' '.join(f'{name}{spec}' for name, spec in fix.packages) or fix.value}"
        for environment in hits:
            if conjunction(holds(each, Facts(environment)) for each in fix.when) is False:
                continue
            rivals = list(_rivals(rule, fix, environment, about))
            for changed in applied(fix, environment, about):
                facts = Facts(changed)
                if verdict_of(rule, facts).word == "hit":
                    yield f"{said} does not fix what the rule describes"
                # an error that is a warning as long as the job is unknown is one for those who follow the fix
                yield from (f"{said} triggers rule {other.id}" for other in rivals if verdict_of(other, facts).word == "hit")


def _left_alone(rule: Rule) -> Iterator[str]:
    """Yield releases that a fix leaves in place but its newest ones refuse: pip then moves them to the newest there is."""
    declared = open_declared()
    for fix in rule.fixes:
        for (name, spec), (mover, moved) in itertools.product(fix.along, fix.packages):
            left, package = declared.package(normalized(name)), declared.package(normalized(mover))
            newest = next((each for each in reversed(_finals(package)) if contains(ranges_of(moved), key_of(each))), None)
            if left is None or package is None or newest is None:
                continue
            for asked, ranges, _, extra in package.requirements(package.place(newest) or 0, normalized(name)):
                inside = (each for each in _finals(left) if contains(ranges_of(spec), key_of(each)))
                refused = next((each for each in inside if not contains(ranges, key_of(each))), None)
                if extra is None and refused is not None:
                    yield f"along leaves {name} {refused}, but {mover} {newest} requires {asked}: narrow the range {spec}"


def _unread(rule: Rule, about: Mapping[str, Sequence[Rule]]) -> Iterator[str]:
    """Yield the exemptions and settings that rest on a variable which some of the releases that they are for ignore."""
    if rule.id.endswith(_IGNORED):
        return
    fixes = ((*fix.when, HasVariable(fix.value.partition("=")[0], "set")) for fix in rule.fixes if fix.kind == "env-var")
    parts: list[tuple[Condition, ...]] = [*rule.unless, *fixes]
    for name, bad in rule.ranges.items():
        others = [other for other in about.get(name, ()) if other.id.endswith(_IGNORED) and name in other.ranges]
        for part, other in itertools.product(parts, others):
            releases = intersect(bad, other.ranges[name])
            for each in part:
                if isinstance(each, HasPackage) and each.name == name and each.how == "in":
                    releases = intersect(releases, each.ranges)
            ignored = {each.name for each in other.when if isinstance(each, HasVariable) and each.how != "contains"}
            for variable in sorted(ignored.intersection(each.name for each in part if isinstance(each, HasVariable))):
                if releases:
                    yield f"{name} {written(releases)} ignores {variable}: keep it out of the exemption or the fix"


def _finals(package: Package | None) -> list[str]:
    return [] if package is None else [each for each in package.versions if re.fullmatch(r"[\d.]+", each)]


def _rivals(rule: Rule, fix: FixTemplate, environment: Environment, about: Mapping[str, Sequence[Rule]]) -> Iterator[Rule]:
    """Other rules of severity error about a distribution that the fix changes, unless what it leaves alone rules them out."""
    moved = [normalized(name) for name, _ in fix.packages]
    touched = {*moved, *(name for name, _ in fix.along)}
    before = Facts(environment)
    for other in {each.id: each for name in moved for each in about.get(name, ())}.values():
        left = (each for each in other.packages if each.name not in touched)
        if other.severity == "error" and other is not rule and not any(holds(each, before) is False for each in left):
            yield other


def applied(fix: FixTemplate, environment: Environment, about: Mapping[str, Sequence[Rule]]) -> Iterator[Environment]:
    """Yield the environment after a fix, once for each part of the fix's range that the rules distinguish.

    Yields nothing for fixes whose effect is unknown (a driver, a configuration described in text).
    """
    if fix.kind in ("upgrade", "downgrade", "pin"):
        yield from _moved(fix, environment, about)
    elif fix.kind == "source-install":
        yield _from_source(fix, environment)
    elif fix.kind == "uninstall":
        gone = {normalized(name) for name, _ in fix.packages}
        yield replace(environment, distributions=tuple(d for d in environment.distributions or () if d.name not in gone))
    elif fix.kind == "launch" and fix.value.split()[0] in ("accelerate", "torchrun", "deepspeed"):
        work = environment.workload or Workload()
        yield replace(environment, workload=replace(work, launcher=fix.value.split()[0], processes=None))
    elif fix.kind == "env-var" and "=" in fix.value:
        name, _, value = fix.value.partition("=")
        yield visible(replace(environment, variables={**(environment.variables or {}), name: value}))


def _moved(fix: FixTemplate, environment: Environment, about: Mapping[str, Sequence[Rule]]) -> Iterator[Environment]:
    """The packages of the fix at the lowest version it allows, with each in turn at every version the rules distinguish."""
    places = {normalized(name): _places(normalized(name), spec, about) for name, spec in fix.packages}
    lowest = {name: found[0] for name, found in places.items() if found}
    there = {each.name for each in environment.distributions or ()}
    lowest |= {name: found[0] for name, spec in fix.along if name in there and (found := _places(name, spec, about))}
    for name, found in places.items():
        for version in found:
            yield _with(environment, {**lowest, name: version})


def _places(name: str, spec: str, about: Mapping[str, Sequence[Rule]]) -> list[object]:
    """Comparison keys for the versions in ``spec`` that the bounds of rules about ``name`` distinguish."""
    ranges = ranges_of(spec)
    bounds = {key for interval in ranges for key in (interval[0], interval[2]) if key}
    for rule in about.get(name, ()):
        for each in rule.packages:
            if each.name == name and each.how == "in":
                bounds |= {key for interval in each.ranges for key in (interval[0], interval[2]) if key}
    cells = sorted(cell for bound in bounds for cell in (bound, (*bound, 0)))
    cells += [_below(interval[2]) for interval in ranges if interval[2]]  # the version that an installer selects
    return [cell for cell in cells if contains(ranges, cell)]


def _below(key: Key) -> Key:
    """A comparison key just below a release."""
    release = list(key[1]) or [0]
    release[-1] = max(release[-1] - 1, 0)
    return key_of(".".join(map(str, (*release, 9999))))


def _with(environment: Environment, versions: dict[str, Any]) -> Environment:
    kept = [d for d in environment.distributions or () if d.name not in versions]
    moved = [Distribution(name=name, version=version, source=Source("index")) for name, version in versions.items()]
    return replace(environment, distributions=(*kept, *moved))


def _from_source(fix: FixTemplate, environment: Environment) -> Environment:
    commits = {normalized(name): where.rpartition("@")[2] for name, where in fix.packages}
    return replace(environment, distributions=tuple(
        replace(d, source=Source("vcs", {"commit": commits[d.name]}), version=fix.version or d.version)
        if d.name in commits else d
        for d in environment.distributions or ()
    ))  # fmt: skip
