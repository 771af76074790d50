"""Records of the user's code, and what it needs from tracked packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from compat.errors import InputError
from compat.interfaces.needs import Consumer, Need, Place, direct_needs, packages_of
from compat.interfaces.release import SourceSurface
from compat.interfaces.source.records import AVAILABLE, BRANCH, GUARDED, Module
from compat.records import record, replace


@record(frozen=True)
class Bound:
    """A requirement stated in code: ``check_min_version``, ``require_version``, inline metadata."""

    package: str
    specifier: str
    path: str
    line: int


@record(frozen=True)
class Field:
    """A read of ``attribute`` on an object of class ``of``; ``sure``: unconditional."""

    of: str
    attribute: str
    line: int
    sure: bool


@record(frozen=True)
class CodeFile:
    """One file: its record, and ``place``, which formats a line number (``train.py:12``, ``run.ipynb cell 3, line 2``)."""

    path: str
    module: Module
    place: Callable[[int], str]
    bounds: tuple[Bound, ...] = ()
    fields: tuple[Field, ...] = ()
    is_notebook: bool = False
    notes: tuple[str, ...] = ()


@record(frozen=True)
class Code:
    """Files that are checked together. ``problems`` are the errors of files that could not be read.

    ``shadowed`` are top-level modules next to the code: imports resolve to these instead of the installed package.
    """

    files: tuple[CodeFile, ...]
    problems: tuple[InputError, ...] = ()
    notes: tuple[str, ...] = ()
    shadowed: frozenset[str] = frozenset()

    @property
    def tops(self) -> frozenset[str]:
        """The top-level modules of this code."""
        return frozenset(each.module.name.partition(".")[0] for each in self.files)


# --- What the user's code needs from tracked packages: each need once, with its line.


PATCHERS = {
    "unsloth": frozenset(("trl", "transformers", "peft", "accelerate", "bitsandbytes")),
    "unsloth_zoo": frozenset(("trl", "transformers", "peft", "accelerate", "bitsandbytes")),
    "llamafactory": frozenset(("trl", "transformers", "peft", "accelerate")),
    "axolotl": frozenset(("trl", "transformers", "peft", "accelerate")),
    "swift": frozenset(("trl", "transformers", "peft", "accelerate")),
}
"""Frameworks that patch other packages on import, so that the source of those packages does not show what they accept."""


_OF_TOKENIZERS = (
    "transformers.tokenization_utils_base.PreTrainedTokenizerBase", "transformers.tokenization_utils_base.SpecialTokensMixin",
    "transformers.tokenization_utils.PreTrainedTokenizer", "transformers.tokenization_utils_fast.PreTrainedTokenizerFast",
    "transformers.tokenization_python.PythonBackend", "transformers.tokenization_utils_tokenizers.TokenizersBackend",
)  # fmt: skip
_OF_MODELS = (
    "transformers.modeling_utils.PreTrainedModel", "transformers.modeling_utils.ModuleUtilsMixin",
    "transformers.modeling_utils.EmbeddingAccessMixin", "transformers.generation.utils.GenerationMixin",
    "transformers.integrations.peft.PeftAdapterMixin",
)  # fmt: skip
OFFERED = {"transformers.PreTrainedTokenizerBase": _OF_TOKENIZERS, "transformers.PreTrainedModel": _OF_MODELS}
"""What transformers' factories return, by a common name: an object of a subclass of these classes."""


@record(frozen=True)
class CodeNeed:
    """A ``need`` as in :mod:`compat.interfaces.needs`, with at most one keyword of a call. ``sure``: unconditional.

    ``line`` is a line of the record of ``file``.
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
        """The need in short: ``trl.SFTTrainer(tokenizer=)``, ``compute_loss as it overrides that of transformers.Trainer``."""
        kind, target, name, bases, positional, keywords, _ = self.need
        if kind == "override":
            return f"{name} as it overrides that of {bases[0]}"
        whole = f"{target}.{name}" if kind in ("method", "offered") else target
        if kind == "inherited":
            whole = f"{bases[0]}.{name}" if bases else str(name)
        if kind == "inherited" and name == "__init__":
            whole = bases[0]
        if kind == "import" and name:
            whole = f"{target}.{name}"
        if kind == "complete":
            return f"{whole}() with these arguments"
        if keywords:
            return f"{whole}({keywords[0]}=)"
        return f"{whole} with {positional} positional arguments" if positional else whole


class CodeNeeds:
    """The needs of code, by package. ``tracked`` maps each top-level module to its package."""

    def __init__(self, code: Code, tracked: Mapping[str, str]) -> None:
        self.code, self.tracked = code, tracked
        self._stored = {use.target for each in code.files for use in each.module.uses if use.stored}
        tops = {
            each.module.partition(".")[0] for file in code.files for each in file.module.imports if not each.flags & GUARDED
        }
        self.patched_by = tuple(name for name in PATCHERS if name in tops)
        self._patched = frozenset(top for name in self.patched_by for top in PATCHERS[name])
        self.all = tuple(self._distinct())

    def packages(self) -> tuple[str, ...]:
        """Return the tracked packages that the code uses, in order of first use."""
        return tuple(dict.fromkeys(package for each in self.all for package in self.packages_of(each)))

    def packages_of(self, wanted: CodeNeed) -> tuple[str, ...]:
        return tuple(sorted({self.tracked[top] for top in packages_of(wanted.need) if top in self.tracked}))

    def of(self, package: str) -> tuple[CodeNeed, ...]:
        return tuple(each for each in self.all if package in self.packages_of(each))

    def _distinct(self) -> Iterator[CodeNeed]:
        found: dict[Need, CodeNeed] = {}
        for file in self.code.files:
            for need, place in self._needs(file):
                for single in _singly(need):
                    if not self._counts(single):
                        continue
                    sure = not place.flags & (BRANCH | AVAILABLE)
                    before = found.get(single)
                    if before is None or (sure and not before.sure):
                        found[single] = CodeNeed(single, file, place.line, sure)
        order = {id(file): at for at, file in enumerate(self.code.files)}
        yield from sorted(found.values(), key=lambda each: (order[id(each.file)], each.line))

    def _needs(self, file: CodeFile) -> Iterator[tuple[Need, Place]]:
        own = self.code.tops
        # an argument may be of a subclass of the annotation, with more methods
        certain = tuple(call for call in file.module.calls if call.kind != "typed")
        yield from direct_needs(replace(file.module, calls=certain), own)
        for call in certain:
            if call.kind == "name" and not (call.star or call.double_star or call.flags & GUARDED):
                place = Place(call.line, call.flags, call.scope)
                yield Need("complete", call.target, None, (), call.positional, call.keywords), place
        for each in file.fields:
            kind, bases = ("offered", OFFERED[each.of]) if each.of in OFFERED else ("method", ())
            yield Need(kind, each.of, each.attribute, bases), Place(each.line, 0 if each.sure else BRANCH)
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


def _singly(need: Need) -> Iterator[Need]:
    """Split a call into single needs: one for the number of positional arguments, and one for each keyword."""
    if need.kind not in ("call", "method", "inherited") or not (need.keywords or (need.kind == "method" and need.positional)):
        yield need
        return
    if need.kind == "method":
        yield need._replace(positional=0, keywords=())  # whether there is such a method
    if need.positional or need.kind == "inherited":
        yield need._replace(keywords=())
    for keyword in need.keywords:
        yield need._replace(positional=0, keywords=(keyword,))


def names_of(need: Need) -> tuple[str, ...]:
    """Return the dotted names that a need refers to."""
    if need.kind == "method" and (need.keywords or need.positional):
        return need.target, f"{need.target}.{need.name}"
    return need.target, *need.bases


def named(need: Need) -> str | None:
    """Return the dotted name whose absence an import or a method need would show; ``None`` for other needs."""
    if need.kind == "import":
        return f"{need.target}.{need.name}" if need.name else need.target
    plain = need.kind == "method" and not need.keywords and not need.positional
    return f"{need.target}.{need.name}" if plain else None


def follows(need: Need, gone: Iterable[str]) -> bool:
    """Return whether a need refers to one of the missing names or something below one."""
    return any(name == missing or name.startswith(f"{missing}.") for name in names_of(need) for missing in gone)
