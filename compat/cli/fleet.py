"""``compat fleet``: compare the environments of nodes, and check the stack on each of them."""

from __future__ import annotations

import sys

from compat.api.commands import Options
from compat.api.fleet import host_ranges, judge_fleet
from compat.api.targets import threshold_code
from compat.errors import InputError
from compat.output.fleet import fleet_json, fleet_markdown, fleet_text
from compat.output.stream import emit, emit_json
from compat.output.terminal import coloured
from compat.rules.compiled import open_matrix


def run(options: Options) -> int:
    """Check the node files in a folder, gathered earlier or by this run.

    Returns 0 without findings, 1 for findings, 2 for an invalid file and nothing worse, 3 for unanswered or unprobed nodes.
    """
    if len(options.operands) != 1:
        raise InputError("expected the folder that 'compat facts --output' wrote to: compat fleet DIR")
    matrix = open_matrix(options.values.get("rules", ()))
    folder = options.operands[0]
    from compat.integrations.gather import gather

    fleet = judge_fleet(folder, options, matrix, gather(folder, options))
    code = threshold_code(fleet.findings(), options) or (2 if fleet.problems else 3 if fleet.missing or fleet.undecided else 0)
    form = options.one("format")
    if form == "json":
        emit_json(fleet_json(fleet, code))
    elif form == "markdown":
        emit(fleet_markdown(fleet, host_ranges))
    elif form == "html":
        from compat.output.html.report import fleet_page

        emit(fleet_page(fleet, host_ranges))
    else:
        emit(coloured(fleet_text(fleet, host_ranges)))
    if fleet.problems:
        print(f"compat: {len(fleet.problems)} of the files could not be used", file=sys.stderr)
    return code
