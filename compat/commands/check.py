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
    reports: dict[str, Report | InputError] = {}
    for file in files:
        try:
            reports[file] = _report(file, words, matrix)
        except InputError as problem:
            print(f"compat: {problem}", file=sys.stderr)
            reports[file] = problem
    _print(reports, len(files) > 1, words)
    return max(report.exit if isinstance(report, Report) else 2 for report in reports.values())


def _report(file: str, words: Words, matrix: Matrix) -> Report:
    environment, notes = read_described(file)
    environment, more = command_of(environment, words)
    environment = stated(environment, words)
    environment, findings, judged_notes = judged(environment, matrix)
    return Report(
        environment=environment, findings=findings, notes=(*notes, *more, *judged_notes), exit=threshold_code(findings, words)
    )


def _print(reports: dict[str, Report | InputError], several: bool, words: Words) -> None:
    """JSON is one report; of several files it is a list in which every entry names its file, also those that failed."""
    if words.one("format") == "json":
        from compat.show.json import dumped

        if several:
            emit(dumped([{"file": file, **_as_json(report)} for file, report in reports.items()]))
        else:
            for report in reports.values():
                if isinstance(report, Report):
                    emit(dumped(report.to_json()))
        return
    from compat.matrix.gpus import driver_cuda
    from compat.show.terminal import coloured, rendered

    for file, report in reports.items():
        if isinstance(report, Report):
            title = file if several else None
            emit(coloured(rendered(report, title=title, driver_cuda=driver_cuda(report.environment))))


def _as_json(report: Report | InputError) -> dict[str, object]:
    return report.to_json() if isinstance(report, Report) else {"error": str(report), "exit": 2}
