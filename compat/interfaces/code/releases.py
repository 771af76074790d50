"""Which releases provide everything that code uses: for each tracked package, then across packages that inherit from others.

A class may inherit its parameters from another package (``trl.SFTConfig`` from ``transformers.TrainingArguments``). Such a
need is met by a release in combination with releases of the other package. It is split into one part per package, so that
pairs of releases need not be compared.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from compat.files import place_in_cache, read_cache, stamp_of, write_cache
from compat.interfaces import table
from compat.interfaces.needs import Need, verdict_on
from compat.interfaces.release import Meaning, Surface
from compat.interfaces.source.records import Class
from compat.interfaces.table import Table
from compat.interfaces.world import World
from compat.records import kept, record, replace
from compat.versions import contains, key_of, ranges_of

if TYPE_CHECKING:
    from compat.interfaces.code.needs import Bound, CodeNeed, CodeNeeds

_MOST = 5000
"""Maximum number of cached answers per release; beyond it, only new answers are stored."""


class KeptAnswers:
    """Answers about one release from the user's cache: query to answer, both as plain values.

    They are valid for one table and one version of the code that reads it; the file has a stamp of both."""

    def __init__(self, package: str, version: str) -> None:
        here = os.path.dirname(__file__)
        self._stamp = stamp_of(table.path_of(package), os.path.join(here, "releases.py"), os.path.dirname(table.__file__))
        self._place = place_in_cache("answers", f"{package}-{version}")
        self.answers: dict[tuple[Any, ...], Any] = {}
        with suppress(ValueError, EOFError, TypeError):
            stamp, found = marshal.loads(read_cache(self._place) or b"")
            if isinstance(found, dict) and stamp == self._stamp:
                self.answers = found
        self._before = len(self.answers)

    def save(self) -> None:
        """Write new answers to the cache."""
        if len(self.answers) > self._before and self._stamp is not None:
            new = dict(list(self.answers.items())[self._before :]) if len(self.answers) > _MOST else self.answers
            write_cache(self._place, marshal.dumps((self._stamp, new), 4))
            self._before = len(self.answers)


@record(frozen=True)
class Lean:
    """A need that a release defers to another package, as ``need`` of that package."""

    package: str
    need: Need


@record(frozen=True)
class Answer:
    """Whether a release meets a need: yes, no, unknown (``None``), or deferred to another package (``lean``)."""

    met: bool | None
    lean: Lean | None = None


_UNKNOWN = Answer(None)
_NO = Answer(met=False)


@record(frozen=True)
class Apart:
    """Why two releases are incompatible: ``place`` in package ``by`` imports or requires ``what``."""

    by: str
    place: str
    what: str
    text: str


@record(frozen=True)
class Range:
    """The suitable releases of one package. ``why`` lists what each excluded release lacks.

    ``alone`` are the releases suitable on their own; ``allowed`` those that remain once other packages are considered.
    """

    package: str
    versions: tuple[str, ...]
    allowed: frozenset[str]
    alone: frozenset[str]
    why: Mapping[str, tuple[CodeNeed | Bound | Apart, ...]]
    leaning: Mapping[str, tuple[tuple[CodeNeed, str], ...]]


class Releases:
    """Cached answers about single releases; ``tables`` opens the table of a package."""

    def __init__(self, tables: Callable[[str], Table | None], tracked: Mapping[str, str]) -> None:
        self._open, self._tracked = tables, tracked
        self._worlds: dict[tuple[str, str], World | None] = {}
        self._answers: dict[tuple[str, str, Need], Answer] = {}
        self._kept: dict[tuple[str, str], KeptAnswers] = {}

    @kept
    def table(self, package: str) -> Table | None:
        return self._open(package)

    def world(self, package: str, version: str) -> World | None:
        key = package, version
        if key not in self._worlds:
            table = self.table(package)
            surface = None if table is None else table.surface(version)
            self._worlds[key] = None if surface is None else World((surface,))
        return self._worlds[key]

    def put(self, surface: Surface) -> None:
        """Add a release that is in no table, from source read at run time."""
        key = surface.package, surface.version
        if key not in self._worlds:
            self._worlds[key] = World((surface,))

    def answer(self, package: str, version: str, need: Need) -> Answer:
        key = package, version, need
        if key not in self._answers:
            kept = self._kept.get((package, version))
            before = None if kept is None else kept.answers.get(tuple(need))
            if before is not None:
                met, *lean = before
                self._answers[key] = Answer(met, Lean(lean[0], Need(*lean[1])) if lean else None)
            else:
                world = self.world(package, version)
                found = self._answers[key] = _UNKNOWN if world is None else self._answered(world, need)
                if kept is not None:
                    lean = [] if found.lean is None else [found.lean.package, tuple(found.lean.need)]
                    kept.answers[tuple(need)] = (found.met, *lean)
        return self._answers[key]

    def nowhere(self, package: str, need: Need) -> bool:
        """Return whether every known release of a package fails a need, which then cannot distinguish between releases."""
        table = self.table(package)
        versions = reversed(table.versions) if table is not None else ()
        return table is not None and all(self.answer(package, version, need).met is False for version in versions)

    def home(self, package: str, version: str, module: str, name: str) -> str | None:
        """Return the module that defines the class imported by ``from module import name``; ``None`` if it is not a class."""
        kept, key = self._kept.get((package, version)), ("home", module, name)
        if kept is not None and key in kept.answers:
            found: str | None = kept.answers[key]
            return found
        world = self.world(package, version)
        meaning = None if world is None else world.imported(module, name)
        home = meaning.module if meaning is not None and meaning.kind == "class" else None
        if kept is not None:
            kept.answers[key] = home
        return home

    def remember(self, installed: Mapping[str, str]) -> None:
        """Load cached answers about these releases; :meth:`save` stores new ones."""
        for package, version in installed.items():
            key = package, version
            if key not in self._kept and key not in self._worlds and package in self._tracked.values():
                self._kept[key] = KeptAnswers(package, version)

    def save(self) -> None:
        """Write new answers about the releases passed to :meth:`remember` to the cache."""
        for each in self._kept.values():
            each.save()

    def _answered(self, world: World, need: Need) -> Answer:
        kind, target, _, bases, *_ = need
        if kind not in ("import", "attribute") and world.find(bases[0] if bases else target).kind == "absent":
            return _NO  # its owner does not exist
        lean = self._left_to_others(world, need)
        verdict = verdict_on(world, need)
        if verdict.met is False or lean is None:
            return Answer(verdict.met)
        return Answer(None, lean)

    def _left_to_others(self, world: World, need: Need) -> Lean | None:
        """Return the need that a class of this release defers to a base in another package, if any."""
        kind, target, name, bases, _, keywords, _ = need
        owner = world.find(bases[0] if kind in ("override", "inherited") and bases else target)
        if kind in ("import", "attribute", "complete") or owner.kind != "class" or len(bases) > 1:
            return None
        method = "__init__" if kind == "call" or (kind == "inherited" and name == "__init__") else name or ""
        if kind != "override" and _has_itself(world, owner, method, keywords):
            return None
        outer = next((base for base in _outer_bases(world, owner) if base.partition(".")[0] in self._tracked), None)
        if outer is None:
            return None
        package = self._tracked[outer.partition(".")[0]]
        if kind in ("override", "inherited"):
            return Lean(package, need._replace(bases=(outer,)))
        return Lean(package, need._replace(target=outer))


def _has_itself(world: World, owner: Meaning, method: str, keywords: tuple[str, ...]) -> bool:
    """Return whether the classes of this release determine the answer: they define the method or the field themselves."""
    dataclass = False
    for each in world.bases(owner)[0]:
        definition = each.definition
        if not isinstance(definition, Class):
            return False
        fields = {field for field, _ in definition.fields}
        marked = "dataclass" in definition.decorators
        dataclass = dataclass or marked
        if method in definition.methods and not dataclass:
            return True
        if dataclass and marked and keywords and keywords[0] in fields:
            return True
        if dataclass and not keywords and method == "__init__":
            return True
        if method != "__init__" and method in {*definition.attributes, *definition.instance, *fields}:
            return True
    return True


def _outer_bases(world: World, owner: Meaning) -> Iterable[str]:
    """Yield the dotted names of a class's bases outside this world, nearest first."""
    for each in world.bases(owner)[0]:
        if isinstance(each.definition, Class) and each.surface is not None:
            for base in each.definition.bases:
                if world.surface_of(base) is None:
                    yield base
                elif world.find(base).kind == "unknown":
                    inner = world.names(each.surface).get(*base.rpartition(".")[::2])
                    if inner.kind == "outside":
                        yield inner.module


class Reverse:
    """Computes the releases that meet the needs of code."""

    def __init__(self, wanted: CodeNeeds, releases: Releases, bounds: Iterable[Bound] = ()) -> None:
        self._wanted, self._releases = wanted, releases
        self._bounds = tuple((bound, ranges_of(bound.specifier)) for bound in bounds)
        self._good: dict[tuple[str, Need], frozenset[str]] = {}
        self.hopeless: tuple[CodeNeed, ...] = tuple(self._nowhere())

    def _nowhere(self) -> Iterator[CodeNeed]:
        """Yield the needs that no known release meets; these cannot distinguish between releases."""
        for each in self._wanted.all:
            for package in self._wanted.packages_of(each)[:1]:
                table = self._releases.table(package)
                if table is not None and not any(self._possible(package, version, each.need) for version in table.versions):
                    yield each

    def _possible(self, package: str, version: str, need: Need) -> bool:
        answer = self._releases.answer(package, version, need)
        if answer.lean is None:
            return answer.met is not False
        table = self._releases.table(answer.lean.package)
        return table is None or any(self._met(answer.lean.package, each, answer.lean.need) for each in table.versions)

    def ranges(self) -> tuple[Range, ...]:
        """Return a range for each package that the code uses, and for their dependencies if some releases are excluded."""
        found: dict[str, Range] = {}
        waiting = list(self._wanted.packages())
        while waiting:
            package = waiting.pop(0)
            table = self._releases.table(package)
            if package in found or table is None:
                continue
            found[package] = self._alone(package, table)
            waiting += [
                lean
                for each in found[package].leaning.values()
                for _, lean in each
                if lean not in found and lean not in waiting
            ]
        used = set(self._wanted.packages())
        together = self._together(found).values()
        return tuple(each for each in together if each.package in used or len(each.allowed) < len(each.versions))

    def _alone(self, package: str, table: Table) -> Range:
        allowed, why, leaning = set(), {}, {}
        hopeless = {id(each) for each in self.hopeless}
        wanted = [each for each in self._wanted.of(package) if id(each) not in hopeless]
        bounds = [(bound, ranges) for bound, ranges in self._bounds if bound.package == package]
        for version in table.versions:
            key = key_of(version)
            lacking: list[CodeNeed | Bound] = [bound for bound, ranges in bounds if not contains(ranges, key)]
            leans = []
            for each in wanted:
                answer = self._releases.answer(package, version, each.need)
                if answer.met is False:
                    lacking.append(each)
                elif answer.lean is not None:
                    leans.append((each, answer.lean.package))
            if lacking:
                why[version] = tuple(lacking)
            else:
                allowed.add(version)
            if leans:
                leaning[version] = tuple(leans)
        alone = frozenset(allowed)
        return Range(package, table.versions, alone, alone, why, leaning)

    def _together(self, found: dict[str, Range]) -> dict[str, Range]:
        """Remove, on both sides, releases that work with no allowed release of the package they depend on (or vice versa)."""
        changed = True
        while changed:
            changed = False
            for package, each in tuple(found.items()):
                partners = {lean for leans in each.leaning.values() for _, lean in leans if lean in found}
                for other in partners:
                    goes_with = {version: self.partners(each, version, found[other]) for version in each.allowed}
                    left = frozenset(version for version, good in goes_with.items() if good)
                    reached = frozenset().union(*goes_with.values())
                    if left != each.allowed or reached != found[other].allowed:
                        changed = bool(left) or bool(each.allowed)
                        why = {**each.why, **{v: self._left_alone(each, v, found[other]) for v in each.allowed - left}}
                        each = found[package] = replace(each, allowed=left, why=why)
                        rest = found[other].allowed - reached
                        lacking = {v: self._unwanted(each, other, v, found[other]) for v in rest} if left else {}
                        found[other] = replace(
                            found[other], allowed=reached if left else found[other].allowed, why={**found[other].why, **lacking}
                        )
                        changed = changed and bool(left)
        return found

    def partners(self, each: Range, version: str, other: Range) -> frozenset[str]:
        """Return the releases of another package that meet the needs a release defers to it."""
        good = other.allowed
        for wanted, package in each.leaning.get(version, ()):
            lean = self._releases.answer(each.package, version, wanted.need).lean
            if package == other.package and lean is not None:
                good = good & self._having(other, lean)
        return good

    def _having(self, other: Range, lean: Lean) -> frozenset[str]:
        key = other.package, lean.need
        if key not in self._good:
            self._good[key] = frozenset(version for version in other.versions if self._met(other.package, version, lean.need))
        return self._good[key]

    def _met(self, package: str, version: str, need: Need) -> bool:
        return self._releases.answer(package, version, need).met is not False

    def _left_alone(self, each: Range, version: str, other: Range) -> tuple[CodeNeed, ...]:
        """Return the needs that a release defers and that no remaining release of the other package meets."""
        lacking = []
        for wanted, package in each.leaning.get(version, ()):
            lean = self._releases.answer(each.package, version, wanted.need).lean
            if package == other.package and lean is not None and not self._having(other, lean) & other.allowed:
                lacking.append(wanted)
        return tuple(lacking) or tuple(wanted for wanted, package in each.leaning.get(version, ()) if package == other.package)

    def _unwanted(self, each: Range, other: str, version: str, range_: Range) -> tuple[CodeNeed, ...]:
        """Return the needs deferred by the remaining releases that a release of the other package does not meet."""
        lacking: dict[int, CodeNeed] = {}
        for mine in each.versions:
            if mine in each.allowed:
                for wanted, package in each.leaning.get(mine, ()):
                    lean = self._releases.answer(each.package, mine, wanted.need).lean
                    if package == other and lean is not None and version not in self._having(range_, lean):
                        lacking[id(wanted)] = wanted
        return tuple(lacking.values())
