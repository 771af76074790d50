"""Commands that carry out fixes of all findings at once.

Each finding has its fixes, and the best ones of two findings may contradict each other (``A<2`` and ``A>=3``). Here fixes are
combined until no finding is left with the releases that an installer would choose. Releases are those of the tables: nothing
is resolved, which is what ``compat fix`` is for.
"""

from __future__ import annotations

from compat.checks.advice import satisfiable, wanted_by
from compat.checks.missing import is_missing, tightest
from compat.checks.torch_build import INDEX
from compat.model import Distribution, Environment
from compat.records import replace
from compat.rules.evaluate import Answers
from compat.tables.declared import open_declared
from compat.versions import contains, is_version, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from compat.model import Finding
    from compat.rules.compiled import Matrix


_MOST_TRIALS = 24
"""Environments checked for one report."""
_DOWNGRADE = 3
"""What an older release costs, where a newer one costs 1."""
Specifiers = dict[str, str]
"""The specifier set for each package of an install command."""


def contradict(findings: Iterable[Finding]) -> bool:
    """Whether the first fixes of two findings ask for releases of a package that are never the same."""
    wanted = [wanted_by(each.fixes[0]) for each in findings if each.verdict == "hit" and each.fixes and not is_missing(each)]
    return _merged(wanted) is None


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
