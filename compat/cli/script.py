"""``compat script``: which releases of each tracked package have everything that some code uses."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from compat.checks.code import releases
from compat.checks.interfaces import open_rows_once
from compat.errors import InputError
from compat.interfaces.code.explained import Explained, Nowhere, explained, nowhere
from compat.interfaces.code.files import read_code
from compat.interfaces.code.releases import Range, Reverse
from compat.interfaces.code.together import narrowed
from compat.interfaces.code.wanted import WantedOf
from compat.interfaces.table import tracked
from compat.output.stream import emit
from compat.records import record
from compat.tables.declared import Declared

if TYPE_CHECKING:
    from compat.api.options import Options
    from compat.interfaces.code.records import Code


@record(frozen=True)
class Answered:
    """What is said about some code."""

    code: Code
    packages: tuple[Explained, ...]
    nowhere: tuple[Nowhere, ...]
    notes: tuple[str, ...]

    @property
    def exit(self) -> int:
        """2 where a file could not be read, 1 where something is in no release or no release has everything."""
        if self.code.problems:
            return 2
        return int(bool(self.nowhere) or any(each.first is None for each in self.packages))


def run(options: Options) -> int:
    """Prints, for every tracked package that the code uses, the releases that will do and what decides each bound."""
    if not options.operands:
        raise InputError("expected a script, a notebook or a folder: compat script train.py")
    answered = answer(options.operands)
    for problem in answered.code.problems:
        print(f"compat: {problem}", file=sys.stderr)
    if options.one("format") == "json":
        from compat.output.json import dumped
        from compat.output.script import script_json

        emit(dumped(script_json(answered)))
    elif answered.code.files:
        from compat.output.script import script_text

        emit(script_text(answered))
    return answered.exit


def answer(paths: tuple[str, ...]) -> Answered:
    """The releases that the code of some files needs."""
    code = read_code(paths)
    known = tracked()
    if not known:
        raise InputError("the tables of published source are not there: this build of compat was made without them")
    wanted = WantedOf(code, known)
    answers = releases()
    bounds = tuple(bound for each in code.files for bound in each.bounds)
    reverse = Reverse(wanted, answers, bounds)
    ranges = _had_together(reverse.ranges(), wanted)
    return Answered(
        code, explained(ranges, reverse, answers), nowhere(reverse, answers, wanted), (*code.notes, *_notes(wanted))
    )


def _had_together(ranges: tuple[Range, ...], wanted: WantedOf) -> tuple[Range, ...]:
    """The ranges as far as releases of one go with releases of the others that the code surely uses."""
    rows = open_rows_once()
    certain = {package for each in wanted.all if each.sure for package in wanted.packages_of(each)}
    return ranges if rows is None else narrowed(ranges, frozenset(certain), rows, Declared())


def _notes(wanted: WantedOf) -> tuple[str, ...]:
    notes = [
        f"{name} is imported, which replaces parts of other packages: only imports were judged of what it replaces"
        for name in wanted.patched_by
    ]
    beside = sorted(wanted.code.shadowed & set(wanted.tracked))
    used = {each.module.partition(".")[0] for file in wanted.code.files for each in file.module.imports}
    notes += [
        f"{name} is a module beside the code: it is taken for the one that is imported" for name in beside if name in used
    ]
    return tuple(notes)
