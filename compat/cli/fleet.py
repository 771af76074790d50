"""``compat fleet``: are these nodes alike where it matters, and is the stack right on all of them?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from compat.api.fleet import judge_fleet, ranged
from compat.api.targets import threshold_code
from compat.errors import InputError
from compat.output.stream import emit
from compat.rules.compiled import open_matrix

if TYPE_CHECKING:
    from compat.api.options import Options


def run(options: Options) -> int:
    """Judges the files of a folder, gathered before or now.

    0 nothing found, 1 findings, 2 a file that cannot be used and nothing worse, 3 expected nodes that did not answer.
    """
    if len(options.operands) != 1:
        raise InputError("expected the folder into which 'compat facts --output' wrote: compat fleet DIR")
    matrix = open_matrix(options.values.get("rules", ()))
    folder = options.operands[0]
    if options.flag("slurm"):
        from compat.integrations.gather import gather_slurm

        gather_slurm(folder, options)
    if options.flag("ray"):
        from compat.integrations.gather import gather_ray

        gather_ray(folder, options)
    fleet = judge_fleet(folder, options, matrix)
    code = threshold_code(fleet.findings(), options) or (2 if fleet.problems else 3 if fleet.missing else 0)
    if options.one("format") == "json":
        from compat.output.fleet import fleet_json
        from compat.output.json import dumped

        emit(dumped(fleet_json(fleet, code)))
    else:
        from compat.output.fleet import fleet_text
        from compat.output.terminal import coloured

        emit(coloured(fleet_text(fleet, ranged)))
    if fleet.problems:
        print(f"compat: {len(fleet.problems)} of the files could not be used", file=sys.stderr)
    return code
