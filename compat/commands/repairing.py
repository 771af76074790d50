"""What ``fix``, ``why`` and ``suggest`` share: what is to be repaired, and who plans it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from compat.commands.ignores import in_force
from compat.commands.judging import asked_of, chosen_targets, config_of, targeted
from compat.errors import InputError, Undecided
from compat.matrix.compiled import Matrix
from compat.records import record, replace

if TYPE_CHECKING:
    from compat.environment import Environment
    from compat.options import Words
    from compat.read.project_config import ProjectConfig, Target
    from compat.repair.plan import Planner
    from compat.repair.problem import Policy, Problem
    from compat.repair.target import Need

NOT_INSTALLED = "this needs clingo and an index client: pip install 'compat-doctor[fix]'"


@record(frozen=True)
class Case:
    """What is to be mended. ``file`` is what was read, ``None`` for an environment; ``folders`` hold installed metadata.

    ``ignored`` are the rules that the project chooses to live with."""

    environment: Environment
    file: str | None = None
    folders: tuple[str, ...] = ()
    interpreter: str | None = None
    direct: frozenset[str] | None = None
    asked: tuple[Need, ...] = ()
    notes: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()


def needed() -> None:
    """:class:`InputError` where what a repair needs is not installed."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("clingo", "pypi_simple", "requests")):
        raise InputError(NOT_INSTALLED)


def case_of(words: Words, matrix: Matrix) -> Case:
    """What the words name: a file, a described environment, or what is installed."""
    if len(words.operands) + words.flag("environment") + words.flag("python") > 1:
        raise InputError("give one of a file, --python and --environment")
    config = config_of(words.operands[0] if words.operands else ".", words)
    if words.operands:
        return _of_file(words, config)
    if words.flag("environment"):
        from compat.read.described import read_described

        environment, notes = read_described(words.one("environment") or "")
        target = _one_target(words, config)
        environment, more = _told_of(environment, target, words)
        return Case(environment, notes=(*notes, *more), ignored=_ignored(config, target))
    if words.flag("target"):
        raise InputError("--target goes with a file or --environment: what is installed is mended for this machine")
    import os

    from compat.commands.machine import read_machine
    from compat.read.machine.interpreter import default_target, target_at

    python = words.one("python")
    place = target_at(python) if python else default_target(os.environ)
    machine = read_machine(python, matrix)
    environment, more = _told_of(machine.environment, None, words)
    return Case(
        environment, folders=place.folders, interpreter=machine.interpreter, notes=(*machine.notes, *more),
        ignored=_ignored(config, None),
    )  # fmt: skip


def _one_target(words: Words, config: ProjectConfig) -> Target | None:
    """The declared target that is meant; :class:`InputError` where there are several."""
    targets = chosen_targets(words, config)
    if len(targets) > 1:
        names = ", ".join(each.name for each in targets if each is not None)
        raise InputError(f"there are several targets ({names}): name one with --target", config.file)
    return next(iter(targets), None)


def _ignored(config: ProjectConfig, target: Target | None) -> frozenset[str]:
    """The rules that the project ignores today."""
    named = (None, None if target is None else target.name)
    return frozenset(each.rule for each in config.ignores if each.target in named and in_force(each))


def _told_of(environment: Environment, target: Target | None, words: Words) -> tuple[Environment, tuple[str, ...]]:
    """The environment with what its target declares and the command line states, and what is to be said about it."""
    from compat.judge import named_devices

    environment, notes = targeted(environment, target, words)
    environment, more = named_devices(environment)
    return environment, (*notes, *more)


def _of_file(words: Words, config: ProjectConfig) -> Case:
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
    target = _one_target(words, config)
    known, notes = _told_of(listing.context, target, words)
    environment, direct, asked = installed_by(listing, known, asked_of(target, words))
    return Case(
        named_devices(environment)[0], file=path, direct=direct, asked=asked, notes=(*listing.notes, *notes),
        ignored=_ignored(config, target),
    )  # fmt: skip


def planner_of(
    words: Words, case: Case, matrix: Matrix, policy: Policy, progress: Callable[[str], None] | None = None
) -> Planner:
    """Who plans for a case, with the index that is configured; its index is to be closed."""
    from compat.index import Index, Store, gather
    from compat.judge.builds.stack import INDEX
    from compat.repair.installed import needs_of_installed
    from compat.repair.plan import Planner

    settings = gather(
        index_url=words.one("index-url"), extra_index_urls=tuple(words.all("extra-index-url")),
        find_links=tuple(words.all("find-links")),
    )  # fmt: skip
    problem = _problem(words, case, policy)
    needs = needs_of_installed(case.folders, problem.current, problem.target)
    if case.direct is None:
        from compat.repair.subjects import roots

        problem = replace(problem, direct=roots(needs, problem.current))
    index = Index(settings, Store(), offline=words.flag("offline"), before=words.one("before"))
    seconds = words.one("time-limit")
    deadline = None if seconds is None else monotonic() + _seconds(seconds)
    return Planner(
        problem, index, settings, matrix, needs, progress=progress, deadline=deadline,
        torch_index=words.one("torch-index") or INDEX,
    )  # fmt: skip


def _problem(words: Words, case: Case, policy: Policy) -> Problem:
    from compat.repair.subjects import problem_of

    return problem_of(
        case.environment, asked=case.asked, keep=words.values.get("keep", ()), direct=case.direct or (), policy=policy,
        ignored=case.ignored,
    )  # fmt: skip


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--time-limit: expected seconds, not {text!r}") from None


class _Progress:
    """What is known so far, on a line of the terminal that overwrites itself."""

    def __init__(self) -> None:
        self.last = ""
        self._shown = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        self.last = text
        if self._shown:
            from shutil import get_terminal_size

            print(f"\r\033[K{text[: get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextmanager
def planning(words: Words, case: Case, matrix: Matrix, policy: Policy) -> Iterator[Planner]:
    """As :func:`planner_of`, and ends what it began; :class:`Undecided` where the time was up before there was a plan.

    Whoever interrupts it is told what is proven so far.
    """
    progress = _Progress()
    planner = planner_of(words, case, matrix, policy, progress)
    try:
        yield planner
    except TimeoutError as problem:
        raise Undecided(str(problem)) from None
    except KeyboardInterrupt:
        progress.clear()
        if progress.last:
            print(f"compat: interrupted: {progress.last}", file=sys.stderr)
        raise
    finally:
        planner.index.close()
        progress.clear()
