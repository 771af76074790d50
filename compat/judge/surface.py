"""Findings about published Python source: what releases need of one another and do not have, and what the user's code does.

Without code only imports count that fail as soon as a package is imported. What fails later, in a submodule or in a call, is
told where the code, trainer or model that is given reaches it; :func:`unreached` lists the rest.
"""

from __future__ import annotations

from compat.environment import of_no_index
from compat.matrix.surface.at_once import FRAMEWORKS, TIERS, open_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from compat.environment import Environment, Workload
    from compat.judge.facts import Facts
    from compat.matrix.surface.at_once import AtOnce
    from compat.matrix.surface.rows import Rows
    from compat.report import Finding

_opened: list[Rows | None] = []
_at_once: list[AtOnce | None] = []


def judge(facts: Facts, about: frozenset[str] | None = None) -> Iterator[Finding]:
    """Every finding about an environment, and about the code of its workload; ``about``: only between these packages."""
    installed = releases_in(facts.environment)
    if about is not None:
        installed = {name: version for name, version in installed.items() if name in about}
    later = _says_what_runs(facts.workload)
    failing = _failing(installed, later=later)
    rows = open_rows_once() if installed and failing != frozenset() else None
    from_source = any(
        "tree" in copy.source.details for copy in facts.environment.distributions or () if copy.source is not None
    )
    code = facts.workload.code
    if code:
        from compat.judge.code.findings import remember

        remember(code, installed)
    if rows is not None and len(installed) > 1:
        from compat.matrix.surface.reach import eager_rows

        broken = eager_rows(rows, installed, failing)
        if broken:
            from compat.judge.surface_rows import of_imports

            yield from of_imports(broken, installed, rows)
        if later:
            from compat.judge.surface_reach import of_reached

            yield from of_reached(facts.workload, installed, rows, failing)
    if from_source:
        from compat.judge.code.findings import releases
        from compat.judge.source_trees import of_trees, trees_in
        from compat.matrix.surface.table import tracked

        trees = trees_in(facts.environment, tracked())
        yield from of_trees(trees, installed, releases())
        for tree in trees.values():
            releases().put(tree)
        installed = {**installed, **{name: tree.version for name, tree in trees.items()}}
    if code:
        from compat.judge.code.findings import judge_code

        yield from judge_code(code, installed)


def suspects(releases: Iterable[tuple[str, str | None]], workload: Workload | None) -> frozenset[str]:
    """The distributions, of some that are listed in one or more releases, that :func:`judge` may find something about."""
    listed: dict[str, dict[str, None]] = {}
    for name, version in releases:
        if version is not None:
            listed.setdefault(name, {})[version] = None
    later = workload is not None and _says_what_runs(workload)
    failing = _failing(listed, later=later)
    found = frozenset[str]()
    rows = open_rows_once() if failing != frozenset() else None
    if rows is not None:
        from compat.judge.surface_suspects import broken_together

        found = broken_together(listed, rows, later=later, failing=failing)
    if workload is not None and workload.code:
        from compat.judge.surface_suspects import used_by_code

        found |= used_by_code(workload.code)
    return found


def _failing(listed: Mapping[str, str | Iterable[str]], *, later: bool) -> frozenset[str] | None:
    """The packages of which something fails when it is imported, or ``later``; ``None`` where the rows have to be asked."""
    if not _at_once:
        _at_once.append(open_at_once())
    (first,) = _at_once
    if first is None:
        return None
    several = {name: (each,) if isinstance(each, str) else each for name, each in listed.items()}
    return first.failing(several, tiers=TIERS if later else TIERS[: 1 + (not FRAMEWORKS.isdisjoint(listed))])


def unreached(environment: Environment) -> Iterator[Finding]:
    """What fails in a submodule or in a call that nobody said is reached: as open questions."""
    rows = open_rows_once()
    if rows is not None:
        from compat.judge.surface_reach import of_unreached

        yield from of_unreached(environment, releases_in(environment), rows)


def told_once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings without those of source whose name a curated rule tells that holds here, of the same packages."""
    every = tuple(findings)
    if not any(each.origin == "surface" for each in every):
        return every
    told = [each for each in every if each.origin == "rule" and each.verdict == "hit"]
    return tuple(each for each in every if not (each.origin == "surface" and any(_tells(rule, each) for rule in told)))


def _tells(rule: Finding, found: Finding) -> bool:
    name = found.title.partition(" imports ")[2].partition(",")[0].rpartition(".")[2]
    same = name != "" and found.packages.keys() <= rule.packages.keys()
    return same and name in f"{rule.title} {rule.why} {rule.rule.replace('-', '_')}"


def open_rows_once() -> Rows | None:
    """The shipped rows, read once; ``None`` where there are none."""
    if not _opened:
        from compat.matrix.surface.rows import open_rows

        _opened.append(open_rows())
    return _opened[0]


def releases_in(environment: Environment) -> dict[str, str]:
    """The distributions of which one release is known to be there, as an index has it."""
    found: dict[str, str] = {}
    several = set()
    for copy in environment.distributions or ():
        if copy.name in found or copy.version is None or of_no_index(copy):
            several.add(copy.name)
        elif copy.marker is None:
            found[copy.name] = copy.version
        else:
            several.add(copy.name)
    return {name: version for name, version in found.items() if name not in several}


def _says_what_runs(workload: Workload) -> bool:
    return bool(workload.trainer or workload.model or workload.code)
