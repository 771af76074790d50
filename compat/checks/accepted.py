"""Which releases accept a string that is given for something: a quantization method, a loss type, a parser, an optimizer.

The table of accepted strings has the containers that hold them. Which of them a string is given for, their names have to say:
``--tool-call-parser qwen3_coder`` is looked up in ``ToolParserManager.register_module()``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compat.interfaces.changes import Change, values
from compat.records import record

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
    from packaging.version import Version

    first = found[0]
    accepting = {version for each in found for version in each.has}
    refusing = {version for each in found for version in each.lacks} - accepting
    checked = not all(each.owner.startswith("=") for each in found)
    if not checked:
        refusing -= {version for each in values().of(value) if each.package == first.package for version in each.has}
    known = tuple(each for each in first.known if not Version(each).is_prerelease)
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
