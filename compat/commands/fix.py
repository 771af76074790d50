"""``compat fix``: the smallest set of changes that mends every error, checked, shown as a diff, written on request."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING

from compat.commands.given import command_of, stated
from compat.errors import InputError
from compat.matrix.compiled import Matrix, open_matrix
from compat.records import record, replace
from compat.show.output import emit

if TYPE_CHECKING:
    from compat.environment import Environment
    from compat.options import Words
    from compat.repair.plan import Plan
    from compat.repair.problem import Problem
    from compat.repair.target import Need
    from compat.report import Finding
    from compat.write.edits import Edit

NOT_INSTALLED = "compat fix needs clingo and an index client: pip install 'compat-doctor[fix]'"


@record(frozen=True)
class Case:
    """What is to be mended. ``file`` is what was read, ``None`` for an environment; ``folders`` hold installed metadata."""

    environment: Environment
    file: str | None = None
    folders: tuple[str, ...] = ()
    interpreter: str | None = None
    direct: frozenset[str] | None = None
    asked: tuple[Need, ...] = ()
    notes: tuple[str, ...] = ()


def run(words: Words) -> int:
    """Plans, prints, and writes where ``--write`` asks for it.

    0: nothing to mend, or a plan that mends all; 1: an error is left, or no plan exists; 3: it could not be decided.
    """
    try:
        import clingo  # noqa: F401
        import pypi_simple  # noqa: F401
    except ImportError:
        raise InputError(NOT_INSTALLED) from None
    from compat.repair.whole_plans import findings

    matrix = open_matrix(words.values.get("rules", ()))
    case = _case(words, matrix)
    errors = tuple(each for each in findings(case.environment, matrix) if each.severity == "error")
    if not errors and not words.flag("keep"):
        return _nothing(words, case)
    plan = _planned(words, case, matrix)
    return _told(words, case, errors, plan)


def _case(words: Words, matrix: Matrix) -> Case:
    if len(words.operands) + words.flag("environment") + words.flag("python") > 1:
        raise InputError("give one of a file, --python and --environment")
    if words.operands:
        return _of_file(words)
    if words.flag("environment"):
        from compat.read.described import read_described

        environment, notes = read_described(words.one("environment") or "")
        return Case(_told_of(environment, words), notes=notes)
    import os

    from compat.commands.machine import read_machine
    from compat.read.machine.interpreter import default_target, target_at

    python = words.one("python")
    target = target_at(python) if python else default_target(os.environ)
    machine = read_machine(python, matrix)
    environment = _told_of(machine.environment, words)
    return Case(environment, folders=target.folders, interpreter=machine.interpreter, notes=machine.notes)


def _told_of(environment: Environment, words: Words) -> Environment:
    from compat.judge import named_devices

    environment, _ = command_of(environment, words)
    return named_devices(stated(environment, words))[0]


def _of_file(words: Words) -> Case:
    from compat.judge import named_devices
    from compat.read.files.kinds import DESCRIBED, kind_of, listings_of, read_content
    from compat.repair.subjects import installed_by

    path = words.operands[0]
    content = read_content(path)
    kind = kind_of(path, content)
    if kind == DESCRIBED:
        raise InputError("is a described environment: give it with --environment", path)
    listings = [each for each in listings_of(path, kind, content) if each.entries]
    if not listings:
        raise InputError("lists no distribution", path)
    if len(listings) > 1:
        names = ", ".join(each.label or each.file for each in listings)
        raise InputError(f"holds several environments ({names}); fix takes one at a time", path)
    (listing,) = listings
    environment, direct, asked = installed_by(listing, _told_of(listing.context, words))
    return Case(named_devices(environment)[0], file=path, direct=direct, asked=asked, notes=listing.notes)


def _planned(words: Words, case: Case, matrix: Matrix) -> Plan:
    from compat.index import Index, Store, gather
    from compat.repair.installed import needs_of_installed
    from compat.repair.plan import Planner

    settings = gather(
        index_url=words.one("index-url"), extra_index_urls=tuple(words.all("extra-index-url")),
        find_links=tuple(words.all("find-links")),
    )  # fmt: skip
    problem = _problem(words, case)
    needs = needs_of_installed(case.folders, problem.current, problem.target)
    if case.direct is None:
        from compat.repair.subjects import roots

        problem = replace(problem, direct=roots(needs, problem.current))
    index = Index(settings, Store(), offline=words.flag("offline"), before=words.one("before"))
    seconds = words.one("time-limit")
    deadline = None if seconds is None else monotonic() + _seconds(seconds)
    planner = Planner(problem, index, settings, matrix, needs, progress=_progress(), deadline=deadline)
    try:
        return planner.plan(explained=not words.flag("brief"))
    except TimeoutError as problem_:
        from compat.errors import Undecided

        raise Undecided(str(problem_)) from None
    finally:
        index.close()
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)


def _problem(words: Words, case: Case) -> Problem:
    from compat.repair.problem import Policy
    from compat.repair.subjects import problem_of

    policy = Policy(
        prefer=words.one("prefer") or "stay", prereleases=words.flag("pre"), any_age=words.flag("any-age"),
        allow_source=words.flag("allow-source"),
    )  # fmt: skip
    return problem_of(
        case.environment, asked=case.asked, keep=words.values.get("keep", ()), direct=case.direct or (), policy=policy
    )


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--time-limit: expected seconds, not {text!r}") from None


def _progress() -> Callable[[str], None] | None:
    if not sys.stderr.isatty():
        return None
    return lambda text: print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _nothing(words: Words, case: Case) -> int:
    from compat.repair.plan import Plan

    return _told(words, case, (), Plan(proven=True))


def _told(words: Words, case: Case, errors: tuple[Finding, ...], plan: Plan) -> int:
    from compat.write import commands_for, edits_for
    from compat.write.edits import difference

    edits = edits_for(case.file, plan.changes) if case.file and plan.stands else ()
    commands = commands_for(case.file, plan.changes, python=case.interpreter) if plan.stands else None
    if words.one("format") == "json":
        from compat.report import Report
        from compat.show.json import dumped

        report = Report(case.environment, errors, case.notes, _code(errors, plan), case.file).to_json()
        made = plan.to_json()
        made["commands"] = [*commands.install, *commands.lock] if commands else []
        emit(dumped({**report, "plan": made}))
    else:
        from compat.show.plan import shown_plan

        emit(shown_plan(plan, errors, commands, explained=not words.flag("brief")))
        emit("".join(difference(edit) for edit in edits))
    if words.flag("write") and plan.stands:
        _write(case, edits)
    return _code(errors, plan)


def _write(case: Case, edits: tuple[Edit, ...]) -> None:
    from compat.write.edits import apply

    if case.file is None:
        raise InputError("--write changes files; run the command above to change an environment")
    apply(edits)
    print(f"written: {', '.join(_distinct(edit.path for edit in edits))}", file=sys.stderr)


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _code(errors: tuple[Finding, ...], plan: Plan) -> int:
    if plan.stands and not plan.left:
        return 0
    if not errors and not plan.core:
        return 0
    return 3 if plan.unread or not plan.proven else 1
