"""Reading of inputs: a file, a described or pasted environment, or installed packages."""

from __future__ import annotations

from compat.model import Environment
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.formats.listing import Listing
    from compat.rules.compiled import Matrix


@record(frozen=True)
class Subject:
    """One input: the listings of a file, or an environment. ``file`` is the location of findings without a line.

    ``text`` is pasted text, which may contain an error in addition to the environment.
    """

    name: str
    listings: tuple[Listing, ...] = ()
    environment: Environment | None = None
    notes: tuple[str, ...] = ()
    file: str | None = None
    text: str | None = None


def read_subject(kind: str, name: str, matrix: Matrix) -> Subject:
    """Read a ``file``, a ``described`` or ``pasted`` environment by name, or the packages ``installed`` in a Python.

    Raises :class:`InputError` with file and line if it cannot be used.
    """
    if kind == "installed":
        from compat.api.machine import read_installation

        environment, notes = read_installation(name or None, matrix)
        return Subject(name or "installed", environment=environment, notes=notes)
    if kind == "pasted":
        return _pasted(name)
    if kind == "file":
        from compat.formats.registry import format_of, read_content

        content = read_content(name)
        found = format_of(name, content)
        if found.kind != "described":
            return Subject(name, found.listings(name, content), file=name)
    from compat.formats.described import read_described

    environment, notes = read_described(name)
    return Subject(name, environment=environment, notes=notes, file=None if name == "-" else name)


def _pasted(name: str) -> Subject:
    from compat.api.diagnosis import environment_in
    from compat.files import regular
    from compat.reports.log.traceback import parse_log
    from compat.reports.pasted import read_pasted
    from compat.syntax.json import read_standard_input, read_text

    from_input = name == "-"
    shown = "standard input" if from_input else name
    text = read_standard_input() if from_input else read_text(regular(name))
    environment, notes = environment_in(text)
    if environment == Environment() and not parse_log(text):
        read_pasted(text, shown)  # raises an error that states what was expected
    return Subject(shown, environment=environment, notes=notes, file=None if from_input else name, text=text)
