"""What a failed probe means: its message held against the matrix and the tables of builds, and what would mend it."""

from __future__ import annotations

from compat.probe.results import FAILED, ProbeResult
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from compat.environment import Environment
    from compat.probe.devices import Devices
    from compat.report import Finding


def explained(
    results: tuple[ProbeResult, ...], environment: Environment, stacks: Mapping[str, Mapping[str, Any]], devices: Devices
) -> tuple[ProbeResult, ...]:
    """The results, a failed one with what its message means; a torch for CPU only beside a GPU becomes a failed one."""
    cpu_only = _cpu_only(environment, stacks, devices)
    kept = [result for result in results if result.mend != "cpu-only"]
    if cpu_only is not None:
        kept.append(cpu_only)
    return tuple(_with_meaning(each, environment) if each.status == FAILED and not each.mend else each for each in kept)


def _cpu_only(environment: Environment, stacks: Mapping[str, Mapping[str, Any]], devices: Devices) -> ProbeResult | None:
    """A torch without GPU code beside a GPU: one finding for all of its devices, with the build that mends it."""
    stack = next(iter(stacks.values()), None)
    if not devices.cuda or stack is None or stack.get("cuda") or stack.get("hip"):
        return None
    from compat.environment import Distribution

    version = str(stack["torch"])
    labelled = version if "+" in version else f"{version}+cpu"
    there = [each for each in environment.distributions or () if each.name != "torch"]
    described = replace(environment, distributions=(*there, Distribution("torch", labelled)))
    found = next((each for each in _findings(described) if each.rule == "build-torch-cpu-only"), None)
    name = next((each.name for each in environment.accelerators or () if each.name), "an accelerator")
    why = f"torch {version} is built for CPU only, beside {name}: nothing of this stack runs on the GPU"
    mend = next((fix.command for fix in found.fixes if fix.command), None) if found else None
    return ProbeResult(
        "torch/build", "cuda", FAILED, why, {"cuda": None}, {"cuda": "the one of the build that is installed"},
        mend=mend or f'pip install --force-reinstall "torch=={version.partition("+")[0]}"',
    )  # fmt: skip


def _findings(environment: Environment) -> list[Finding]:
    from compat.judge.builds import judge
    from compat.judge.facts import Facts

    return list(judge(Facts(environment)))


def _with_meaning(result: ProbeResult, environment: Environment) -> ProbeResult:
    """What ``compat diagnose`` makes of the message: the finding's title, and its first fix that is a command."""
    from compat.judge.diagnose import diagnose
    from compat.matrix.compiled import open_matrix
    from compat.read.log.traceback_frames import RaisedError

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
    said = result.why if result.group == "extensions" else f"{result.why} ({best.title})"  # they say it in their own words
    return replace(result, why=said, mend=fix)
