"""``compat rules``: list the matrix, show a rule, check rule files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.output.stream import emit
from compat.rules.compiled import open_matrix

if TYPE_CHECKING:
    from compat.api.options import Options


def run(options: Options) -> int:
    """``list`` (the default), ``show ID…`` or ``lint [FILE…]``."""
    action, *operands = options.operands or ("list",)
    extra = options.values.get("rules", ())
    if action == "list":
        if operands:
            raise InputError(f"'compat rules list' does not take {operands[0]!r}")
        return _list(extra, options)
    if action == "show":
        return _show(extra, operands, options)
    if action == "lint":
        return _lint((*extra, *operands))
    raise InputError(f"'compat rules' knows list, show and lint, not {action!r}")


def _list(extra: Sequence[str], options: Options) -> int:
    rules = open_matrix(extra).rules()
    if options.one("format") == "json":
        from compat.output.json import dumped
        from compat.output.rule import as_json

        emit(dumped([as_json(rule) for rule in rules]))
    else:
        from compat.output.rule import listed

        emit(listed(rules))
    return 0


def _show(extra: Sequence[str], names: Sequence[str], options: Options) -> int:
    from compat.output.rule import as_json, shown
    from compat.rules.evidence import evidence_of

    if not names:
        raise InputError("expected the id of a rule ('compat rules list' prints them)")
    rules = {rule.id: rule for rule in open_matrix(extra).rules()}
    found = []
    for name in names:
        rule = rules.get(name)
        if rule is None:
            import difflib

            near = difflib.get_close_matches(name, rules, 1)
            raise InputError(f"there is no rule {name!r}" + (f"; did you mean {near[0]}?" if near else ""))
        found.append(rule)
    if options.one("format") == "json":
        from compat.output.json import dumped

        emit(dumped([as_json(rule, evidence_of(rule.id)) for rule in found]))
    else:
        emit("\n\n".join(shown(rule, evidence_of(rule.id)) for rule in found))
    return 0


def _lint(files: Sequence[str]) -> int:
    """Checks the given files together with the matrix; 1 where a rule is wrong, 2 where a file cannot be used."""
    from compat.checks.lint import problems_of
    from compat.rules.loader import load_file, unique

    mine = [rule for file in files for rule in load_file(file)]
    rules = unique([*open_matrix().rules(), *mine])
    problems = problems_of(mine or rules, among=rules)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        count = len(mine or rules)
        emit(f"{count} rule{'s' if count != 1 else ''} checked, every example holds and no fix leads into another rule")
    return int(bool(problems))
