"""What an error says by itself, whichever release is at fault: no code for a GPU, a missing library, a name that is not there.

A symptom is no diagnosis of a bug. It says what the message means in terms of builds and releases, and names what the text
itself names. Where a derived finding about the environment explains the symptom, that finding is given instead.
"""

from __future__ import annotations

import re

from compat.environment import normalized
from compat.judge.interface_errors import interfaces, meeting, version_of
from compat.judge.stated_requirements import stated
from compat.judge.symptom_table import SYMPTOMS
from compat.records import replace
from compat.report import Finding, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.judge.facts import Facts
    from compat.judge.symptom_table import Symptom
    from compat.read.log.traceback_text import RaisedError

    Match = re.Match[str]

MOST = 3
"""Errors that are looked at, the most decisive first."""


def explained(
    text: str, errors: Sequence[RaisedError], order: Sequence[int], facts: Facts, derived: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Findings for the symptoms of the most decisive errors, the first one's first; none where no error says so much."""
    found: list[Finding] = []
    for number in order[:MOST]:
        error = errors[number]
        found += _of_error(error, text, facts, derived) or stated(error, facts) or interfaces(error, facts)
        if found:
            break
    if not order or not found:
        found = list(_of_text(text, facts, derived))
    return tuple({finding.rule: finding for finding in found}.values())


def _of_error(error: RaisedError, text: str, facts: Facts, derived: Sequence[Finding]) -> list[Finding]:
    said = f"{error.exception or ''}: {error.message}"
    before = text.split("\n")[max(0, error.line - 9) : error.line - 1]  # a traceback without paths still shows its code
    return _matching(said, error.line, "\n".join(before)[-1000:], error, facts, derived)


def _of_text(text: str, facts: Facts, derived: Sequence[Finding]) -> list[Finding]:
    return _matching(text, 0, "", None, facts, derived)


def _matching(
    said: str, line: int, before: str, error: RaisedError | None, facts: Facts, derived: Sequence[Finding]
) -> list[Finding]:
    for symptom in SYMPTOMS:
        match = symptom.pattern.search(said)
        if match is None:
            continue
        where = f"the error on line {line} of the text" if line else "the text"
        known = [each for each in derived if each.rule.startswith(symptom.explained_by)] if symptom.explained_by else []
        if known:
            return [replace(each, here=f"{where}, {each.here}") for each in known]
        return [_finding(symptom, match, where, before, error, facts)]
    symbol = _undefined_symbol(said, line, error, facts)
    return [symbol] if symbol is not None else []


def _finding(symptom: Symptom, match: Match, where: str, before: str, error: RaisedError | None, facts: Facts) -> Finding:
    names = list(symptom.packages) or _packages_in(match.string[max(0, match.start() - 400) : match.end() + 200])
    if not names and error is not None:
        names = [normalized(name) for name in meeting(error)][-1:]
    names = names or _packages_in(before)[-1:] or list(symptom.else_packages)
    groups = {name: value for name, value in match.groupdict().items() if value}
    return Finding(
        rule=f"symptom-{symptom.name}",
        origin="build",
        verdict="possible",
        severity="error",
        effect=symptom.effect,
        title=symptom.title.format(major=groups.get("major", "of another release")),
        why=symptom.why,
        confidence="reported",
        packages={name: version_of(name, facts) for name in names},
        facts=symptom.facts,
        fixes=symptom.fixes,
        evidence=symptom.evidence,
        here=where,
    )


_SYMBOL = re.compile(r"(?P<file>[\w./+-]*/)?(?P<library>[\w.+-]+\.(?:so|pyd)[\w.]*): undefined symbol: (?P<symbol>\w+)")
_FOLDERS = {
    "flash_attn_2_cuda": "flash-attn",
    "flash_attn": "flash-attn",
    "sgl_kernel": "sgl-kernel",
    "vllm": "vllm",
    "xformers": "xformers",
    "torchvision": "torchvision",
    "torchaudio": "torchaudio",
    "bitsandbytes": "bitsandbytes",
    "apex": "apex",
    "torchao": "torchao",
    "causal_conv1d_cuda": "causal-conv1d",
    "selective_scan_cuda": "mamba-ssm",
    "deepspeed": "deepspeed",
    "transformer_engine": "transformer-engine",
    "exllamav2_kernels": "auto-gptq",
    "awq_ext": "autoawq",
    "flashinfer": "flashinfer-python",
    "vllm_flash_attn": "vllm",
}
"""Folder or file name of an extension → its distribution."""


def _undefined_symbol(said: str, line: int, error: RaisedError | None, facts: Facts) -> Finding | None:
    """torch's C++ symbols are mangled names of its namespaces: an extension that misses one was compiled for another torch."""
    match = _SYMBOL.search(said)
    if match is None:
        return None
    path = f"{match['file'] or ''}{match['library']}"
    names = _packages_in(path)
    torchs = re.match(r"_ZNK?(?:R?K?)\d+(?:c10|at|torch|caffe2)|torch_|aoti_torch", match["symbol"])
    if not names and error is not None:
        names = [normalized(name) for name in meeting(error) if normalized(name) != "torch"][-1:]
    if not torchs or not names:
        return None
    name = names[0]
    return Finding(
        rule="symptom-undefined-symbol",
        origin="build",
        verdict="possible",
        severity="error",
        effect="crash",
        title=f"{name} is compiled for another torch than the one that is there",
        why="The missing symbol belongs to torch's C++ interface, which changes from release to release.",
        confidence="reported",
        packages={each: version_of(each, facts) for each in (name, "torch")},
        facts=("build",),
        fixes=(
            Fix("pin", "torch", None, f"the torch that this {name} was compiled for", None),
            Fix(
                "source-install",
                name,
                "",
                "compile it for the torch that is there",
                f"pip install --no-build-isolation --force-reinstall --no-deps --no-binary {name} {name}",
            ),
            Fix("upgrade", name, None, "a release for this torch", f"pip install -U {name}"),
        ),
        evidence=("https://pytorch.org/docs/stable/cpp_index.html",),
        here=f"the error on line {line} of the text, {match['library']}",
    )


def _packages_in(text: str) -> list[str]:
    """Distributions whose compiled modules a path or a message names."""
    parts = re.split(r"[/\\\s:'\"`]+", text)
    found = []
    for part in parts:
        stem = part.partition(".")[0]
        name = _FOLDERS.get(stem)
        if name and name not in found:
            found.append(name)
    return found
