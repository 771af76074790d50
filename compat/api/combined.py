"""The fixes of several findings together: one command for all, or a note that there is none."""

from __future__ import annotations

from compat.model import Environment, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.rules.compiled import Matrix


def fixed_together(
    findings: Sequence[Finding], environment: Environment, matrix: Matrix
) -> tuple[tuple[str, ...], tuple[str, ...]]:  # fmt: skip
    """The commands that carry out fixes of all findings, and a note if there are none although several need one."""
    if sum(each.verdict == "hit" and bool(each.fixes) for each in findings) < 2:
        return (), ()
    from compat.checks.together import commands_for_all  # imported late: not needed where nothing is found

    commands = commands_for_all(findings, environment, matrix)
    return commands or (), (_NEEDS_FIX,) if commands is None else ()


def contradiction(findings: Sequence[Finding]) -> tuple[str, ...]:
    """A note if the first fixes of two findings ask for releases of a package that are never the same."""
    if sum(each.verdict == "hit" and bool(each.fixes) for each in findings) < 2:
        return ()
    from compat.checks.together import contradict

    return (_CONTRADICT,) if contradict(findings) else ()


def in_one_direction(findings: Sequence[Finding], commands: Sequence[str]) -> tuple[Finding, ...]:
    """The findings with those fixes first that go together with commands for all of them."""
    if not commands:
        return tuple(findings)
    from compat.checks.advice import following

    return following(findings, commands)


_CONTRADICT = "the first fixes of these findings contradict each other; run compat fix, which looks for releases that suit all"
_NEEDS_FIX = "no combination of these fixes removes all errors; run compat fix, which looks for releases that do"
