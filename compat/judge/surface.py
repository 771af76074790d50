"""Findings about published Python source: what releases need of one another and do not have, and what the user's code does.

Without code only imports count that fail as soon as a package is imported. What fails later, in a submodule or in a call, is
told where the code, trainer or model that is given reaches it; :func:`unreached` lists the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.environment import Environment
    from compat.judge.facts import Facts
    from compat.matrix.surface.rows import Rows
    from compat.report import Finding

_OWN = ("vcs", "directory", "nightly", "url", "image")
"""Sources of which no index has the like: a version says nothing about them."""
_opened: list[Rows | None] = []


def judge(facts: Facts) -> Iterator[Finding]:
    """Every finding about an environment, and about the code of its workload."""
    installed = releases_in(facts.environment)
    rows = open_rows_once()
    if rows is not None and len(installed) > 1:
        broken = rows.broken(installed, tiers=("E1",))
        if broken:
            from compat.judge.surface_rows import of_imports

            yield from of_imports(broken, installed, rows)
        if _may_reach(facts):
            from compat.judge.surface_rows import of_reached

            yield from of_reached(facts, installed, rows)
    if facts.workload.code:
        from compat.judge.code.findings import judge_code

        yield from judge_code(facts.workload.code, installed)


def unreached(environment: Environment) -> Iterator[Finding]:
    """What fails in a submodule or in a call that nobody said is reached: as open questions."""
    rows = open_rows_once()
    if rows is not None:
        from compat.judge.surface_rows import of_unreached

        yield from of_unreached(environment, releases_in(environment), rows)


def asked_about() -> frozenset[str]:
    """The distributions that :func:`judge` may be about."""
    rows = open_rows_once()
    return frozenset() if rows is None else rows.packages


def open_rows_once() -> Rows | None:
    if not _opened:
        from compat.matrix.surface.rows import open_rows

        _opened.append(open_rows())
    return _opened[0]


def releases_in(environment: Environment) -> dict[str, str]:
    """The distributions of which one release is known to be there, as an index has it."""
    found: dict[str, str] = {}
    several = set()
    for copy in environment.distributions or ():
        if copy.name in found or copy.version is None or (copy.source is not None and copy.source.kind in _OWN):
            several.add(copy.name)
        elif copy.marker is None:
            found[copy.name] = copy.version
        else:
            several.add(copy.name)
    return {name: version for name, version in found.items() if name not in several}


def _may_reach(facts: Facts) -> bool:
    workload = facts.workload
    return bool(workload.trainer or workload.model)
