"""Explain a call that a subclass rejects: the base class passes an argument since a release, and the override does not take it.

Models, tokenizers and trainers outside transformers override its methods. When a release adds a parameter, older overrides
fail with "unexpected keyword argument" or "takes 3 positional arguments but 4 were given".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.checks.code import releases
from compat.diagnosis.frame_packages import distribution_of_module, meeting, version_of
from compat.diagnosis.named_releases import Named, home, of_keyword
from compat.diagnosis.python_messages import CALL, KEYWORD, Lack
from compat.interfaces.source.records import Class
from compat.model import Finding, Fix

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_BASES = (
    ("TokenizerFast", "PreTrainedTokenizerFast"),
    ("Tokenizer", "PreTrainedTokenizerBase"),
    ("Trainer", "Trainer"),
    ("ForCausalLM", "PreTrainedModel"),
    ("ForConditionalGeneration", "PreTrainedModel"),
    ("Model", "PreTrainedModel"),
    ("Callback", "TrainerCallback"),
)
"""Endings of the names of classes, and the class of transformers that such classes derive from."""
_DOCUMENTATION = "https://github.com/huggingface/transformers/releases"


def overridden(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """The finding for a method that transformers calls with an argument which the method of a subclass does not take."""
    owner, _, method = lack.owner.rpartition(".")
    if not owner and method.startswith("_unsloth_"):  # unsloth puts functions of its own in place of the Trainer's methods
        owner, method = "UnslothTrainer", method.removeprefix("_unsloth_")
    base = next((base for ending, base in _BASES if owner.endswith(ending)), None)
    if base is None or owner == base or method == "__init__" or lack.kind not in (KEYWORD, CALL):
        return []
    gained = next(_gained(base, method, lack.name), None)
    if gained is None:
        return []
    parameter, known = gained
    since = known.specifier.removeprefix(">=")
    here = version_of("transformers", facts)
    if here is not None and known.lacked_by(here):
        return []  # this transformers does not pass it
    module = home(owner, [name.replace("-", "_") for name in meeting(error)])
    own = None if module is None or module.startswith("transformers") else distribution_of_module(module)
    newer = Fix("config", None, None, f"a newer version of {owner} (for a model with its own code: its latest revision)")
    if own is not None:
        newer = Fix("upgrade", own, None, f"a release of {own} written for this transformers", f"pip install -U {own}")
    spec = f"<{since}"
    older = Fix(
        "downgrade", "transformers", spec, f"the releases before {method} got {parameter}", f'pip install "transformers{spec}"'
    )
    return [
        Finding(
            rule="symptom-override",
            origin="surface",
            verdict="possible",
            severity="error",
            effect="crash",
            title=f"transformers passes {parameter} to {method}() since {since}, and {owner} does not take it",
            why=f"{owner}.{method} overrides {base}.{method} as it was before transformers {since}, by published source. That"
            f" {owner} derives from {base} is a guess by its name.",
            confidence="confirmed",
            packages={name: version_of(name, facts) for name in filter(None, (own, "transformers"))},
            fixes=(older, newer),
            evidence=(_DOCUMENTATION,),
            here=f"the error on line {error.line} of the text",
        )
    ]


def _gained(base: str, method: str, named: str) -> Iterator[tuple[str, Named]]:
    """Yield the parameters that a method of transformers has got since some release, the named one or else all."""
    table = releases().table("transformers")
    world = None if table is None else releases().world("transformers", table.versions[-1])
    if table is None or world is None:
        return
    found = world.member(world.imported("transformers", base), method).definition
    if found is None or isinstance(found, Class):
        return
    names = (*found.signature.positional, *found.signature.keyword_only)
    for name in reversed(names):
        known = of_keyword(f"{base}.{method}", name, ("transformers",)) if named in ("", name) else None
        if known is not None and known.specifier.startswith(">=") and "," not in known.specifier:
            yield name, known
