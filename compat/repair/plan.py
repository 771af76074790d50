"""A plan: the changes, their reasons and cost, and the results of its checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from packaging.version import Version

from compat.formats.edit.changes import Change
from compat.model import EMPTY, Finding, Fix
from compat.records import record, replace
from compat.repair.candidates import Release
from compat.repair.explain import Contrast
from compat.repair.problem import family, moves_major
from compat.repair.verify import Verified

_ACTIONS = ("launch", "config", "env-var", "driver")
_OF_LEFT = (*_ACTIONS, "source-install")
"""Kinds of fixes that are shown for a finding that no release fixes."""


@record(frozen=True)
class Plan:
    """A plan. ``changes`` are sorted by name; ``left``: errors that no release fixes. ``proven``: no cheaper plan exists.

    Without a solution, ``core`` is the contradiction and ``relief`` the requirement the user might give up. ``unread`` are
    packages and files that could not be read and were not candidates; ``narrowed`` are vendors' indexes that were not reached,
    ``assumed`` are assumptions by release. ``along`` are changes that follow from others, ``refused`` is the reason why no
    change is proposed. ``partial``: listed packages have requirements that are not listed, so more is installed than listed.
    ``rebuilt`` keep their version but have to be recompiled for another release of torch; ``compiled`` are the changed
    extensions of torch without a wheel on the index, ``downloaded`` those for whose torch their setup.py downloads one.
    ``subjects`` are the packages of the errors.
    """

    changes: tuple[Change, ...] = ()
    cost: Mapping[str, int] = EMPTY
    proven: bool = False
    policies: tuple[str, ...] = ()
    verified: Verified | None = None
    left: tuple[Finding, ...] = ()
    core: tuple[str, ...] = ()
    relief: str = ""
    unread: Mapping[str, str] = EMPTY
    narrowed: Mapping[str, str] = EMPTY
    assumed: Mapping[str, str] = EMPTY
    chosen: Mapping[str, Release] = EMPTY
    next_best: Contrast | None = None
    along: frozenset[str] = frozenset()
    partial: bool = False
    refused: str = ""
    rebuilt: tuple[Change, ...] = ()
    compiled: frozenset[str] = frozenset()
    downloaded: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()

    @property
    def stands(self) -> bool:
        """Whether it can be proposed: it changes something and no check failed."""
        return bool(self.changes) and not self.refused and (self.verified is None or self.verified.stands)

    @property
    def why_not(self) -> str:
        """Why the changes are not proposed."""
        return self.refused or (self.verified.why if self.verified is not None else "")

    def not_left(self, errors: Iterable[Finding]) -> tuple[Finding, ...]:
        """The errors other than those that it is known to leave."""
        known = set(map(key_of, self.left))
        return tuple(each for each in errors if key_of(each) not in known)

    def not_left_before(self, errors: Iterable[Finding]) -> tuple[Finding, ...]:
        """The errors that it leaves and that were not among those."""
        before = set(map(key_of, errors))
        return tuple(each for each in self.left if key_of(each) not in before)

    def to_json(self) -> dict[str, object]:
        return {
            "changes": [
                {"name": each.name, "from": each.before, "to": each.after, "reasons": [each.why] if each.why else [],
                 **_source(each), "implied": each.implied}
                for each in (self.changes if self.stands else ())
            ],
            "actions": [
                *({"kind": fix.kind, "text": fix.text, "command": fix.command}
                  for finding in self.left for fix in actions(finding, left=True)),
                *({"kind": "source-install", "text": f"rebuild {each.name} {each.after}: {each.why}", "command": None}
                  for each in self.rebuilt),
            ],
            "commands": [], "cost": dict(self.cost), "proven": self.proven, "policies": list(self.policies),
            "verified": None if self.verified is None else self.verified.to_json(),
            "left": [each.rule for each in self.left], "core": list(self.core) or None,
            "relief": self.relief or None, "refused": self.refused or None, "unread": dict(self.unread),
            "narrowed": dict(self.narrowed), "assumed": dict(self.assumed),
            "next_best": None if self.next_best is None else self.next_best.to_json(),
        }  # fmt: skip


def key_of(finding: Finding) -> tuple[str, tuple[str, ...]]:
    """What makes a finding the same after packages have moved."""
    return finding.rule, tuple(sorted(finding.packages))


def reason_of(name: str, why: str) -> str:
    """Why something could not be read, without its own name or address in front."""
    first, _, rest = why.partition(" ")
    return rest if first.startswith(name) else why


def actions(finding: Finding, *, left: bool = False) -> tuple[Fix, ...]:
    """The fixes of a finding that do not change a package; of one that is ``left``, builds from elsewhere, too."""
    return tuple(fix for fix in finding.fixes if fix.kind in (_OF_LEFT if left else _ACTIONS))


def cost_of(changes: Collection[Change], *, errors: int = 0, source: int = 0, steps: int = 0) -> dict[str, int]:
    """The cost of some changes, by name and without zeros.

    torch and its family count as one change, implied changes and releases that stay are not counted. ``image`` is the number of
    images that another tag replaces, ``errors`` that of the errors left, ``source`` that of the source builds.
    """
    there = [each for each in changes if each.before is not None and not each.implied and not each.held]
    releases = [each for each in there if not each.is_image and each.after is not None]
    moved = [(each, Version(each.before or "0"), Version(each.after or "0")) for each in releases]
    found = {
        "errors": errors,
        "image": sum(each.is_image for each in there),
        "changed": len({family(each.name) for each in there if not each.is_image}),
        "downgraded": sum(each.direct and Version(after.public) < Version(before.public) for each, before, after in moved),
        "major": sum(moves_major(before, after) and family(each.name) == each.name for each, before, after in moved),
        "added": sum(each.before is None for each in changes), "removed": sum(each.after is None for each in there),
        "source": source, "steps": steps,
    }  # fmt: skip
    return {name: amount for name, amount in found.items() if amount}


def _source(change: Change) -> dict[str, object]:
    """The source of a change as JSON: an index (with its URL, unless it is the ordinary one), a repository …"""
    if change.source is None:
        return {"source": "index"}
    details = change.source.details
    return {"source": change.source.kind, **{key: details[key] for key in ("url", "commit", "build") if key in details}}


def joined(plan: Plan, more: Plan) -> Plan:
    """Merge two plans, the second for what the first leaves."""
    changes = {each.name: each for each in plan.changes}
    for each in more.changes:
        before = changes.get(each.name)
        changes[each.name] = each if before is None else replace(each, before=before.before, before_source=before.before_source)
    joined = tuple(changes[name] for name in sorted(changes))
    # what another torch brings along takes the place of what the first one did
    kept = {name: each for name, each in plan.chosen.items() if family(name) != "torch" or "torch" not in more.chosen}
    source, steps = (plan.cost.get(each, 0) + more.cost.get(each, 0) for each in ("source", "steps"))
    cost = cost_of(joined, errors=more.cost.get("errors", 0), source=source, steps=steps)
    return replace(
        plan, changes=joined, cost=cost, proven=plan.proven and more.proven,
        verified=_both(plan.verified, more.verified), unread={**plan.unread, **more.unread},
        left=tuple({key_of(each): each for each in (*plan.left, *more.left)}.values()),  # planned for again, and left again
        narrowed={**plan.narrowed, **more.narrowed}, assumed={**plan.assumed, **more.assumed},
        chosen={**kept, **more.chosen}, along=(plan.along | more.along) - _named(plan, more), next_best=None,
        rebuilt=plan.rebuilt or more.rebuilt, subjects=plan.subjects | more.subjects,
    )  # fmt: skip


def _named(plan: Plan, more: Plan) -> frozenset[str]:
    """Packages that at least one of two plans changes explicitly, not only as a consequence."""
    return frozenset(each.name for each in plan.changes if each.name not in plan.along) | frozenset(
        each.name for each in more.changes if each.name not in more.along
    )


def _both(one: Verified | None, two: Verified | None) -> Verified | None:
    if one is None or two is None:
        return one or two
    uv = None if None in (one.uv, two.uv) else one.uv and two.uv
    installs = None if None in (one.installs, two.installs) else one.installs and two.installs
    return Verified(one.rules and two.rules, uv, one.why or two.why, tuple({*one.unasked, *two.unasked}), installs)
