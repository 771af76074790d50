"""Diagnosis of pasted text, which is read both as a description of an environment and as an error."""

from __future__ import annotations

import re

from compat.api.commands import Options
from compat.api.targets import apply_options, threshold_code
from compat.checks import check_environment, named_devices
from compat.checks.advice import with_best_fixes
from compat.checks.questions import likelihood_of
from compat.checks.together import contradiction
from compat.diagnosis.diagnose import diagnose
from compat.diagnosis.experiences import EXPERIENCE
from compat.diagnosis.frame_packages import innermost_packages
from compat.diagnosis.later_patches import later_patches
from compat.errors import InputError
from compat.model import Distribution, Environment, Finding, Report, Workload
from compat.records import record, replace
from compat.reports.lines import legible
from compat.reports.log.native import FAILURE, NOTICE, native_weight
from compat.reports.log.traceback import RaisedError, decisive, parse_log, versions_in
from compat.reports.pasted import read_pasted
from compat.reports.stated import stated_in
from compat.reports.wrapped import readings
from compat.rules.compiled import Matrix


@record(frozen=True)
class Diagnosis:
    """The diagnosis of the errors in a text, with the environment used for it."""

    environment: Environment
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    errors: tuple[RaisedError, ...]


def environment_in(text: str) -> tuple[Environment, tuple[str, ...]]:
    """The environment described in a text, by reports, lists, logs, error messages or prose."""
    try:
        environment, notes = read_pasted(text, "the text")
    except InputError:  # an error alone describes no environment
        environment, notes = Environment(), ()
    return _filled(environment, stated_in(text)), notes


def shows_error(errors: tuple[RaisedError, ...]) -> bool:
    """Whether any of them is a real error, or a warning known to name a cause, rather than noise in the log."""
    return any(error.exception or error.frames or native_weight(error.message) in (FAILURE, NOTICE) for error in errors)


def with_versions_of(text: str, environment: Environment) -> tuple[Environment, tuple[str, ...]]:
    """A known environment with the facts a text adds, and a note for each package whose versions differ."""
    named = versions_in(text)
    known = {copy.name: copy.version for copy in environment.distributions or ()}
    notes = tuple(
        f"the text names {name} {version}, but the environment has {known[name]}: the error may come from another environment"
        for name, version in named.items()
        if known.get(name) not in (None, version) and str(known[name]).partition("+")[0] != version.partition("+")[0]
    )
    told = Environment(distributions=tuple(Distribution(name=name, version=version) for name, version in named.items()))
    return _filled(_filled(environment, told), stated_in(text)), notes


def report_on(text: str, given: Environment | None, options: Options, matrix: Matrix) -> Report:
    """Diagnose the errors in a text for the environment ``given``, or (``None``) for the one that the text describes."""
    text = legible(text)
    if not text.strip():
        raise InputError("the text is empty: expected a traceback or a log")
    environment, notes = environment_in(text) if given is None else with_versions_of(text, given)
    found = diagnose_text(text, apply_options(environment, options), matrix)
    if found.findings:
        notes = (*notes, *found.notes, *contradiction(found.findings))
        return Report(found.environment, found.findings, notes, threshold_code(found.findings, options))
    findings = known_of(text, found, matrix)
    if not findings and not shows_error(found.errors):
        findings = _of_combination(found.environment, matrix)
        notes = (*notes, *((_ONLY_LISTED,) if found.environment.distributions else ()))
    patches, others = later_patches(text, found.errors, found.environment)
    notes = (*notes, *found.notes, *unexplained(found.errors), *others)
    findings = findings or patches
    return Report(found.environment, findings, notes, threshold_code(findings, options))


_OF_LOSS = (
    r"\b(?:loss|grad_norm|gradients?)\b.{0,60}(?:\b0\.0\b|\bzero\b|increas|higher|incorrect|wrong|inconsisten|diverg"
    r"|explod|not (?:converg|decreas|match))"
)
_WRONG = (
    r"\b(?:wrong|incorrect|garbage|gibberish|inconsistent|different) (?:results?|outputs?|loss\w*|values?|gradients?|accuracy)"
)
_CONFLICT = r"\b(?:dependency|version|resolution) conflict|\b(?:not compatible|incompatible|cannot install)\b|冲突|不兼容"
_FAILS = (
    r"\b(?:errors?|crash\w*|fails?|failed|failing|exception|segfault\w*|impossible|unable|cannot|broken)\b|\bn[o'’]t work"
    r"|报错|失败"
)
_REPORTED = {
    "hang": r"\b(?:hang|hangs|hanging|hung|stuck|deadlock\w*|freez\w+|frozen)\b|卡住|卡死|挂起",
    "memory": r"\bOOM\b|\bout ?of ?memory|\bmemory (?:usage|use|leak|consumption|increas\w+|grow\w*)|显存",
    "slow": r"\bslow(?:er|ly|down)?\b|\bperformance (?:regress\w+|degrad\w+|drop)|训练速度",
    "wrong-result": rf"\bnan\b|{_OF_LOSS}|{_WRONG}",
    "install": _CONFLICT,
    "crash": _FAILS,
}
_QUIETLY = ("hang", "memory", "slow", "wrong-result")
"""Effects without an error message: a rule whose packages match is worth asking about if the text reports its effect."""
_MOST_KNOWN = 3
_LIKELY = 0.15
"""The minimum chance of a question: less than a check asks for, since the text reports the effect."""


def reported_effects(text: str, errors: tuple[RaisedError, ...]) -> frozenset[str]:
    """The effects of rules that a text reports in words, such as ``hang``.

    A rule about a crash is no explanation of an exception that it does not match.
    """
    said = {effect for effect, words in _REPORTED.items() if re.search(words, text, re.IGNORECASE)}
    return frozenset(said - {"crash", "install"} if any(error.exception for error in errors) else said)


_TASKS = re.compile(
    r"\b(?P<task>SFT|GRPO|DPO|PPO|ORPO|KTO|CPO|RLOO)(?:Trainer|Config|[Tt]rainer)?\b|\b(?P<name>grpo|sft|dpo) trainer\b"
)
_FEATURES = (
    ("vllm", r"\buse_vllm ?= ?True|\bvllm_mode\b|\bvLLM (?:option|mode|server|colocat)|\b(?:with|using) vLLM\b"),
    ("zero-2", r"\bzero[- _]?(?:stage )?2\b"),
    ("zero-3", r"\bzero[- _]?(?:stage )?3\b"),
    ("fsdp", r"\bFSDP[12]?\b"),
    ("peft", r"\bQ?LoRA\b|\bPEFT\b"),
    ("gradient-accumulation", r"\bgradient[ _-]accumulation\b|\bgradient_accumulation_steps ?[=:] ?(?:[2-9]|\d\d)"),
    ("packing", r"\bpacking ?[=:] ?True\b"),
    ("liger", r"\buse_liger(?:_kernel)? ?[=:] ?True\b"),
    ("liger-loss", r"\buse_liger_loss ?[=:] ?True\b"),
    ("label-smoothing", r"\blabel_smoothing_factor\b"),
    ("completion-only-loss", r"\bcompletion_only_loss ?[=:] ?True\b"),
    ("assistant-only-loss", r"\bassistant_only_loss ?[=:] ?True\b"),
    ("flash-attention", r"\bflash_attention_[23]\b"),
    ("guided-request-fields", r"\bguided_(?:json|choice|regex|grammar)\b"),
    ("gradient-checkpointing", r"\bgradient[ _-]checkpointing(?: ?= ?True\b)?"),
)


def _job_in(text: str) -> Workload:
    """The one trainer that an issue names and what it says is used with it."""
    tasks = {(match["task"] or match["name"]).lower() for match in _TASKS.finditer(text)}
    features = tuple(name for name, words in _FEATURES if re.search(words, text, re.IGNORECASE))
    return Workload(task=tasks.pop() if len(tasks) == 1 else None, features=features or None)


_ONLY_LISTED = "the packages that the text lists were checked, as compat check --pasted does"


def _of_combination(environment: Environment, matrix: Matrix) -> tuple[Finding, ...]:
    """What certainly fails with the packages that a text lists, if it shows no error: the output of ``pip list`` alone."""
    if not environment.distributions:
        return ()
    environment, findings, _ = check_environment(environment, matrix)
    return with_best_fixes(tuple(filter(_holds, findings)), environment, matrix)


def known_of(text: str, found: Diagnosis, matrix: Matrix) -> tuple[Finding, ...]:
    """What is known to be bad in the environment of a text without a known error, and has an effect that the text reports."""
    environment, effects = found.environment, reported_effects(text, found.errors)
    if not environment.distributions:
        return ()
    if environment.workload is None:
        environment = replace(environment, workload=_job_in(text))
    environment, findings, _ = check_environment(environment, matrix)
    known = [each for each in findings if each.effect in effects and (_holds(each) or _may_be_seen(each))]
    known.sort(key=lambda each: (not _holds(each), each.effect not in _QUIETLY, each.order()))
    return with_best_fixes(tuple(map(_reported, known[:_MOST_KNOWN])), environment, matrix)


def _holds(finding: Finding) -> bool:
    return finding.verdict == "hit" and finding.severity != "info"


def _may_be_seen(finding: Finding) -> bool:
    """Whether a rule only waits for facts of the job or the machine: its effect has no message, or it is about such a job."""
    if finding.origin != "rule" or None in finding.packages.values():
        return False
    waits = not any(each.startswith("distributions") for each in finding.unknown)
    return waits and likelihood_of(finding) >= _LIKELY and (finding.effect in _QUIETLY or "workload" in finding.facts)


def _reported(finding: Finding) -> Finding:
    """A finding whose effect is reported, which is no longer too unlikely to warn about."""
    effect = "a failure" if finding.effect in ("crash", "install") else f"this effect ({finding.effect})"
    severity = "warning" if finding.severity == "info" else finding.severity
    return replace(finding, severity=severity, here=", ".join(filter(None, (finding.here, f"the text reports {effect}"))))


def diagnose_text(text: str, environment: Environment, matrix: Matrix) -> Diagnosis:
    """Diagnose the errors in a text for an environment.

    If no rule knows them, or some frames cannot be read, it may be wrapped or cut: the reading that explains more is taken.
    """
    best = _diagnosed(text, parse_log(text), environment, matrix)
    for reading in readings(text):
        errors = parse_log(reading)
        if _explains(best) < _BY_RULE or _extent(errors) > _extent(best.errors):
            other = _diagnosed(reading, errors, environment, matrix)
            if (_explains(other), _extent(errors)) > (_explains(best), _extent(best.errors)):
                best = other
    return replace(best, findings=with_best_fixes(best.findings, best.environment, matrix))


def _extent(errors: tuple[RaisedError, ...]) -> tuple[int, int, int]:
    """How much of the errors could be read: frames, letters of messages, and how few line breaks are among these."""
    messages = "".join(error.message for error in errors)
    return sum(len(error.frames) for error in errors), len("".join(messages.split())), -messages.count("\n")


def _diagnosed(text: str, errors: tuple[RaisedError, ...], environment: Environment, matrix: Matrix) -> Diagnosis:
    environment, notes = named_devices(_with_task(environment, errors))
    return Diagnosis(environment, diagnose(text, errors, decisive(errors), environment, matrix), notes, errors)


_NOT, _SOMEHOW, _BY_RULE = range(3)


def _explains(diagnosis: Diagnosis) -> int:
    """How well a diagnosis explains a text: not at all (what its author observed is no explanation), somehow, by a rule."""
    origins = {each.origin for each in diagnosis.findings if each.rule != EXPERIENCE}
    return _BY_RULE if "rule" in origins else _SOMEHOW if origins else _NOT


def _filled(environment: Environment, told: Environment) -> Environment:
    """The environment completed with facts from the other one; a complete package list is never extended."""
    names = {copy.name for copy in environment.distributions or ()}
    new = tuple(copy for copy in told.distributions or () if copy.name not in names)
    changes = {
        name: getattr(told, name)
        for name in ("python", "accelerators", "cuda_toolkit", "os", "machine", "glibc")
        if getattr(environment, name) is None and getattr(told, name) is not None
    }
    if new and not environment.distributions_complete:
        changes["distributions"] = (*(environment.distributions or ()), *new)
    return replace(environment, **changes) if changes else environment


_TRAINER = re.compile(
    r"trl[/\\]trainer[/\\](?P<task>sft|grpo|dpo|ppo|orpo|kto|cpo|bco|reward|rloo|online_dpo|xpo|nash_md)_trainer\.py$"
)


def _with_task(environment: Environment, errors: tuple[RaisedError, ...]) -> Environment:
    """The environment with the task shown by the frames of the errors, if neither task nor trainer is known."""
    workload = environment.workload or Workload()
    if workload.task is not None or workload.trainer is not None:
        return environment
    tasks = {match["task"] for error in errors for frame in error.frames if (match := _TRAINER.search(frame.file))}
    if len(tasks) != 1:  # trainers import one another, so several tasks are ambiguous
        return environment
    return replace(environment, workload=replace(workload, task=tasks.pop().replace("_", "-")))


def unexplained(errors: tuple[RaisedError, ...]) -> tuple[str, ...]:
    """Notes on errors that no rule matches: the main error, search terms, and the packages involved."""
    order = [number for number in decisive(errors) if errors[number].exception or errors[number].message.strip()]
    if not order:
        cut = " (it ends before the error message)" if errors else ""
        return (f"no error found in the text{cut}; paste the whole traceback, from 'Traceback' to the last line",)
    error = errors[order[0]]
    last = _first_line(error)
    name = f"{error.exception}: {last}" if error.exception else last
    both = [name for name in innermost_packages(error) if name]
    where = f" (in the issues of {' and '.join(both)})" if both else ""
    return (
        f"no rule matches the main error (line {error.line}): {name}",
        f"search for: {search_terms(error)}{where}",
    )


def _first_line(error: RaisedError) -> str:
    return error.message.strip().partition("\n")[0].strip()


_OF_ONE_RUN = re.compile(r"0x[0-9a-f]+|\W*\d[\d.,:]*\W*|\S*[/\\]\S*")
"""A word that differs from run to run: an address, a number, a path, the name of a model."""
_LONGEST_TERM, _MOST_TERMS = 120, 3


def search_terms(error: RaisedError) -> str:
    """The class and the longest parts of the message without words specific to one run, each quoted, in their order."""
    parts: list[list[str]] = [[]]
    for word in _first_line(error)[:2000].split():
        if _OF_ONE_RUN.fullmatch(word):
            parts.append([])
        else:
            parts[-1].append(word)
    texts = [text[:_LONGEST_TERM].strip() for part in parts if (text := " ".join(part).strip(" ,;:()[]"))]
    longest = sorted(texts, key=len, reverse=True)[:_MOST_TERMS]
    terms = [text for text in texts if text in longest and (len(texts) == 1 or " " in text)] or texts[:1]
    name = error.exception.rpartition(".")[2] if error.exception else ""
    return " ".join(f'"{term}"' for term in (name, *dict.fromkeys(terms)) if term)
