"""The policy of ``probe``: which devices are visible, and the meaning and fix of a failure."""

from __future__ import annotations

from collections.abc import Mapping

from compat.checks import builds
from compat.diagnosis.diagnose import diagnose
from compat.model import Distribution, Environment
from compat.probe.request import FAILED, ProbeReport, ProbeResult, Request, exit_code
from compat.probe.session import probe as run_probes
from compat.records import replace
from compat.reports.log.frames import RaisedError
from compat.rules.compiled import open_matrix
from compat.rules.facts import Facts, visible
from compat.tables.hardware import open_peaks


def probe(request: Request, environment: Environment) -> ProbeReport:
    """Run the requested probes on the devices of the environment, and explain failures.

    Raises :class:`InputError` for a device that does not exist and :class:`compat.probe.session.NoTorch` if torch is not
    installed.
    """
    report = run_probes(request, environment, visible(environment), peak_rates)
    results = explained(report.results, environment, report.stacks)
    return replace(report, results=results, exit=exit_code(results, device_required=request.device_required))


def peak_rates() -> list[dict[str, object]]:
    """Peak rates of GPUs as published by their vendors: name, TFLOP/s by type, GB/s and source (``gpu_peaks.csv``)."""
    return [
        {"name": name, "pattern": pattern, "memory_gb": memory, "tflops": tflops, "gb_s": bandwidth, "source": source}
        for name, pattern, memory, tflops, bandwidth, source in open_peaks()
    ]


def explained(
    results: tuple[ProbeResult, ...], environment: Environment, stacks: Mapping[str, Mapping[str, object]]
) -> tuple[ProbeResult, ...]:
    """The results with explanations of failures; a CPU-only torch on a machine with a GPU is added as a failure."""
    cpu_only = _cpu_only(environment, stacks)
    kept = [result for result in results if result.fix != "cpu-only"]
    if cpu_only is not None:
        kept.append(cpu_only)
    return tuple(_with_meaning(each, environment) if each.status == FAILED and not each.fix else each for each in kept)


def _cpu_only(environment: Environment, stacks: Mapping[str, Mapping[str, object]]) -> ProbeResult | None:
    """A CPU-only torch on a machine with a GPU: one failure for all devices, with the build that fixes it."""
    stack = next(iter(stacks.values()), None)
    if not any(name != "cpu" for name in stacks) or stack is None or stack.get("cuda") or stack.get("hip"):
        return None
    version = str(stack["torch"])
    labelled = version if "+" in version else f"{version}+cpu"
    there = [each for each in environment.distributions or () if each.name != "torch"]
    described = replace(environment, distributions=(*there, Distribution("torch", labelled)))
    found = next((each for each in builds.judge(Facts(described)) if each.rule == "build-torch-cpu-only"), None)
    name = next((each.name for each in environment.accelerators or () if each.name), "an accelerator")
    why = f"torch {version} is a CPU-only build, but this machine has {name}: nothing in this stack runs on the GPU"
    fix = next((each.command for each in found.fixes if each.command), None) if found else None
    return ProbeResult(
        "torch/build", "cuda", FAILED, why, {"cuda": None}, {"cuda": "that of the installed build"},
        fix=fix or f'pip install --force-reinstall "torch=={version.partition("+")[0]}"',
    )  # fmt: skip


def _with_meaning(result: ProbeResult, environment: Environment) -> ProbeResult:
    """The result with the diagnosis of its message: the finding's title, and its first fix that is a command."""
    if not result.why or result.measured:  # a wrong number says nothing about builds
        return result
    text = "\n".join((result.why, *result.last_words))
    kind, colon, message = result.why.rpartition("last words: ")[2].partition(": ")
    error = RaisedError(kind if colon else None, message or result.why, (), None, 1)
    found = diagnose(text, (error,), (0,), environment, open_matrix(()))
    if not found:
        return result
    best = found[0]
    fix = next((each.command for each in best.fixes if each.command), None) or next((each.text for each in best.fixes), None)
    said = result.why if result.group == "extensions" else f"{result.why} ({best.title})"  # these already explain it
    return replace(result, why=said, fix=fix)
