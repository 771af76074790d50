"""``compat check``: findings for described environments."""

from __future__ import annotations

import sys

from compat.commands.given import command_of, stated, threshold_code
from compat.errors import InputError
from compat.judge import judged
from compat.matrix.compiled import open_matrix
from compat.read.described import read_described
from compat.report import Report

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
    reports: list[Report] = []
    failed = False
    for file in files:
        try:
            reports.append(_report(file, words, matrix))
        except InputError as problem:
            print(f"compat: {problem}", file=sys.stderr)
            failed = True
    _print(reports, files, words)
    return 2 if failed else max((report.exit for report in reports), default=0)


def _report(file: str, words: Words, matrix: Matrix) -> Report:
    environment, notes = read_described(file)
    environment, more = command_of(environment, words)
    environment = stated(environment, words)
    environment, findings, judged_notes = judged(environment, matrix)
    return Report(
        environment=environment, findings=findings, notes=(*notes, *more, *judged_notes), exit=threshold_code(findings, words)
    )


def _print(reports: list[Report], files: list[str], words: Words) -> None:
    if words.one("format") == "json":
        from compat.show.json import dumped

        print(dumped([report.to_json() for report in reports] if len(files) > 1 else reports[0].to_json()) if reports else "")
        return
    from compat.matrix.gpus import driver_cuda
    from compat.show.terminal import rendered

    for file, report in zip(files, reports):
        title = file if len(files) > 1 else None
        print(rendered(report, title=title, driver_cuda=driver_cuda(report.environment)))
