"""Errors about packages that a script never comes to: in its environment, but not its problem."""

from __future__ import annotations

import os
import re

from compat.checks.requirements import CUDA_LIBRARIES
from compat.checks.running import script_of
from compat.model import Environment, Finding
from compat.records import replace

_PLAIN = frozenset(("build", "install"))
"""Facts that say nothing about whether a package is used."""
_USED_BY = {"4bit": "bitsandbytes", "8bit": "bitsandbytes", "nf4": "bitsandbytes", "int8": "bitsandbytes"}
_NEVER = ("torch", "triton", "numpy", "setuptools", "protobuf")
"""Packages that are reached in ways no import statement shows: from compiled code, or because a part of them is missing."""
_LAUNCHERS = ("accelerate", "deepspeed", "ray")


def softened(environment: Environment, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings, with a warning for each error about the import of a package that the script cannot come to."""
    errors = [each for each in findings if each.severity == "error" and each.verdict == "hit" and _of_imports(each)]
    script = script_of(environment) if errors and environment.workload is not None and environment.workload.code else None
    if script is None or environment.workload is None or script.starts_others():
        return findings
    used = {
        *_LAUNCHERS,
        *(environment.workload.features or ()),
        _USED_BY.get(environment.workload.quantization or "", ""),
        *_NEVER,
    }
    unused: dict[str, str] = {}
    for each in errors:
        for name in each.packages:
            ours = each.packages[name] and name not in used and not name.startswith(CUDA_LIBRARIES)
            tops = script.tops(name) if ours else frozenset()
            if tops and not script.comes_to(tops):
                unused[each.rule] = name
        if (absent := _absent_module(each)) and not script.asks_for(absent):
            unused[each.rule] = absent
    what = os.path.basename(environment.workload.script or "the script")
    return tuple(
        replace(each, severity="warning", why=f"{each.why} {what} does not import {unused[each.rule]}, directly or indirectly.")
        if each in errors and each.rule in unused else each
        for each in findings
    )  # fmt: skip


def _absent_module(finding: Finding) -> str:
    """The module that a release imports at once without requiring it, if the finding is about that."""
    found = re.search(r"No module named '(\w+)'", finding.title) if finding.origin == "guard" else None
    return found[1] if found is not None else ""


def _of_imports(finding: Finding) -> bool:
    return finding.effect in ("crash", "install") and _PLAIN.issuperset(finding.facts) and len(finding.packages) > 0
