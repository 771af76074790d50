"""Checks a cluster: groups identical nodes, reports on each group, and compares the nodes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence

from compat.api.commands import Options
from compat.api.report import machine_report
from compat.checks.advice import Shared
from compat.checks.fleet import Fleet, Judged, compare, not_probed
from compat.checks.nodes import Group
from compat.errors import InputError
from compat.files import regular_path
from compat.formats.described import parse_described
from compat.formats.project.config import find_config
from compat.machine.node import KEY, Node, node_of
from compat.model import Environment
from compat.records import record
from compat.rules.compiled import Matrix
from compat.syntax.json import parse_json, read_text

_LARGEST = 16 * 1024 * 1024


@record(frozen=True)
class Gathered:
    """The result of gathering facts. ``hosts`` were queried, ``silent`` did not answer, ``old`` are files it did not write.

    ``began`` and ``ended`` are seconds since 1970.
    """

    hosts: tuple[str, ...]
    silent: tuple[str, ...]
    old: frozenset[str]
    began: float
    ended: float


def read_fleet(
    folder: str, old: frozenset[str] = frozenset()
) -> tuple[tuple[Group, ...], tuple[InputError, ...], tuple[str, ...]]:
    """Read the files of a folder; returns the groups of nodes (largest first), the errors of unusable files, and notes.

    Each distinct environment is parsed once; files in ``old`` are skipped, with a note. :class:`InputError` if the folder
    cannot be read or contains no ``*.json`` files.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", folder) from None
    if not names:
        raise InputError("contains no *.json files written by 'compat facts --output'", folder)
    environments: dict[bytes, Environment] = {}
    nodes: dict[bytes, list[Node]] = {}
    problems: list[InputError] = []
    files: dict[str, list[str]] = {}
    notes: dict[str, None] = {}
    if old:
        few = ", ".join(sorted(old)[:3]) + (" …" if len(old) > 3 else "")
        notes[f"skipped, from an earlier collection: {few}"] = None
    for name in names:
        if name in old:
            continue
        path = os.path.join(folder, name)
        try:
            document = parse_json(read_text(regular_path(path), _LARGEST), path)
            if not isinstance(document, dict):
                raise InputError("expected a JSON object written by 'compat facts --output'", path)
            node = node_of(document.pop(KEY, None), path)
            key = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()
            if key not in environments:
                environments[key], remarks = parse_described(document, path)
                notes.update(dict.fromkeys(remarks))
        except InputError as problem:
            problems.append(problem)
            continue
        files.setdefault(node.host, []).append(name)
        nodes.setdefault(key, []).append(node)
    for host, named in files.items():
        if len(named) > 1:
            notes[f"{len(named)} files describe a node called {host} ({named[0]}, {named[1]} …); all are counted"] = None
    groups = [Group(environments[key], tuple(found)) for key, found in nodes.items()]
    return tuple(sorted(groups, key=lambda group: (-len(group.nodes), group.nodes[0].host))), tuple(problems), tuple(notes)


def judge_fleet(folder: str, options: Options, matrix: Matrix, gathered: Gathered | None = None) -> Fleet:
    """Check every distinct environment once, for the job described by ``options``, and compare the nodes.

    ``--expect`` names the hosts that must have answered: ``node[001-128]``, separated by commas.
    """
    groups, problems, notes = read_fleet(folder, gathered.old if gathered else frozenset())
    ignores = find_config(".").ignores
    shared = Shared()
    judged = tuple(
        Judged(group, machine_report(group.environment, options, matrix, ignores=ignores, shared=shared)) for group in groups
    )
    wanted = [host for text in options.values.get("expect", ()) for host in expand_hosts(text)]
    wanted += gathered.hosts if gathered else ()
    there = {node.host for group in groups for node in group.nodes}
    there |= {host.partition(".")[0] for host in there}  # schedulers use node1, the node itself node1.cluster.example
    missing = tuple(dict.fromkeys((*(host for host in wanted if host not in there), *(gathered.silent if gathered else ()))))
    to_probe = options.flag("probe") or any(node.probes is not None for group in groups for node in group.nodes)
    undecided = [node.host for group in groups for node in group.nodes if to_probe and not_probed(node)]
    if sum(len(group.nodes) for group in groups) == 1:
        notes = (*notes, "only one node was read: there is nothing to compare")
    window = (gathered.began, gathered.ended) if gathered else None
    return Fleet(judged, compare(groups, host_ranges, window), problems, missing, notes, tuple(undecided))


# --- Host lists in Slurm notation.

_MOST = 100_000


def host_ranges(hosts: Sequence[str]) -> str:
    """Hosts in Slurm notation: ``node[001-126,128],login``."""
    numbered: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for host in dict.fromkeys(hosts):
        stem = host.rstrip("0123456789")
        digits = host[len(stem) :]
        if digits.isascii() and 0 < len(digits) < 10:
            numbered.setdefault((stem, len(digits)), []).append(int(digits))
        else:
            plain.append(host)
    parts = []
    for (stem, width), numbers in sorted(numbered.items()):
        runs = list(_runs(sorted(numbers)))
        if len(runs) == 1 and runs[0][0] == runs[0][1]:
            parts.append(f"{stem}{runs[0][0]:0{width}d}")
        else:
            inside = (f"{a:0{width}d}" if a == b else f"{a:0{width}d}-{b:0{width}d}" for a, b in runs)
            parts.append(f"{stem}[{','.join(inside)}]")
    return ",".join([*parts, *sorted(plain)])


def _runs(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    """(first, last) of each run of consecutive numbers."""
    start = previous = numbers[0]
    for number in numbers[1:]:
        if number != previous + 1:
            yield start, previous
            start = number
        previous = number
    yield start, previous


def expand_hosts(text: str, option: str = "--expect") -> list[str]:
    """The hosts of a list in Slurm notation; :class:`InputError` naming ``option`` for an invalid range."""
    hosts: list[str] = []
    for part in _outside_brackets(text):
        stem, bracket, rest = part.partition("[")
        if not bracket:
            hosts += [part] if part else []
            continue
        inside, closed, after = rest.partition("]")
        if not closed or after or not inside:
            raise InputError(f"{option}: expected hosts such as node[001-128], not {text!r}")
        for piece in inside.split(","):
            first, _, last = piece.partition("-")
            last = last or first
            if not (first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()) or len(last) > 9:
                raise InputError(f"{option}: {piece!r} is not a range of numbers")
            if int(last) - int(first) > _MOST or len(hosts) > _MOST:
                raise InputError(f"{option}: more than {_MOST} hosts")
            hosts += [f"{stem}{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return hosts


def _outside_brackets(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
