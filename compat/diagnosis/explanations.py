"""Explain an error by its message alone, whichever release is at fault: no kernel for the GPU, a missing library or name.

A symptom does not identify a bug. It explains the message in terms of builds and releases, and names only what the text
names. If a derived finding about the environment explains the symptom, that finding is returned instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compat.checks.guards import ENGINES, releases_accepting_gpu
from compat.checks.torch_build import name_and_code
from compat.diagnosis.changed_names import of_new_function
from compat.diagnosis.contemporaries import not_yet_there, of_their_time
from compat.diagnosis.devices import (
    cuda_above_driver,
    cuda_wheel,
    driver_of,
    for_driver,
    for_gpu,
    image_before,
    only_kind,
    overrides,
    toolkit_for,
    torch_for_device,
)
from compat.diagnosis.failing_lines import explain_failing_line
from compat.diagnosis.frame_packages import distribution_of_module, innermost_packages, version_of
from compat.diagnosis.installations import find_missing_file, not_importable, violated_requirements
from compat.diagnosis.interface_errors import between_packages, explain_interface_errors
from compat.diagnosis.libraries import explain_loader_message
from compat.diagnosis.loader import COME_WITH_TORCH, WITH_KERNELS, only_extension, packages_in
from compat.diagnosis.missing_packages import asked_for
from compat.diagnosis.missing_wheels import failed_builds, not_offered
from compat.diagnosis.model_support import unknown_model, unknown_model_in
from compat.diagnosis.python_messages import by_class, refused_argument, with_call
from compat.diagnosis.resolver_messages import explain_resolver_messages
from compat.diagnosis.stated import STATED, met_requirements, stated_requirements
from compat.diagnosis.symptoms import Symptom, general_rules, symptoms
from compat.model import Accelerator, Finding, Fix, normalized
from compat.records import replace
from compat.reports.words import distribution_of
from compat.rules.facts import Facts, cuda_facts
from compat.tables.hardware import driver_cuda
from compat.workload.trainers import TRAINERS

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError

    Match = re.Match[str]


MOST = 3
"""Maximum number of errors considered, most decisive first."""


def explain_symptoms(
    text: str, errors: Sequence[RaisedError], order: Sequence[int], facts: Facts, derived: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Return findings for the symptoms of the most decisive errors, in their order; empty if no error shows a symptom."""
    if found := failed_builds(text, facts) or not_offered(text, facts) or explain_resolver_messages(text, facts):
        named = {name for each in found for name in each.packages}
        proven = any(each.verdict == "hit" for each in found)
        return (*found, *(each for each in _unavailable(text, facts) if not proven and named.isdisjoint(each.packages)))
    for number in order[:MOST]:
        error = with_call(errors[number], text)
        found += (
            unknown_model(error, text, facts)
            or _of_error(error, text, facts, derived)
            or explain_interface_errors(error, facts)
        )
        found = found or find_missing_file(error, facts)
        if found and found[0].rule not in general_rules():
            break
    found = [finding for finding in found if finding.rule not in general_rules()] or found
    if not found:
        found = (
            unknown_model_in(text, facts) or stated_requirements(text, 1, facts) or _matching(text, 0, "", None, facts, derived)
        )
        found = found or [each for number in order[:1] for each in _of_trainer(errors[number], facts)]
        found = found or [
            each for number in order[:1] for each in met_requirements(errors[number], facts) or asked_for(errors[number], facts)
        ]
    elif found[0].rule in ("symptom-conflicting-requirements", STATED):
        listed = [*stated_requirements(text, 1, facts), *_unavailable(text, facts)]  # an installer lists several, one per line
        found = [*listed, *(each for each in found if each.rule != "symptom-conflicting-requirements" or not listed)]
    return tuple({(finding.rule, finding.title): finding for finding in found}.values())


def _of_trainer(error: RaisedError, facts: Facts) -> list[Finding]:
    """Explain an argument that some call rejects by the trainer of the task and its configuration, if it was one of theirs."""
    argument, trainer = refused_argument(error), TRAINERS.get(str(facts.value("workload.task")), "")
    if not argument or not trainer or not isinstance(facts.package("trl"), list):
        return []
    classes = (trainer, f"{trainer.removesuffix('Trainer')}Config")
    return next((found for name in classes if (found := explain_interface_errors(by_class(error, name, argument), facts))), [])


_WITHOUT_GPU = ("build-torch-cpu-only", "build-torch-vendor", "build-torch-driver")
"""Findings about a torch that does not see the GPU."""


_LOADING = re.compile(r"[Cc]ould not load lib\w{1,40}")
"""A package's own message before those of the loader, which do not name it."""


def _unavailable(text: str, facts: Facts) -> list[Finding]:
    symptom = next(each for each in symptoms() if each.name == "no-such-release")
    match = symptom.search(text)
    return [] if match is None else [_finding(symptom, match, "the text", "", None, facts)]


def between(
    text: str, errors: Sequence[RaisedError], order: Sequence[int], facts: Facts, derived: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Return what only concerns the packages of the most decisive errors, if nothing explains the messages.

    That is a missing name that no table lists, a requirement that they violate, or an import that fails for a hidden reason.
    """
    decisive = [errors[number] for number in order[:MOST]]
    named = next((found for error in decisive if (found := between_packages(error, facts))), None)
    return tuple(
        named
        or violated_requirements(decisive, text, derived)
        or next((found for error in decisive if (found := not_importable(error, facts, derived))), None)
        or next((found for error in decisive if (found := of_new_function(error, facts))), ())
        or next((found for error in decisive if (found := explain_failing_line(error, facts))), ())
        or next((found for error in decisive if (found := not_yet_there(error, facts))), ())
    )


def _of_error(error: RaisedError, text: str, facts: Facts, derived: Sequence[Finding]) -> list[Finding]:
    if found := stated_requirements(error.message, error.line, facts, in_words=False):
        return found
    message = f"{error.exception or ''}: {error.message}"
    before = text.split("\n")[max(0, error.line - 9) : error.line - 1]  # a traceback without paths still shows its code
    loading = _LOADING.search(text)
    named = f"{loading[0]}: " if loading is not None else ""
    found = _matching(message, error.line, "\n".join(before)[-1000:], error, facts, derived, named)
    return found or stated_requirements(error.message, error.line, facts)


def _matching(
    message: str, line: int, before: str, error: RaisedError | None, facts: Facts, derived: Sequence[Finding], loading: str = ""
) -> list[Finding]:
    where = f"the error on line {line} of the text" if line else "the text"
    if found := explain_loader_message(f"{loading}{message}", where, error, facts, derived):
        return found
    several = _several_devices(facts)
    for symptom in symptoms():
        match = symptom.search(message, several=several)
        if match is None:
            continue
        known = [each for each in derived if each.rule.startswith(symptom.explained_by)] if symptom.explained_by else []
        if symptom.name == "capability-too-low" and match["what"]:  # the method's minimum, which changes between releases
            known = []
        if symptom.kernels:  # torch has started on the GPU
            known = [each for each in known if each.rule not in _WITHOUT_GPU]
        if known:
            return [_explaining(each, where) for each in known]
        return [_finding(symptom, match, where, before, error, facts)]
    return []


def _several_devices(facts: Facts) -> bool:
    """Whether the job is known to have several GPUs or processes."""
    processes = facts.value("workload.processes")
    return len(facts.environment.accelerators or ()) > 1 or (isinstance(processes, int) and processes > 1)


def _explaining(finding: Finding, where: str) -> Finding:
    """Return a finding about the environment as the explanation of an error, which it is even if it need not hurt."""
    severity = "warning" if finding.severity == "info" else finding.severity
    return replace(finding, severity=severity, here=f"{where}, {finding.here}")


def of_description(symptom: Symptom, text: str, facts: Facts) -> Finding:
    """Return the finding for a symptom that a text describes without its message."""
    return _explained(symptom, {}, text, text, "the words of the text", "", None, facts)


def _finding(symptom: Symptom, match: Match, where: str, before: str, error: RaisedError | None, facts: Facts) -> Finding:
    groups = {re.sub(r"_\d$", "", name): value for name, value in match.groupdict().items() if value}
    around = match.string[max(0, match.start() - 400) : match.end() + 200]
    return _explained(symptom, groups, match.string, around, where, before, error, facts)


def _explained(
    symptom: Symptom,
    said: Mapping[str, str],
    text: str,
    around: str,
    where: str,
    before: str,
    error: RaisedError | None,
    facts: Facts,
) -> Finding:
    """Return the finding for a symptom.

    ``said`` are the groups of its pattern, ``text`` is all that was searched, ``around`` what stands near the message.
    """
    groups = dict(said)
    filled = (_filled(name, groups) for name in symptom.packages)
    names = [next(iter(packages_in(name)), None) or distribution_of(name) or distribution_of_module(name) for name in filled]
    names = names or packages_in(around)
    if not names and error is not None:
        met = [normalized(name) for name in innermost_packages(error)]
        names = [name for name in met if not symptom.kernels or name in WITH_KERNELS][-1:]
    names = names or packages_in(before)[-1:]
    if not names and symptom.kernels:
        names = only_extension(facts, COME_WITH_TORCH)
    is_named = bool(names)
    names = names or list(symptom.else_packages)
    groups["package"] = names[0] if names else ""
    device = only_kind(facts)
    groups.setdefault("toolkit", toolkit_for(groups.get("code") or groups.get("option") or ""))
    groups["gpu"] = _gpu(symptom, groups.get("code"), device)
    groups["capability"] = (None if device is None else device.compute_capability) or "<compute capability>"
    of_torch = names[:1] != ["flashinfer-python"] or "TORCH_CUDA_ARCH_LIST" in (facts.environment.variables or {})
    groups["architectures"] = "TORCH_CUDA_ARCH_LIST" if of_torch else "FLASHINFER_CUDA_ARCH_LIST"
    of_cuda = {"driver", "cuda_toolkit"} <= {*symptom.facts}
    known = cuda_facts(facts.environment, driver_cuda(facts.environment)) if of_cuda else ()
    return Finding(
        rule=f"symptom-{symptom.name}",
        origin="build",
        verdict="possible",
        effect=symptom.effect,
        title=_filled(symptom.title, groups if is_named else {**groups, "package": ""}),
        why=_filled(symptom.why, groups),
        confidence="reported",
        packages={name: version_of(name, facts) for name in names},
        facts=symptom.facts,
        fixes=tuple(_filled_fix(fix, groups) for fix in _fixes(symptom, said, text, device, names, facts)),
        evidence=symptom.evidence,
        here=", ".join((where, *known)),
    )


def _gpu(symptom: Symptom, code: str | None, device: Accelerator | None) -> str:
    if device is not None and (code is None or code == device.gfx):
        return name_and_code(device)
    return f"this {'AMD ' if symptom.name.startswith('hip') else ''}GPU{f' ({code})' if code else ''}"


def _fixes(
    symptom: Symptom, said: Mapping[str, str], text: str, device: Accelerator | None, names: Sequence[str], facts: Facts
) -> tuple[Fix, ...]:
    """Return the fixes of a symptom, with releases in place of placeholders if the message or the environment tells which.

    ``said`` are the groups of its pattern in the ``text``.
    """
    found: tuple[Fix, ...] = ()
    if symptom.name == "hip-no-code" and device is not None and (known := tuple(overrides(device))):
        return (*known, *(fix for fix in symptom.fixes if fix.kind != "env-var"))
    if symptom.name == "no-kernel-image" and device is not None and names == ["torch"]:
        found = torch_for_device(device, facts)
        return (*found, *symptom.fixes[1:]) if found else symptom.fixes
    if symptom.name == "capability-too-low" and said.get("what"):
        for package in [name for name in names if name in ENGINES] or ENGINES:
            found += tuple(
                releases_accepting_gpu(package, (f"quantization={said['what']}",), version_of(package, facts) or "", facts)
            )
        return (*found, *symptom.fixes)
    if symptom.name == "container-driver" and said.get("what") == "cuda":
        return (*driver_of(said["spec"], facts), *image_before(said["spec"], facts), *symptom.fixes[1:])
    if symptom.name == "forward-compatibility" and (newer := cuda_above_driver(facts)):
        return (*driver_of(newer, facts), *image_before(newer, facts), *symptom.fixes[1:])
    if symptom.written_for:
        return (*of_their_time(*symptom.written_for, facts), *symptom.fixes)
    if symptom.name == "driver-too-old":
        found = for_driver(text, facts)
    elif symptom.name == "torch-gpu" and said.get("code"):
        found = for_gpu(said["code"], facts)
        if version_of("torch", facts) is None:  # the release that was running may have a build for another CUDA
            found += tuple(fix for fix in symptom.fixes if fix.kind == "source-install")
    fixes = (*(fix for fix in symptom.fixes if fix.package != "torch"), *found) if found else symptom.fixes
    return tuple(_for_cuda(fix, facts) for fix in fixes)


def _for_cuda(fix: Fix, facts: Facts) -> Fix:
    """Return a fix that names a library of CUDA with the one for the CUDA of torch."""
    name = fix.package or ""
    if not (name.startswith("nvidia-") and name.endswith("-cu12")):
        return fix
    wanted = cuda_wheel(name.removesuffix("-cu12"), facts)
    return replace(fix, package=wanted, command=fix.command and fix.command.replace(name, wanted))


def _filled(text: str, groups: Mapping[str, str]) -> str:
    """Replace each group name in braces with the matched text, or with nothing if the group did not match."""
    if "{" not in text:
        return text
    if not groups.get("package"):
        text = re.sub(r"^\{package\}", "A package", text).replace("{package}", "a package")
    text = re.sub(r"\{(\w{1,20})\}", lambda name: groups.get(name[1], ""), text)
    return text.replace("  ", " ").replace(" ()", "").rstrip(" :")


def _filled_fix(fix: Fix, groups: Mapping[str, str]) -> Fix:
    named = "{package}" not in (fix.command or "") or bool(groups.get("package"))
    return replace(
        fix,
        package=groups.get("package") or None if fix.package == "{package}" else fix.package and _filled(fix.package, groups),
        spec=fix.spec and _filled(fix.spec, groups),
        text=_filled(fix.text, groups),
        command=_filled(fix.command, groups) if fix.command and named else None,
    )
