"""``compat why NAME``: why a package is at its version, and what would have to change for it to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.api.planning import planning
from compat.errors import InputError
from compat.model import normalized
from compat.output.stream import emit
from compat.records import replace
from compat.rules.compiled import open_matrix

if TYPE_CHECKING:
    from compat.api.options import Options


def run(options: Options) -> int:
    """Prints who asks for the package, and what a move to its newest release (or to ``--to``) would take along."""
    from compat.api.why import why
    from compat.output.why import why_dot, why_page, why_text
    from compat.repair.problem import Policy

    if not options.operands:
        raise InputError("expected the name of a package: compat why vllm")
    name = normalized(options.operands[0])
    matrix = open_matrix(options.values.get("rules", ()))
    policy = Policy(prefer="stay", any_age=options.flag("any-age"))
    with planning(replace(options, operands=options.operands[1:]), matrix, policy) as (_, planner):
        answer = why(name, planner, options.one("to"), planned=options.one("format") != "dot")
    emit({"html": why_page, "dot": why_dot}.get(options.one("format") or "", why_text)(answer))
    return 0
