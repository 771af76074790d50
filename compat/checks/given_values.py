"""Strings that a command, its configuration files or a script give to a release that does not accept them.

The table of accepted strings has the containers that hold them. Which of them a string is given for, their names have to say:
``--tool-call-parser qwen3_coder`` is looked up in ``ToolParserManager.register_module()``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from compat.checks.fix_commands import by_pip, nearest_fixes
from compat.checks.interfaces import releases_in
from compat.checks.options import classes_of, finding_of, open_parsers
from compat.interfaces.at_once import place_of
from compat.interfaces.changes import Change, values
from compat.interfaces.table import tracked
from compat.model import Environment, Finding, Option, Workload
from compat.records import record
from compat.versions import is_final, key_of

_SAY_NOTHING = frozenset(
    (
        "alia", "all", "arg", "auto", "available", "by", "cfg", "choice", "cl", "class", "classe", "config",
        "configuration", "dict", "detector", "entry", "enum", "for", "func", "function", "global", "interface",
        "item", "key", "kind", "known", "list", "manager", "map", "mapping", "method", "mode", "module", "name",
        "of", "register", "registry", "str", "string", "supported", "table", "the", "to", "type", "valid",
        "value",
    )
)  # fmt: skip
"""Words in the names of containers that do not say what they hold."""

_SHORT = {"attn": "attention", "impl": "implementation", "optim": "optimizer", "quant": "quantization"}


@record(frozen=True)
class Accepted:
    """The releases of a package that have a string in one of its containers and those that have them without it, in order.

    ``checked``: some of the containers decide what is accepted, they are not only compared with it.
    """

    package: str
    accepting: tuple[str, ...]
    refusing: tuple[str, ...]
    known: tuple[str, ...]
    checked: bool


def containers_for(value: str, words: frozenset[str]) -> list[Change]:
    """Return the containers of a string whose names say only what the words say as well: those that say the most."""
    fitting = [each for each in values().of(value) if _subject(each) and _subject(each) <= words]
    most = max((len(_subject(each)) for each in fitting), default=0)
    return [each for each in fitting if len(_subject(each)) >= (most if most < 3 else most - 1)]


def accepted_in(value: str, found: Sequence[Change]) -> Accepted:
    """Return the releases that accept a string in one of some containers of one package.

    Comparisons do not show everything that is accepted: a release that has the string in any container is not said to lack it.
    """
    first = found[0]
    accepting = {version for each in found for version in each.has}
    refusing = {version for each in found for version in each.lacks} - accepting
    checked = not all(each.owner.startswith("=") for each in found)
    if not checked:
        refusing -= {version for each in values().of(value) if each.package == first.package for version in each.has}
    known = tuple(each for each in first.known if is_final(key_of(each)))
    having, lacking = (tuple(each for each in known if each in some) for some in (accepting, refusing))
    return Accepted(first.package, having, lacking, tuple(each for each in known if each in accepting | refusing), checked)


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text or of an identifier in full, in lower case and the singular."""
    apart = re.sub(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    words = (word.rstrip("s") for word in re.findall(r"[a-z]+\d*|\d+", apart.lower()))
    return frozenset(_SHORT.get(word, word) for word in words)


def name_of(change: Change) -> str:
    """Return the name of a container without its class: ``loss_type`` of ``=loss_type`` and of ``DPOConfig.loss_type``."""
    return change.owner.lstrip("=").rpartition(".")[2]


def _subject(change: Change) -> frozenset[str]:
    """Return the words that say what a container holds: of its name, or of its class or manager if that says nothing."""
    words = words_of(name_of(change)) - _SAY_NOTHING
    return words or words_of(change.owner.rpartition(".")[0]) - _SAY_NOTHING


_PLUGINS = {("vllm", "bitsandbytes"): "vllm-bnb-plugin", ("vllm", "gguf"): "vllm-gguf-plugin"}
"""By package and value: the plugin that registers it in releases that no longer have it themselves."""
_ON_TRANSFORMERS = frozenset(("trl", "llamafactory", "sentence-transformers", "setfit", "unsloth"))
"""Packages whose classes extend those of transformers and take their arguments."""


def judge(environment: Environment) -> Iterator[Finding]:
    """Yield an error for each string that the installed release refuses and another release accepts.

    Only what a registry, an enumeration or a list of choices of the installed release lacks is reported, and nothing if the job
    loads plugins, which may register it.
    """
    workload = environment.workload
    assert workload is not None
    given = workload.options or ()
    if any("plugin" in option.name for option in given):
        return
    installed = releases_in(environment, images=True)
    seen: set[tuple[str, str]] = set()
    for option in given:
        if option.value is not None and (option.name, option.value) not in seen:
            seen.add((option.name, option.value))
            yield from _of_value(option, option.value, workload, installed)


def _of_value(option: Option, value: str, workload: Workload, installed: Mapping[str, str]) -> Iterator[Finding]:
    packages = [package for package in dict.fromkeys(_packages_of(option.parser, workload)) if package in installed]
    found = containers_for(value, words_of(option.name)) if packages else []
    package = next((package for package in packages if any(each.package == package for each in found)), None)
    plugin = _PLUGINS.get((package or "", value))
    if package is None or plugin in installed:
        return
    known, version = accepted_in(value, [each for each in found if each.package == package]), installed[package]
    elsewhere = any(place_of(each.has, version) is not None for each in values().of(value) if each.package == package)
    if known.checked and known.accepting and place_of(known.refusing, version) is not None and not elsewhere:
        written = f"{option.name} {value}" if option.name.startswith("-") else f"{option.name}={value!r}"
        fixes = tuple(nearest_fixes(package, version, known.accepting, known.known, f"accepts {value}"))
        if plugin is not None and key_of(version) > key_of(known.accepting[-1]):
            fixes = (by_pip("pin", plugin, None, f"the plugin with {value}"), *fixes)
        why = "No registry, enumeration or list of choices of this release has the value."
        yield finding_of(option, package, version, f"{package} {version} does not accept {written}", why, fixes)


def _packages_of(parser: str, workload: Workload) -> Iterator[str]:
    """Yield the packages that may check the values of a program's options or of a call's arguments, the nearest first."""
    if parser in (programs := open_parsers()):
        yield programs[parser].package
        return
    classes = classes_of(parser, workload)
    for dotted in (parser,) if classes is None else classes.classes:
        package = tracked().get(dotted.partition(".")[0])
        if package is not None:
            yield package
            yield from ("transformers",) if package in _ON_TRANSFORMERS else ()
