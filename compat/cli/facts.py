"""``compat facts``: describe this machine, or the contents of files, as environments."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.api.commands import Options
from compat.api.inputs import read_subject
from compat.api.targets import apply_options, command_of
from compat.checks import named_devices
from compat.errors import InputError, printable
from compat.model import Environment
from compat.output.stream import emit_json, to_json
from compat.records import replace
from compat.rules.compiled import open_matrix

if TYPE_CHECKING:
    from compat.probe.request import ProbeResult


def run(options: Options) -> int:
    """Print the environment as JSON, several as a list; unreadable input is reported on standard error.

    With ``--output``, write this machine to a folder instead, as one node of a fleet.
    """
    if options.flag("output"):
        return _write_node(options)

    for name in ("probe", "rendezvous", "nodes", "timeout"):
        if options.flag(name):
            raise InputError(f"--{name} requires --output DIR")
    named = [*(("file", name) for name in options.operands), *(("pasted", name) for name in options.values.get("pasted", ()))]
    if named and options.flag("python"):
        raise InputError("--python reads an installed environment; it cannot be combined with files")
    code = 0
    found: list[Environment] = []
    for kind, name in named or [("machine", "")]:
        try:
            for environment, notes in _read(kind, name, options):
                found.append(_completed(environment, notes, options))
        except InputError as problem:
            print(f"compat: {problem}", file=sys.stderr)
            code = 2
    printed = [environment.to_json() for environment in found]
    if printed:
        emit_json(printed[0] if len(printed) == 1 and len(named) < 2 else printed)
    return code


def _write_node(options: Options) -> int:
    """Write this machine to ``HOST.json`` in a folder, atomically by renaming a temporary file."""
    import re

    from compat.api.machine import read_machine
    from compat.machine.node import KEY, Node, probed_of, read_node

    folder = options.one("output") or ""
    if options.operands or options.flag("pasted"):
        raise InputError("--output writes the facts of this machine; it cannot be combined with files")
    probing = _Probing(options) if options.flag("probe") else None
    machine = read_machine(options.one("python"), open_matrix())
    # the launcher of this command is not the launcher of the job that the nodes will run
    variables = {name: value for name, value in (machine.environment.variables or {}).items() if name not in _OF_LAUNCHERS}
    environment = _completed(replace(machine.environment, workload=None, variables=variables), machine.notes, options)
    node = read_node(machine.environment.folders or (), os.environ)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", node.host)[:100].lstrip(".") or "node"
    place = os.path.join(folder, f"{name}.json")

    def write(node: Node) -> None:
        try:
            os.makedirs(folder, exist_ok=True)
            beside = f"{place}.{os.getpid()}.part"
            with open(beside, "w", encoding="utf-8") as file:
                file.write(to_json({**environment.to_json(), KEY: node.to_json()}) + "\n")
            os.replace(beside, place)
        except OSError as problem:
            raise InputError(f"cannot be written: {problem.strerror or problem}", place) from None

    write(node)  # before probing, so that a node whose probes hang is still recorded
    if probing is not None:
        results = probing.run(machine.environment)
        write(replace(node, probes=tuple(probed_of(each.to_json()) for each in results)))
    return 0


_OF_LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


class _Probing:
    """The probes of one node: first those with the other nodes, which are waiting, then the quick ones on every device."""

    def __init__(self, options: Options) -> None:
        """Raises :class:`InputError` for an invalid rendezvous address, number of nodes, timeout or interpreter."""
        from compat.cli.probe import interpreter, seconds_of
        from compat.probe.session import meeting_at

        self.python = interpreter(options.one("python"))
        self.limit = seconds_of(options.one("timeout"), 120.0) / 2
        where = options.one("rendezvous")
        self.meeting = None if where is None else meeting_at(where, options.one("nodes"), self.limit / 2)

    def run(self, environment: Environment) -> tuple[ProbeResult, ...]:
        from compat.api.probe import probe
        from compat.probe.request import COULD_NOT_RUN, QUICK, ProbeResult, Request
        from compat.probe.session import NoTorch, probe_nodes
        from compat.rules.facts import visible

        found: tuple[ProbeResult, ...] = ()
        if self.meeting is not None:
            found = probe_nodes(self.python, self.meeting, len(visible(environment).accelerators or ()))
        try:
            return (*found, *probe(Request(self.python, depth=QUICK, limit=self.limit), environment).results)
        except NoTorch as reason:
            return (*found, ProbeResult("torch/import", "cpu", COULD_NOT_RUN, str(reason)))


def _read(kind: str, name: str, options: Options) -> Iterator[tuple[Environment, tuple[str, ...]]]:
    matrix = open_matrix()
    if kind == "machine":
        from compat.api.machine import read_machine

        machine = read_machine(options.one("python"), matrix, states_gpus=options.flag("gpu"))
        yield machine.environment, machine.notes
        return
    subject = read_subject(kind, name, matrix)
    if subject.environment is not None:
        yield subject.environment, subject.notes
    if subject.listings:
        from compat.checks.selections import to_environment

        for listing in subject.listings:
            yield (
                to_environment(listing),
                tuple(dict.fromkeys((*subject.notes, *listing.notes, *listing.elsewhere, *listing.unread))),
            )


def _completed(environment: Environment, notes: tuple[str, ...], options: Options) -> Environment:
    environment, more = command_of(environment, options)
    environment, remarks = named_devices(apply_options(environment, options))
    for note in dict.fromkeys((*notes, *more, *remarks)):
        print(f"compat: note: {printable(note)}", file=sys.stderr)
    return environment
