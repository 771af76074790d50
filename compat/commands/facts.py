"""``compat facts``: this machine as a described environment."""

from __future__ import annotations

import sys

from compat.commands.given import command_of, stated
from compat.commands.machine import read_machine
from compat.judge import named_devices
from compat.matrix.compiled import open_matrix
from compat.show.output import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.options import Words


def run(words: Words) -> int:
    """Prints the environment as JSON; what could not be read is said on standard error."""
    from compat.show.json import dumped

    machine = read_machine(words.one("python"), open_matrix())
    environment, notes = command_of(machine.environment, words)
    environment, more = named_devices(stated(environment, words))
    for note in (*machine.notes, *notes, *more):
        print(f"compat: note: {note}", file=sys.stderr)
    emit(dumped(environment.to_json()))
    return 0
