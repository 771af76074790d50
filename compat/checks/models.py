"""Models that the installed release of transformers or of a serving engine does not support yet, or no longer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.checks.fix_commands import nearest_fixes
from compat.checks.interfaces import releases_in
from compat.interfaces.architectures import support
from compat.interfaces.at_once import place_of
from compat.model import Finding

if TYPE_CHECKING:
    from compat.model import Environment
    from compat.workload.model_files import ModelSize


_ENGINES = ("vllm", "sglang")
_SERVED = (None, "serve", "inference")


def judge(model: ModelSize, environment: Environment) -> Iterator[Finding]:
    """Yield an error if transformers does not know the type of a model, and a warning if an engine lacks its architecture.

    A model that brings its own code needs no support in transformers, and engines can run models of transformers that they do
    not implement, with limits: that is why they only warrant a warning.
    """
    installed = releases_in(environment, images=True)
    work = environment.workload
    if model.kind and not model.own_code and "transformers" in installed:
        yield from _unsupported("transformers", model.kind, installed["transformers"], f"the model type {model.kind}")
    if (work.task if work is not None else None) in _SERVED:
        for engine in _ENGINES:
            for architecture in model.architectures[:1] if engine in installed else ():
                yield from _unsupported(engine, architecture, installed[engine], architecture)


def _unsupported(package: str, model: str, version: str, what: str) -> Iterator[Finding]:
    found = support(package, model)
    if found is None or place_of(found.known, version) is None or place_of(found.having, version) is not None:
        return
    of_engine = package in _ENGINES
    why = "No registry in the published source of this release has it. It rejects the model, wherever its files come from."
    if of_engine:
        why = (
            "The registry in the published source of this release does not have it. The engine rejects the model, or runs the "
            "implementation in transformers, if its release and the model allow that."
        )
    yield Finding(
        rule="model-unsupported",
        origin="surface",
        verdict="hit",
        severity="warning" if of_engine else "error",
        effect="crash",
        title=f"{package} {version} does not have {what}",
        why=why,
        confidence="confirmed",
        packages={package: version},
        facts=("workload",),
        fixes=tuple(nearest_fixes(package, version, found.having, found.known, f"supports {model}")),
        evidence=(f"https://github.com/{_SOURCES[package]}",),
    )


_SOURCES = {
    "transformers": "huggingface/transformers/blob/main/src/transformers/models/auto/configuration_auto.py",
    "vllm": "vllm-project/vllm/blob/main/vllm/model_executor/models/registry.py",
    "sglang": "sgl-project/sglang/tree/main/python/sglang/srt/models",
}
"""Where each project registers its models."""
