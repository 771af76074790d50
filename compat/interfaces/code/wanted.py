"""What the user's code needs of tracked packages: each need once, with the line that states it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from compat.interfaces.needs import Consumer, Need, Place, direct_needs, packages_of
from compat.interfaces.release import SourceSurface
from compat.interfaces.source.records import AVAILABLE, BRANCH, GUARDED
from compat.records import record, replace

if TYPE_CHECKING:
    from compat.interfaces.code.records import Code, CodeFile


PATCHERS = {
    "unsloth": frozenset(("trl", "transformers", "peft", "accelerate", "bitsandbytes")),
    "unsloth_zoo": frozenset(("trl", "transformers", "peft", "accelerate", "bitsandbytes")),
    "llamafactory": frozenset(("trl", "transformers", "peft", "accelerate")),
    "axolotl": frozenset(("trl", "transformers", "peft", "accelerate")),
    "swift": frozenset(("trl", "transformers", "peft", "accelerate")),
}
"""Frameworks that patch other packages when they are imported, so that the source of those does not show what they take."""


@record(frozen=True)
class Wanted:
    """``need`` as in :mod:`compat.interfaces.needs`, of a call one keyword at a time. ``sure``: under no condition.

    ``line`` is that of the record of ``file``.
    """

    need: Need
    file: CodeFile
    line: int
    sure: bool

    @property
    def place(self) -> str:
        return self.file.place(self.line)

    @property
    def what(self) -> str:
        """The need in short: ``trl.SFTTrainer(tokenizer=)``, ``trl.DPOTrainer``, ``Trainer.compute_loss(…) as overridden``."""
        kind, target, name, bases, positional, keywords, _ = self.need
        if kind == "override":
            return f"{name} as it overrides that of {bases[0]}"
        whole = {"method": f"{target}.{name}", "inherited": f"{bases[0]}.{name}" if bases else str(name)}.get(kind, target)
        if kind == "inherited" and name == "__init__":
            whole = bases[0]
        if kind == "import" and name:
            whole = f"{target}.{name}"
        if keywords:
            return f"{whole}({keywords[0]}=)"
        return f"{whole} with {positional} positional arguments" if positional else whole


class WantedOf:
    """The needs of some code, by package. ``tracked`` is the package of each top-level module."""

    def __init__(self, code: Code, tracked: Mapping[str, str]) -> None:
        self.code, self.tracked = code, tracked
        self._stored = {use.target for each in code.files for use in each.module.uses if use.stored}
        self.patched_by = _patchers(code)
        self._patched = frozenset(top for name in self.patched_by for top in PATCHERS[name])
        self.all = tuple(self._distinct())

    def packages(self) -> tuple[str, ...]:
        """Tracked packages that the code uses, in the order in which it first does."""
        return tuple(dict.fromkeys(package for each in self.all for package in self.packages_of(each)))

    def packages_of(self, wanted: Wanted) -> tuple[str, ...]:
        return tuple(sorted({self.tracked[top] for top in packages_of(wanted.need) if top in self.tracked}))

    def of(self, package: str) -> tuple[Wanted, ...]:
        return tuple(each for each in self.all if package in self.packages_of(each))

    def _distinct(self) -> Iterator[Wanted]:
        found: dict[Need, Wanted] = {}
        for file in self.code.files:
            for need, place in self._needs(file):
                for single in _singly(need):
                    if not self._counts(single):
                        continue
                    sure = not place.flags & (BRANCH | AVAILABLE)
                    before = found.get(single)
                    if before is None or (sure and not before.sure):
                        found[single] = Wanted(single, file, place.line, sure)
        yield from sorted(found.values(), key=lambda each: (self.code.files.index(each.file), each.line))

    def _needs(self, file: CodeFile) -> Iterator[tuple[Need, Place]]:
        own = self.code.tops
        # what a parameter is annotated with may be a subclass that has more
        certain = tuple(call for call in file.module.calls if call.kind != "typed")
        yield from direct_needs(replace(file.module, calls=certain), own)
        for each in file.fields:
            yield Need("method", each.of, each.attribute), Place(each.line, 0 if each.sure else BRANCH)
        names = {each.module.name: each.module for each in self.code.files}
        yield from Consumer(SourceSurface("", "", names, names.get)).inherited_needs(file.module)

    def _counts(self, need: Need) -> bool:
        tops = packages_of(need)
        if not tops & self.tracked.keys() or tops & (self.code.shadowed | self.code.tops):
            return False
        if need.kind not in ("import", "attribute") and tops & self._patched:
            return False
        names = (need.target, f"{need.target}.{need.name}", *need.bases)
        return not any(name == stored or name.startswith(f"{stored}.") for stored in self._stored for name in names)


def _patchers(code: Code) -> tuple[str, ...]:
    tops = {each.module.partition(".")[0] for file in code.files for each in file.module.imports if not each.flags & GUARDED}
    return tuple(name for name in PATCHERS if name in tops)


def _singly(need: Need) -> Iterator[Need]:
    """A call's needs one by one: that the callee takes so many positional arguments, and each keyword."""
    if need.kind not in ("call", "method", "inherited") or not need.keywords:
        yield need
        return
    if need.positional or need.kind != "call":
        yield need._replace(keywords=())
    for keyword in need.keywords:
        yield need._replace(positional=0, keywords=(keyword,))


def names_of(need: Need) -> tuple[str, ...]:
    """The dotted names that a need begins with."""
    return need.target, *need.bases


def imported(need: Need) -> str | None:
    """The dotted name that an import binds."""
    if need.kind != "import":
        return None
    return f"{need.target}.{need.name}" if need.name else need.target


def follows(need: Need, gone: Iterable[str]) -> bool:
    """Whether a need is about something below names that are not there."""
    return any(name == missing or name.startswith(f"{missing}.") for name in names_of(need) for missing in gone)
