"""Models that the installed release of transformers or of a serving engine does not support yet, or no longer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.checks.fix_commands import nearest_fixes
from compat.checks.guards import ENGINES
from compat.checks.interfaces import releases_in
from compat.interfaces.at_once import place_of
from compat.interfaces.changes import Support, support
from compat.model import Finding, Workload
from compat.tables.models import Family, family, of_type

if TYPE_CHECKING:
    from compat.model import Environment
    from compat.workload.model_files import ModelSize


_SERVED = (None, "serve", "inference")


def judge(model: ModelSize, environment: Environment) -> Iterator[Finding]:
    """Yield an error if transformers does not know the type of a model, and a warning if an engine lacks its architecture.

    A model that brings its own code needs no support in transformers, and engines can run models of transformers that they do
    not implement, with limits: that is why they only warrant a warning.
    """
    kinds = (model.kind,) if model.kind else ()
    yield from _unsupported(Family(model.architectures[:1], kinds, model.own_code), None, environment)


def judge_named(environment: Environment) -> Iterator[Finding]:
    """Yield the same for the model that the workload names: a published one by its family, others by their type."""
    work = environment.workload or Workload()
    name = work.model
    kind = work.model_type or name or ""
    known = family(name) if name else None
    if known is None and kind and "/" not in kind:
        known = of_type(kind)
    if known is not None:
        yield from _unsupported(known, name, environment)


def _unsupported(model: Family, name: str | None, environment: Environment) -> Iterator[Finding]:
    installed = releases_in(environment, images=True)
    work = environment.workload or Workload()
    served = work.task in _SERVED or "vllm" in (work.features or ())
    engines = [engine for engine in ENGINES if engine in installed and served]
    lacking = {engine: found for engine in engines if (found := _lacks(engine, model.architectures, installed[engine]))}
    # an engine that implements the model may have its configuration as well
    by_transformers = not engines or bool(lacking) or work.task not in _SERVED
    if "transformers" in installed and by_transformers and not model.own_code:
        version = installed["transformers"]
        if (found := _lacks("transformers", model.types, version)) is not None:
            kinds = " or ".join(model.types)
            yield _finding("transformers", version, found, name, f"the model type {kinds}", kinds)
    needed = " or ".join(model.architectures)
    for engine, found in lacking.items():
        yield _finding(engine, installed[engine], found, name, needed, needed)


def _lacks(package: str, names: tuple[str, ...], version: str) -> Support | None:
    """Return which releases support any of the names, if that is known of this release and it supports none of them."""
    known = [support(package, name) for name in names]
    if not known or None in known:
        return None
    found = [each for each in known if each is not None]
    having = {release for each in found for release in each.having}
    read = found[0].known
    together = Support(tuple(release for release in read if release in having), read)
    return together if place_of(read, version) is not None and place_of(together.having, version) is None else None


def _finding(package: str, version: str, found: Support, name: str | None, what: str, model: str) -> Finding:
    of_engine = package in ENGINES
    why = "No registry in the published source of this release has it. It rejects the model, wherever its files come from."
    if of_engine:
        why = (
            "The registry in the published source of this release does not have it. The engine rejects the model, or runs the "
            "implementation in transformers, if its release and the model allow that."
        )
    return Finding(
        rule="model-unsupported",
        origin="surface",
        severity="warning" if of_engine else "error",
        title=f"{package} {version} does not have {what}" if name is None else f"{package} {version} does not support {name}",
        why=why if name is None else f"Models of this family need {what}. {why}",
        packages={package: version},
        facts=("workload",),
        fixes=tuple(nearest_fixes(package, version, found.having, found.known, f"supports {name or model}")),
        evidence=(f"https://github.com/{_SOURCES[package]}",),
    )


_SOURCES = {
    "transformers": "huggingface/transformers/blob/main/src/transformers/models/auto/configuration_auto.py",
    "vllm": "vllm-project/vllm/blob/main/vllm/model_executor/models/registry.py",
    "sglang": "sgl-project/sglang/tree/main/python/sglang/srt/models",
}
"""Where each project registers its models."""
