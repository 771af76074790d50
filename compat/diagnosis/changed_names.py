"""Which releases have what an error says is missing, by the table of what changed inside packages.

It is asked when the tables of packages do not have the module, the class or the function. The message often names only a class
and a method, so the answer has to come from one package: the one that the frames show, or the only one that has it. A function
that a package has only since some release may also get a container of another kind than it expects: the list of a model's own
class, written for an older release, where transformers 5 expects a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from compat.checks.fix_commands import downgrade_to
from compat.diagnosis.frame_packages import distribution_of_module, inferred, is_before, location_text, package_of, version_of
from compat.diagnosis.missing_names import Named, module_of_name
from compat.diagnosis.python_messages import ATTRIBUTE, CALL, KEYWORD, MEMBER, MODULE, NAME, Lack
from compat.interfaces import changes as table
from compat.interfaces.announced import advised
from compat.interfaces.changes import Change, changes
from compat.model import Finding, Fix
from compat.records import record, replace
from compat.versions import is_final, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_KINDS = {
    KEYWORD: (table.KEYWORD, table.FIELD),
    CALL: (table.REQUIRED,),
    MEMBER: (table.MEMBER, table.FIELD),
    NAME: (table.NAME, table.MODULE),
    ATTRIBUTE: (table.NAME, table.MODULE),
    MODULE: (table.MODULE,),
}
COMMON = re.compile(
    r"(__)?(call|init|new|forward|main|run|get|load|save|generate|from_pretrained|step|apply|create|wrapper)(__)?"
)
"""Functions that many classes have: without the class, the message does not tell which one it was."""
PLAIN = ("tuple", "list", "dict", "set", "str", "int", "float", "bool", "NoneType")
"""Python's own classes: none of them is derived from one of a package."""
_PEERS = 3
"""Classes with a new parameter in one method from which on it is a convention of the package."""
_SIBLINGS = 2
"""Classes of any other package with a new parameter in one method of a telling name, from which on others' classes need it."""
_FORWARDED = 5
"""One of so many releases that require an argument may have another function of that name that passes everything on to it."""
_TELLING = 12
"""Characters of a member's name that only one package has, with an underscore: enough to know it without its class."""


def releases_with_name(lack: Lack, modules: Sequence[str], installed: Collection[str] = ()) -> Named | None:
    """Return the releases that have the name; ``None`` if the table does not have it, or several packages or classes do.

    ``modules``: the packages of the innermost frames. Of several packages that the frames do not show, the only one that is
    ``installed`` is meant.
    """
    if len(lack.required) > 1:
        return _without_any(lack, modules, installed)
    name = lack.name or lack.owner.rpartition(".")[2]
    found = [each for each in changes().of(name) if each.kind in _KINDS.get(lack.kind, ())]
    doubt = None
    meant = [each for each in found if _is_meant(each, lack)]
    if not meant and lack.kind in (NAME, ATTRIBUTE):
        # the name may be in a module of the package, if only one module at that depth has it
        inside = [each for each in found if each.kind == table.NAME and each.module.startswith(f"{lack.owner}.")]
        nearest = min((each.module.count(".") for each in inside), default=0)
        inside = [each for each in inside if each.module.count(".") == nearest]
        meant = inside if len(inside) == 1 else []
        doubt = f" It is a guess that {lack.owner} forwards the name from {meant[0].module}." if meant else None
    elif not meant and lack.kind == MEMBER and lack.owner not in PLAIN and is_telling(name):
        # a known class has its members in the other tables
        meant = [] if module_of_name(lack.owner, modules, anywhere=False) is not None else found
        doubt = f" The {lack.name} of {lack.owner} is assumed to be this one because of its name."
    one = of_one_package(meant, modules, installed if doubt is None else ())
    if not one and lack.required:
        likely = module_of_name(lack.owner.partition(".")[0], modules) or ""
        one = of_one_package(meant, (likely.partition(".")[0],), ())
    merged = _merged(one) or _merged([each for each in one if not _is_private(each)])
    return None if merged is None else _named(merged, lack, modules, doubt)


def _is_private(change: Change) -> bool:
    """Whether the class or module of a change is one that few programs name; a message without the class means another."""
    return any(part.startswith("_") for part in (*change.module.split("."), change.owner))


def is_telling(name: str) -> bool:
    """Whether the name of a member is enough to know it without its class."""
    return len(name) >= _TELLING and "_" in name


def _without_any(lack: Lack, modules: Sequence[str], installed: Collection[str]) -> Named | None:
    """Return the releases that require none of several arguments: those of the argument that was required first."""
    each = (replace(lack, name=name, required=(name,)) for name in lack.required)
    found = [named for one in each if (named := releases_with_name(one, modules, installed)) is not None]
    first = min(found, key=lambda named: key_of(named.lacks[0]), default=None)
    return first and replace(first, what=lack.what)


def _is_meant(change: Change, lack: Lack) -> bool:
    """Whether the change is of the function, class or module that the message names."""
    if lack.kind in (NAME, ATTRIBUTE, MODULE):
        owner = lack.owner if lack.kind != MODULE else lack.owner.rpartition(".")[0]
        return change.module == (f"{owner}.{change.name}" if change.kind == table.MODULE else owner)
    if lack.kind == MEMBER:
        return change.owner == lack.owner
    if change.kind == table.FIELD:
        return f"{change.owner}.__init__" == lack.owner
    function = change.owner.rpartition(".")[2]
    return change.owner == lack.owner or (function == lack.owner and COMMON.fullmatch(function) is None)


def first_of_peers(method: str, parameter: str) -> tuple[str, str] | None:
    """Return the only package several of whose classes have got a parameter in a method of theirs, and the release since which.

    Of transformers, where a convention spreads from model to model, that is the first release; of others, whose classes share
    a base, the one since which all of them have it.
    """
    gained = [
        each
        for each in changes().of(parameter)
        if each.kind == table.KEYWORD and each.owner.endswith(f".{method}")
        if each.has and each.lacks and key_of(each.lacks[0]) < key_of(each.has[0])
    ]
    of_models = [each.has[0] for each in gained if each.package == "transformers"]
    if len(of_models) >= _PEERS:
        return "transformers", min(of_models, key=key_of)
    packages = {each.package for each in gained}
    if len(packages) != 1 or len(gained) < _SIBLINGS or not is_telling(method):
        return None
    return packages.pop(), max((each.has[0] for each in gained), key=key_of)


def class_with_argument(keyword: str, ending: str) -> str | None:
    """Return the only class with such a name whose constructor takes an argument in some releases, and in others not."""
    found = {
        each.owner.removesuffix(".__init__")
        for each in changes().of(keyword)
        if each.kind == table.KEYWORD and each.lacks and each.owner.endswith(f"{ending}.__init__")
    }
    return found.pop() if len(found) == 1 else None


def owner_of_method(method: str, modules: Sequence[str]) -> tuple[str, str, str, str] | None:
    """Return the class whose method this is: its package, its name, the release it has it since, the oldest known release.

    ``modules``: the packages of the innermost frames, which must have it if there are any; else one package must.
    """
    found = [each for each in changes().of(method) if each.kind in (table.MEMBER, table.NEW) and each.has]
    if modules:
        found = [each for each in found if each.module.partition(".")[0] in modules]
    if not found or len({each.package for each in found}) != 1:
        return None
    first = min(found, key=lambda each: (key_of(each.has[0]), len(each.owner), each.owner))
    return first.package, first.owner, first.has[0], first.known[0]


def class_of_member(name: str, tops: Collection[str]) -> str | None:
    """Return the class of one of some packages that has a member, the least nested one; ``None`` for several packages."""
    found = [
        each
        for each in changes().of(name)
        if each.kind in (table.MEMBER, table.FIELD) and each.module.partition(".")[0] in tops
    ]
    if len({each.package for each in found}) != 1:
        return None
    return min(found, key=lambda each: (each.module.count("."), len(each.owner), each.owner)).owner


def of_one_package(found: Iterable[Change], modules: Sequence[str], installed: Collection[str]) -> list[Change]:
    """Return the changes in one package: of the frames, the innermost first, or the only one, or the only installed one."""
    by_package: dict[str, list[Change]] = {}
    for each in found:
        by_package.setdefault(each.package, []).append(each)
    tops = {each.module.partition(".")[0]: each.package for group in by_package.values() for each in group}
    package = next((tops[module] for module in modules if module in tops), None)
    if package is None:
        by_package = {name: group for name, group in by_package.items() if not _is_copy(group[0].module, tops)} or by_package
        here = list(by_package) if len(by_package) == 1 else [name for name in by_package if name in installed]
        package = here[0] if len(here) == 1 else None
    return by_package.get(package or "", [])


def _is_copy(module: str, tops: Collection[str]) -> bool:
    """Whether a module is a copy of one of the packages inside another: ``xformers._flash_attn`` of ``flash_attn``."""
    return any(part.lstrip("_") in tops for part in module.split(".")[1:])


@record(frozen=True)
class _Releases:
    """The final releases of ``package`` in which the call or the use works and those in which it fails, in order."""

    package: str
    owner: str
    good: tuple[str, ...]
    bad: tuple[str, ...]
    known: tuple[str, ...]


def _merged(found: Sequence[Change]) -> _Releases | None:
    """Return what several modules say of one class, which has moved between them; ``None`` if they contradict each other."""
    if not found:
        return None
    first = found[0]
    good = {version for each in found for version in each.has}
    bad = {version for each in found for version in each.lacks}
    if first.kind == table.REQUIRED:
        good, bad = bad, good
        if len(good & bad) <= len(bad) // _FORWARDED:
            good -= bad  # what it forwards to requires it
    if good & bad:
        return None
    known = tuple(version for version in first.known if is_final(key_of(version)))
    works, fails = (tuple(version for version in known if version in some) for some in (good, bad))
    if not works or not fails:
        return None
    owners = {each.owner for each in found}
    return _Releases(first.package, first.owner if len(owners) == 1 else first.module, works, fails, known)


def _named(found: _Releases, lack: Lack, modules: Sequence[str], guess: str | None) -> Named | None:
    """Return the releases of what the error lacks; ``guess`` states what was guessed to find the name."""
    of_class = lack.kind not in (NAME, ATTRIBUTE, MODULE)
    shown = any(module.replace("_", "-") == found.package for module in modules)
    unsaid = f" The message does not say which {lack.owner} it is." if of_class and not shown else ""
    call = lack.kind == CALL
    what = f"{found.owner}.{lack.name}" if guess and of_class else f"{lack.owner}() without {lack.name}" if call else lack.what
    named = _in_runs(found, what, call=call)
    if named is None:
        return None
    owners = () if lack.kind in (NAME, ATTRIBUTE, MODULE) else (found.owner.partition(".")[0],)
    advice = None if call or not named.gone else advised(found.package, lack.name or lack.owner.rpartition(".")[2], owners)
    quoted = None if advice is None else advice.quoted(found.package)
    return replace(named, doubt=guess or unsaid, derived=guess is not None, advice=quoted)


def releases_with_option(package: str, name: str, has: Collection[str], known: Sequence[str]) -> Named | None:
    """Return the releases of a program that accept an option; ``None`` if all or none do, or with several gaps."""
    good = tuple(version for version in known if version in has)
    bad = tuple(version for version in known if version not in has)
    return _in_runs(_Releases(package, "", good, bad, tuple(known)), name, call=False) if good and bad else None


def releases_with_field(name: str, packages: Collection[str]) -> Named | None:
    """Return the releases in which a data class of one of the packages has a field: an option, or a key of a configuration."""
    found = [each for each in changes().of(name) if each.kind == table.FIELD and each.package in packages]
    if len({each.package for each in found}) != 1:
        return None
    has = {version for each in found for version in each.has}
    decided = has.union(*(each.lacks for each in found))
    known = [version for version in found[0].known if version in decided and is_final(key_of(version))]
    owners = {each.owner for each in found}
    return releases_with_option(
        found[0].package, f"{next(iter(owners))}({name}=)" if len(owners) == 1 else f"the option {name}", has, known
    )


def _in_runs(found: _Releases, what: str, *, call: bool) -> Named | None:
    """Return the releases as one run, perhaps with a second one; ``None`` if there are more."""
    runs = _runs(found)
    if len(runs) > 2:
        return None
    first, last = runs[0]
    before = [version for version in found.bad if key_of(version) < key_of(first)]
    after = [version for version in found.bad if key_of(version) > key_of(last)]
    closed = bool(after) or last != found.known[-1]
    span = f"from {first} {f'to {last}' if closed else 'on'}" if before else f"up to {last}"
    again = runs[1][0] if len(runs) > 1 else None
    return Named(
        what=what,
        package=found.package,
        specifier=",".join((*([f">={first}"] if before else ()), *([f"<={last}"] if closed else ()))),
        span=span if again is None else f"{span} and again from {again} on",
        why="; ".join(_sides(before, after, call=call)),
        renamed=None,
        lacks=found.bad,
        leans=False,
        read=found.known,
        again=again,
        call=call,
    )


def _sides(before: Sequence[str], after: Sequence[str], *, call: bool) -> Iterator[str]:
    if before:
        yield f"required up to {before[-1]}" if call else f"not yet in {before[-1]}"
    if after:
        yield f"required since {after[0]}" if call else f"no longer in {after[0]}"


def _runs(found: _Releases) -> list[tuple[str, str]]:
    """Return the first and the last release of each run in which it works, without one in which it fails between them."""
    runs: list[tuple[str, str]] = []
    starts = True
    for version in found.known:
        if version in found.good:
            runs.append((version, version) if starts else (runs.pop()[0], version))
            starts = False
        elif version in found.bad:
            starts = True
    return runs


_C = r"(?:list|tuple|dict|set)"
_ANOTHER_KIND = re.compile(
    rf"'{_C}' object has no attribute '\w{{1,60}}'|unsupported operand type\(s\) for \S{{1,9}}: '{_C}' and '{_C}'"
    rf"|(?:list|tuple) indices must be integers or slices, not (?:str|tuple)|unhashable type: '{_C}'"
)
"""Python's messages about one container where another one is expected; ``None`` and strings come from data as well."""


def of_new_function(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for an error about a container in a function that its package has only since some release."""
    frame = error.frame
    module = None if frame is None else package_of(frame)
    function = "" if frame is None else (frame.function or "").rpartition(".")[2]
    if frame is None or module is None or _ANOTHER_KIND.search(error.message) is None or COMMON.fullmatch(function):
        return []
    package = distribution_of_module(module)
    found = _since(function, package, frame.file)
    here = version_of(package, facts)
    if found is None or is_before(here, found[1]):
        return []
    last, since = found
    return [
        inferred(
            rule="symptom-new-function",
            title=f"{function} of {package}, new in {since}, receives a different type of container",
            why=f"According to its published source, {last} does not have this function. What it receives, such as an "
            "attribute of a model's own "
            f"class, was written for an older {package}.",
            packages={package: here},
            fixes=(
                downgrade_to(package, last, "the last release without it"),
                Fix("config", text="a newer version of the code that passes the value (for a model with its own code: "
                "its latest "
                    "revision)"),
            ),
            here=location_text(error),
        )
    ]  # fmt: skip


def _since(function: str, package: str, file: str) -> tuple[str, str] | None:
    """Return the last release without a function and the first one with it, if all of its modules agree, or the frame's."""
    kinds = (table.MEMBER, table.NAME, table.NEW)
    found = [each for each in changes().of(function) if each.package == package and each.kind in kinds and each.has]
    path = file.replace("\\", "/").removesuffix(".py")
    found = [each for each in found if path.endswith(each.module.replace(".", "/"))] or found
    steps = {_step(each) for each in found}
    return steps.pop() if len(steps) == 1 else None


def _step(change: Change) -> tuple[str, str] | None:
    """The releases between which it came, if it did not go again; the second one is a final release."""
    known = [each for each in change.known if each in change.has or each in change.lacks]
    first = known.index(change.has[0])
    if not first or change.has[-1] != change.known[-1] or any(each in change.lacks for each in known[first:]):
        return None
    final = next((each for each in change.has if not re.search(r"[a-z]", each.partition(".post")[0])), None)
    return None if final is None else (known[first - 1], final)
