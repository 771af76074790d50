"""Where the next models will look: what a model brings in is followed to what that needs, as installers do.

This is a guess, and never proves anything: it saves models, each of which costs more than a look into the cache.
"""

from __future__ import annotations

from collections.abc import Mapping

from compat.repair.candidates import Release
from compat.repair.problem import Problem
from compat.repair.relaxation import Needs
from compat.repair.target import satisfies


def follow(
    problem: Problem, chosen: dict[str, Release], opened: Mapping[str, tuple[Release, ...]], needs: Mapping[Release, Needs]
) -> tuple[list[str], list[Release]]:
    """Packages to open and releases to read next; ``chosen`` is carried on to them. Nothing where all is known."""
    unopened, unread = [], []
    for name, specifiers in _wanted(problem, chosen, needs).items():
        here = chosen.get(name)
        if here is not None and all(satisfies(here.version, text) for text in specifiers):
            continue
        if name not in opened:
            unopened.append(name)
            continue
        plain = [each for each in opened[name] if each.plain]  # other builds are asked for by models alone
        fitting = [each for each in plain if all(satisfies(each.version, text) for text in specifiers)]
        if fitting:  # else something that wants it has to move: the next model tells what
            chosen[name] = fitting[-1] if name not in problem.current else _nearest(fitting, problem.current[name])
            if chosen[name] not in needs:
                unread.append(chosen[name])
    return unopened, unread


def _wanted(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs]) -> dict[str, dict[str, None]]:
    """For every package that is needed the specifiers it shall meet."""
    found: dict[str, dict[str, None]] = {}
    waiting = [(name, "") for name in chosen]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        if name not in chosen:
            continue
        for need in needs.get(chosen[name], {}).get(extra, ()):
            if any(chosen.get(each) != problem.current.get(each) for each in (name, need.name)):  # else it may stay as it is
                found.setdefault(need.name, {})[need.specifier] = None
            new = [(need.name, each) for each in need.extras if (need.name, each) not in seen]
            seen.update(new)
            waiting += new
    for need in (*problem.asked, *problem.keep):
        found.setdefault(need.name, {})[need.specifier] = None
    return found


def _nearest(fitting: list[Release], current: Release) -> Release:
    """The first above the installed release, else the last below it."""
    return next((each for each in fitting if each.key > current.key), fitting[-1])
