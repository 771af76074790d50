"""``compat diagnose``: explain the error in an issue, a traceback or a log for the environment it describes."""

from __future__ import annotations

from compat.api.commands import Options
from compat.api.diagnosis import report_on
from compat.errors import InputError
from compat.model import Environment, Outcome, Report
from compat.output.stream import emit, emit_json
from compat.records import replace
from compat.rules.compiled import Matrix, open_matrix
from compat.syntax.json import read_text, standard_input

_LIMIT = 256 * 1024 * 1024
_NOTHING = "No rule explains this text."


def run(options: Options) -> int:
    """Read the text (standard input without a file or with ``-``) and print the matching rules."""
    matrix = open_matrix(options.values.get("rules", ()))
    text = _text(options.operands[0] if options.operands else "-")
    environment, notes = _environment(options, matrix)
    report = report_on(text, environment, options, matrix)
    _print(replace(report, notes=(*notes, *report.notes)), options.one("format"))
    return report.exit


def _print(report: Report, form: str | None) -> None:
    if form == "json":
        emit_json(report.to_json())
    elif form == "markdown":
        from compat.output.markdown import markdown

        emit(markdown(report, nothing=_NOTHING))
    elif form == "html":
        from compat.output.html.report import outcomes_page

        emit(outcomes_page([Outcome("", report)], _NOTHING))
    else:
        from compat.output.terminal import coloured, render_text

        emit(coloured(render_text(report, nothing=_NOTHING, at_length=True)))


def _text(path: str) -> str:
    if path != "-":
        return read_text(path, _LIMIT)
    content = standard_input(_LIMIT)
    if len(content) > _LIMIT:
        raise InputError(f"is larger than {_LIMIT // 1024 // 1024} MiB", "standard input")
    # logs may contain any bytes; no known error message contains invalid UTF-8
    return content.decode("utf-8", "replace")


def _environment(options: Options, matrix: Matrix) -> tuple[Environment | None, tuple[str, ...]]:
    """Return the described or installed environment to use; ``None`` for the one that the text describes."""
    if options.flag("environment") and options.flag("python"):
        raise InputError("--environment and --python are mutually exclusive")
    if options.flag("environment"):
        from compat.formats.described import read_described

        return read_described(options.one("environment") or "")
    if options.flag("python"):
        from compat.api.machine import read_machine

        machine = read_machine(options.one("python"), matrix, states_gpus=options.flag("gpu"))
        return machine.environment, machine.notes
    return None, ()
