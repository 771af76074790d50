"""Several findings together: one for all that is missing, and commands that carry out fixes of all at once.

Each finding has its fixes, and the best ones of two findings may contradict each other (``A<2`` and ``A>=3``). Here fixes are
combined until no finding is left with the releases that an installer would choose. Releases are those of the tables: nothing
is resolved, which is what ``compat fix`` is for.
"""

from __future__ import annotations

from compat.checks.advice import following, satisfiable, tightest, wanted_by
from compat.checks.torch_build import INDEX
from compat.model import Distribution, Environment, Finding, Fix
from compat.records import replace
from compat.rules.evaluate import Answers
from compat.tables.declared import open_declared
from compat.versions import contains, is_version, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from compat.rules.compiled import Matrix


_MOST_TRIALS = 24
"""Environments checked for one report."""
_DOWNGRADE = 3
"""What an older release costs, where a newer one costs 1."""
Specifiers = dict[str, str]
"""The specifier set for each package of an install command."""


def fixed_together(
    findings: tuple[Finding, ...], environment: Environment, matrix: Matrix
) -> tuple[tuple[Finding, ...], tuple[str, ...], tuple[str, ...]]:
    """The findings, those fixes first that go together, with commands that carry out fixes of all of them.

    Also a note if there are no such commands although several findings need one.
    """
    commands = commands_for_all(findings, environment, matrix)
    if commands is None:
        return findings, (), (_NEEDS_FIX,)
    return following(findings, commands) if commands else findings, commands, ()


def contradiction(findings: Sequence[Finding]) -> tuple[str, ...]:
    """A note if the first fixes of two findings ask for releases of a package that are never the same."""
    return (_CONTRADICT,) if contradict(findings) else ()


_CONTRADICT = "the first fixes of these findings contradict each other; run compat fix, which looks for releases that suit all"
_NEEDS_FIX = "no combination of these fixes removes all errors; run compat fix, which looks for releases that do"


def contradict(findings: Iterable[Finding]) -> bool:
    """Whether the first fixes of two findings ask for releases of a package that are never the same."""
    wanted = [wanted_by(each.fixes[0]) for each in findings if each.verdict == "hit" and each.fixes and not is_missing(each)]
    return len(wanted) > 1 and _merged(wanted) is None


def commands_for_all(findings: Sequence[Finding], environment: Environment, matrix: Matrix) -> tuple[str, ...] | None:
    """The commands that fix every finding, or else the worse ones; ``None`` if no combination of fixes does.

    Empty if the fixes of fewer than two findings install releases, or none of them is about an error and they do not contradict
    each other: each combination that is tried is checked whole, which takes several times as long as the report without it.
    """
    movable = [each for each in findings if each.verdict == "hit" and not is_missing(each) and any(map(wanted_by, each.fixes))]
    errors = [each for each in movable if each.severity == "error"]
    if len(movable) < 2 or not (errors or contradict(movable)):
        return ()
    trials = _Trials(environment, matrix)
    worse = [each for each in movable if each.severity != "info"]
    for chosen in (movable, *([worse] if worse != movable else []), errors):
        if chosen and (found := trials.of(chosen)) is not None:
            return () if len(chosen) < 2 else (found,)
    return None if len(errors) > 1 or contradict(movable) else ()


class _Trials:
    def __init__(self, environment: Environment, matrix: Matrix) -> None:
        self._environment = environment
        self._matrix = matrix
        self._answers = Answers()
        self._left = _MOST_TRIALS

    def of(self, findings: Sequence[Finding]) -> str | None:
        """The command that leaves none of the findings and no other error, with the fewest downgrades that were found.

        What is left after one fix decides which is tried next: a release that fixes several findings is found that way.
        """
        rules = {each.rule for each in findings}
        waiting: list[tuple[int, int, Specifiers]] = [(0, 0, {})]
        seen: set[tuple[tuple[str, str], ...]] = set()
        others: set[str] = set()
        while waiting and self._left > 0:
            cheapest = min(waiting, key=lambda each: each[:2])
            waiting.remove(cheapest)
            wanted = cheapest[2]
            key = tuple(sorted(wanted.items()))
            if key in seen:
                continue
            seen.add(key)
            self._left -= 1
            left = self._unfixed(wanted, rules)
            if not wanted:
                others = {each.rule for each in left or ()} - rules  # what no other release fixes
                if not rules <= {each.rule for each in left or ()}:
                    return None  # what is not found again cannot be seen to be fixed
            left = None if left is None else [each for each in left if each.rule not in others]
            if left is not None and not left:
                labels = dict.fromkeys(spec.partition("+")[2] for _, spec in key if "+" in spec)
                indexes = "".join(f" --extra-index-url {INDEX}/{label}" for label in labels)
                return "pip install " + " ".join(f'"{name}{spec}"' for name, spec in key) + indexes
            for place, fix in enumerate(left[0].fixes if left else ()):
                more = _merged([wanted, wanted_by(fix)]) if wanted_by(fix) else None
                if more is not None:
                    waiting.append((self._cost(more), len(seen) * 10 + place, more))
        return None

    def _unfixed(self, wanted: Specifiers, rules: set[str]) -> list[Finding] | None:
        """The findings that are left with the releases that an installer chooses; ``None`` if there are no such releases."""
        from compat.checks import check_environment

        releases = self._releases(wanted)
        if None in releases.values():
            return None
        copies = {copy.name: copy for copy in self._environment.distributions or ()}
        moved = {name for name, version in releases.items() if name not in copies or copies[name].version != version}
        copies |= {name: Distribution(name, releases[name]) for name in moved}
        environment = replace(self._environment, distributions=tuple(copies.values()))
        _, found, _ = check_environment(environment, self._matrix, self._answers)
        return [
            each for each in found if each.verdict == "hit" and not is_missing(each)
            and (each.severity == "error" or each.rule in rules or (each.origin == "metadata" and moved & set(each.packages)))
        ]  # fmt: skip

    def _cost(self, wanted: Specifiers) -> int:
        """What the releases cost: each change, and downgrades more."""
        here = {copy.name: copy.version for copy in self._environment.distributions or ()}
        pairs = [(here.get(name) or "0", version) for name, version in self._releases(wanted).items() if version is not None]
        return sum(_DOWNGRADE if key_of(old) > key_of(new) else 1 for old, new in pairs if old != new and is_version(old))

    def _releases(self, wanted: Specifiers) -> dict[str, str | None]:
        return {name: self._release(name, spec) for name, spec in wanted.items()}

    def _release(self, name: str, spec: str) -> str | None:
        """The release that an installer chooses: a build that is pinned, the installed one if it fits, or the newest."""
        if "+" in spec:
            return spec.removeprefix("==")
        ranges, python = ranges_of(spec), self._environment.python
        for copy in self._environment.distributions or ():
            if copy.name == name and copy.version and is_version(copy.version) and contains(ranges, key_of(copy.version)):
                return copy.version
        package = open_declared().package(name)
        for version in reversed(package.versions if package else ()):
            each = package.published(version) if package and contains(ranges, key_of(version)) else None
            if each is not None and each.is_offered(python) and key_of(version)[2:] == _FINAL:
                return version
        return spec.removeprefix("==") if spec.startswith("==") and is_version(spec.removeprefix("==")) else None


_FINAL = key_of("1")[2:]


def _merged(sets: Sequence[Specifiers]) -> Specifiers | None:
    """The specifiers of several commands in one, each once and without weaker bounds; ``None`` if they contradict."""
    merged: dict[str, list[str]] = {}
    for name, spec in _pairs(sets):
        merged[name] = [*merged.get(name, ()), *(each for each in spec.split(",") if each not in merged.get(name, ()))]
    for name, parts in merged.items():
        if not satisfiable(",".join(parts)):
            return None
        merged[name] = tightest(parts)
    return {name: ",".join(parts) for name, parts in merged.items()}


def _pairs(sets: Sequence[Specifiers]) -> Iterator[tuple[str, str]]:
    for each in sets:
        yield from each.items()


# --- Missing requirements of installed packages as one finding: packages installed without their requirements miss dozens.


_MOST_ASKING = 4
"""So many packages with missing requirements are named."""


def fold_missing(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, with a single one in place of those about missing requirements, whose command installs all of them.

    A requirement that contradicts another one of the same package stays a finding of its own.
    """
    missing = [each for each in findings if is_missing(each)]
    wanted: dict[str, list[str]] = {}
    folded: list[Finding] = []
    for each in missing:
        name, specifier = each.fixes[0].package or "", each.fixes[0].spec
        together = list(dict.fromkeys((*wanted.get(name, ()), *(specifier.split(",") if specifier else ()))))
        if not together or ranges_of(",".join(together)):
            wanted[name] = together
            folded.append(each)
    if len(folded) < 2:
        return tuple(findings)
    requirements = [f'"{name}{",".join(tightest(specifiers))}"' for name, specifiers in sorted(wanted.items())]
    asking = dict.fromkeys(f"{name} {each.packages[name]}" for each in folded for name in list(each.packages)[:1])
    several = len(asking) - _MOST_ASKING
    named = ", ".join(list(asking)[:_MOST_ASKING]) + (f" and {several} more" if several > 0 else "")
    first = folded[0]
    command = (first.fixes[0].command or "").partition(' "')[0]
    one = replace(
        first, title=f"{len(wanted)} required {'package is' if len(wanted) == 1 else 'packages are'} missing",
        why=f"Installed packages declare them in their metadata: {', '.join(sorted(wanted))}. Code that needs one of them "
        "fails with ModuleNotFoundError. They were left out (--no-deps) or removed.",
        packages={name: version for each in folded for name, version in each.packages.items() if version}
        | dict.fromkeys(sorted(wanted)),
        fixes=(Fix("pin", None, None, "all of them (--all lists who requires what)", f"{command} {' '.join(requirements)}"),),
        here=named,
    )  # fmt: skip
    return tuple(one if each is first else each for each in findings if each is first or each not in folded)


def is_missing(finding: Finding) -> bool:
    """Whether a finding is about a requirement of an installed package that is not installed."""
    return (
        finding.origin == "metadata" and finding.verdict == "hit" and len(finding.fixes) == 1
        and finding.fixes[0].kind == "pin" and finding.packages.get(finding.fixes[0].package or "", "") is None
    )  # fmt: skip
