"""Which releases have the name that an error says is not there, by the tables of published source.

An error names a module, a name in it, or an argument of a function. As a line of code that uses it, it is asked for as
``compat script`` asks for a script's.
"""

from __future__ import annotations

import ast

from compat.judge.code.explained import explained
from compat.judge.code.findings import releases
from compat.judge.code.releases import Reverse
from compat.judge.code.wanted import WantedOf
from compat.matrix.surface.table import tracked
from compat.read.code.records import Code, CodeFile, Field
from compat.read.python_source.module import module_of
from compat.records import record, replace
from compat.report import Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compat.judge.code.explained import Explained, Reason
    from compat.matrix.surface.needs import Need

_LIKELY = (
    "trl", "transformers", "peft", "accelerate", "datasets", "vllm", "sentence_transformers", "diffusers", "unsloth",
    "huggingface_hub", "deepspeed", "tokenizers",
)  # fmt: skip
"""Modules whose classes and functions errors name without saying whose they are."""


@record(frozen=True)
class Named:
    """What is asked for (``trl.GRPOConfig``), the releases of ``package`` that have it, and what it is called in others.

    ``lacks`` are known releases that certainly do not have it; ``leans``: some leave it to a base in another package.
    ``guessed`` is the class or function of which the error does not say that it is this package's.
    """

    what: str
    package: str
    specifier: str
    span: str
    why: str
    renamed: str | None
    lacks: frozenset[str]
    leans: bool
    guessed: str | None = None

    @property
    def gone(self) -> bool:
        """Whether the newest release does not have it any more."""
        return "<=" in self.specifier

    def fixes(self, installed: str | None) -> Iterator[Fix]:
        """A release that has it, and the other name for those that do not."""
        kind = "pin"
        if installed is not None:
            kind = "downgrade" if self.gone else "upgrade"
        if self.renamed is not None:
            yield Fix("config", None, None, f"write {self.renamed}, as it is called in the others")
        yield Fix(kind, self.package, self.specifier, f"has {self.what}", f'pip install "{self.package}{self.specifier}"')


def of_name(module: str, name: str | None) -> Named | None:
    """``from module import name``, or ``import module`` without a name; ``None`` where the tables do not tell."""
    if module.partition(".")[0] not in tracked():
        return None
    return _asked(f"import {module}\n" if name is None else f"from {module} import {name}\n", name or module)


def of_attribute(module: str, name: str) -> Named | None:
    """``module.name``."""
    if module.partition(".")[0] not in tracked():
        return None
    return _asked(f"import {module}\n{module}.{name}\n", name)


def of_keyword(function: str, keyword: str, modules: Sequence[str]) -> Named | None:
    """``function(keyword=…)``: a class, one of its methods, or a function that one of ``modules`` or a likely one has."""
    owner, _, method = function.rpartition(".")
    top = function.partition(".")[0]
    call = (
        f"{owner or function}({keyword}=0)" if method == "__init__" or not owner else f"x = {owner}()\nx.{method}({keyword}=0)"
    )
    for module in dict.fromkeys((*modules, *_LIKELY)):
        if module in tracked() and _offers(module, top):
            return _perhaps(_asked(f"from {module} import {top}\n{call}\n", keyword), None if module in modules else top)
    return None


def of_member(owner: str, name: str, modules: Sequence[str]) -> Named | None:
    """``name`` of an object of a class that one of ``modules`` or a likely one has at its top.

    Private names are often put there by others, and what a base in another package has is not told by this one's releases.
    """
    if name.startswith("_"):
        return None
    for module in dict.fromkeys((*modules, *_LIKELY)):
        if module in tracked() and _offers(module, owner):
            found = _asked(f"from {module} import {owner}\n", name, Field(f"{module}.{owner}", name, 1, sure=True))
            return None if found is None or found.leans else _perhaps(found, None if module in modules else owner)
    return None


def _perhaps(found: Named | None, guessed: str | None) -> Named | None:
    return found if found is None or guessed is None else replace(found, guessed=guessed)


def _offers(module: str, name: str) -> bool:
    """Whether the newest release of a module, or one of some before, has a name at its top."""
    known = releases()
    table = known.table(tracked()[module])
    some = () if table is None else (*table.versions[::-12],)
    need = ("import", module, name, (), 0, (), None)
    return any(known.answer(tracked()[module], version, need).met for version in some)


def _asked(source: str, name: str, *fields: Field) -> Named | None:
    """The releases in which the line of ``source`` that says ``name`` works."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a message may hold anything
        return None
    module = module_of(tree, source.encode(), "asked")
    wanted = WantedOf(Code((CodeFile("", module, lambda _: "", fields=fields),)), tracked())
    reverse = Reverse(wanted, releases())
    each = next((one for one in reversed(wanted.all) if _says(one.need, name)), None)
    if each is None or each in reverse.hopeless:  # what no known release has says nothing about releases
        return None
    package = wanted.packages_of(each)[0]
    found = next((one for one in explained(reverse.ranges(), reverse, releases()) if one.package == package), None)
    if found is None or found.first is None or found.last is None or not found.range.why:
        return None
    ends = (releases().answer(package, version, each.need) for version in (found.first, found.last))
    if not all(end.met or end.lean for end in ends):  # what nobody knows to be there is not said to be
        return None
    return _named(each.what, package, found)


def _says(need: Need, name: str) -> bool:
    kind, target, member, _, _, keywords, _ = need
    return name in keywords or (not keywords and name in (member, target, target.rpartition(".")[2]) and kind != "call")


def _named(what: str, package: str, found: Explained) -> Named:
    versions = found.range.versions
    before, after = found.first != versions[0], found.last != versions[-1]
    span = f"from {found.first} " + (f"to {found.last}" if after else "on")
    if not before:
        span = f"up to {found.last}" if after else f"but not in {', '.join(found.holes)}"
    reasons = [side[1][0] for side in (found.below, found.above) if side is not None and side[1]]
    why = "; ".join(reason.text if _is_sure(reason) else reason.text.partition(";")[0] for reason in reasons)
    renamed = next((reason.renamed for reason in reasons if _is_sure(reason)), None)
    return Named(what, package, found.specifier, span, why, renamed, frozenset(found.range.why), bool(found.range.leaning))


def _is_sure(reason: Reason) -> bool:
    """Whether another release calls it so; what is merely like it is no advice."""
    return reason.renamed is not None and not reason.text.endswith(("is there", "is alike"))
