"""Objects without an attribute: of classes that no release of transformers has, or prepared only in part.

The classes are those of a model's own code (``trust_remote_code``), and of a project.

They are written for the transformers of their day. A newer one asks such an object for what its own classes have by then,
or asks too early; the error names the class that did not change.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from compat.checks.code import releases
from compat.checks.fix_commands import by_pip
from compat.diagnosis.frame_packages import (
    MODELS_OWN,
    distribution_of_module,
    inferred,
    innermost_packages,
    is_before,
    location_text,
    modules_of,
    package_of,
    version_of,
)
from compat.diagnosis.missing_names import Named, module_of_name, modules_of_name
from compat.diagnosis.python_messages import MEMBER, Lack
from compat.interfaces import changes as table
from compat.interfaces.changes import changes
from compat.interfaces.source.records import Class
from compat.interfaces.table import tracked
from compat.model import Finding, Fix
from compat.rules.facts import Facts
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_EAGER = "4.34"
"""The first transformers whose base class of tokenizers looks up tokens, and thus the vocabulary, in its constructor."""
_EAGER_SEE = "https://github.com/huggingface/transformers/issues/26777"
_VOCABULARY = frozenset(
    (
        "sp_model", "vocab", "vocab_size", "vocab_file", "encoder", "decoder", "tokenizer", "token2idx", "idx2token",
        "spm", "sp", "spm_model", "mergeable_ranks", "ids_to_tokens", "tokens_to_ids", "_vocab", "bpe_ranks", "trie",
    )
)  # fmt: skip
"""What tokenizers keep their vocabulary in. A message without frames has to name one of these."""
_OF_MODELS = ("ForCausalLM", "ForConditionalGeneration", "ForSequenceClassification", "ForTokenClassification", "LMHeadModel")
_ASKED_BY_TRANSFORMERS = ("PreTrainedModel", "PreTrainedTokenizerBase", "ProcessorMixin")
"""Base classes whose new attributes the code of transformers asks for; other packages ask configurations for theirs as well."""
_SEVERAL = 2
"""Configurations of older models that have got an attribute in the same release: then the code of models asks for it."""
_RECORDED = "the release that the model's config.json names as transformers_version"
_REVISION = "or the latest revision of the model's files, if its authors have adapted them"


def of_own_class(known: Named | None, lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for an object of such a class without an attribute, of which the tables say ``known``."""
    if lack.kind != MEMBER or "." in lack.owner or _is_of_tables(lack.owner, error):
        return []
    if known is None and lack.owner.endswith("Tokenizer"):
        return _asked_too_early(lack, error, facts)
    if known is not None and (known.package != "transformers" or not known.doubt):
        return []
    return _since(known, lack, error, facts) if known is not None else _without(lack, error, facts)


def _is_of_tables(owner: str, error: RaisedError) -> bool:
    """Whether the class is one of a package in the tables, and the frames show no other class of this name."""
    own = bool(error.frames) and any(package_of(frame) in (None, MODELS_OWN) for frame in error.frames[-2:])
    return module_of_name(owner, modules_of(error)) is not None and not (own and owner.endswith("Tokenizer"))


def _asked_too_early(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    version = version_of("transformers", facts)
    if is_before(version, _EAGER):
        return []
    by_base = any(frame.function == "_add_tokens" and package_of(frame) == "transformers" for frame in error.frames)
    if not by_base and (error.frames or lack.name not in _VOCABULARY):
        return []
    title = f"Since transformers {_EAGER} the base class reads a tokenizer's vocabulary before {lack.owner} has set {lack.name}"
    why = (
        f"The constructor of the base class adds the special tokens and calls get_vocab() and vocab_size for that. {lack.owner}"
        f" sets {lack.name} after calling that constructor: its code was written for an older transformers."
    )
    fixes = (
        by_pip("downgrade", "transformers", f"<{_EAGER}", "releases that do not look up tokens there"),
        Fix("config", text=f"set {lack.name} before super().__init__() in the tokenizer's code, {_REVISION}"),
    )  # fmt: skip
    return [_finding(title, why, {"transformers": version}, fixes, error, by_base and version is not None, _EAGER_SEE)]


def _since(known: Named, lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """The attribute is new in the base class: the object's class was written for older releases if the installed one has it."""
    version = version_of("transformers", facts)
    if known.gone or not known.specifier.startswith(">="):
        return []
    since = known.specifier.removeprefix(">=").partition(",")[0]
    here = known.what.partition(".")[0] in _ASKED_BY_TRANSFORMERS and not _asked_elsewhere(lack, error)
    if version is None and not here:
        return []
    if version is not None and known.lacked_by(version) and not here:
        return _without(lack, error, facts) if lack.owner.endswith("Config") and _have_it(lack.name, version)[0] else []
    title = f"transformers uses {known.what} since {since}, but {lack.owner} does not have it"
    why = (
        f"According to its published source, releases before {since} lack it. The code of {lack.owner} was written "
        "for one of them:"
        " it does not call the method of its base class that sets it."
    )
    if version is not None and known.lacked_by(version):
        why += f" transformers {version} does not use it, so another copy was running."
    older = f"<{since}"
    fixes = (
        by_pip("downgrade", "transformers", older, f"releases that do not use {lack.name}"),
        Fix("config", text=_REVISION.removeprefix("or ")),
    )  # fmt: skip
    return [_finding(title, why, {"transformers": version}, fixes, error)]


def _asked_elsewhere(lack: Lack, error: RaisedError) -> bool:
    """Whether the line that asks for the attribute is neither of transformers nor of the model's own code."""
    frame = error.frame
    if frame is None or package_of(frame) in ("transformers", MODELS_OWN, "torch"):
        return False
    return frame.code is None or lack.name in frame.code


def _have_it(name: str, version: str) -> tuple[bool, str | None]:
    """Whether models' configurations in a release have an attribute, and the last release up to it in which several got it."""
    rows = [
        each
        for each in changes().of(name)
        if each.package == "transformers" and each.kind in (table.MEMBER, table.FIELD) and each.owner.endswith("Config")
        if each.module.startswith("transformers.models.")
    ]
    got = Counter(each.has[0] for each in rows if each.lacks and key_of(each.lacks[0]) < key_of(each.has[0]) <= key_of(version))
    return any(version in each.has for each in rows), max(
        (at for at, n in got.items() if n >= _SEVERAL), key=key_of, default=None
    )


def _without(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """A configuration or a model without an attribute that the package which failed expects of all of its kind."""
    version = version_of("transformers", facts)
    asking = next((name for name in reversed(innermost_packages(error)) if name not in ("torch", MODELS_OWN)), None)
    asked = None if asking is None else distribution_of_module(asking)
    if not lack.owner.endswith(("Config", *_OF_MODELS)) or (version is None and asked is None):
        return []
    who = "The code" if asked is None else asked
    title = f"{who} reads {lack.name} of {lack.owner}, a class outside transformers that does not have it"
    why = (
        f"No release of transformers has {lack.owner}: it comes from the model's own code, or from a project. That code was"
        f" written for a transformers whose classes did not need {lack.name}, or under another name."
    )
    since = _have_it(lack.name, version)[1] if version is not None and lack.owner.endswith("Config") else None
    older = None if since is None else f"<{since}"
    if since is not None:
        why = f"{why} According to its published source, configurations of several models got it in {since}."
    fixes = [
        Fix(
            "downgrade" if version else "pin",
            "transformers",
            older,
            _RECORDED,
            older and f'pip install "transformers{older}"',
        ),
        Fix("config", text=_REVISION.removeprefix("or ")),
    ]
    packages = {"transformers": version}
    if asked not in (None, "transformers"):
        packages[str(asked)] = version_of(str(asked), facts)
        fixes.insert(0, by_pip("upgrade", asked, None, "a release that supports this model"))
    return [_finding(title, why, packages, tuple(fixes), error)]


def _finding(
    title: str, why: str, packages: dict[str, str | None], fixes: tuple[Fix, ...], error: RaisedError, sure: bool = False,
    see: str = "https://huggingface.co/docs/transformers/custom_models",
) -> Finding:  # fmt: skip
    return Finding(
        rule="symptom-own-code", origin="surface", verdict="hit" if sure else "possible",
        title=title, why=why, confidence="confirmed" if sure else "reported", packages=packages, fixes=fixes, evidence=(see,),
        here=location_text(error),
    )  # fmt: skip


_CLASSES = "https://docs.python.org/3/reference/datamodel.html#object.__del__"


def of_unfinished_object(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for an attribute that every release of a class sets on ``self``, and nowhere else."""
    module = next(modules_of_name(lack.owner, modules_of(error)), None) if lack.kind == MEMBER else None
    package = None if module is None else tracked()[module.partition(".")[0]]
    table = None if package is None else releases().table(package)
    if module is None or package is None or table is None:
        return []
    if not all(_sets(package, version, module, lack) for version in (*table.versions[::-12], table.versions[0])):
        return []
    return [
        inferred(
            rule="symptom-unfinished-object",
            title=f"{lack.owner} sets {lack.name} itself, but the method that does so has not run for this object",
            why=f"Every analyzed release of {package} has a method that sets {lack.what}. If __init__ failed before that, the "
            "error that ended it is printed further up, and this message often comes from __del__. Otherwise the object was "
            "not prepared for what needs it, such as a feature that is not enabled.",
            packages={package: version_of(package, facts)},
            fixes=(Fix("config", text="look for an error above this message, and give the text from its first traceback on"),),
            evidence=(_CLASSES,),
            here=location_text(error),
        )
    ]


def _sets(package: str, version: str, module: str, lack: Lack) -> bool:
    """Whether the class, or a known base, only has the attribute once it is set on ``self``."""
    world = releases().world(package, version)
    found = None if world is None else world.imported(module, lack.owner)
    if world is None or found is None or not isinstance(found.definition, Class):
        return False
    classes = [each.definition for each in world.bases(found)[0] if isinstance(each.definition, Class)]
    on_class = any(lack.name in (*each.methods, *each.attributes, *dict(each.fields)) for each in classes)
    return not on_class and any(lack.name in each.instance for each in classes)
