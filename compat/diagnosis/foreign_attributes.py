"""Attributes that an object has from another package than its class: who sets, adds and reads them, in which releases.

deepspeed sets ``ds_id`` on torch's parameters, trl's ``SFTConfig`` adds ``packing`` to ``TrainingArguments``, and vllm reads
``all_special_tokens_extended`` of a tokenizer. An error names the class that lacks it, which never had it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from compat.checks.fix_commands import by_pip
from compat.diagnosis.changed_names import PLAIN, is_telling, of_one_package, releases_with_option
from compat.diagnosis.contemporaries import written_for
from compat.diagnosis.frame_packages import distribution_of_module, inferred, location_text, modules_of, version_of
from compat.diagnosis.missing_names import module_of_name
from compat.diagnosis.python_messages import MEMBER, Lack
from compat.diagnosis.raised_messages import origin_of, span_of
from compat.interfaces.changes import EXTENDS, FIELD, READS, SETS, Change, changes, foreign
from compat.interfaces.changes import MEMBER as MEMBER_OF
from compat.model import Finding, Fix
from compat.rules.facts import Facts
from compat.versions import is_version, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


_MOST_CLASSES = 2
"""Classes that a title names."""


def of_others(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for an attribute that a package adds to, or sets on, objects of other packages."""
    if lack.kind != MEMBER:
        return []
    found = foreign().of(lack.name)
    bases = {"PreTrainedConfig": "PretrainedConfig"}.get(lack.owner, lack.owner)
    added = _of_one([each for each in found if each.kind == EXTENDS and each.owner.endswith(f"({bases})")], error, facts)
    if added:
        return [_added(added, lack, error, facts)]
    put = _of_one([each for each in found if each.kind == SETS and _is_meant(each, lack, error, facts)], error, facts)
    return [_set(put[0], lack, error, facts)] if put else []


def of_reader(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for an attribute that an installed package reads from objects of other packages."""
    reader = _reader(foreign().of(lack.name), lack, error, facts) if lack.kind == MEMBER else None
    return [_read(reader, lack, error, facts)] if reader is not None else []


def _reader(found: Sequence[Change], lack: Lack, error: RaisedError, facts: Facts) -> Change | None:
    """Return the only installed package that reads an attribute of objects of others in its release, and not in all.

    Of several the one in the traceback is meant; without one the name has to be telling.
    """
    own = module_of_name(lack.owner, modules_of(error)) if lack.owner else None
    reading = [
        each for each in found
        if each.kind == READS and version_of(each.package, facts) in each.has
        if own is None or distribution_of_module(own) != each.package
    ]  # fmt: skip
    shown = _packages_of(error)
    in_frames = [each for each in reading if each.package in shown]
    if in_frames or not is_telling(lack.name) or lack.owner in PLAIN:
        return min(in_frames, key=lambda each: shown.index(each.package), default=None)
    return reading[0] if len(reading) == 1 else None


def _is_meant(put: Change, lack: Lack, error: RaisedError, facts: Facts) -> bool:
    """Whether an attribute is the one that a package sets, although the classes of another package may have it as well."""
    if not put.owner:
        return True
    module = module_of_name(lack.owner, modules_of(error)) if lack.owner else None
    shown = put.package in _packages_of(error) or facts.package(put.package)
    return bool(shown) and (module is None or distribution_of_module(module) != put.owner)


def of_bare_name(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return the finding for a message that is only the attribute's name, as ``del`` and some classes give it."""
    bare = error.exception == "AttributeError" and error.message.isidentifier() and "_" in error.message
    return of_others(Lack(MEMBER, "", error.message), error, facts) if bare else []


def _of_one(found: Sequence[Change], error: RaisedError, facts: Facts) -> list[Change]:
    """Return the rows of one package: of the frames, of the environment, or the one from which the others took the name."""
    installed = {each.name for each in facts.environment.distributions or ()}
    one = of_one_package(found, modules_of(error), installed)
    if one or not found:
        return one
    central = origin_of({each.package for each in found})
    return [each for each in found if each.package == central]


def _added(found: Sequence[Change], lack: Lack, error: RaisedError, facts: Facts) -> Finding:
    package, known = found[0].package, found[0].known
    has = {version for each in found for version in each.has}
    names = list(dict.fromkeys(each.owner.partition("(")[0] for each in sorted(found, key=lambda each: -len(each.has))))
    more = f" and {len(names) - _MOST_CLASSES} others" if len(names) > _MOST_CLASSES else ""
    classes = f"{' or '.join(names[:_MOST_CLASSES])}{more}"
    version = version_of(package, facts)
    fixes = [Fix("config", text=f"pass {names[0]} instead of {lack.owner}")]
    named = releases_with_option(package, lack.name, has, known)
    if named is not None and version is not None and named.lacked_by(version):
        fixes = [*named.fixes(version), *fixes]
    elif named is not None and named.specifier.startswith(">="):
        first = named.specifier.removeprefix(">=").partition(",")[0]
        fixes.append(_older(package, first, f"releases without {names[0]}.{lack.name}"))
    return _finding(
        f"{lack.name} is in {package}'s {classes}, but the object is a plain {lack.owner}",
        f"{package} adds {lack.name} to {lack.owner} {span_of(has, known)}, according to its published source. The "
        "object was made "
        f"without {package}, or for an older release of it.",
        {package: version}, fixes, error,
    )  # fmt: skip


def _set(put: Change, lack: Lack, error: RaisedError, facts: Facts) -> Finding:
    package = put.package
    version, named = version_of(package, facts), releases_with_option(package, lack.name, put.has, put.known)
    readers = [name for name in _packages_of(error) if (reads := _reads(lack.name, name)) and reads.has]
    read = [f"{name} reads it {span_of(reads.has, reads.known)}" for name in readers if (reads := _reads(lack.name, name))]
    fixes: list[Fix] = []
    if named is not None and (version is None or named.lacked_by(version)):
        fixes += named.fixes(version)
    fixes.append(Fix("config", text=f"prepare the object with {package}, whose code sets {lack.name} on it"))
    fixes += [fix for name in readers if (fix := without_reading(lack.name, name, version_of(name, facts))) is not None]
    here = "but the value is None here" if lack.owner in PLAIN else f"but this {lack.owner or 'one'} does not have it"
    why = f"According to its published source, {package} sets it in {put.module} {span_of(put.has, put.known)}"
    return _finding(
        f"{package} sets {lack.name} on objects of other packages, {here}",
        f"{'; '.join((why, *read))}. The object was made or loaded without that code, or another release of it ran.",
        {name: version_of(name, facts) for name in dict.fromkeys((package, *readers))}, fixes, error,
    )  # fmt: skip


def _read(reads: Change, lack: Lack, error: RaisedError, facts: Facts) -> Finding:
    """Return the finding for an attribute that a package reads, and that a class of another package does not have."""
    reader, version = reads.package, version_of(reads.package, facts)
    owner = _owner(lack, reader, error, facts)
    moved = without_reading(lack.name, reader, version)
    fixes = [] if moved is None else [moved]
    if owner is not None:
        text = f"a release of {owner} whose {lack.owner} has {lack.name}"
        fixes.append(written_for(reader, owner, facts) or Fix("pin", owner, None, text, None))
    return _finding(
        f"{reader} {version} reads {lack.name}, but this {lack.owner or 'object'} does not have it",
        f"{reader} reads it in {reads.module} {span_of(reads.has, reads.known)}, according to its published source. "
        "The releases do not "
        f"match: {reader} was written for an older or a newer {owner or 'release of the package that defines the class'}.",
        {name: version_of(name, facts) for name in (reader, owner) if name}, fixes, error,
    )  # fmt: skip


def _owner(lack: Lack, reader: str, error: RaisedError, facts: Facts) -> str | None:
    """Return the package of the class, or else the only other installed one with a class that has or had the attribute."""
    module = module_of_name(lack.owner, modules_of(error)) if lack.owner else None
    if module is not None:
        return distribution_of_module(module)
    found = {each.package for each in changes().of(lack.name) if each.kind in (MEMBER_OF, FIELD)} - {reader}
    installed = [name for name in found if version_of(name, facts) is not None]
    return installed[0] if len(installed) == 1 else None


def _packages_of(error: RaisedError) -> list[str]:
    """Return the packages of the innermost frames."""
    return [distribution_of_module(name) for name in modules_of(error)]


def _reads(name: str, package: str) -> Change | None:
    return next((each for each in foreign().of(name) if each.kind == READS and each.package == package), None)


def without_reading(name: str, package: str, version: str | None) -> Fix | None:
    """Return the move to releases of ``package`` that do not read an attribute; ``None`` if all do, or if it is not known.

    A later release is preferred: the earlier ones do not read it yet.
    """
    reads = _reads(name, package)
    named = None if reads is None else releases_with_option(package, name, reads.has, reads.known)
    if reads is None or named is None or (version is not None and is_version(version) and version not in reads.has):
        return None
    after = [each for each in reads.lacks if key_of(each) > key_of(reads.has[-1])]
    if after:
        spec, text = f">={after[0]}", f"releases that no longer read {name}"
        return by_pip("upgrade", package, spec, text)
    return _older(package, reads.has[0], f"releases that do not read {name} yet")


def _older(package: str, first: str, text: str) -> Fix:
    return by_pip("downgrade", package, f"<{first}", text)


def _finding(title: str, why: str, packages: dict[str, str | None], fixes: Collection[Fix], error: RaisedError) -> Finding:
    return inferred(
        rule="symptom-foreign-attribute", title=title,
        why=why, packages=packages, fixes=tuple(fixes), here=location_text(error),
    )  # fmt: skip
