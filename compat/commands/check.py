"""``compat check``: findings for described environments."""

from __future__ import annotations

import sys

from compat.commands.given import command_of, stated, threshold_code
from compat.errors import InputError
from compat.judge import judged
from compat.matrix.compiled import open_matrix
from compat.read.described import read_described
from compat.report import Report
from compat.show.output import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.matrix.compiled import Matrix
    from compat.options import Words


def run(words: Words) -> int:
    """Judges every file; one that cannot be used makes the exit code 2, the others are judged all the same."""
    files = words.values.get("environment")
    if not files:
        raise InputError("expected --environment FILE")
    matrix = open_matrix(words.values.get("rules", ()))
    reports: dict[str, Report] = {}
    failed = False
    for file in files:
        try:
            reports[file] = _report(file, words, matrix)
        except InputError as problem:
            print(f"compat: {problem}", file=sys.stderr)
            failed = True
    _print(reports, len(files) > 1, words)
    return 2 if failed else max((report.exit for report in reports.values()), default=0)


def _report(file: str, words: Words, matrix: Matrix) -> Report:
    environment, notes = read_described(file)
    environment, more = command_of(environment, words)
    environment = stated(environment, words)
    environment, findings, judged_notes = judged(environment, matrix)
    return Report(
        environment=environment, findings=findings, notes=(*notes, *more, *judged_notes), exit=threshold_code(findings, words)
    )


def _print(reports: dict[str, Report], several: bool, words: Words) -> None:
    """JSON is one report, or a list of them where several files were given."""
    if words.one("format") == "json":
        from compat.show.json import dumped

        found = [report.to_json() for report in reports.values()]
        if several or found:
            emit(dumped(found if several else found[0]))
        return
    from compat.matrix.gpus import driver_cuda
    from compat.show.terminal import coloured, rendered

    for file, report in reports.items():
        title = file if several else None
        emit(coloured(rendered(report, title=title, driver_cuda=driver_cuda(report.environment))))
