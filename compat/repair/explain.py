"""Explanations: the reasons for the changes of a plan, the next-best plan, and the contradiction if no plan exists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby

from compat.model import EMPTY, Finding
from compat.records import record, replace
from compat.repair.candidates import Release
from compat.repair.engine import ERRORS, LEVELS, Origin, Requires, Statement, contradiction
from compat.repair.problem import DAYS_BACK, FOLLOWING, UNRESOLVED, Problem, Recommended, family
from compat.repair.relaxation import ABSENT, Forbidden, Relaxation
from compat.repair.solve import Solution, Solver
from compat.repair.target import Need, satisfies
from compat.repair.verify import active

_ALTERNATIVES = 4
"""Maximum number of different requirements that are spelled out for the releases of a package."""
_MOST = 3
"""Maximum number of reasons shown for one change."""


Judge = Callable[[Mapping[str, Release]], Iterable[Finding]]
"""Returns what is found about a set of releases."""


def reasons(
    solver: Solver, chosen: Mapping[str, Release], changed: Iterable[str], errors: Iterable[Finding], judge: Judge | None = None
) -> dict[str, str]:
    """Why each changed package could not stay, given all other changes of the plan.

    ``judge`` tells errors about compiled code as they would be then: for the CUDA of the plan's torch, not of the one before.
    """
    relaxation = solver.relaxation()

    def told(name: str) -> Iterable[str]:
        texts = _reasons(solver, relaxation, chosen, name, tuple(errors))
        before = solver.problem.current.get(name)
        if judge is None or before is None or not any("(build-" in text for text in texts):
            return texts
        exact = {each.rule: f"{each.title} ({each.rule})" for each in judge({**chosen, name: before})}
        return [exact.get(text.rpartition("(")[2].rstrip(")"), text) for text in texts]

    return {name: "; ".join(dict.fromkeys(told(name))) for name in changed}


def _reasons(
    solver: Solver, relaxation: Relaxation, chosen: Mapping[str, Release], name: str, errors: tuple[Finding, ...]
) -> list[str]:
    before = solver.problem.current.get(name)
    asking = [
        (f"{other}{f'[{extra}]' if extra else ''} {chosen[other].told} requires {need.text}", need)
        for other, extra in active(solver.problem, chosen, solver.needs) if other != name
        for need in solver.needs.get(chosen[other], EMPTY).get(extra, ()) if need.name == name
    ]  # fmt: skip
    if before is None:
        fitting = [
            each for each in solver.opened.get(name, ()) if each.plain and all(each.meets(n.specifier) for _, n in asking)
        ]
        newest = fitting[-1].version if fitting else ""
        others = {other: release.version for other, release in chosen.items()}
        with_newest = {**others, name: newest}
        bad = [
            _against(each.statement, name, newest, with_newest)
            for each in relaxation.forbidden
            if _breaks(each, name, with_newest)
        ]
        fixed = {each.statement for each in solver.problem.recommended if _names(each, name)}
        lacking = [f"{each.title} ({each.rule})" for each in errors if each.rule in fixed or name in each.packages]
        return lacking[:1] or bad[:1] or [text for text, _ in asking][:1]
    kept = {**{other: release.version for other, release in chosen.items()}, name: before.version}
    about = [each for each in errors if name in each.packages and each.rule != UNRESOLVED]
    own = [each for each in about if each.rule == f"wheels-{name}"]  # no installer takes it, whatever else is wrong with it
    own = own or [each for each in about if any(fix.package == name for fix in each.fixes)]  # others concern what it requires
    planned = {other: release.version for other, release in chosen.items()}
    still = {each.statement for each in relaxation.forbidden if _breaks(each, name, planned)}  # holds in the plan, too
    broken = (each for each in relaxation.forbidden if each.statement not in still and _breaks(each, name, kept))
    found = list(dict.fromkeys(each.statement.about(kept) for each in broken))
    if about and (own or not any(fix.package for each in about for fix in each.fixes)):
        clauses = {each.statement.text for each in relaxation.forbidden}
        titles = [f"{each.title} ({each.rule})" for each in own or about]
        hold = [each for each in titles if each in found or each not in clauses]  # others are fixed by the rest of the plan
        if hold or found:
            return (hold or found)[:_MOST]
    wishes = (*solver.problem.asked, *solver.problem.keep)
    found += [f"you requested {wish.text}" for wish in wishes if wish.name == name and not before.meets(wish.specifier)]
    found += [text for text, need in asking if not before.meets(need.specifier)]
    found = found or _held_back(solver, chosen, before, errors)
    found = found or [f"recommended by {each.statement}" for each in solver.problem.recommended if _names(each, name)]
    return (found or [f"{each.title} ({each.rule})" for each in about])[:_MOST]


def _against(statement: Statement, name: str, newest: str, versions: Mapping[str, str]) -> str:
    """What is wrong with the newest release of a package that is added."""
    if statement.package in ("", name):
        return statement.about(versions) if statement.package else f"{name} {newest}: {statement.text}"
    return f"{statement.about(versions)}, and {name} {newest} does not have it"


def _held_back(solver: Solver, chosen: Mapping[str, Release], before: Release, errors: Sequence[Finding]) -> list[str]:
    """What an installed release requires that no release of another package in the plan allows, or the plan does not have.

    What follows torch is no reason for another package to follow it. The errors about what is required are named with it.
    """
    wrong = {
        name: f"{each.title} ({each.rule})" for each in reversed(errors) if each.rule != UNRESOLVED for name in each.packages
    }
    current = solver.problem.current
    unmet = [
        need for need in solver.needs.get(before, EMPTY).get("", ())
        if (other := chosen.get(need.name)) is not None and other != current.get(need.name) and not other.meets(need.specifier)
    ]  # fmt: skip
    own = f"{before.name} {before.version} requires"
    if keeps_error := [f"{own} {need.text}: {wrong[need.name]}" for need in unmet if need.name in wrong]:
        return keeps_error
    there = {need: [each for each in solver.opened.get(need.name, ()) if each.meets(need.specifier)] for need in unmet}
    against = {
        f"{own} {need.text}, {release.name} {release.told} requires {other.text}": release.name
        for need in unmet for release in chosen.values() if release.name not in (before.name, *FOLLOWING)
        for other in solver.needs.get(release, EMPTY).get("", ()) if other.name == need.name
        and there[need] and not any(each.meets(other.specifier) for each in there[need])
    }  # fmt: skip
    listed = [text for text, name in against.items() if name in current]
    stated = [need for need in unmet if need.name not in solver.problem.unnamed]  # what no file lists moves by itself
    return listed or [*against] or [f"{own} {need.text}" for need in stated or unmet]


def _breaks(each: Forbidden, name: str, kept: Mapping[str, str]) -> bool:
    """Whether a forbidden combination would hold if the package were not changed."""
    if name not in dict((*each.together, *(one for group in each.unless for one in group))):
        return False
    spared = any(all(kept.get(other, ABSENT) in versions for other, versions in group) for group in each.unless)
    return not spared and all(kept.get(other, ABSENT) in versions for other, versions in each.together)


def _names(each: Recommended, name: str) -> bool:
    return any(need.name == name for alternative in each.alternatives for need in alternative)


@record(frozen=True)
class Contrast:
    """Another plan, its cost, the level at which it loses, and the cost of the chosen plan at that level."""

    changes: tuple[tuple[str, str | None, str | None], ...]
    cost: Mapping[str, int]
    level: str
    chosen: int

    @property
    def text(self) -> str:
        moved = (
            ", ".join(f"{name} {before or '—'} → {after or 'removed'}" for name, before, after in self.changes) or "no change"
        )
        cost = self.cost.get(self.level, 0)
        return f"{moved}: the same cost" if cost == self.chosen else f"{moved}: {cost} {self.level}, not {self.chosen}"

    def to_json(self) -> dict[str, object]:
        changes = [{"name": name, "from": before, "to": after} for name, before, after in self.changes]
        return {"changes": changes, "cost": dict(self.cost), "lost_at": self.level}


def next_best(solver: Solver, solution: Solution) -> Contrast | None:
    """The cheapest other plan without an error; ``None`` if none exists.

    It keeps a package that the chosen plan changes, or else changes one of them to another release.
    """
    current, chosen = solver.problem.current, solution.chosen or {}
    moved = [name for name in sorted(current) if chosen.get(name) != current[name]]
    at = solution.relaxation.at
    keeps = tuple((name, frozenset(at[name]) - {current[name].version}) for name in moved)
    same = tuple((name, frozenset((chosen[name].version if name in chosen else ABSENT,))) for name in moved)
    for together in (keeps, same) if moved else ():
        other = solver.also(Forbidden(together, Statement("stays", "another choice"), "")).solve()
        if other.chosen is not None:
            return _contrast(solver, solution.cost, other)
    return None


def _contrast(solver: Solver, cost: tuple[int, ...], other: Solution) -> Contrast:
    current, chosen = solver.problem.current, other.chosen or {}
    moved = [name for name in sorted(current) if chosen.get(name) != current[name]]
    names = [name for name in moved if family(name) == name and name not in solver.problem.unnamed] or moved
    changes = tuple((name, current[name].told, chosen[name].told if name in chosen else None) for name in names)
    lost = next((place for place, (one, two) in enumerate(zip(cost, other.cost)) if one != two), len(LEVELS) - 1)
    return Contrast(changes, dict(zip(LEVELS, other.cost)), LEVELS[lost], cost[lost])


def conflict(solver: Solver, elsewhere: Collection[str] = ()) -> tuple[Origin, ...]:
    """The contradicting statements if no plan without an error exists, whatever was not read; else empty.

    ``elsewhere`` are packages that an index which cannot be reached has other releases of.
    """
    return contradiction(solver.relaxation(strict=True, unread=solver.not_read.union(elsewhere)).clauses)


def contradiction_text(core: Iterable[Origin], opened: Mapping[str, tuple[Release, ...]]) -> tuple[str, ...]:
    """The text of a contradiction; the requirements of several releases of a package are merged into one statement."""
    groups: dict[object, list[Origin]] = {}
    for each in core:
        groups.setdefault((each.package, each.need.name) if isinstance(each, Requires) else each, []).append(each)
    return tuple(_said_together(found, opened) for found in groups.values())


def why_unsatisfied(
    core: Iterable[Origin], problem: Problem, opened: Mapping[str, tuple[Release, ...]],
    published: Callable[[str], tuple[Release, ...]], unbuilt: Mapping[str, Sequence[str]] = EMPTY,
) -> tuple[str, ...]:  # fmt: skip
    """Why no candidate meets a contradictory requirement: it stays, is yanked, old or a pre-release, has no wheel
    (``unbuilt``), or is not ``published``."""
    statements = tuple(core)
    texts = {each.text for each in statements if each.kind in ("asked", "keep")}
    wishes = (need for need in (*problem.asked, *problem.keep) if any(text.endswith(f" {need.text}") for text in texts))
    needs = dict.fromkeys((*(each.need for each in statements if isinstance(each, Requires)), *wishes))
    read = (need for need in needs if need.name in opened)
    lacked = (need for need in read if not any(each.meets(need.specifier) for each in opened[need.name]))
    reasons = (_why_stays(each.name, problem) or _why_none(each, published(each.name), unbuilt) for each in lacked)
    return tuple(dict.fromkeys(reasons))


def _why_stays(name: str, problem: Problem) -> str:
    """Why a package that no finding is about has no other candidate; "" if it may move."""
    current = problem.current.get(name)
    if name not in problem.fixed or current is None or current.source is None:
        return ""
    origin = "the image has it" if current.source.kind == "image" else "it was installed from an address"
    return f"{name} {current.version} stays: {origin}, and no error is about it (--keep {name}==VERSION moves it)"


def _why_none(need: Need, published: tuple[Release, ...], unbuilt: Mapping[str, Sequence[str]]) -> str:
    fitting = [each for each in published if each.plain and each.meets(need.specifier)]
    if not fitting:
        source = next((each for each in reversed(unbuilt.get(need.name, ())) if satisfies(each, need.specifier)), None)
        if source is not None:
            return f"{need.name} {source} has no wheel, and compat builds nothing"
        return f"there is no {need.text} for this target"
    last = fitting[-1]
    named = f"{need.name} {last.version}"
    if all(each.yanked for each in fitting):
        return f"{named} was yanked" if len(fitting) == 1 else f"every {need.text} was yanked"
    if all(each.yanked or each.key.is_prerelease for each in fitting):
        return f"{named} is a pre-release (--pre considers those)"
    return f"{named} is more than {DAYS_BACK} days older than the current release (--any-age considers it)"


def _said_together(statements: list[Origin], opened: Mapping[str, tuple[Release, ...]]) -> str:
    """Merge the requirements of several releases: ``peft<=0.18.1 requires torch>=1.13.0``."""
    asking = [each for each in statements if isinstance(each, Requires)]
    if len(asking) < 2:
        return statements[0].text
    package = asking[0].package
    known = [each.version for each in opened.get(package.partition("[")[0], ())]
    places = sorted({known.index(each.release.version) for each in asking if each.release.version in known})
    needs = list(dict.fromkeys(each.need.text for each in sorted(asking, key=lambda each: each.release.key)))
    needed = " or ".join(needs if len(needs) <= _ALTERNATIVES else [needs[0], "…", needs[-1]])
    if not places:
        versions = ", ".join(dict.fromkeys(each.release.version for each in asking))
        return f"{package} {versions} require {needed}"
    if places != list(range(places[0], places[-1] + 1)):
        runs = [list(run) for _, run in groupby(places, key=lambda place: place - places.index(place))]
        versions = ", ".join(known[run[0]] + (f" to {known[run[-1]]}" if run[1:] else "") for run in runs)
        return f"{package} {versions} require {needed}"
    if len(places) == len(known):
        return f"all versions of {package} require {needed}"
    lower = f">={known[places[0]]}" if places[0] else ""
    upper = f"<={known[places[-1]]}" if places[-1] + 1 < len(known) else ""
    return f"{package}{','.join(filter(None, (lower, upper)))} requires {needed}"


def most_helpful_removal(
    problem: Problem, core: Iterable[Origin], solve: Callable[[Problem], Solution]
) -> tuple[str, Solution] | None:
    """The user requirement whose removal gives the cheapest plan without errors, and that plan; ``None`` if none does."""
    found = []
    for statement in core:
        if statement.kind == "keep":
            without = replace(problem, keep=tuple(each for each in problem.keep if not statement.text.endswith(each.text)))
        elif statement.kind == "asked":
            without = replace(problem, asked=tuple(each for each in problem.asked if not statement.text.endswith(each.text)))
        else:
            continue
        try:
            solution = solve(without)
        except TimeoutError:
            return None
        if solution.chosen is not None and not solution.left(ERRORS):
            found.append((solution.cost, statement.text, solution))
    if not found:
        return None
    _, text, solution = min(found, key=lambda each: each[:2])
    return text, solution
