"""Lint the rules: each example must give its stated verdict, and no fix may trigger this rule or another one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Iterator, Mapping, Sequence

from compat.checks.lint_fixes import OF_IMPORTS, environment_of, fixes_of, hits_of, left_alone, settings_of, unpinned
from compat.model import Distribution, Environment, Workload
from compat.records import record, replace
from compat.rules.evaluate import content_of, fix_of, verdict_of
from compat.rules.facts import (
    ADAPTER_TASKS,
    MODEL_FAMILIES,
    OWN_TRAINER,
    SHARDING,
    UNSLOTH,
    WITHOUT_TRAINER,
    WITHOUT_TRL,
    Facts,
    number_key,
)
from compat.rules.rule import (
    KINDS,
    LLM_TRAINING,
    OFFLINE_TRAINING,
    ONLINE_TRAINING,
    TRAINING,
    AnyOf,
    Condition,
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
from compat.versions import contains, intersect, written

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
    "flash-attention", "context-parallel", "modules-to-save", "quantized-checkpoint", "liger",
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
                *fixes_of(rule, about),
                *left_alone(rule),
                *unpinned(rule),
                *settings_of(rule),
                *_unread(rule, about),
            )
        )
    ]


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
    if LLM_TRAINING in words.get("workload.task", ()) and words.get("workload.model"):
        yield f"a script with the Trainer trains these models as well: name the task {TRAINING}"
    several = any(isinstance(each, HasDevices) and not contains(each.count, number_key(1)) for each in rule.when)
    if several and set(words.get("workload.launcher", ("python",))) <= _ONE_PROCESS_EACH:
        works = (environment_of(example).workload for example in rule.examples)
        if not any(work is not None and work.processes == 1 for work in works):
            yield "it needs several GPUs and a launcher: say in an example what one process does (processes = 1)"
    features = {each.name for each in (*rule.when, *itertools.chain(*rule.unless)) if isinstance(each, HasFeature)}
    serves = _is_about(rule, _ENGINES) and not any(ONLINE_TRAINING in kinds_of(task) for task in words.get("workload.task", ()))
    if several and serves and "workload.launcher" not in words and "tensor-parallel" not in features:
        yield "several GPUs may have a replica each: say what it needs of the feature tensor-parallel"
    yield from _by_other_trainers(rule, set(words.get("workload.task", ())), features)
    uses = any(isinstance(each, HasFeature) and each.name == "flash-attention" for each in rule.when)
    loads = rule.effect == "install" or any(each.exception == "ImportError" for each in rule.errors)
    if _is_about(rule, {"flash-attn"}) and not uses and not loads and not _is_about(rule, _TAKE_FLASH_ATTN):
        yield "installing flash-attn does not use it: ask for the feature flash-attention unless it already fails to load"
    yield from _elsewhere(rule)
    yield from _at_import(rule)


def _by_other_trainers(rule: Rule, tasks: set[str], features: set[str]) -> Iterator[str]:
    """Yield a complaint about what trl's trainers do that also holds for jobs of tools with trainers of their own."""
    if _is_about(rule, UNSLOTH):
        if tasks and tasks <= {*_OF_TOOLS, *ADAPTER_TASKS, "rloo"} and OWN_TRAINER not in features:
            yield f"unsloth patches trl's trainers, which ms-swift does without: exempt {OWN_TRAINER}, or name the task train"
    elif not tasks.isdisjoint(_OF_TOOLS) and _is_about(rule, {"trl"}) and features.isdisjoint((OWN_TRAINER, WITHOUT_TRL)):
        yield f"tools such as verl train without trl's trainers: exempt {OWN_TRAINER}, or {WITHOUT_TRL} if trl fails to load"


def _by_other_loops(rule: Rule) -> Iterator[str]:
    """Yield a complaint about what the Trainer or accelerate's FSDP does that also holds for jobs of tools without them."""
    does = "the Trainer" in f"{rule.title} {rule.why}".replace("The", "the")
    if not (does or _shards(rule)) or _is_about(rule, _DERIVE_TRAINERS):
        return
    if "Importing" in rule.title or any(each.exception in OF_IMPORTS for each in rule.errors):
        return  # what imports the Trainer need not use it
    tool = Distribution(name="verl", version="1.0")
    for example in hits_of(rule):
        named = example.workload is not None and example.workload.trainer is not None
        facts = Facts(replace(example, distributions=(*(example.distributions or ()), tool)))
        if not named and _is_about(rule, {"transformers", "accelerate"}) and verdict_of(rule, facts).word == "hit":
            yield f"tools such as verl train without transformers' Trainer: exempt {WITHOUT_TRAINER}"


def _before_a_run(rule: Rule) -> Iterator[str]:
    """Yield a complaint about what a run does that also holds for jobs that compute nothing.

    Jobs that install or build for a GPU are no exception to a rule about that GPU.
    """
    parts = itertools.chain.from_iterable(each.conditions if isinstance(each, AnyOf) else (each,) for each in rule.when)
    runs = any(isinstance(each, HasFeature) and each.name in _OF_A_RUN for each in parts)
    if rule.effect not in ("wrong-result", "hang", "memory") and not (runs and rule.effect == "crash"):
        return
    if any(each.exception in OF_IMPORTS for each in rule.errors):
        return
    if rule.severity == "info" and not rule.when:  # a remark on releases, which is not shown as long as it asks for no job
        return
    # what is installed on a GPU is meant to run on it
    of_a_gpu = any(isinstance(each, HasDevices) and (each.capability or each.gfx or each.names) for each in rule.when)
    tasks = _WITHOUT_A_RUN[:1] if of_a_gpu else _WITHOUT_A_RUN
    for example in hits_of(rule):
        work = example.workload or Workload()
        jobs = ((task, replace(example, workload=replace(work, task=task, trainer=None))) for task in tasks)
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
    for example in hits_of(rule):
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


def _at_import(rule: Rule) -> Iterator[str]:
    """Yield what is wrong with the exemptions of a rule about an import: it fails in a job that only imports, too."""
    if rule.title.startswith("import ") and rule.title.split()[2:3] in (["fails"], ["fails:"]):
        for group in rule.unless:
            [each, *others] = group
            if not others and isinstance(each, IsOneOf) and each.path == "workload.task" and "import" in each.words:
                yield "an import fails in a job that only imports, too: do not exempt the task import"


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
