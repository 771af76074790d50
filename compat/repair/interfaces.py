"""Clauses from published source code: names that candidate releases, or the user's code, use and other releases lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from compat.checks.interfaces import open_rows_once
from compat.interfaces.at_once import importable
from compat.interfaces.rows import Row, Rows
from compat.model import Environment
from compat.repair.candidates import Release
from compat.repair.clauses import ERRORS, Statement
from compat.repair.relaxation import Forbidden
from compat.repair.rules import Known

if TYPE_CHECKING:
    from compat.interfaces.code.needs import CodeNeed
    from compat.interfaces.code.releases import Lean, Releases


def forbidden(environment: Environment, known: Known) -> Iterator[Forbidden]:
    """Incompatibilities between the known releases according to their source, as errors; plain releases only."""
    plain = {name: tuple(each for each in found if each.plain) for name, found in known.items()}
    rows = open_rows_once()
    if rows is not None:
        needed = rows.bits({name: [each.version for each in plain[name]] for name in rows.packages & plain.keys()})
        for consumer in sorted(rows.consumers & plain.keys()):
            yield from _of_consumer(consumer, plain, needed, rows)
    workload = environment.workload
    if workload is not None and workload.code:
        yield from of_code(workload.code, plain)


def _of_consumer(consumer: str, known: Known, needed: Mapping[str, int], rows: Rows) -> Iterator[Forbidden]:
    """Imports that fail when the consumer itself is imported: one clause for each set of releases that lack the name.

    ``needed`` are the known releases as :meth:`Rows.bits`.
    """
    by_version = {version: version for version in rows.versions(consumer)}
    mine = {release.version: by_version.get(_public(release), "") for release in known[consumer]}
    here_too = importable(known)
    for versions, row in rows.all_of(consumer, tier="E1", needed=needed):
        if row.package not in known or not here_too.issuperset(row.asks):
            continue
        here = frozenset(version for version, public in mine.items() if public in versions)
        there = frozenset(release.version for release in known[row.package] if _public(release) in row.bad)
        if here and there:
            yield Forbidden(((consumer, here), (row.package, there)), _statement(row, len(here)), ERRORS)


def _statement(row: Row, releases: int) -> Statement:
    says = f"imports {row.what} of {row.package} when it is imported"
    others = f" and {releases - 1} more" if releases > 1 else ""
    return Statement("finding", f"{row.consumer} {row.version}{others} {says} ({row.path}:{row.line})", row.consumer, says)


def _public(release: Release) -> str:
    return str(release.public)


def of_code(paths: tuple[str, ...], known: Known) -> Iterator[Forbidden]:
    """Forbid releases that lack something the code uses, alone or in combination with other releases."""
    from compat.checks.code import code_needs, releases

    wanted, answers = code_needs(paths), releases()
    for each in wanted.all:
        for package in wanted.packages_of(each)[:1]:
            if package in known and each.sure:
                yield from _of_need(each, package, known, answers)


def _of_need(each: CodeNeed, package: str, known: Known, answers: Releases) -> Iterator[Forbidden]:
    lacking: set[str] = set()
    leaning: dict[Lean, set[str]] = {}
    for release in known[package]:
        answer = answers.answer(package, release.version, each.need)
        if answer.met is False:
            lacking.add(release.version)
        elif answer.lean is not None and answer.lean.package in known:
            leaning.setdefault(answer.lean, set()).add(release.version)
    if len(lacking) == len(known[package]) and answers.nowhere(package, each.need):
        return  # no release has it: a mistake in the code, and no reason to prefer a release
    statement = Statement("finding", f"{each.place} uses {each.what}")
    if lacking:
        yield Forbidden(((package, frozenset(lacking)),), statement, ERRORS)
    for lean, versions in leaning.items():
        others = known[lean.package]
        bad = frozenset(
            other.version for other in others if answers.answer(lean.package, other.version, lean.need).met is False
        )
        if bad and len(bad) < len(others):
            yield Forbidden(((package, frozenset(versions)), (lean.package, bad)), statement, ERRORS)
