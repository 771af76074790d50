"""Which releases have the name that an error reports as missing, by the tables of published source.

An error names a module, a name in it, or an argument of a function. It is turned into a line of code that uses the name,
which is then checked like a script in ``compat script``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from compat.checks.code import releases
from compat.diagnosis.changed_names import class_with_argument
from compat.diagnosis.missing_names import (
    OF_TORCH,
    Named,
    has_member,
    in_full,
    model_modules,
    module_of_name,
    modules_of_name,
    shown_in,
    where_shown,
    with_module,
)
from compat.interfaces.code.explained import Explained, Reason, explain_ranges
from compat.interfaces.code.needs import Code, CodeFile, CodeNeed, CodeNeeds, Field
from compat.interfaces.code.releases import Range, Reverse
from compat.interfaces.code.renamed import advice_on, in_other_release
from compat.interfaces.needs import Need
from compat.interfaces.source.module import module_of
from compat.interfaces.source.records import Class, Function
from compat.interfaces.table import tracked
from compat.records import replace
from compat.syntax.python import syntax_tree
from compat.versions import is_final, key_of

if TYPE_CHECKING:
    pass


_CONFIGURATIONS = (
    "SFTConfig", "GRPOConfig", "DPOConfig", "RewardConfig", "ScriptArguments", "ModelConfig", "TrainingArguments",
)  # fmt: skip
"""Classes that script arguments are parsed into, most specific first."""
_SHARED = frozenset(("load", "save", "forward", "step", "get", "main", "call", "run", "compile", "apply"))
"""Functions of torch whose names too many others have."""
_MOST_HOLES = 3
"""Releases within a range that are excluded one by one."""


def of_name(module: str, name: str | None) -> Named | None:
    """Look up ``from module import name``, or ``import module`` if name is ``None``; ``None`` if the tables do not list it."""
    if module.partition(".")[0] not in tracked():
        return None
    if name is None:
        return _asked(f"import {module}\n", module)
    return _asked(f"from {module} import {name}\n", name) or shown_in(module, name)


def of_attribute(module: str, name: str) -> Named | None:
    """Look up ``module.name``; ``None`` if the tables do not list it."""
    if module.partition(".")[0] not in tracked():
        return None
    return _asked(f"import {module}\n{module}.{name}\n", name) or shown_in(module, name)


def of_positional(function: str, given: int, modules: Sequence[str]) -> Named | None:
    """Look up a class's method, or a function, that takes this many positional arguments, ``self`` included."""
    owner, _, method = function.rpartition(".")
    module = module_of_name(owner or method, modules)
    if module is None:
        return None
    package, known = tracked()[module.partition(".")[0]], releases()

    def takes(version: str) -> bool:
        world = known.world(package, version)
        found = None if world is None else world.imported(module, owner or method)
        if world is not None and found is not None and owner:
            found = world.member(found, method) if found.kind == "class" else None
        made = None if found is None else found.definition
        return isinstance(made, Function) and (made.signature.star or len(made.signature.positional) >= given)

    named = where_shown(package, f"{function}() with {given} positional arguments", takes)
    return None if named is None else replace(named, call=True)


def of_keyword(function: str, keyword: str, modules: Sequence[str]) -> Named | None:
    """Look up ``function(keyword=…)`` for a class, a method or a function in one of ``modules`` or of :data:`LIKELY`."""
    function, modules = with_module(in_full(function), modules)
    owner, _, method = function.rpartition(".")
    top = function.partition(".")[0]
    call = f"{owner or function}(*_, {keyword}=0)"  # which others it is passed is not known
    if owner and method != "__init__":
        call = f"x = {owner}(*_)\nx.{method}({keyword}=0)"
    places = modules_of_name(top, modules, OF_TORCH if owner or method not in _SHARED else ())
    module, found = _first(places, modules, lambda home: _asked(f"from {home} import {top}\n{call}\n", keyword))
    if module is None:
        bases = _of_bases(top, lambda base: of_keyword(function.replace(top, base, 1), keyword, modules))
        return next(bases, None) or _of_class_with(keyword, top, method, modules)
    if found is not None and found.renamed is None and found.gone and top.endswith("Trainer") and method in ("", "__init__"):
        found = _moved(found, f"{top.removesuffix('Trainer')}Config", keyword, modules)
    return _perhaps(found, None if module in modules else top)


def _first(
    homes: Iterator[str], modules: Sequence[str], asked: Callable[[str], Named | None]
) -> tuple[str | None, Named | None]:
    """Return the first module that has the class, and what is known; several packages have a ``Trainer``.

    Only without frames is a later one asked: the first may be another class of that name, which never had the argument.
    """
    first = None
    for module in homes:
        first = first or module
        found = asked(module)
        if found is not None or module in modules:
            return module, found
    return first, None


def _moved(found: Named, configuration: str, keyword: str, modules: Sequence[str]) -> Named:
    """An argument that a trainer no longer takes is often a field of its configuration, perhaps under another name since."""
    module, known = module_of_name(configuration, modules), releases()
    world = None if module is None else known.world(found.package, found.read[-1])
    if module is None or world is None:
        return found
    now = world.imported(module, configuration).definition
    if isinstance(now, Class) and (keyword in dict(now.fields) or keyword in _inherited(now)):
        return replace(found, renamed=f"{configuration}({keyword}=)")
    there = _asked(f"from {module} import {configuration}\n{configuration}(*_, {keyword}=0)\n", keyword)
    if there is None or there.package != found.package:
        return found
    now_called = f"{configuration}({there.renamed}=) ({keyword}= in releases {there.span})"
    return replace(found, renamed=now_called if there.renamed else f"{configuration}({keyword}=) in releases {there.span}")


def _inherited(configuration: Class) -> frozenset[str]:
    """The fields that a configuration has from the TrainingArguments of transformers, in their newest release."""
    table = releases().table("transformers")
    if table is None or not any("TrainingArguments" in str(base) or "BaseConfig" in str(base) for base in configuration.bases):
        return frozenset()
    world = releases().world("transformers", table.versions[-1])
    base = None if world is None else world.imported("transformers", "TrainingArguments").definition
    return frozenset(dict(base.fields)) if isinstance(base, Class) else frozenset()


def _of_bases(name: str, asked: Callable[[str], Named | None]) -> Iterator[Named]:
    """Look up the likely base of an unknown class: ``GRPOTrainer`` for ``MyGRPOTrainer``, ``GRPOEnvTrainer`` or
    ``GRPOTrainerFast``.
    """
    words = re.findall(r"[A-Z]+(?=[A-Z][a-z]|$)|[A-Z][a-z\d]*", name)
    if len(words) < 2 or "".join(words) != name:
        return
    inner = ["".join((*words[:at], *words[at + 1 :])) for at in range(1, len(words) - 1)]
    ends = [name[at:] for at in range(1, len(name) - len(words[-1])) if name[at].isupper()]
    starts = ["".join(words[:at]) for at in range(len(words) - 1, 1, -1)]
    for base in (*inner, *ends, *starts):
        if module_of_name(base, ()) is not None and (found := asked(base)) is not None and not found.derived:
            yield replace(found, doubt=f" {name} is assumed to derive from {base} because of its name.", derived=True)
            return


def _of_class_with(keyword: str, name: str, method: str, modules: Sequence[str]) -> Named | None:
    """Look up an argument of the only trainer that has ever taken it, as that of an unknown one."""
    base = class_with_argument(keyword, "Trainer") if name.endswith("Trainer") and method in ("", "__init__") else None
    found = None if base in (None, name) else of_keyword(f"{base}.__init__", keyword, modules)
    doubt = f" {name} is assumed to derive from {base} because of this argument."
    return None if found is None else replace(found, doubt=doubt, derived=True)


def of_flags(names: Sequence[str]) -> Iterator[Named]:
    """Look up command-line flags or configuration keys as fields of trl's and transformers' configuration classes."""
    for name in names:
        for configuration in _CONFIGURATIONS:
            found = of_keyword(f"{configuration}.__init__", name, ())
            if found is not None:
                yield replace(found, doubt=" The message does not say which class lacks the field.")


def of_member(owner: str, name: str, modules: Sequence[str]) -> Named | None:
    """Look up attribute ``name`` of objects of class ``owner``, found in one of ``modules`` or of :data:`LIKELY`.

    ``None`` for private names, which other packages often set, and for names inherited from a base in another package.
    """
    if name.startswith("_"):
        return None
    module = module_of_name(owner, modules)
    if module is None:
        return next(_of_bases(owner, lambda base: of_member(base, name, modules)), None)
    found = _asked(f"from {module} import {owner}\n", name, Field(f"{module}.{owner}", name, 1, sure=True))
    if (found is None or found.leans) and owner.endswith(("Config", "Arguments")):
        fields = of_keyword(f"{owner}.__init__", name, modules)  # the fields of a configuration are its arguments
        return fields if fields is not None and _is_named(module, owner, name) else None
    if found is None:
        found = _of_members(module, owner, name)
    of_trainer = owner.endswith(("Trainer", "Config", "Arguments"))
    if found is None or (found.leans and not (of_trainer and not _is_of_some_base(name))):
        return None
    return _perhaps(found, None if module in modules else owner)


def _is_named(module: str, owner: str, name: str) -> bool:
    """Whether the constructor of a class names an argument in some release, rather than taking any in ``**kwargs``.

    Not of a class that answers for other objects or under other names (``__getattr__``): what it has is unknown.
    """
    package, known = tracked()[module.partition(".")[0]], releases()
    table = known.table(package)
    for version in reversed(table.versions if table is not None else ()):
        world = known.world(package, version)
        found = None if world is None else world.imported(module, owner)
        if world is None or found is None or found.kind != "class":
            continue
        if any(isinstance(each.definition, Class) and each.definition.dynamic for each in world.bases(found)[0]):
            return False
        made = world.constructor(found)
        if made is not None and name in (*made[0].positional, *made[0].keyword_only, *made[0].extra):
            return True
    return False


def _of_members(module: str, owner: str, name: str) -> Named | None:
    """Look up a member of a class whose last base, torch's Module or an enumeration, has no attributes of the subclass."""
    package, known = tracked()[module.partition(".")[0]], releases()
    of_model = module.startswith("transformers")
    if of_model and ".modeling_" not in module:
        module = next((each for each in model_modules(owner) if "modeling_" in each), "")
    table = known.table(package)
    if table is None or not module:
        return None
    has: dict[str, bool] = {}
    for version in (each for each in table.versions if is_final(key_of(each))):
        world = known.world(package, version)
        found = None if world is None else world.imported(module, owner)
        if world is None or found is None or not isinstance(found.definition, Class):
            continue
        if not of_model and not all(base.startswith("enum.") for base in found.definition.bases):
            return None
        classes = [each.definition for each in world.bases(found)[0] if isinstance(each.definition, Class)]
        own = any(has_member(each, name) for each in classes)
        if own or not any(each.partial for each in classes):
            has[version] = own
    having = [version for version, own in has.items() if own]
    if not having or all(has.values()) or not all(has[each] for each in list(has)[list(has).index(having[0]) :][: len(having)]):
        return None  # of every release, of none, or with gaps
    first, last = having[0], having[-1]
    before, after = first != next(iter(has)), last != list(has)[-1]
    specifier = ",".join((*([f">={first}"] if before else ()), *([f"<={last}"] if after else ())))
    span = f"from {first} " + (f"to {last}" if after else "on") if before else f"up to {last}"
    lacks = tuple(version for version, own in has.items() if not own)
    return Named(f"{owner}.{name}", package, specifier, span, "", None, lacks, leans=False, read=tuple(table.versions))


def _is_of_some_base(name: str) -> bool:
    """Whether trainers or their arguments may have an attribute from transformers, whose classes other packages extend."""
    known, table = releases(), releases().table("transformers")
    worlds = [known.world("transformers", version) for version in (table.versions[::-24] if table is not None else ())]
    return not worlds or any(
        world is None or world.member(world.imported("transformers", base), name).kind not in ("absent", "never")
        for world in worlds
        for base in ("Trainer", "TrainingArguments")
    )


def _perhaps(found: Named | None, guessed: str | None) -> Named | None:
    doubt = f" The message does not say which {guessed} it is."
    return found if found is None or guessed is None else replace(found, doubt=doubt)


def _asked(source: str, name: str, *fields: Field) -> Named | None:
    """Return the releases in which the line of ``source`` that uses ``name`` works; ``None`` if the tables do not decide."""
    try:
        tree = syntax_tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a message may contain arbitrary text
        return None
    module = module_of(tree, source.encode(), "asked")
    known = releases()
    wanted = CodeNeeds(Code((CodeFile("", module, lambda _: "", fields=fields),)), tracked())
    reverse = Reverse(wanted, known)
    each = next((one for one in reversed(wanted.all) if _says(one.need, name)), None)
    if each is None or each in reverse.hopeless:  # a name that no known release has does not narrow down releases
        return None
    ranges = reverse.ranges()
    package = next((one.package for one in ranges if any(_lacks(each, lacking) for lacking in one.why.values())), None)
    found = next((one for one in explain_ranges(ranges, reverse, known) if one.package == package), None)
    if found is None or found.first is None:
        return None
    seen = _seen(each.need, found.package, found.range)
    if not any(seen):
        return None  # no release shows it: they are only not known to lack it
    base = None if package in wanted.packages_of(each) else _base(each.need, ranges[0])
    if base is not None:  # a base in another package accepts it, so that package's releases decide
        home, _, top = base.rpartition(".")
        return _asked(f"from {home} import {top}\n{top}(*_, {name}=0)\n", name)
    named = _named(each, found.package, found)
    return replace(named, partly=not all(seen)) if named.specifier else None  # else only pre-releases lack it


def _seen(need: Need, package: str, range_: Range) -> list[bool]:
    """For each release without a gap: whether it is known to have a name; of many modules, the tables have only some names."""
    if need.kind not in ("attribute", "import"):
        return [True]
    answers = (releases().answer(package, version, need) for version in range_.versions if version in range_.allowed)
    return [answer.met is True or answer.lean is not None for answer in answers]


def _base(need: Need, range_: Range) -> str | None:
    """Return the base class in another package that handles the call's keywords, or ``None``."""
    leans = (releases().answer(range_.package, version, need).lean for version in reversed(range_.versions))
    needs = (lean.need for lean in leans if lean is not None)
    return next((need.target for need in needs if need.kind == "call" and need.keywords), None)


def _lacks(each: CodeNeed, lacking: tuple[object, ...]) -> bool:
    """Whether these gaps show that the release lacks the name itself, and not just its module or class."""
    return each in lacking and not any(
        other != each and other.need.kind == "import" for other in lacking if isinstance(other, CodeNeed)
    )


def _says(need: Need, name: str) -> bool:
    kind, target, member, _, _, keywords, _ = need
    return name in keywords or (not keywords and name in (member, target, target.rpartition(".")[2]) and kind != "call")


def _named(each: CodeNeed, package: str, found: Explained) -> Named:
    found = _without_prereleases(found)
    other = _name_in_newer(each.need, package, found)
    versions = found.range.versions
    before, after = found.first != versions[0], found.last != versions[-1]
    span = f"from {found.first} " + (f"to {found.last}" if after else "on")
    if not before:
        span = f"up to {found.last}" if after else f"but not in {', '.join(found.holes)}"
    specifier, again, holes = found.specifier, None, list(found.holes)
    if len(holes) > _MOST_HOLES:  # a series without the name: the releases before it are named, and the first one after it
        again = versions[versions.index(holes[-1]) + 1]
        last = next(each for each in reversed(versions[: versions.index(holes[0])]) if is_final(key_of(each)))
        specifier = ",".join((*([f">={found.first}"] if before else ()), f"<={last}"))
        span = f"{f'from {found.first} ' if before else ''}up to {last} and again from {again} on"
    sides = [side for side in (found.below, found.above) if side is not None and side[1]]
    why = "; ".join(_text(version, some[0], newer=(version, some) == found.above) for version, some in sides)
    stated = next((side for side in sides if side[1][0].stated), None)
    renamed = other if stated is None else stated[1][0].renamed
    if other is not None and other == renamed and other not in why:
        why += f", which calls it {other}"
    advice = None
    if renamed is None and found.above is not None and found.last is not None:
        advice = advice_on(releases(), package, each.need, found.last)
    return Named(
        each.what,
        package,
        specifier,
        span,
        why,
        renamed,
        tuple(v for v in versions if v in found.range.why),
        bool(found.range.leaning),
        tuple(versions),
        again=again,
        renamed_before=stated is not None and stated == found.below,
        advice=None if advice is None else advice.quoted(package),
    )


def _name_in_newer(need: Need, package: str, found: Explained) -> str | None:
    """Return the name that the next newer release states in its place, or ``None``."""
    if found.above is None or found.last is None:
        return None
    other = in_other_release(releases(), package, need, found.last, found.above[0])
    return other.name if other is not None and other.stated else None


def _without_prereleases(found: Explained) -> Explained:
    """Replace pre-releases at the ends of the range with final releases: naming a pre-release would install one."""
    finals = [each for each in found.range.versions if each in found.range.allowed and is_final(key_of(each))]
    if not finals:
        return found
    first = finals[0] if not is_final(key_of(found.first or "0")) else found.first
    newest = found.last == found.range.versions[-1]
    last = finals[-1] if not newest and not is_final(key_of(found.last or "0")) else found.last
    holes = {version: why for version, why in found.holes.items() if is_final(key_of(version))}
    return replace(found, first=first, last=last, holes=holes)


def _text(version: str, reason: Reason, *, newer: bool) -> str:
    """Describe why a release lacks the name; a name that is only similar is not suggested."""
    if reason.left:  # its base no longer or not yet has it
        return f"not {'' if newer else 'yet '}accepted by {version}"
    return reason.text if reason.stated else reason.text.partition(";")[0]
