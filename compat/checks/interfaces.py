"""Findings from published Python source: names that a release or the user's code uses and another release does not have.

Without code, only failures at package import are reported. A later failure, in a submodule or in a call, is reported if the
given code, trainer or model reaches it; :func:`unreached` lists the rest.
"""

from __future__ import annotations

from compat.checks.fix_commands import nearest_fixes
from compat.checks.reached import ALWAYS_USED, Reached, loads_models, may_be_any_job, says_what_runs, with_trainer
from compat.interfaces.at_once import ENTRIES, JOB, MAIN, MAINS, TIERS, AtOnce, least_available, open_at_once
from compat.model import Environment, Finding, Fix, Workload, is_release
from compat.records import cached, replace
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from compat.interfaces.rows import Evidence, Row, Rows
    from compat.rules.facts import Facts


def judge(facts: Facts, about: frozenset[str] | None = None) -> Iterator[Finding]:
    """Yield findings about the installed releases and the workload's code; ``about`` limits them to these packages."""
    installed = releases_in(facts.environment)
    if about is not None:
        installed = {name: version for name, version in installed.items() if name in about}
    workload = with_trainer(facts.workload, installed)
    later = says_what_runs(workload)
    failing = _failing(installed, later=later)
    rows = open_rows_once() if installed and failing != frozenset() else None
    from_source = any(
        "tree" in copy.source.details for copy in facts.environment.distributions or () if copy.source is not None
    )
    code = workload.code
    if code:
        from compat.checks.code import load_cached_answers

        load_cached_answers(code, installed)
    if rows is not None and len(installed) > 1:
        from compat.interfaces.imports import eager_rows

        broken = eager_rows(rows, installed, failing, job=loads_models(workload))
        if broken:
            yield from of_imports(broken, installed, rows)
        if later:
            yield from of_reached(workload, installed, rows, failing, implied=workload is not facts.workload)
        elif may_be_any_job(workload, installed):
            yield from of_mains(installed, rows)
    if from_source:
        from compat.checks.code import releases
        from compat.checks.source_trees import of_trees, trees_in
        from compat.interfaces.table import tracked

        trees = trees_in(facts.environment, tracked())
        yield from of_trees(trees, installed, releases())
        for tree in trees.values():
            releases().put(tree)
        installed = {**installed, **{name: tree.version for name, tree in trees.items()}}
    if code:
        from compat.checks.code import judge_code

        yield from judge_code(code, installed)


def suspects(releases: Iterable[tuple[str, str | None]], workload: Workload | None) -> frozenset[str]:
    """The listed distributions that findings of :func:`judge` may concern; ``releases`` may list several versions of each."""
    listed: dict[str, dict[str, None]] = {}
    for name, version in releases:
        if version is not None:
            listed.setdefault(name, {})[version] = None
    workload = None if workload is None else with_trainer(workload, listed)
    later = workload is not None and says_what_runs(workload)
    failing = _failing(listed, later=later)
    found = frozenset[str]()
    rows = open_rows_once() if failing != frozenset() else None
    if rows is not None:
        found = broken_together(listed, rows, later=later, failing=failing)
    if not later and (workload is None or may_be_any_job(workload, listed)):
        found |= _index().together(listed, tiers=(MAIN,))
    if workload is None or loads_models(workload):
        found |= _index().together(listed, tiers=(JOB,))
    if workload is not None and workload.code:
        used = used_by_code(workload.code)
        # optimum-onnx may have what optimum does not: both put modules into one namespace package
        found |= used | {name for name in listed if any(name.startswith(f"{each}-") for each in used)}
    return found


def _failing(listed: Mapping[str, str | Iterable[str]], *, later: bool) -> frozenset[str] | None:
    """The packages that fail at import, or ``later`` in submodules and calls; ``None`` if the full table must be consulted."""
    several = {name: (each,) if isinstance(each, str) else each for name, each in listed.items()}
    tiers = TIERS if later else (*TIERS[: 1 + (not ENTRIES.keys().isdisjoint(listed))], JOB, MAIN)
    return _index().failing(several, tiers=tiers)


@cached
def _index() -> AtOnce:
    """The shipped index of the rows, read once."""
    return open_at_once()


def failing_pairs(installed: Mapping[str, str], about: frozenset[str]) -> set[frozenset[str]]:
    """See :meth:`AtOnce.pairs`."""
    return _index().pairs(installed, about)


def unreached(environment: Environment) -> Iterator[Finding]:
    """Yield failures in submodules and calls that the workload may not reach, as open questions."""
    rows = open_rows_once()
    if rows is not None:
        yield from of_unreached(environment, releases_in(environment), rows)


@cached
def open_rows_once() -> Rows | None:
    """The shipped table, read once; ``None`` if there is none."""
    from compat.interfaces.rows import open_rows

    return open_rows()


def releases_in(environment: Environment, *, images: bool = False) -> dict[str, str]:
    """The distributions installed in exactly one known version from an index, with that version.

    ``images``: those of container images count as well, whose Python code is that of the release.
    """
    found: dict[str, str] = {}
    several = set()
    for copy in environment.distributions or ():
        of_release = is_release(copy) or (images and copy.source is not None and copy.source.kind == "image")
        if copy.name in found or copy.version is None or not of_release:
            several.add(copy.name)
        elif copy.marker is None:
            found[copy.name] = copy.version
        else:
            several.add(copy.name)
    return {name: version for name, version in found.items() if name not in several}


def of_mains(installed: Mapping[str, str], rows: Rows) -> Iterator[Finding]:
    """Yield a finding for each package with which none of the main trainers of another one works, whichever the job needs."""
    from compat.interfaces.imports import of_main

    for consumer in sorted(_index().failing({name: (each,) for name, each in installed.items()}, tiers=(MAIN,))):
        broken = filter(of_main, rows.broken(installed, tiers=("E2", "R1"), consumers=(consumer,)))
        for (_, package), found in paired(broken).items():
            if {row.module for row in found} == set(MAINS[consumer]):
                yield _of_main(consumer, package, found, installed, rows)


def _of_main(consumer: str, package: str, found: list[Row], installed: Mapping[str, str], rows: Rows) -> Finding:
    """The finding about rows of all main modules, which names what the trainer in the first of them lacks."""
    finding = _finding(consumer, package, found, installed, rows, "hit")
    here, there = f"{consumer} {installed[consumer]}", f"{package} {installed[package]}"
    first = min(found, key=lambda row: (row.tier != "R1", MAINS[consumer].index(row.module)))
    names = [module.rpartition(".")[2].removesuffix("_trainer") for module in MAINS[consumer]]
    return replace(
        finding, severity="error", title=f"The trainers of {here} do not work with {there}: {_first_of(first)} does not have",
        why=f"{first.place}: this {'import' if first.tier == 'E2' else 'call'} fails. Every trainer has one like it "
        f"({', '.join(names)} …), so that it cannot be imported or created." + said_of_others([first, *found]),
        facts=(), evidence=tuple(evidence_of(first, installed[consumer], installed[package])),
    )  # fmt: skip


def _first_of(row: Row) -> str:
    name = row.scope.partition(".")[0] or row.module.rpartition(".")[2]
    return f"{name} {'imports' if row.kind == 'import' else 'uses'} {row.what}, which it"


# --- Failures after import that the given code, trainer or model reaches.


def of_reached(
    workload: Workload, installed: Mapping[str, str], rows: Rows, failing: frozenset[str] | None, *, implied: bool
) -> Iterator[Finding]:
    """Yield findings for submodules and calls that the workload reaches; ``failing``: the only packages that may fail.

    ``implied``: the trainer follows from the task, and nothing says which options it is created with.
    """
    broken = rows.broken(installed, tiers=("E2", "R1"), consumers=failing)
    if not broken:
        return
    reached = Reached(workload, installed, rows)
    found = [row for row in broken if reached.comes_to(row)]
    if implied:
        found = [row for row in found if row.tier == "E2" or row.package in ALWAYS_USED]
    for (consumer, package), rows_of_pair in paired(found).items():
        yield _finding(consumer, package, rows_of_pair, installed, rows, "hit")


def of_unreached(environment: Environment, installed: Mapping[str, str], rows: Rows) -> Iterator[Finding]:
    """Yield the failures in submodules and calls that the workload is not known to reach, as questions."""
    from compat.model import Workload

    reached = Reached(with_trainer(environment.workload or Workload(), installed), installed, rows)
    left = [row for row in rows.broken(installed, tiers=("E2", "R1")) if not reached.comes_to(row)]
    for (consumer, package), found in paired(left).items():
        yield _finding(consumer, package, found, installed, rows, "possible")


def _finding(consumer: str, package: str, found: list[Row], installed: Mapping[str, str], rows: Rows, verdict: str) -> Finding:
    first = min(found, key=lambda row: (row.tier, row.path, row.line))
    here, there = installed[consumer], installed[package]
    fails = f"import of {first.module}" if first.tier == "E2" else f"call in {first.scope or first.module}"
    told = verdict == "hit"
    return Finding(
        rule=f"surface-{consumer}-{package}-later",
        origin="surface", verdict=verdict, severity="error" if told and first.tier == "E2" else "warning",
        title=f"{consumer} {here} {_asks(first)} {package} {there} does not have",
        why=f"{first.place}: the {fails} fails{', and this job reaches it' if told else ' if this code path runs'}."
        + said_of_others(found),
        packages={consumer: here, package: there}, facts=("workload",),
        missing=() if told else ("workload",), unknown=() if told else ("workload.task",),
        fixes=tuple(fixes_of(consumer, package, found, installed, rows)),
        evidence=tuple(evidence_of(first, here, there)),
        here=f"{consumer} {here}, {package} {there}",
    )  # fmt: skip


def _asks(row: Row) -> str:
    if row.kind == "import":
        return f"imports {row.what}, which"
    if row.kind == "override":
        return f"overrides {row.target or row.what}.{row.name} without taking {row.missing}, which"
    return f"uses {row.what}, which"


# --- Table rows as findings: one for each pair of packages, with the nearest compatible releases.


if TYPE_CHECKING:
    Pair = tuple[str, str]


def of_imports(broken: Iterable[tuple[Row, tuple[str, ...]]], installed: Mapping[str, str], rows: Rows) -> Iterator[Finding]:
    """Yield findings for imports that fail when a package is imported; each row comes with its import chain."""
    chains = {id(row): chain for row, chain in broken}
    for (consumer, package), found in paired(row for row, _ in broken).items():
        first = found[0]
        here, there = installed[consumer], installed[package]
        yield Finding(
            rule=f"surface-{consumer}-{package}",
            origin="surface",
            title=f"{consumer} {here} imports {first.what}, which {package} {there} does not have",
            why=_why(first, chains[id(first)]) + said_of_others(found),
            packages={consumer: here, package: there},
            fixes=tuple(fixes_of(consumer, package, found, installed, rows)),
            evidence=tuple(evidence_of(first, here, there)),
            here=f"{consumer} {here}, {package} {there}",
        )  # fmt: skip


def _why(row: Row, chain: tuple[str, ...]) -> str:
    if len(chain) > 1:
        steps = " → ".join(dict.fromkeys(step.partition(":")[0] for step in chain))
        return f"{row.place} runs on import {chain[0].partition(':')[0]} ({steps})."
    return f"{row.place} always runs when {row.consumer} is imported."


def paired(rows: Iterable[Row]) -> dict[Pair, list[Row]]:
    """Rows grouped by (consumer, package)."""
    found: dict[Pair, list[Row]] = {}
    for row in rows:
        found.setdefault((row.consumer, row.package), []).append(row)
    return found


def said_of_others(found: list[Row]) -> str:
    """A sentence that lists the other missing names of the same pair of packages; "" if there are none."""
    names = list(dict.fromkeys(row.what for row in found))[1:]
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f" The same goes for {', '.join(names[:3])}{more}."


def evidence_of(row: Row, here: str, there: str) -> Iterator[str]:
    """Yield the line that uses a name, then, nearest to the installed release, a file without it and a line with it."""
    yield f"{row.consumer} {here} {row.place}"
    known = sorted(row.evidence, key=lambda each: _apart(each, there))
    for has in (False, True):
        each = next((one for one in known if one.has is has), None)
        if each is not None:
            yield f"{row.package} {each.version} {each.place}" + ("" if has else f" has no {row.missing}")


def _apart(each: Evidence, there: str) -> tuple[int, ...]:
    key, here = key_of(each.version)[1], key_of(there)[1]
    return tuple(abs(mine - other) for mine, other in zip((*key, 0, 0), (*here, 0, 0)))


def fixes_of(consumer: str, package: str, found: list[Row], installed: Mapping[str, str], rows: Rows) -> Iterator[Fix]:
    """Yield the nearest releases of either package that fix the failure."""
    bad = {version for row in found for version in row.bad}
    least = least_available(consumer, installed[consumer], package)  # an older one would only count as not installed
    good = [each for each in rows.versions(package) if each not in bad and (least is None or key_of(each) >= key_of(least))]
    yield from nearest_fixes(package, installed[package], good, rows.versions(package), f"has what {consumer} needs")
    kinds = {"R" if row.tier == "R1" else "E" for row in found}
    broken = frozenset[str]().union(*(rows.failing_with(consumer, kind, package, installed[package]) for kind in kinds))
    good = [version for version in rows.versions(consumer) if version not in broken]
    text = f"works with {package} {installed[package]}"
    yield from nearest_fixes(consumer, installed[consumer], good, rows.versions(consumer), text)


# --- Packages of a lock file that can fail with each other; the rest need not be distinguished.


def broken_together(
    releases: Mapping[str, Iterable[str]], rows: Rows, *, later: bool, failing: frozenset[str] | None = None
) -> frozenset[str]:
    """The packages of every row that some combination of the listed releases breaks; ``later`` includes failures in calls.

    ``failing``: the only packages that may fail.
    """
    listed = {name: versions for name, versions in releases.items() if name in rows.packages}
    frameworks = ENTRIES.keys() & listed.keys()
    tiers = ("E1", "E2") if frameworks or later else ("E1",)
    broken = rows.broken_by_some(listed, tiers=tiers, later=later, consumers=failing)
    found = {name for row in broken for name in (row.consumer, row.package)}
    if any(row.tier == "E2" for row in broken):
        found |= frameworks  # one of them may import the module
    return frozenset(found)


def used_by_code(paths: tuple[str, ...]) -> frozenset[str]:
    """The packages that the code uses, and those whose classes other packages subclass."""
    from compat.checks.code import INHERITED_FROM, code_needs

    return frozenset(code_needs(paths).packages()) | INHERITED_FROM
