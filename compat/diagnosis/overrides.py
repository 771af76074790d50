"""Explain code that was written for an older release: overrides that reject a new argument, plain values for a new class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING

from compat.checks.code import releases
from compat.checks.fix_commands import by_pip
from compat.diagnosis.changed_names import (
    COMMON,
    PLAIN,
    first_of_peers,
    is_telling,
    owner_of_method,
    releases_with_name,
    releases_with_option,
)
from compat.diagnosis.contemporaries import published_after
from compat.diagnosis.frame_packages import (
    distribution_of_module,
    inferred,
    innermost_packages,
    is_before,
    location_text,
    modules_of,
    package_of,
    version_of,
)
from compat.diagnosis.missing_names import CONFIGURATIONS, Named, module_of_name, of_configuration, of_inherited
from compat.diagnosis.named_releases import of_keyword
from compat.diagnosis.python_messages import CALL, KEYWORD, MEMBER, Lack
from compat.interfaces.source.records import Class, Function
from compat.interfaces.world import World
from compat.model import Finding, Fix
from compat.records import record, replace
from compat.versions import is_final, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_BASES = (
    ("TokenizerFast", "PreTrainedTokenizerFast"),
    ("Tokenizer", "PreTrainedTokenizerBase"),
    ("Trainer", "Trainer"),
    ("ForCausalLM", "PreTrainedModel"),
    ("ForConditionalGeneration", "PreTrainedModel"),
    ("ForSequenceClassification", "PreTrainedModel"),
    ("ForTokenClassification", "PreTrainedModel"),
    ("ForQuestionAnswering", "PreTrainedModel"),
    ("ForMaskedLM", "PreTrainedModel"),
    ("Model", "PreTrainedModel"),
    ("Callback", "TrainerCallback"),
)
"""Endings of the names of classes, and the class of transformers that such classes derive from."""
_COMMON = ("Trainer", "Model", "Callback", "Tokenizer")
"""Endings that classes of other packages have as well."""
_UNUSED = re.compile(r"`model_kwargs` are not used by the model: \[(?P<names>[^\]]{1,400})\]")
_DOCUMENTATION = "https://github.com/huggingface/transformers/releases"


@record(frozen=True)
class _Gain:
    """``parameter`` is passed to the method since a release of ``package``; ``why`` and ``passes`` are sentences about it.

    ``passed``: it is an argument; otherwise a member that transformers takes from the class.
    """

    parameter: str
    since: str
    passes: str
    why: str
    confidence: str = "confirmed"
    passed: bool = True
    package: str = "transformers"


def of_subclass(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a class whose base in transformers is of another release than the one it was written for."""
    return _overridden(lack, error, facts) or _ahead_of_base(lack, error, facts) or _unset(lack, error, facts)


def _overridden(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a method that transformers calls with an argument which the method of a subclass does not take."""
    owner, method = _owner(lack)
    base = _base_of(owner) or (_base_with(method) if lack.kind == KEYWORD else None)
    homonym = base == owner and bool(error.frames) and package_of(error.frames[-1]) == "transformers"
    gain = next(_gained(owner, method, base, lack), None) if base is not None and (homonym or base != owner) else None
    if gain is not None and homonym:
        why = f"transformers {gain.since} calls its own {base}.{method} with it, so the failing method belongs to another "
        return _finding(replace(gain, why=f"{why}class with this name."), f"another class {owner}", method, error, facts)
    return _finding(gain, owner, method, error, facts)


def _ahead_of_base(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a method of a subclass that lacks an argument which older releases of transformers pass to it."""
    owner, method = _owner(lack)
    base = _base_of(owner)
    if base in (None, owner) or lack.kind != KEYWORD:
        return []
    known, here = of_keyword(f"{base}.{method}", lack.name, ("transformers",)), version_of("transformers", facts)
    if known is None or not known.gone or "," in known.specifier or (here is not None and known.lacked_by(here)):
        return []
    last = known.specifier.removeprefix("<=")
    newer = f">{last}"
    text = f"the releases that do not pass {lack.name}"
    fixes = (
        by_pip("upgrade", "transformers", newer, text),
        Fix("config", text=f"make {owner}.{method} accept {lack.name}"),
    )
    title = f"transformers passes {lack.name} to {method}() up to {last}, but {owner} does not accept it"
    why = f"According to its published source, {owner}.{method} overrides {base}.{method} as it was changed after that."
    doubt = f" {owner} is assumed to derive from {base} because of its name."
    return [_override(title, why + doubt, "confirmed", {"transformers": here}, fixes, error)]


def behind_its_peers(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a method that lacks an argument which classes of one package take in theirs since some release."""
    owner, method = _owner(lack)
    first = first_of_peers(method, lack.name) if lack.kind == KEYWORD else None
    if first is None:
        return []
    package, since = first
    who = "Models of transformers" if package == "transformers" else f"Classes of {package}"
    why = (
        f"According to its published source, no class of {package} had it in {method} before. It is a guess that "
        f"{package} passes it to the {method} of {owner}."
    )
    gain = _Gain(lack.name, since, f"{who} take {lack.name} in {method}()", why, "reported", package=package)
    return _finding(gain, owner, method, error, facts)


def unused_by_model(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for an argument of generate() that the model does not take, and newer models of transformers do."""
    match = _UNUSED.search(error.message)
    for name in re.findall(r"['\"](\w+)['\"]", match["names"]) if match is not None else ():
        if found := behind_its_peers(Lack(KEYWORD, "the model.forward", name), error, facts):
            return found
    return []


def of_base(lack: Lack, modules: Sequence[str], facts: Facts) -> Named | None:
    """Return the releases of transformers in which a class has a member by its base, guessed by the class's name."""
    if lack.kind == MEMBER and lack.owner.endswith("Config"):
        return _of_configuration(lack, modules, facts)
    base = _base_of(lack.owner) if lack.kind == MEMBER else None
    if base is None:
        return None
    if lack.owner.endswith(_COMMON) and not _of_transformers(lack.owner, modules):
        return None
    base = "PreTrainedTokenizerBase" if "Tokenizer" in base else base
    known = of_inherited("transformers", base, lack.name)
    doubt = f" {lack.owner} is assumed to derive from {base} because of its name."
    return known if known is None or base == lack.owner else replace(known, doubt=doubt)


def before_the_member(known: Named) -> list[Fix]:
    """Return the releases from before a member was added: the base of a class without it may be what reads it."""
    first = known.specifier.removeprefix(">=")
    if known.gone or first == known.specifier or "," in first:
        return []
    return [by_pip("downgrade", known.package, f"<{first}", "the releases that a class without it was written for")]


def of_older_base(known: Named, version: str, before: list[Fix], error: RaisedError) -> Finding:
    """Return a finding for a class of the user's that was written for a base without the member."""
    base, _, member = known.what.rpartition(".")
    return inferred(
        rule="symptom-older-base",
        title=f"The class was written for an older {known.package}: its base {base} has {member} {known.span}",
        why=f"{known.sentence()} Its methods read {member}, which only its own __init__ sets.",
        packages={known.package: version},
        fixes=(*before, Fix("config", None, None, f"set {member} in the class, or call the __init__ of its base")),
        here=location_text(error),
    )


def left_over(lack: Lack, modules: Sequence[str]) -> Named | None:
    """Return the releases of transformers whose ``from_pretrained`` takes an argument that the class of a model got.

    What neither the method nor the configuration takes is passed on to the class.
    """
    owner, _, method = lack.owner.rpartition(".")
    if lack.kind != KEYWORD or method != "__init__" or _base_of(owner) != "PreTrainedModel":
        return None
    if owner.endswith(_COMMON) and not _of_transformers(owner, modules):
        return None
    known = releases()
    table = known.table("transformers")
    versions = [each for each in (table.versions if table is not None else ()) if is_final(key_of(each))]
    taken = [lack.name in _taken_by_loading(world) for each in versions if (world := known.world("transformers", each))]
    since = next((at for at in range(len(taken) - 1, 0, -1) if taken[at] and not taken[at - 1]), 0)
    named = releases_with_option(
        "transformers", f"from_pretrained({lack.name}=)", set(compress(versions[since:], taken[since:])), versions
    )
    if named is None:
        return None
    why = f"{named.why}; from_pretrained forwards what it does not accept to {owner}"
    doubt = (
        ""
        if (module_of_name(owner, ()) or "").startswith("transformers")
        else f" {owner} is assumed to be one of its models because of its name."
    )
    return replace(named, why=why, doubt=doubt)


def _taken_by_loading(world: World) -> set[str]:
    """Return the arguments that ``from_pretrained`` of a model takes, itself or for the configuration."""
    base = world.imported("transformers", "PreTrainedModel")
    configurations = (world.imported("transformers", each) for each in CONFIGURATIONS)
    made = [world.constructor(each) for each in configurations if each.kind == "class"]
    method = world.member(base, "from_pretrained").definition if base.kind == "class" else None
    signatures = [each[0] for each in made if each is not None]
    if isinstance(method, Function):
        signatures.append(method.signature)
    return {name for each in signatures for name in (*each.positional, *each.keyword_only, *each.extra)}


def _of_configuration(lack: Lack, modules: Sequence[str], facts: Facts) -> Named | None:
    """The same for the configuration of a model; if nothing else speaks of transformers, the attribute's name has to."""
    unknown = module_of_name(lack.owner, modules) is None and (
        is_telling(lack.name) or version_of("transformers", facts) is not None
    )
    known = of_configuration(lack.name) if unknown or _of_transformers(lack.owner, modules) else None
    doubt = f" {lack.owner} is assumed to be a model configuration with this base because of its name."
    return known and replace(known, doubt=doubt)


def _of_transformers(owner: str, modules: Sequence[str]) -> bool:
    return any(each.startswith("transformers") for each in (*modules, module_of_name(owner, ()) or ""))


def _unset(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a class without what its base has since some release, where transformers itself asks for it.

    The class was written for older releases: it does not call a method of its base that sets it, or is not derived from it.
    """
    known = of_base(lack, modules_of(error), facts)
    since, here = _since(known), version_of("transformers", facts)
    asking = [name for name in modules_of(error) if name != "torch"]
    if known is None or since is None or (here is None and asking[:1] != ["transformers"]):
        return []
    why = (
        f"According to its published source, releases before {since} lack it. {lack.owner} was written for one of "
        f"them.{known.doubt}"
    )
    gain = _Gain(lack.name, since, f"transformers uses {known.what}", why, "reported", passed=False)
    return _finding(gain, lack.owner, lack.name, error, facts)


def _base_of(owner: str) -> str | None:
    return next((base for ending, base in _BASES if owner.endswith(ending)), None)


def _base_with(method: str) -> str | None:
    """Return the class of transformers that most likely has a method whose class the message names in its own way."""
    if COMMON.fullmatch(method) is not None or not method:
        return None
    table = releases().table("transformers")
    world = None if table is None else releases().world("transformers", table.versions[-1])
    if world is None:
        return None
    for base in dict.fromkeys(base for _, base in _BASES):
        found = world.imported("transformers", base)
        if found.kind == "class" and world.member(found, method).kind == "method":
            return base
    return None


def _owner(lack: Lack) -> tuple[str, str]:
    """Return the class and the method that a message about a call names; both empty for another message."""
    owner, _, method = lack.owner.rpartition(".")
    if not owner and method.startswith("_unsloth_"):  # unsloth replaces the Trainer's methods with its own functions
        return "UnslothTrainer", method.removeprefix("_unsloth_")
    return (owner, method) if owner and method != "__init__" and lack.kind in (KEYWORD, CALL) else ("", "")


def _finding(gain: _Gain | None, owner: str, method: str, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return the finding, unless the installed release does not pass the argument, or the class is one of the package's own."""
    if gain is None or not owner:
        return []
    package = gain.package
    if is_before(version_of(package, facts), gain.since):
        return []
    module = module_of_name(owner, [name.replace("-", "_") for name in innermost_packages(error)])
    if module is not None and distribution_of_module(module) == package:
        return []
    own = None if module is None else distribution_of_module(module)
    its_own = " (for a model with its own code: its latest revision)" if package == "transformers" else ""
    newer = Fix("config", text=f"a newer version of {owner.replace('another class', 'that')}{its_own}")
    if own is not None:
        newer = published_after(own, package, facts) or by_pip(
            "upgrade", own, None, f"a release of {own} written for this {package}"
        )
    spec = f"<{gain.since}"
    text = f"releases before {method} got {gain.parameter}" if gain.passed else f"releases that do not use {method}"
    older = by_pip("downgrade", package, spec, text)
    title = f"{gain.passes} since {gain.since}, but {owner} does not {'accept' if gain.passed else 'have'} it"
    packages = {name: version_of(name, facts) for name in filter(None, (own, package))}
    return [_override(title, gain.why, gain.confidence, packages, (older, newer), error)]


def _override(
    title: str, why: str, confidence: str, packages: Mapping[str, str | None], fixes: tuple[Fix, ...], error: RaisedError
) -> Finding:
    return Finding(
        rule="symptom-override",
        origin="surface",
        verdict="possible",
        title=title,
        why=why,
        confidence=confidence,
        packages=packages,
        fixes=fixes,
        evidence=(_DOCUMENTATION,) if "transformers" in packages else (),
        here=location_text(error),
    )


def _gained(owner: str, method: str, base: str | None, lack: Lack) -> Iterator[_Gain]:
    """Yield the parameters that a method of the base has got since some release, the named one or else all."""
    if base is None:
        return
    passes, derives = f"to {method}()", f"{owner} is assumed to derive from {base} because of its name."
    for parameter, since in _of_base(base, method, lack.name):
        why = f"{owner}.{method} overrides {base}.{method} as it was before transformers {since}."
        yield _Gain(parameter, since, f"transformers passes {parameter} {passes}", f"{why} {derives}")
    added = _since(releases_with_name(Lack(MEMBER, base, method), ("transformers",))) if lack.kind == KEYWORD else None
    if added is not None:
        why = f"According to its published source, transformers {added} added {base}.{method} and calls it with {lack.name}."
        yield _Gain(lack.name, added, f"transformers passes {lack.name} {passes}", f"{why} {derives}")


def _of_base(base: str, method: str, named: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters that the method of the base itself has since some release, and that release."""
    table = releases().table("transformers")
    world = None if table is None else releases().world("transformers", table.versions[-1])
    found = None if world is None else world.member(world.imported("transformers", base), method).definition
    if found is None or isinstance(found, Class):
        return
    for name in reversed((*found.signature.positional, *found.signature.keyword_only)):
        known = of_keyword(f"{base}.{method}", name, ("transformers",)) if named in ("", name) else None
        if (since := _since(known)) is not None:
            yield name, since


def _since(known: Named | None) -> str | None:
    """Return the release from which on a name is there, if it is there in all later ones."""
    if known is None or known.derived or not known.specifier.startswith(">=") or "," in known.specifier:
        return None
    return known.specifier.removeprefix(">=")


# --- A method of an object: newer releases of a package expect an instance of its class instead of a plain value.


_CONTAINERS = (dict, list, set, str)
"""Plain values whose own methods classes of packages have as well: they say nothing of the class."""


def expected_object(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a plain value whose method is called that a class of a package has, which is new or has changed."""
    if lack.kind != MEMBER or lack.owner not in PLAIN or any(hasattr(each, lack.name) for each in _CONTAINERS):
        return []
    found = owner_of_method(lack.name, modules_of(error))
    if found is None:
        return []
    package, owner, since, first = found
    here = version_of(package, facts)
    if is_before(here, since):
        return []
    fixes = [Fix("config", text=f"pass a {owner} (see its documentation for a conversion), or let {package} make it")]
    if since != first:
        spec = f"<{since}"
        text = f"releases without {owner}.{lack.name}"
        fixes.append(by_pip("downgrade", package, spec, text))
        fixes.reverse()
    return [
        inferred(
            rule="symptom-expected-object",
            title=f"{package} calls {owner}.{lack.name}(), but got {_with_article(lack.owner)}",
            why=f"According to its published source, {package} {since} added this method of {owner}. Code written for an older "
            f"{package} passes or returns {_with_article(lack.owner)} where newer releases expect {_with_article(owner)}.",
            packages={package: here},
            fixes=tuple(fixes),
            evidence=(_DOCUMENTATION,) if package == "transformers" else (),
            here=location_text(error),
        )
    ]


def _with_article(name: str) -> str:
    return "None" if name == "NoneType" else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
