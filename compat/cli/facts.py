"""``compat facts``: this machine, or what files list, as described environments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.api.inputs import read_subject
from compat.api.targets import command_of, stated
from compat.checks import named_devices
from compat.errors import InputError, printable
from compat.model import Environment
from compat.output.stream import emit
from compat.rules.compiled import open_matrix

if TYPE_CHECKING:
    from compat.api.words import Words


def run(words: Words) -> int:
    """Prints the environment as JSON, several as a list; what could not be read is said on standard error."""
    from compat.output.json import dumped

    named = [*(("file", name) for name in words.operands), *(("pasted", name) for name in words.values.get("pasted", ()))]
    if named and words.flag("python"):
        raise InputError("--python reads what is installed; files are read as they are: give one or the other")
    code = 0
    found: list[Environment] = []
    for kind, name in named or [("machine", "")]:
        try:
            for environment, notes in _read(kind, name, words):
                found.append(_completed(environment, notes, words))
        except InputError as problem:
            print(f"compat: {problem}", file=sys.stderr)
            code = 2
    printed = [environment.to_json() for environment in found]
    if printed:
        emit(dumped(printed[0] if len(printed) == 1 and len(named) < 2 else printed))
    return code


def _read(kind: str, name: str, words: Words) -> Iterator[tuple[Environment, tuple[str, ...]]]:
    matrix = open_matrix()
    if kind == "machine":
        from compat.api.machine import read_machine

        machine = read_machine(words.one("python"), matrix)
        yield machine.environment, machine.notes
        return
    subject = read_subject(kind, name, matrix)
    if subject.environment is not None:
        yield subject.environment, subject.notes
    if subject.listings:
        from compat.checks.selections import described

        for listing in subject.listings:
            yield described(listing), (*subject.notes, *listing.notes, *listing.unread)


def _completed(environment: Environment, notes: tuple[str, ...], words: Words) -> Environment:
    environment, more = command_of(environment, words)
    environment, remarks = named_devices(stated(environment, words))
    for note in dict.fromkeys((*notes, *more, *remarks)):
        print(f"compat: note: {printable(note)}", file=sys.stderr)
    return environment
