"""``compat diagnose``: a traceback or log → the rules whose errors it shows."""

from __future__ import annotations

import sys

from compat.commands.given import stated, threshold_code
from compat.environment import Distribution, Environment
from compat.errors import InputError
from compat.judge import named_devices
from compat.judge.diagnose import diagnose
from compat.judge.interface_errors import meeting
from compat.matrix.compiled import open_matrix
from compat.read.json_text import read_text
from compat.read.log.traceback_text import decisive, parse_log, versions_in
from compat.records import replace
from compat.report import Report
from compat.show.output import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.matrix.compiled import Matrix
    from compat.options import Words
    from compat.read.log.traceback_text import RaisedError

_LIMIT = 256 * 1024 * 1024


def run(words: Words) -> int:
    """Reads the text (standard input without a file or with ``-``) and prints what the matrix knows about it."""
    matrix = open_matrix(words.values.get("rules", ()))
    text = _text(words.operands[0] if words.operands else "-")
    if not text.strip():
        raise InputError("the text is empty: expected a traceback or a log")
    environment, notes = _environment(words, matrix)
    environment, disagreeing = _with_versions(environment, versions_in(text))
    environment, named = named_devices(stated(environment, words))
    errors = parse_log(text)
    order = decisive(errors)
    findings = diagnose(text, errors, order, environment, matrix)
    notes = (*notes, *disagreeing, *named)
    if not any(finding.origin == "rule" or finding.confidence != "reported" for finding in findings):
        notes = (*notes, *unexplained(errors, order))
    report = Report(environment=environment, findings=findings, notes=notes, exit=threshold_code(findings, words))
    if words.one("format") == "json":
        from compat.show.json import dumped

        emit(dumped(report.to_json()))
    else:
        from compat.show.terminal import coloured, rendered

        emit(coloured(rendered(report, nothing="No rule of the matrix explains this text.", at_length=True)))
    return report.exit


def _text(path: str) -> str:
    if path != "-":
        return read_text(path, _LIMIT)
    content = sys.stdin.buffer.read(_LIMIT + 1)
    if len(content) > _LIMIT:
        raise InputError(f"is larger than {_LIMIT // 1024 // 1024} MiB", "standard input")
    # a log may hold anything; what is no UTF-8 is no part of an error message we know
    return content.decode("utf-8", "replace")


def _environment(words: Words, matrix: Matrix) -> tuple[Environment, tuple[str, ...]]:
    """The environment to judge against: a described one, an installed one, or nothing known at all."""
    if words.flag("environment") and words.flag("python"):
        raise InputError("--environment and --python both name an environment: give one")
    if words.flag("environment"):
        from compat.read.described import read_described

        return read_described(words.one("environment") or "")
    if words.flag("python"):
        from compat.commands.machine import read_machine

        machine = read_machine(words.one("python"), matrix)
        return machine.environment, machine.notes
    return Environment(), ()


def _with_versions(environment: Environment, named: dict[str, str]) -> tuple[Environment, tuple[str, ...]]:
    """The environment with the versions a log names itself, and a note for each that it contradicts."""
    known = {copy.name: copy.version for copy in environment.distributions or ()}
    new = [Distribution(name=name, version=version) for name, version in named.items() if name not in known]
    notes = tuple(
        f"the text names {name} {version}, the environment has {known[name]}: another environment may have run"
        for name, version in named.items()
        if known.get(name) not in (None, version) and str(known[name]).partition("+")[0] != version.partition("+")[0]
    )
    if new and not environment.distributions_complete:
        environment = replace(environment, distributions=(*(environment.distributions or ()), *new))
    return environment, notes


def unexplained(errors: tuple[RaisedError, ...], order: tuple[int, ...]) -> tuple[str, ...]:
    """What to say about an error no rule knows: the error, words to search for, the packages that meet at it."""
    if not order:
        return ("no error was recognised in the text: give the whole traceback, from 'Traceback' to the last line",)
    error = errors[order[0]]
    last = error.message.strip().splitlines()[0] if error.message.strip() else ""
    name = f"{error.exception}: {last}" if error.exception else last
    lines = [f"no rule knows the decisive error (line {error.line}): {name}"]
    both = meeting(error)
    where = f", in the issues of {' and '.join(both)}" if both else ""
    lines.append(f"search upstream for: {search_terms(error)}{where}")
    return tuple(lines)


def search_terms(error: RaisedError) -> str:
    """The error without what is particular to one run: numbers, addresses, paths."""
    import re

    message = error.message.strip().splitlines()[0] if error.message.strip() else ""
    message = re.sub(r"0x[0-9a-f]+|(/[\w.+-]+){2,}|\d+", " ", message)
    words = " ".join(message.split())[:120]
    parts = (error.exception.rpartition(".")[2] if error.exception else "", words)
    return " ".join(f'"{part}"' for part in parts if part)
