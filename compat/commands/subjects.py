"""Something to judge or to print: a file, a described or pasted environment, or what is installed."""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.environment import Environment
    from compat.matrix.compiled import Matrix
    from compat.read.files.listing import Listing


@record(frozen=True)
class Subject:
    """What was read: the listings of a file, or an environment. ``file`` is where findings without a line are shown."""

    name: str
    listings: tuple[Listing, ...] = ()
    environment: Environment | None = None
    notes: tuple[str, ...] = ()
    file: str | None = None


def read_subject(kind: str, name: str, matrix: Matrix) -> Subject:
    """Reads a ``file``, a ``described`` or ``pasted`` environment by name, or what is ``installed`` in a Python.

    :class:`InputError` names file and line where it cannot be used.
    """
    if kind == "installed":
        from compat.commands.machine import read_installation

        environment, notes = read_installation(name or None, matrix)
        return Subject(name or "installed", environment=environment, notes=notes)
    if kind == "pasted":
        return _pasted(name)
    if kind == "file":
        from compat.read.files.kinds import DESCRIBED, kind_of, listings_of, read_content

        content = read_content(name)
        found = kind_of(name, content)
        if found != DESCRIBED:
            return Subject(name, listings_of(name, found, content), file=name)
    from compat.read.described import read_described

    environment, notes = read_described(name)
    return Subject(name, environment=environment, notes=notes, file=None if name == "-" else name)


def _pasted(name: str) -> Subject:
    from compat.read.json_text import read_standard_input, read_text
    from compat.read.pasted import read_pasted
    from compat.read.regular_file import regular

    from_input = name == "-"
    shown = "standard input" if from_input else name
    environment, notes = read_pasted(read_standard_input() if from_input else read_text(regular(name)), shown)
    return Subject(shown, environment=environment, notes=notes, file=None if from_input else name)
